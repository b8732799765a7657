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


def write(folder):
    """Files of the flats: a table, its two halves, and rows of numbers."""
    rows = [f"{i},{CITY[i]},{SIZE[i]:.3f},{ROOMS[i]},{KIND[i]},{PRICE[i]:.4f}" for i in range(N)]
    for name, part in (("flats.csv", rows), ("part1.csv", rows[:1000]), ("part2.csv", rows[1000:])):
        (folder / name).write_text("\n".join(["id,city,size,rooms,kind,price", *part]) + "\n")
    lines = [f"{'+1' if KIND[i] == 'large' else '-1'} 1:{SIZE[i] / 150:.4f} 2:{ROOMS[i] / 6:.4f}" for i in range(N)]
    (folder / "flats.svm").write_text("\n".join(lines) + "\n")
    return folder
