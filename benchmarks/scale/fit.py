"""Seconds of ``fit`` of the default learner and of its forecasts, by the number of rows and its size.

    python benchmarks/scale/fit.py --engine torch --rows 8000,20000,60000,100000
    python benchmarks/scale/fit.py --rows 8000,20000 --sizes small,medium,large

Lines are added to those in the file.

Ten columns N(0, 1), float64; the target is Friedman's first function of five of them, with noise of variance 1. Errors
are those of the function without the noise, on rows that were not learned, by its variance.
"""

from __future__ import annotations

import argparse
import itertools
import pickle
import platform
import time
from pathlib import Path

import numpy as np

from kernelstream import KernelRegressor
from kernelstream.core import threads

RESULTS = Path(__file__).parents[1] / "results"
FRESH = 20_000


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 10) and the function without noise."""
    X = np.random.default_rng(seed).normal(size=(n, 10))
    U = 0.5 + 0.29 * X
    f = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]
    return X, f


def seconds(call) -> float:
    """Of a call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measured(n: int, engine: str, size: str, on: str) -> str:
    """A line of the table."""
    X, f = drawn(n, 0)
    y = f + np.random.default_rng(1).normal(size=n)
    model = KernelRegressor(size=size, engine=engine, random_state=0)
    taken = seconds(lambda: model.fit(X, y))
    A, g = drawn(FRESH, 2)
    forecast = seconds(lambda: model.predict(A))
    error = np.mean(np.square(model.predict(A) - g)) / np.var(g)
    single = np.median([seconds(lambda i=i: model.predict(A[i : i + 1])) for i in range(300)])
    MB = len(pickle.dumps(model)) / 1e6
    cells = f"{n:,} | {taken:.2f} | {error:.5f} | {FRESH / forecast:,.0f} | {1e6 * single:.0f} | {MB:.2f}"
    return f"| {on} | {engine} | {threads.get_num_threads()} | {size} | {cells} |"


HEAD = """Written by `python benchmarks/scale/fit.py`.

| on | engine | threads | size | rows | seconds | error by variance | forecasts/s | µs for one row | MB |
| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="8000,20000")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--sizes", default="medium")
    parser.add_argument("--on", default=platform.machine(), help="name of the processor, for the table")
    parser.add_argument("--out", type=Path, default=RESULTS / "fit.md")
    given = parser.parse_args()
    measured(500, given.engine, "medium", given.on)  # what is compiled or loaded once
    if not given.out.exists():
        given.out.write_text(HEAD)
    for size, count in itertools.product(given.sizes.split(","), given.rows.split(",")):
        line = measured(int(count), given.engine, size, given.on)
        print(line, flush=True)
        with given.out.open("a") as file:
            file.write(f"{line}\n")
