r"""Labels by least squares or by logistic steps, with the same kernel in the same learned metric.

    KERNELSTREAM_DATA=... python papers/studies/metric_logistic.py --rows 2500 --jobs 2

`MetricClassifier` finds the metric and fits -1 and +1 by least squares. Beside it, with the kernel that it found:

.. math:: \min_A\; -\sum_i \log p_i(y_i) + \tfrac{\mu}{2} \operatorname{tr} A'KA, \qquad
          p_i = \operatorname{softmax}(b + (KA)_i)

by conjugate gradients, preconditioned with K + 2 mu I (the Hessian of the softmax is at most I/2). The last fifth of
the training rows chooses mu. 80 % of the rows are learned, the others test.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from metric import LABELS, parts
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from kernelstream import MetricClassifier
from kernelstream.estimators import _metric_learner as models
from kernelstream.solvers.metric import table

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SEED = 1


def logistic(K: np.ndarray, Y: np.ndarray, mu: float, b: np.ndarray) -> np.ndarray:
    """Coefficients A (n, C) for a kernel matrix (n, n), indicators Y (n, C) of labels and constants b (C,)."""
    A, KA = np.zeros_like(Y), np.zeros_like(Y)
    factor = cho_factor(K + 2 * mu * np.eye(len(K)))
    first = last = residual = D = KD = None
    for _ in range(60):
        R = Y - softmax(b + KA, axis=1) - mu * A
        S = 2 * cho_solve(factor, R)
        KS = K @ S
        size = (R * KS).sum()
        first = size if first is None else first
        if size < 1e-4 * first:
            break
        turn = 0.0 if last is None else max(0.0, ((R - residual) * KS).sum() / last)
        D, KD = (S, KS) if last is None else (S + turn * D, KS + turn * KD)
        step = _along(b + KA, KD, Y, mu * (A * KD).sum(), mu * (D * KD).sum())
        A, KA, last, residual = A + step * D, KA + step * KD, size, R
    return A


def _along(F: np.ndarray, KD: np.ndarray, Y: np.ndarray, slope: float, bend: float) -> float:
    """How far to go: Newton's method between bounds that close in."""
    t, low, high = 1.0, 0.0, np.inf
    for _ in range(30):
        P = softmax(F + t * KD, axis=1)
        down = ((P - Y) * KD).sum() + slope + t * bend
        curve = (P * KD * KD).sum() - np.square((P * KD).sum(axis=1)).sum() + bend
        low, high = (t, high) if down < 0 else (low, t)
        new = t - down / curve
        if not low < new < high:
            new = 2 * t if high == np.inf else (low + high) / 2
        if abs(new - t) < 0.01 * t:
            break
        t = new
    return new


def loss(P: np.ndarray, code: np.ndarray) -> tuple[float, float]:
    """Log-loss and share of mistakes."""
    return -float(np.mean(np.log(np.maximum(P[np.arange(len(code)), code], 1e-6)))), float(
        np.mean(P.argmax(axis=1) != code)
    )


def compared(name: str, rows: int) -> list[float]:
    """Log-loss and mistakes of least squares, of logistic steps, and their penalty."""
    X, y, A, b = parts(name, rows, SEED)
    model = MetricClassifier(random_state=SEED).fit(X, y)
    known = np.isin(b, model.classes_)
    A, b, y = A[known], np.searchsorted(model.classes_, b[known]), np.searchsorted(model.classes_, y)
    state, n, cut = model.state_, len(y), len(y) * 4 // 5
    ops = model._learner.ops
    every = models.standard_rows(state, np.concatenate([X, A]), ops)
    K = table(
        model._learner._metric(state).rows(models.pair_of(state, every, model._learner.ops)),
        state["share"],
        model._learner.ops,
    ).astype(float)
    Y = np.eye(len(model.classes_))[y]
    prior = np.log((Y.sum(axis=0) + 0.5) / (n + 0.5 * Y.shape[1]))

    def judged(mu: float, learn: slice, test: slice, code: np.ndarray) -> tuple[float, float]:
        return loss(softmax(prior + K[test, learn] @ logistic(K[learn, learn], Y[learn], mu, prior), axis=1), code)

    mu = min(PENALTIES, key=lambda mu: judged(mu, slice(cut), slice(cut, n), y[cut:])[0])
    return [*loss(model.predict_proba(A), b), *judged(mu, slice(n), slice(n, None), b), mu]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    names = [name for name in LABELS if name != "mnist"]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = np.array(list(pool.map(partial(compared, rows=given.rows), names)))
    lines = [
        "# Labels by least squares or by logistic steps\n",
        f"`python papers/studies/metric_logistic.py --rows {given.rows}`: the same kernel in the same metric.\n",
        "| set | log-loss, squares | logistic | ratio | mistakes, squares | logistic | penalty |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (a, e, c, f, mu) in zip(names, found, strict=True):
        lines.append(f"| {name} | {a:.4f} | {c:.4f} | {c / a:.3f} | {e:.4f} | {f:.4f} | {mu:g} |")
    ratio = np.exp(np.log(np.maximum(found[:, 2:4], 1e-3) / np.maximum(found[:, :2], 1e-3)).mean(axis=0))
    better = int((found[:, 2] < found[:, 0]).sum())
    lines.append(
        f"\nLogistic steps have the smaller log-loss on {better} of {len(names)} sets; geometric means of the ratios: "
        f"log-loss {ratio[0]:.3f}, mistakes {ratio[1]:.3f}.\n"
    )
    (Path(__file__).parent / "results" / "metric_logistic.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
