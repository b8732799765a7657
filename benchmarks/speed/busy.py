"""Seconds of ``fit`` beside busy processes, and alone, with the BLAS threads of the machine and with one.

    python benchmarks/speed/busy.py [--busy 4] [--repeat 3] [--only 569]

Every figure is the least of some runs, each in a process of its own, the two numbers of BLAS threads in turn. Calls of
the library have one BLAS thread inside whatever the number is: the ratio of the two should be about 1, beside busy
processes too. Nothing is written.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CASES = {
    "breast_cancer, 569 rows, small": """
from sklearn.datasets import load_breast_cancer
X, y = load_breast_cancer(return_X_y=True)
model = kernelstream.KernelClassifier(size="small", random_state=0)""",
    "generated, 3,000 rows x 8, medium": """
X = np.random.default_rng(0).normal(size=(3000, 8))
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
model = kernelstream.KernelRegressor(random_state=0)""",
    "generated, 12,000 rows x 8, medium": """
X = np.random.default_rng(0).normal(size=(12000, 8))
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
model = kernelstream.KernelRegressor(random_state=0)""",
}
TIMED = """
import time
import numpy as np
import kernelstream
{}
kernelstream.KernelRegressor(size="small").fit(np.eye(300)[:, :3], np.arange(300.0))  # what is made only once
start = time.perf_counter()
model.fit(X, y)
print(time.perf_counter() - start)
"""


def spin() -> None:
    while True:
        pass


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many busy processes for the length of a ``with`` block."""
    others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()


def seconds(case: str, blas_threads: int) -> float:
    """Of ``fit`` in a new process."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(blas_threads), "MKL_NUM_THREADS": str(blas_threads)}
    command = [sys.executable, "-c", TIMED.format(CASES[case])]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=4, help="busy processes")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    args = parser.parse_args()
    several = os.cpu_count() or 1
    print(f"| `fit` | busy processes | BLAS threads: 1 | {several} | ratio |\n|---|---:|---:|---:|---:|")
    for case in CASES:
        if args.only not in case:
            continue
        for count in dict.fromkeys((0, args.busy)):
            best = {1: float("inf"), several: float("inf")}
            with beside(count):
                for _ in range(args.repeat):
                    for number in best:
                        best[number] = min(best[number], seconds(case, number))
            ratio = best[several] / best[1]
            print(f"| {case} | {count} | {best[1]:.2f} | {best[several]:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
