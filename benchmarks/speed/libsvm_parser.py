"""Speed of the text readers: LIBSVM blocks against ``load_svmlight_file``, CSV blocks against ``pandas.read_csv``.

Readers are measured in turn, several times, in one run on an idle machine, by the clock; the best counts. All give
rows of float64.

    python benchmarks/speed/libsvm_parser.py [FILE.svm] [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from kernelstream import streams


def like_a9a(path: Path, rows: int = 30_000) -> None:
    """Rows as in a9a: 14 of 123 columns, all ones."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for i in range(rows):
            columns = np.sort(rng.choice(123, 14, replace=False)) + 1
            file.write(f"{'+1' if i % 4 == 0 else '-1'} {' '.join(f'{j}:1' for j in columns)}\n")


def like_numbers(path: Path, rows: int = 10_000) -> None:
    """Rows with 20 columns of decimal fractions."""
    values = np.random.default_rng(0).standard_normal((rows, 20))
    with open(path, "w") as file:
        for row in values:
            file.write("1 " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row)) + "\n")


def like_csv(path: Path, rows: int = 20_000) -> None:
    """The same columns as CSV."""
    values = np.random.default_rng(0).standard_normal((rows, 21))
    with open(path, "w") as file:
        file.write(",".join(f"x{j}" for j in range(21)) + "\n")
        file.writelines(",".join(f"{v:.6f}" for v in row) + "\n" for row in values)


def times(actions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Best seconds of each action, measured in turn."""
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(repeats):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def read(path: Path, **options: object) -> int:
    """Rows of a file, block by block."""
    with streams.open(path, **options) as stream:
        return sum(X.shape[0] for X, _ in stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a LIBSVM file of your own")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(f"{'rows like':12} {'reader':28} {'MB/s':>8} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        cases = {"a9a": like_a9a, "decimals": like_numbers} if args.file is None else {args.file.name: None}
        for name, write in cases.items():
            path = args.file or Path(folder) / f"{name}.svm"
            if write is not None:
                write(path)
            actions: dict[str, Callable[[], object]] = {
                "load_svmlight_file": lambda path=path: load_svmlight_file(str(path)),
                "LibSVM, blocks of 1024": lambda path=path: read(path, format="libsvm"),
                "LibSVM, blocks of 8192": lambda path=path: read(path, format="libsvm", block=8192),
                "LibSVM, float32": lambda path=path: read(path, format="libsvm", block=8192, dtype="float32"),
            }
            report(name, path, times(actions, args.repeats))
        if args.file is None:
            path = Path(folder) / "numbers.csv"
            like_csv(path)
            actions = {
                "CSV, blocks of 1024": lambda: read(path, target=0),
                "CSV, blocks of 8192": lambda: read(path, target=0, block=8192),
            }
            try:
                import pandas as pd

                actions = {"pandas.read_csv": lambda: pd.read_csv(path)} | actions
            except ImportError:
                pass
            report("csv", path, times(actions, args.repeats))


def report(name: str, path: Path, best: dict[str, float]) -> None:
    size = os.path.getsize(path) / 1e6
    first = next(iter(best.values()))
    for reader, seconds in best.items():
        print(f"{name:12} {reader:28} {size / seconds:8.0f} {first / seconds:6.1f}x")


if __name__ == "__main__":
    main()
