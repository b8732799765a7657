"""How long a row waits: the default learner from its first row on, with its longest calls, not the mean alone.

    python benchmarks/speed/stalls.py [--rows 10000] [--columns 18] [--pace 200] [--background 0] [--block 1]

Rows come as fast as they are learned, and ``--pace`` a second. Some rows need a solution in the learned metric, which
is computed beside the rows before (see :mod:`kernelstream.settings`); with ``--background 0`` these rows compute it
themselves. ``--block 100`` learns blocks of 100. The last line is of a model that another thread teaches meanwhile.
Nothing is written: figures of two settings are those of one machine in the same minutes.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from kernelstream import KernelRegressor, settings

LEVELS = 50, 99, 99.9, 100


def stream(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose target is a smooth function of some of their columns, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, np.sin(X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.standard_normal(rows)


def waits(X: np.ndarray, y: np.ndarray, block: int, pace: float, size: str) -> tuple[np.ndarray, float]:
    """Milliseconds of every call of ``learn``, and rows a second of processor time, those of all threads."""
    model, found = KernelRegressor(size=size, random_state=0), []
    cpu = time.process_time()
    due = time.perf_counter()
    for a in range(0, len(X), block):
        due += block / pace
        time.sleep(max(0.0, due - time.perf_counter()) if np.isfinite(pace) else 0.0)
        start = time.perf_counter()
        model.learn(X[a : a + block], y[a : a + block])
        found.append(1e3 * (time.perf_counter() - start))
    return np.array(found), len(X) / (time.process_time() - cpu)


def asked(X: np.ndarray, y: np.ndarray, size: str) -> np.ndarray:
    """Milliseconds of predictions of one row, while another thread teaches the model row by row."""
    model, found, over = KernelRegressor(size=size, random_state=0).partial_fit(X[:500], y[:500]), [], threading.Event()

    def teach() -> None:
        for i in range(500, len(X)):
            model.learn(X[i : i + 1], y[i : i + 1])
        over.set()

    teacher = threading.Thread(target=teach)
    teacher.start()
    while not over.is_set():
        start = time.perf_counter()
        model.predict(X[:1])
        found.append(1e3 * (time.perf_counter() - start))
        time.sleep(0.001)
    teacher.join()
    return np.array(found)


def shown(name: str, times: np.ndarray, more: str = "") -> str:
    median, high, higher, longest = np.percentile(times, LEVELS)
    figures = f"p50 {median:8.3f}   p99 {high:8.3f}   p99.9 {higher:8.3f}   longest {longest:8.1f} ms"
    return f"{name:34s} {figures}{more}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=18)
    parser.add_argument("--pace", type=float, default=200.0, help="rows a second; 0 leaves these lines out")
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--size", default="medium")
    parser.add_argument("--background", type=int, default=1)
    how = parser.parse_args()
    X, y = stream(how.rows, how.columns)
    KernelRegressor(size=how.size, random_state=0).partial_fit(X[:100], y[:100])  # what a process makes once
    with settings.using(background=how.background):
        for pace in (np.inf, how.pace) if how.pace else (np.inf,):
            times, rate = waits(X, y, how.block, pace, how.size)
            name = f"learn {how.block}, " + (f"{pace:g} rows a second" if np.isfinite(pace) else "as fast as it can")
            print(shown(name, times, f"   {rate:,.0f} rows a second of processor time"), flush=True)
        print(shown("predict 1 beside a thread that learns", asked(X, y, how.size)))


if __name__ == "__main__":
    main()
