"""What ``learn`` makes of a history that ``fit`` has learned: when something changes, and when nothing does.

    python benchmarks/drift/after_fit.py [--sizes small,medium] [--sets electricity,fried] [--history 3000] [--live N]

Errors of three models on the same rows, each forecast before it is learned: ``fit`` of the history, then ``learn`` of
the rows that come; ``learn`` of both; and ``fit`` alone. They are shares of mistakes, or squared errors over the
variance of the target, in per cent.

First simulations, of 2,000 rows of history: after them, and again 4,000 rows later, the truth is another function, or
the same one with the other sign. Then sets in their own order, in which the history may differ from what comes, and in
random order.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

from collections.abc import Callable

import numpy as np

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.datasets import load

LABELS = ("electricity", "adult", "airlines", "nomao", "spambase")
NUMBERS = ("california", "fried", "ailerons", "diamonds", "casp", "kings_county")
PERIOD = 4000  # rows between two changes

Rows = tuple[np.ndarray, np.ndarray]


def simulated(kind: str, labels: bool, seed: int = 0) -> Rows:
    """2,000 rows of history and twice 4,000 rows, of another truth each time."""
    rng = np.random.default_rng(seed)
    n = 2000 + 2 * PERIOD
    X = rng.normal(size=(n, 4))
    truths = [np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]]
    truths.append(-truths[0] if kind == "sign" else np.cos(2 * X[:, 2]) + X[:, 3] * X[:, 0])
    part = np.searchsorted([2000, 2000 + PERIOD], np.arange(n), side="right") % 2
    y = np.where(part == 1, truths[1], truths[0]) + 0.05 * rng.normal(size=n)
    return X, ((y > 0).astype(int) if labels else y)


def real(name: str, n: int, shuffled: bool) -> Rows:
    """The first n rows of a set, or n of its rows in random order."""
    X, y = load(name, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y)) if shuffled else np.arange(len(y))
    return np.asarray(X[order[:n]], float), np.asarray(y)[order[:n]]


def errors_of(make: Callable[[], KernelClassifier | KernelRegressor], rows: Rows, history: int) -> np.ndarray:
    """Errors (3, live rows) in per cent: fit then learn, learn, fit alone."""
    X, y = rows
    live = y[history:]
    fitted, stream = make().fit(X[:history], y[:history]), make()
    if isinstance(fitted, KernelRegressor):
        said = [fitted.predict(X[history:]), fitted.learn(X[history:], live), stream.learn(X, y)[history:]]
        found = [100 * (scores - live) ** 2 / live.var() for scores in said]
    else:
        found = [100.0 * (fitted.predict(X[history:]) != live)]
        for model, part in ((fitted, slice(history, None)), (stream, slice(0, None))):
            scores = model.learn(X[part], y[part])
            labels = model.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
            found.append(100.0 * (labels[-len(live) :] != live))
    alone, after, usual = found
    return np.stack([after, usual, alone])


def line(name: str, size: str, errors: np.ndarray, rows: slice = slice(None)) -> str:
    after, usual, alone = errors[:, rows].mean(axis=1)
    return f"| {name} | {size} | {after:.2f} | {usual:.2f} | {alone:.2f} | {after / max(usual, 0.005):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="small,medium")
    parser.add_argument("--sets", default=",".join(LABELS + NUMBERS))
    parser.add_argument("--history", type=int, default=3000)
    parser.add_argument("--live", type=int, default=4000)
    args = parser.parse_args()
    head = "| rows | size | fit, then learn | learn | fit alone | first / second |\n|---|---|---:|---:|---:|---:|"
    print(f"## After a change\n\n{head}")
    for size in args.sizes.split(","):
        for labels in (True, False):
            kind = KernelClassifier if labels else KernelRegressor
            for change in ("sign", "function"):
                make = lambda kind=kind, size=size: kind(size=size, random_state=0)  # noqa: E731
                errors = errors_of(make, simulated(change, labels), 2000)
                name = f"{'labels' if labels else 'numbers'}, another {change}"
                print(line(f"{name}, 4,000 rows", size, errors, slice(0, PERIOD)))
                print(line(f"{name} again, the next 4,000", size, errors, slice(PERIOD, None)), flush=True)
    print(f"\n## Sets\n\n{head}")
    for size in args.sizes.split(","):
        for name in filter(None, args.sets.split(",")):
            kind = KernelClassifier if name in LABELS else KernelRegressor
            make = lambda kind=kind, size=size: kind(size=size, random_state=0)  # noqa: E731
            for shuffled in (False, True):
                rows = real(name, args.history + args.live, shuffled)
                history = min(args.history, 2 * len(rows[1]) // 5)
                order = "in random order" if shuffled else "in its order"
                print(line(f"{name}, {order}", size, errors_of(make, rows, history)), flush=True)


if __name__ == "__main__":
    main()
