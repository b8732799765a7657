"""What corrupt cells cost the default learner: its error on real sets with faults, beside that on the clean sets.

    python benchmarks/robust/corrupt_cells.py [--rows 12000] [--size small] [--sets a,b] [--cases wild] [--out FILE]

The first rows of every set are learned in calls of 500. The error is that of all forecasts made before their rows were
learned: mean squares over the variance of the targets, or the share of mistakes. Faults:

- ``wild``: 20 rows here and there, every cell of which is moved by a million deviations up or down;
- ``burst``: the same in 20 successive rows;
- ``codes``: -9999 in 2 % of the cells;
- ``gaps``: NaN in the same cells;
- ``shift``: after half of the rows, the first column that varies by 1,000 deviations, for good.

Each is printed as a ratio, with geometric means over numbers and labels. The sets are read from ``KERNELSTREAM_DATA``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np

from kernelstream import KernelClassifier, KernelRegressor

NUMBERS = ("california", "casp", "fried", "diamonds", "ailerons", "kings_county", "cpusmall")
LABELS = ("electricity", "magic04", "shuttle", "covtype", "nomao")
SORTED = ("magic04", "spambase", "cod-rna", "satimage", "parkinsons")  # not in an order of time: shuffled
CASES = ("wild", "burst", "codes", "gaps", "shift")
CALL = 500  # rows


def rows_of(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The first n rows of a set, float64, and targets."""
    with np.load(Path(os.environ["KERNELSTREAM_DATA"]) / f"{name}.npz") as found:
        X, y = found["X"].astype(np.float64), found["y"]
    order = np.random.default_rng(0).permutation(len(y)) if name in SORTED else np.arange(len(y))
    return X[order[:n]], y[order[:n]].astype(np.float64 if y.dtype.kind == "f" else y.dtype)


def with_fault(X: np.ndarray, case: str) -> np.ndarray:
    """The rows with one kind of fault."""
    rng, X = np.random.default_rng(1), X.copy()
    deviations = X.std(axis=0)
    if case in ("wild", "burst"):
        first = int(rng.integers(CALL, len(X) // 2))
        rows = np.arange(first, first + 20)
        if case == "wild":
            rows = rng.choice(np.arange(CALL, len(X)), 20, replace=False)
        X[rows] += 1e6 * deviations * rng.choice([-1.0, 1.0], (20, X.shape[1]))
    elif case in ("codes", "gaps"):
        X[rng.random(X.shape) < 0.02] = -9999.0 if case == "codes" else np.nan
    elif case == "shift":
        column = np.flatnonzero(deviations > 0)[0]
        X[len(X) // 2 :, column] += 1000.0 * deviations[column]
    return X


def error(X: np.ndarray, y: np.ndarray, size: str) -> float:
    """Of the forecasts before each row."""
    numbers = y.dtype.kind == "f"
    model = (KernelRegressor if numbers else KernelClassifier)(size=size, random_state=0)
    labels = {} if numbers else {"classes": np.unique(y)}
    scores = [model.learn(X[i : i + CALL], y[i : i + CALL], **labels) for i in range(0, len(y), CALL)]
    F = np.concatenate(scores)
    if numbers:
        return float(np.mean((F - y) ** 2) / np.var(y))
    said = F.argmax(axis=1) if F.ndim == 2 else (F >= 0).astype(int)
    return float(np.mean(np.unique(y)[said] != y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--size", default="small")
    parser.add_argument("--sets", default=",".join(NUMBERS + LABELS))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--out", help="a JSON file for the errors")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cases, found = [case for case in args.cases.split(",") if case], {}
    print("".join(f"{word:>14}" for word in ("", "clean", *cases, "seconds")), flush=True)
    for name in args.sets.split(","):
        X, y = rows_of(name, args.rows)
        start = time.perf_counter()
        own = found[name] = {"numbers": y.dtype.kind == "f", "clean": error(X, y, args.size)}
        for case in cases:
            try:
                own[case] = error(with_fault(X, case), y, args.size)
            except ValueError:  # refused
                own[case] = float("nan")
        ratios = "".join(f"{own[case] / own['clean']:14.3f}" for case in cases)
        print(f"{name:>14}{own['clean']:14.5f}{ratios}{time.perf_counter() - start:14.1f}", flush=True)
        if args.out:
            Path(args.out).write_text(json.dumps(found, indent=1))
    for numbers, what in ((True, "numbers"), (False, "labels")):
        some = [own for own in found.values() if own["numbers"] is numbers]
        if some:
            means = [np.exp(np.mean([np.log(own[case] / own["clean"]) for own in some])) for case in cases]
            print(f"{what:>14}{'':14}" + "".join(f"{mean:14.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
