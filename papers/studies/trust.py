"""Probabilities, sets and changes on streams: how far the promises are kept.

    python papers/studies/trust.py                 # the tables, on the named data sets in $KERNELSTREAM_DATA
    python papers/studies/trust.py --picture FILE  # the picture of docs/trust.md, on a simulated stream
    python papers/studies/trust.py --changes FILE  # that of docs/monitor.md, and its table

Calibration: hinge and logistic losses on Fourier features and the default learner, in the order of the file; log-loss
over all rows and expected calibration error (15 bins, of the class-1 probability, or of the largest one for several
classes) after 5,000 rows. The link of the hinge is asked before each row.
Sets: coverage of the 90 % sets of the default learner in windows of 5,000 rows, and their mean size.
Changes: share of mistakes on the demonstration stream, whose landscape changes five times in 24,000 rows, for what a
learner may do about a change.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelstream import (
    FeatureClassifier,
    FeatureRegressor,
    KernelClassifier,
    OnlineRidgeClassifier,
    datasets,
    drift,
    plots,
)
from kernelstream.evaluate import prequential
from kernelstream.monitor import Monitor, forget, restart
from kernelstream.trust import Calibrated, Explained

LABELS = ("electricity", "nomao", "adult", "airlines", "covtype")
WINDOW = 5000


def rows_of(name: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load(name, return_X_y=True)
    X = X[:most].toarray() if hasattr(X, "toarray") else X[:most]
    return np.asarray(X, np.float64), np.asarray(y[:most])


def measured(p: np.ndarray, y: np.ndarray, bins: int = 15) -> tuple[float, float]:
    """Log-loss of all rows and calibration error of those after the first 5,000."""
    loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean()
    p, y = p[WINDOW:], y[WINDOW:]
    given, hit = (p[:, 1], y == 1) if p.shape[1] == 2 else (p.max(axis=1), p.argmax(axis=1) == y)
    at = np.minimum((given * bins).astype(int), bins - 1)
    return loss, np.abs(np.bincount(at, given, bins) - np.bincount(at, hit, bins)).sum() / len(y)


def as_probability(scores: np.ndarray) -> np.ndarray:
    scores = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def by_link(model: Any, X: np.ndarray, y: np.ndarray, block: int = 1) -> np.ndarray:
    """What predict_proba says of every row before it is learned."""
    p = np.empty((len(y), len(np.unique(y))))
    model.learn(X[:0], y[:0], classes=np.arange(p.shape[1]))
    for start in range(0, len(y), block):
        rows = slice(start, start + block)
        p[rows] = model.predict_proba(X[rows])
        model.learn(X[rows], y[rows])
    return p


def calibration(most: int) -> None:
    print("| stream | learner | rows | log-loss, raw | calibrated | error, raw | calibrated |")
    print("|---|---|---|---|---|---|---|")
    for name in LABELS:
        X, y = rows_of(name, most)
        classes, y = np.unique(y, return_inverse=True)
        some = np.arange(len(classes))

        def make(loss: str) -> Any:
            return FeatureClassifier(loss=loss, standardize=True, random_state=0)

        hinge = measured(by_link(make("hinge"), X, y), y)
        raw = measured(as_probability(make("logistic").learn(X, y, classes=some)), y)
        own = measured(as_probability(Calibrated(make("logistic")).learn(X, y, classes=some)), y)
        one = measured(as_probability(KernelClassifier(random_state=0).learn(X, y, classes=some)), y)
        for learner, before, after in (("hinge", None, hinge), ("logistic, Calibrated", raw, own), ("auto", None, one)):
            first = ("–", "–") if before is None else (f"{before[0]:.4f}", f"{before[1]:.4f}")
            print(
                f"| {name} | {learner} | {len(y):,} | {first[0]} | {after[0]:.4f} | {first[1]} | {after[1]:.4f} |",
                flush=True,
            )


def sets(most: int) -> None:
    print("| stream | rows | smallest coverage | largest | labels in a set |\n|---|---|---|---|---|")
    for name in LABELS:
        X, y = rows_of(name, most)
        classes, y = np.unique(y, return_inverse=True)
        _, found = KernelClassifier(random_state=0).learn_set(X, y, classes=np.arange(len(classes)))
        held = found[np.arange(len(y)), y]
        windows = [held[max(a, 1) : a + WINDOW].mean() for a in range(0, len(y) - WINDOW + 1, WINDOW)]
        size = found.sum(axis=1).mean()
        print(f"| {name} | {len(y):,} | {min(windows):.3f} | {max(windows):.3f} | {size:.2f} |", flush=True)


def changing(seed: int) -> Any:
    return drift.generate(24_000, block=250, random_state=seed, n_concepts=6)


def changes(path: str, seeds: int = 2) -> None:
    makers: dict[str, Any] = {
        "FeatureClassifier": lambda: FeatureClassifier(random_state=0),
        "OnlineRidgeClassifier": lambda: OnlineRidgeClassifier(random_state=0),
        "KernelClassifier": lambda: KernelClassifier(size="small", random_state=0),
    }
    reactions = {"nothing": None, "forget()": forget(), "restart()": restart()}
    made, axes = plots.figure(2, width=5.5)
    print("| learner | " + " | ".join(reactions) + " |\n|---|" + "---|" * len(reactions))
    for name, make in makers.items():
        shares = []
        for label, react in reactions.items():
            runs = [
                prequential(make(), changing(seed), classes=[-1, 1], monitor=Monitor(react=react), name=label)
                for seed in range(seeds)
            ]
            shares.append(np.mean([next(iter(run.metrics.values())) for run in runs]))
            if name == "OnlineRidgeClassifier" and label != "forget()":
                ax = axes[0 if react is None else 1]
                plots.curves(runs[0], ax=ax, windows=60)
                ax.set_title(f"reaction: {label}")
                ax.set_ylim(0, 0.7)
                ax.locator_params(axis="x", nbins=5)
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |", flush=True)
    plots.save(made, path)


def picture(path: str) -> None:
    made, (a, b, c) = plots.figure(3, width=4.6)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    y = (rng.random(12_000) < 1 / (1 + np.exp(-2.5 * np.sin(1.5 * X[:, 0]) - X[:, 1]))).astype(int)
    hinge = FeatureClassifier(loss="hinge", random_state=0)
    raw = as_probability(clone(hinge).learn(X, y, classes=[0, 1]))
    for label, p in (("scores as if log-odds", raw), ("predict_proba", by_link(hinge, X, y))):
        plots.calibration(y[2000:], p[2000:, 1], ax=a, label=label, least=30)
    blocks = drift.generate(40_000, block=1000, random_state=0)
    run = prequential(FeatureClassifier(random_state=0), blocks, classes=[-1, 1], monitor=Monitor(), name="hinge")
    plots.curves(run, ax=b, windows=80)
    b.locator_params(axis="x", nbins=5)
    X = rng.normal(size=(12_000, 6))
    late = np.arange(12_000) >= 6000
    y = np.where(late, 0.3, 1.5) * X[:, 1] + np.where(late, 1.5, 0.3) * X[:, 4] + 0.5 * np.sin(2 * X[:, 0])
    model, history = Explained(FeatureRegressor(random_state=0)), []
    for start in range(0, 12_000, 256):
        model.learn(X[start : start + 256], y[start : start + 256])
        history.append((min(start + 256, 12_000), model.relevance_))
    plots.relevance_over_time(history, ax=c, top=4)
    for ax, title in ((a, "probabilities"), (b, "changes found"), (c, "columns that matter")):
        ax.set_title(title)
    plots.save(made, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=25_000, help="of each data set, at most")
    parser.add_argument("--picture", metavar="FILE")
    parser.add_argument("--changes", metavar="FILE")
    args = parser.parse_args()
    if args.changes:
        changes(args.changes)
    elif args.picture:
        picture(args.picture)
    else:
        calibration(args.rows)
        print()
        sets(args.rows)
