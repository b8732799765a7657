"""A table of flats, and the command as a process: what the tests of the commands share."""

import subprocess
import sys

import numpy as np

rng = np.random.default_rng(0)
N = 3000
SIZE, ROOMS = rng.uniform(20, 150, N), rng.integers(1, 6, N)
CITY = rng.choice(["Rome", "Oslo", "Paris"], N)
PRICE = 3 * SIZE + 20 * ROOMS + 100 * (CITY == "Oslo") + rng.normal(0, 5, N)
KIND = np.where(SIZE * ROOMS > 250, "large", "small")


PRICES = ["--target", "price", "--drop", "id,kind,city"]


COMMAND = [sys.executable, "-m", "kernelstream.cli"]


def process(*argv, **options):
    return subprocess.run([*COMMAND, *map(str, argv)], capture_output=True, check=False, **options)
