# ruff: noqa: E402 - the thread limits must be set before numpy loads its BLAS
"""Budget strategies side by side: mistakes while learning and time per row, one pass, one thread.

    python papers/studies/strategies.py [--rows 10000] [--budget 100] [--out papers/studies/results/strategies.md]

Every recipe has its own defaults but for the bandwidth, which is the median rule for all; columns are scaled to [0, 1].
The unbounded learners and FOGD stand at the end for comparison.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "KERNELSTREAM_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from kernelstream import BudgetClassifier, datasets, zoo

SETS = ("a9a", "ijcnn1", "spambase", "cod-rna")
BOUNDED = (
    "stoptron", "rbp", "forgetron", "budget_perceptron", "projectron", "projectronpp", "bpas", "bpann", "bpap", "bogd",
    "bsgd_remove", "bsgd_project", "bsgd_merge", "dualsgd", "oskl", "spa",
)  # fmt: skip
OTHERS = ("perceptron", "ogd", "fogd")
RUNS = 3  # of which the fastest counts
MARK = "<!-- strategies: written by papers/studies/strategies.py -->"


def rows(name, count):
    data = datasets.load(name)
    X = data.X.astype(np.float32)
    y = np.where(np.asarray(data.y) > 0, 1, -1)
    order = np.random.default_rng(0).permutation(X.shape[0])[:count]
    X = X[order]
    if not sp.issparse(X):
        low, high = X.min(axis=0), X.max(axis=0)
        X = np.ascontiguousarray((X - low) / np.where(high > low, high - low, 1))
    return X, y[order]


def models(budget):
    plain = {"budget": budget, "standardize": False}  # rows as the recipes take them
    yield f"`BudgetClassifier(budget={budget})`", lambda: BudgetClassifier(**plain, random_state=0)
    for name in BOUNDED:
        yield f"`{name}`", lambda name=name: zoo.make(name, budget=budget, random_state=0)
    for name in OTHERS:
        yield f"`{name}`", lambda name=name: zoo.make(name, random_state=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("--page", type=Path, help="page that holds the table between its marks, docs/budgets.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    data = {name: rows(name, arguments.rows) for name in SETS}
    shapes = ", ".join(f"{name} {X.shape[0]:,} × {X.shape[1]}" for name, (X, _) in data.items())
    lines = [
        f"Mistakes in percent, µs a row, one pass in one random order, budget {arguments.budget}, float32 ({shapes}).",
        "",
        "| | " + " | ".join(f"{name} % | µs" for name in SETS) + " |",
        "|---|" + "---:|---:|" * len(SETS),
    ]
    print("\n".join(lines), flush=True)
    for title, make in models(arguments.budget):
        cells = []
        for X, y in data.values():
            seconds = []
            for _ in range(RUNS):
                est = make()
                start = time.process_time()
                scores = est.learn(X, y, classes=[-1, 1])
                seconds.append(time.process_time() - start)
            wrong = np.mean((scores >= 0) != (y > 0))
            cells.append(f"{100 * wrong:.1f} | {1e6 * min(seconds) / X.shape[0]:.1f}")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
    if arguments.page:
        before, rest = arguments.page.read_text().split(MARK)
        after = rest.split("<!-- end -->")[1]
        arguments.page.write_text(before + MARK + "\n" + "\n".join(lines) + "\n<!-- end -->" + after)


if __name__ == "__main__":
    main()
