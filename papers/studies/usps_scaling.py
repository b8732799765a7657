"""Which version of the usps digits the thesis used: learners without a parameter, on the rows scaled in several ways.

    KERNELSTREAM_DATA=... python papers/studies/usps_scaling.py [--orders 5]

On the plain images learners make fewer mistakes than Table 4.6 prints; at a width that fits the perceptron they do not
fit the Projectrons and BPA-S. Blurred by a Gaussian of 0.75 pixels, as some copies of these images are, all fit.

Writes results/usps_scaling.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from kernelstream import datasets, zoo
from kernelstream.evaluate import prequential
from kernelstream_papers._images import blurred

RESULTS = Path(__file__).parent / "results"
BUDGET, WIDTH = 200, 8.0
# mistakes and their deviation, as printed
PRINTED = {
    "perceptron": (10.0, 0.2),
    "rbp": (24.0, 0.4),
    "forgetron": (22.7, 0.5),
    "projectron": (10.6, 0.1),
    "projectronpp": (9.9, 0.2),
    "bpas": (15.4, 0.6),
}


def versions(X: np.ndarray) -> dict[str, np.ndarray]:
    """The images, (n, 256) in [0, 1], in several ways."""
    deviation = X.std(axis=0)
    return {
        "[0, 1], as our file has them": X,
        "[-1, 1]": 2 * X - 1,
        "[-1, 1], times 0.8 (fits the perceptron)": 0.8 * (2 * X - 1),
        "columns to mean 0, deviation 1": (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0),
        "rows to norm 1": X / np.linalg.norm(X, axis=1, keepdims=True),
        "rows to norm 11 (fits the perceptron)": 11 * X / np.linalg.norm(X, axis=1, keepdims=True),
    } | {f"blurred by {pixels} pixels, [-1, 1]": blurred(X, pixels) for pixels in (0.5, 0.75, 1.0)}


def mistakes(X: np.ndarray, y: np.ndarray, name: str, orders: int) -> str:
    """Mean and deviation in percent over random orders."""
    found = []
    for order in range(orders):
        rows = np.random.default_rng(order).permutation(len(y))
        bounded = {} if name == "perceptron" else {"budget": BUDGET}
        est = zoo.make(name, task="multiclass", gamma=0.5 / WIDTH**2, random_state=order, **bounded)
        result = prequential(est, X[rows], y[rows], metrics="mistake_rate", progress=False)
        found.append(100 * result.metrics["mistake_rate"])
    return f"{np.mean(found):.2f} ± {np.std(found, ddof=1):.2f}"


def main(orders: int) -> str:
    X, y = datasets.load("usps", split="train", return_X_y=True)
    text = [f"Written by `python papers/studies/usps_scaling.py`. Mistakes of one pass in percent, {orders} orders.\n"]
    text += [f"| rows | {' | '.join(PRINTED)} |", "| --- |" + " ---: |" * len(PRINTED)]
    for label, rows in versions(np.asarray(X, np.float64)).items():
        text.append(f"| {label} | {' | '.join(mistakes(rows, y, name, orders) for name in PRINTED)} |")
        print(text[-1], flush=True)
    text.append(f"| printed | {' | '.join(f'{value:.1f} ± {spread:.1f}' for value, spread in PRINTED.values())} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=5)
    written = main(parser.parse_args().orders)
    (RESULTS / "usps_scaling.md").write_text(written)
