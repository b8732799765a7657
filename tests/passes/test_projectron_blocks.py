"""Projectron and Projectron++ with large support sets, whose rows are solved many at a time, beside the formulas."""

import math

import numpy as np
import pytest

from kernelstream import BudgetClassifier, updates
from kernelstream.passes.expansion import native

BUDGET, GAMMA, ROWS = 300, 0.2, 1000


def rows(dtype):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 6)).astype(dtype)
    y = np.where(X[:, 0] * X[:, 1] + 0.8 * rng.normal(size=ROWS) > 0, 1, -1)
    return X, y


def by_the_formulas(X, y, margins):
    """Scores before each row (n,) with ``d = K^-1 k`` solved anew each time; how many acted by their margin."""
    X = X.astype(float)
    K = np.exp(-GAMMA * ((X[:, None] - X) ** 2).sum(2))
    S, alpha, scores, steps = [], np.zeros(0), np.zeros(len(X)), 0
    for t in range(len(X)):
        k = K[t, S]
        scores[t] = f = k @ alpha
        loss = max(0.0, 1.0 - y[t] * f)
        mistake = y[t] * f <= 0
        if not (mistake or (margins and 0 < loss < 1)):
            continue
        d = np.linalg.solve(K[np.ix_(S, S)], k) if S else np.zeros(0)
        if mistake and len(S) < BUDGET:
            S.append(t)
            alpha = np.append(alpha, y[t])
        elif mistake:
            alpha = alpha + y[t] * d
        else:
            p, U = k @ d, math.sqrt((BUDGET + 1) / math.log(BUDGET + 1)) / 4
            tau = min(loss / p, 1.0)
            if tau * (2 * loss - tau * p - 2 * U * math.sqrt(max(0.0, 1.0 - p))) >= 0:
                alpha, steps = alpha + tau * y[t] * d, steps + 1
    assert len(S) == BUDGET
    return scores, steps


@pytest.mark.parametrize(
    "strategy, dtype", [("projectron", np.float64), ("projectron_pp", np.float64), ("projectron_pp", np.float32)]
)
def test_large_support_sets_follow_the_formulas(strategy, dtype, monkeypatch):
    X, y = rows(dtype)
    truth, steps = by_the_formulas(X, y, strategy == "projectron_pp")
    assert steps > 50 or strategy == "projectron"
    few_vectors, few_rows = {"LARGE": 20, "ROWS_WHILE_GROWING": 1, "MANY_ACT": 0}, {"MANY_ACT": math.inf}
    for cuts, limits in (
        ([ROWS], {}),
        ([1, 410, 411, 700, ROWS], {}),
        ([ROWS], few_vectors),  # foreseen while the set grows, and all rows of a block solved
        ([1, 110, 170, 300, 700, ROWS], few_vectors | few_rows),  # the foreseen rows alone
    ):
        for name, value in limits.items():
            monkeypatch.setattr(native, name, value)
        parts = {"strategy": strategy, "loss": "hinge", "update": updates.Perceptron()}
        model = BudgetClassifier(gamma=GAMMA, budget=BUDGET, **parts)
        scores, at = [], 0
        for cut in cuts:
            scores.append(model.learn(X[at:cut], y[at:cut], classes=[-1, 1]).ravel())
            at = cut
        np.testing.assert_allclose(np.concatenate(scores), truth, atol=1e-11 if dtype is np.float64 else 2e-4)
