"""Novelty detection and density ratios by doubly stochastic gradients, where the truth is known.

Novelty: Gaussian mixtures in 2 and 10 dimensions against rows drawn uniformly from the box around them, and the digit 0
against all others; area under the ROC curve beside the true density (the best there is) and scikit-learn's OneClassSVM.
Density ratio: pairs of Gaussians, whose log ratio is a formula; root mean square error over both samples beside that of
logistic regression with quadratic features, which contains the truth.

    python papers/studies/doubly_novelty.py   # writes papers/studies/results/doubly_novelty.md and .png; a few minutes
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import OneClassSVM

from kernelstream import DensityRatioEstimator, DoublyStochasticOneClass

RESULTS = Path(__file__).parent / "results"
SEED = 0


def mixture(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows of two Gaussians, a wide one and a narrow one."""
    first = rng.random(n) < 0.5
    Z = rng.standard_normal((n, d))
    Z[~first] *= 0.5
    Z[~first, 0] += 4.0
    return Z


def mixture_density(X: np.ndarray) -> np.ndarray:
    """Its logarithm."""
    d = X.shape[1]
    center = np.eye(1, d)[0] * 4.0
    wide, narrow = multivariate_normal(np.zeros(d)), multivariate_normal(center, 0.25 * np.eye(d))
    return np.logaddexp(wide.logpdf(X), narrow.logpdf(X))


def novelty(lines: list[str]) -> tuple[DoublyStochasticOneClass, np.ndarray]:
    """Table of the areas; returns the model of the plane and its rows, for the picture."""
    rng = np.random.default_rng(SEED)
    lines += [
        "| novelty | rows | true density | doubly stochastic | one-class SVM | share called novel (nu = 0.1) | s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    kept: Any = None
    for name, d in (("mixture, 2 columns", 2), ("mixture, 10 columns", 10), ("digit 0", 64)):
        if d == 64:
            digits, label = load_digits(return_X_y=True)
            zeros = digits[label == 0] / 16.0
            train, inside, outside, best = zeros[:100], zeros[100:], digits[label != 0] / 16.0, "–"
        else:
            train, inside = mixture(rng, 4000, d), mixture(rng, 2000, d)
            outside = rng.uniform(train.min(axis=0), train.max(axis=0), (2000, d))
            density = mixture_density(np.concatenate([inside, outside]))
            best = f"{roc_auc_score(np.repeat([1, 0], 2000), density):.4f}"
        test = np.concatenate([inside, outside])
        truth = np.repeat([1, 0], [len(inside), len(outside)])
        start = time.perf_counter()
        model = DoublyStochasticOneClass(random_state=SEED).fit(train)
        seconds = time.perf_counter() - start
        area = roc_auc_score(truth, model.decision_function(test))
        other = roc_auc_score(truth, OneClassSVM(nu=0.1).fit(train).decision_function(test))
        share = np.mean(model.predict(inside) < 0)
        lines.append(f"| {name} | {len(train)} | {best} | {area:.4f} | {other:.4f} | {share:.3f} | {seconds:.1f} |")
        print(lines[-1], flush=True)
        if d == 2:
            kept = model, train
    lines.append("")
    return kept


PAIRS: tuple[tuple[str, int, float, float], ...] = (  # name, columns, shift of the first column of q, its deviation
    ("shifted, 1 column", 1, 1.0, 1.0),
    ("shifted, 2 columns", 2, 1.0, 1.0),
    ("narrower, 2 columns", 2, 0.0, 0.7),
    ("shifted and narrower, 5 columns", 5, 1.0, 0.9),
    ("shifted, 10 columns", 10, 1.0, 1.0),
)


def log_ratio(X: np.ndarray, shift: float, deviation: float) -> np.ndarray:
    """Of N(shift, deviation^2) and N(0, 1)."""
    moved = X - np.eye(1, X.shape[1])[0] * shift
    return (X**2).sum(1) / 2 - (moved**2).sum(1) / (2 * deviation**2) - X.shape[1] * np.log(deviation)


def ratios(lines: list[str]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Table of the errors; returns true and estimated values for the picture."""
    rng = np.random.default_rng(SEED)
    lines += [
        "| density ratio | rows | rms | error | correlation | mean ratio over p | quadratic logistic | s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    shown = []
    for name, d, shift, deviation in PAIRS:

        def both(n: int, d: int = d, shift: float = shift, deviation: float = deviation) -> np.ndarray:
            q = deviation * rng.standard_normal((n, d)) + np.eye(1, d)[0] * shift
            return np.concatenate([rng.standard_normal((n, d)), q])

        X, y, test = both(4000), np.repeat([0, 1], 4000), both(2000)
        truth = log_ratio(test, shift, deviation)
        start = time.perf_counter()
        model = DensityRatioEstimator(random_state=SEED).fit(X, y)
        seconds = time.perf_counter() - start
        got = model.log_ratio(test)
        rival = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(X, y)
        errors = [float(np.sqrt(np.mean((f - truth) ** 2))) for f in (got, rival.decision_function(test))]
        rms, correlation = float(np.sqrt(np.mean(truth**2))), np.corrcoef(got, truth)[0, 1]
        mean = model.ratio(test[:2000]).mean()
        lines.append(
            f"| {name} | {len(X)} | {rms:.3f} | {errors[0]:.3f} | {correlation:.3f} | {mean:.3f} | {errors[1]:.3f} "
            f"| {seconds:.1f} |"
        )
        print(lines[-1], flush=True)
        shown.append((name, truth, got))
    return shown


def picture(model: DoublyStochasticOneClass, rows: np.ndarray, shown: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """The region called normal, and the ratios beside the truth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    x, y = np.meshgrid(np.linspace(-4, 7, 120), np.linspace(-4.5, 4.5, 100))
    value = model.decision_function(np.c_[x.ravel(), y.ravel()]).reshape(x.shape)
    axes[0].contourf(x, y, value, 12, cmap="Blues")
    axes[0].plot(*rows[:1000].T, ".", color="0.3", ms=1.5)
    axes[0].contour(x, y, value, [0.0], colors="crimson")
    axes[0].set(title="novel outside the line", xlim=(-4, 7), ylim=(-4.5, 4.5))
    for axis, k in ((axes[1], 2), (axes[2], 4)):
        name, truth, got = shown[k]
        ends = [truth.min(), truth.max()]
        axis.plot(truth, got, ".", ms=2)
        axis.plot(ends, ends, color="0.5", lw=1)
        axis.set(title=f"log ratio, {name}", xlabel="truth", ylabel="estimate")
    figure.savefig(RESULTS / "doubly_novelty.png", dpi=80)


def main() -> None:
    """Run all, write the tables and the picture."""
    lines: list[str] = ["Default parameters everywhere; float64.", ""]
    model, rows = novelty(lines)
    shown = ratios(lines)
    (RESULTS / "doubly_novelty.md").write_text("\n".join(lines) + "\n")
    picture(model, rows, shown)


if __name__ == "__main__":
    main()
