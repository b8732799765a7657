"""Tracking under drift: the best kernel width changes at once, and changes back.

    python papers/studies/kernel_drift.py [--rows 20000] [--streams 5]

In the even segments of the stream rows are normal in 8 dimensions and a plane divides the classes: wide kernels. In the
odd ones they lie close to 60 points whose labels are random: narrow kernels. 2 % of the labels are wrong. FOGD learners
of 13 Gaussian widths, with constant steps, under Hedge weights with and without fixed share. For every segment after
the first: the rows until the width with the largest weight is nearer to the best of this segment (that with the fewest
mistakes) than to the best of the one before. Writes papers/studies/results/kernel_drift.md and .png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import FeatureClassifier, MultiKernelClassifier, plots, updates
from kernelstream.estimators import HedgeWeights
from kernelstream.estimators.ensemble.base import WIDTHS, gaussian_maps

RESULTS = Path(__file__).parent / "results"
SEGMENTS = 4
COLUMNS, POINTS = 8, 60
NOISE = 0.02
DISCOUNT = 0.9
STEP = 50  # rows after which the weights are looked at


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of all segments, (SEGMENTS * rows, COLUMNS), and their labels ±1."""
    rng = np.random.default_rng(seed)
    n = SEGMENTS * rows
    X = rng.standard_normal((n, COLUMNS))
    plane = X @ rng.standard_normal(COLUMNS) > 0
    at = rng.integers(POINTS, size=n)
    odd = np.arange(n) // rows % 2 == 1
    X[odd] = rng.standard_normal((POINTS, COLUMNS))[at[odd]] + 0.05 * X[odd]
    label = np.where(odd, (rng.random(POINTS) < 0.5)[at], plane)
    return X.astype(np.float32), np.where(label ^ (rng.random(n) < NOISE), 1, -1)


def learners() -> list[FeatureClassifier]:
    return [FeatureClassifier(features, update=updates.OGD(1.0)) for features in gaussian_maps()]


def follow(X: np.ndarray, y: np.ndarray, share: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The learner, its mistakes (n,), and its weights after every STEP rows, (n/STEP, m)."""
    est = MultiKernelClassifier(learners(), combination=HedgeWeights(discount=DISCOUNT, share=share), random_state=seed)
    wrong, weights = [], []
    for start in range(0, len(y), STEP):
        rows = slice(start, start + STEP)
        wrong.append(np.where(est.learn(X[rows], y[rows], classes=[-1, 1]) >= 0, 1, -1) != y[rows])
        weights.append(est.weights_)
    return est, np.concatenate(wrong), np.array(weights)


def recovery(weights: np.ndarray, best: np.ndarray, rows: int) -> list[int]:
    """Rows of each later segment until the right width leads, and does so for 10 steps."""
    found, per = [], rows // STEP
    for segment in range(1, SEGMENTS):
        leads = weights[segment * per : (segment + 1) * per].argmax(axis=1)
        good = np.abs(leads - best[segment]) < np.abs(leads - best[segment - 1])
        kept = [k for k in range(per) if good[k : k + 10].all()]
        found.append(STEP * (kept[0] + 1) if kept else rows)
    return found


def best_widths(X: np.ndarray, y: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """The learner with the fewest mistakes in each segment."""
    wrong = np.array([(est.set_params(random_state=seed).learn(X, y) >= 0) != (y > 0) for est in learners()])
    return wrong.reshape(len(wrong), SEGMENTS, rows).sum(axis=2).argmin(axis=0)


def main(rows: int, streams: int) -> str:
    shares = {"fixed share": 1.0 / rows, "plain hedge": 0.0}
    text = [
        f"{SEGMENTS} segments of {rows:,} rows, discount {DISCOUNT}, share 1/{rows:,}; {streams} streams.\n",
        "| weights | rows until the right width leads, mean | worst | of the segment | mistakes % |",
        "| --- | --- | --- | --- | --- |",
    ]
    runs: dict[str, list[Any]] = {label: [] for label in shares}
    made, axes = plots.figure(columns=2, width=5.4, height=3.4)
    for seed in range(streams):
        X, y = stream(rows, seed)
        best = best_widths(X, y, rows, seed)
        for ax, (label, share) in zip(axes, shares.items(), strict=True):
            est, wrong, weights = follow(X, y, share, seed)
            runs[label].append((recovery(weights, best, rows), 100 * wrong.mean()))
            if seed == 0:
                plots.kernel_weights(est, ax=ax)
                ax.set_title(label)
                for segment in range(1, SEGMENTS):
                    ax.axvline(segment * rows, color="white", linewidth=1.2, linestyle="--")
        print(seed, "best widths", [WIDTHS[k] for k in best], {label: found[-1] for label, found in runs.items()})
    for label, found in runs.items():
        waits, mistakes = np.array([w for w, _ in found]), [m for _, m in found]
        worst = f"{waits.max():,} | {100 * waits.max() / rows:.1f} %"
        text.append(f"| {label} | {waits.mean():,.0f} | {worst} | {np.mean(mistakes):.2f} |")
    plots.save(made, RESULTS.parents[2] / "docs" / "kernel_drift.png")
    return "\n".join(text) + "\n\n![weights of the kernels](../../../docs/kernel_drift.png)\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of a segment")
    parser.add_argument("--streams", type=int, default=5)
    chosen = parser.parse_args()
    written = main(chosen.rows, chosen.streams)
    print(written)
    (RESULTS / "kernel_drift.md").write_text("Written by `python papers/studies/kernel_drift.py`.\n\n" + written)
