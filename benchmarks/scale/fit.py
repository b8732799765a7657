"""Seconds of ``fit`` of the default learner, "medium", and of its forecasts, by the number of rows.

    python benchmarks/scale/fit.py --engine torch --rows 8000,20000,60000,100000
    python benchmarks/scale/fit.py --rows 8000,20000

Ten columns N(0, 1), float64; the target is Friedman's first function of five of them, with noise of variance 1. Errors
are those of the function without the noise, on rows that were not learned, by its variance.
"""

from __future__ import annotations

import argparse
import pickle
import time
from pathlib import Path

import numpy as np

from kernelstream import KernelRegressor

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


def measured(n: int, engine: str) -> str:
    """A line of the table."""
    X, f = drawn(n, 0)
    y = f + np.random.default_rng(1).normal(size=n)
    model = KernelRegressor(engine=engine, random_state=0)
    taken = seconds(lambda: model.fit(X, y))
    A, g = drawn(FRESH, 2)
    forecast = seconds(lambda: model.predict(A))
    error = np.mean(np.square(model.predict(A) - g)) / np.var(g)
    single = np.median([seconds(lambda i=i: model.predict(A[i : i + 1])) for i in range(300)])
    size = len(pickle.dumps(model)) / 1e6
    return (
        f"| {engine} | {n:,} | {taken:.2f} | {error:.5f} | {FRESH / forecast:,.0f} | {1e6 * single:.0f} | {size:.2f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="8000,20000")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--out", type=Path, default=RESULTS / "fit.md")
    given = parser.parse_args()
    measured(500, given.engine)  # what is compiled or loaded once
    lines = [
        "| engine | rows | seconds | error by variance | forecasts/s | µs for one row | MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for count in given.rows.split(","):
        lines.append(measured(int(count), given.engine))
        print(lines[-1], flush=True)
    given.out.write_text("\n".join(["Written by `python benchmarks/scale/fit.py`.\n", *lines]) + "\n")
