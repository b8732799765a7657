"""Rows per second with one thread and with two, of the learners that use both, in one run.

    python benchmarks/speed/threads.py [--rows 40000] [--repeat 5] [--threads 2] [--only cells,ridge] [--block 1000]

Calls of ``learn`` with 1,000 rows, wall time, the best of the runs, one and two threads in turn, on copies of one model
(it has learned the first rows already, so that all is set up). Rows are generated: 20 columns of float64, two classes.
Nothing is written.
"""

from __future__ import annotations

import argparse
import copy
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelstream import CellsClassifier, KernelClassifier, OnlineRidgeClassifier, settings, zoo

WARM = 4000  # rows learned before the clock runs


def stream(rows: int, columns: int) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(rows) > 0).astype(int)


# name: (learner, rows, share of the rows that are learned, since some learners are slow)
CASES: dict[str, tuple[Callable[[], Any], Callable[[int], Any], float]] = {
    "cells": (lambda: CellsClassifier(random_state=0), lambda n: stream(n, 20), 1.0),
    "cells of columns": (lambda: zoo.make("column_cells", random_state=0), lambda n: stream(n, 20), 1.0),
    "ridge 200": (
        lambda: zoo.make("ridge", n_components=100, gamma=0.02, random_state=0),
        lambda n: stream(n, 20),
        0.5,
    ),
    "awv 276": (
        lambda: OnlineRidgeClassifier("taylor", forecaster="awv"),
        lambda n: stream(n, 22),
        0.5,
    ),
    "default learner, small": (lambda: KernelClassifier(size="small", random_state=0), lambda n: stream(n, 20), 1.0),
    "default learner, medium": (lambda: KernelClassifier(size="medium", random_state=0), lambda n: stream(n, 20), 0.5),
    "projectron 1,000": (
        lambda: zoo.make("projectron", budget=1000, gamma=0.02, random_state=0),
        lambda n: stream(n, 20),
        0.1,
    ),
}


def seconds(learn: Callable[[Any, np.ndarray], Any], X: Any, y: np.ndarray, block: int) -> float:
    start = time.perf_counter()
    for a in range(0, len(y), block):
        learn(X[a : a + block], y[a : a + block])
    return time.perf_counter() - start


def measure(name: str, rows: int, repeat: int, threads: int, block: int) -> tuple[float, float]:
    """Rows per second with one thread, and with several."""
    build, make, share = CASES[name]
    X, y = make(WARM + int(rows * share))
    model = build()
    for a in range(0, WARM, block):
        model.learn(X[a : a + block], y[a : a + block], classes=[0, 1])
    X, y = X[WARM:], y[WARM:]
    best = {1: np.inf, threads: np.inf}
    for _ in range(repeat):
        for count in best:
            settings.change(threads=count)
            best[count] = min(best[count], seconds(copy.deepcopy(model).learn, X, y, block))
    settings.change(threads=None)
    return len(y) / best[1], len(y) / best[threads]


def gemm() -> str:
    """Rates of the machine: products of large matrices, and copies of memory."""
    A = np.ones((1024, 1024), np.float32)
    B = np.ones(1 << 25, np.float32)
    C = np.empty_like(B)
    product = copy = np.inf
    for _ in range(5):
        start = time.perf_counter()
        A @ A
        product = min(product, time.perf_counter() - start)
        start = time.perf_counter()
        np.copyto(C, B)
        copy = min(copy, time.perf_counter() - start)
    return (
        f"one thread: {2 * 1024**3 / product / 1e9:.0f} Gflop/s in float32, {2 * B.nbytes / copy / 1e9:.1f} GB/s copied"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--block", type=int, default=1000, help="rows of a call")
    parser.add_argument("--only", help="learners whose name starts like one of these, with commas between them")
    args = parser.parse_args()
    wanted = tuple(args.only.split(",")) if args.only else ("",)
    print(f"{platform.machine()}, {os.cpu_count()} cores; {gemm()}\n")
    print(f"| calls of {args.block:,} rows | rows/s, 1 thread | {args.threads} threads | ratio |\n|---|---:|---:|---:|")
    for name in CASES:
        if name.startswith(wanted):
            one, several = measure(name, args.rows, args.repeat, args.threads, args.block)
            print(f"| {name} | {one:,.0f} | {several:,.0f} | {several / one:.2f} |", flush=True)


if __name__ == "__main__":
    main()
