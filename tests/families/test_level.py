"""The level of forecasts of tables: the formula, and how right it is where labels are rare."""

import numpy as np
import pytest
from reloaded import reloaded
from scipy.optimize import brentq
from scipy.special import expit, logit

from kernelstream import KernelClassifier
from kernelstream.estimators.stack import level


def rare(n, share, seed):
    """Rows whose label has log-odds that are linear in them, and about the given share."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    s = 2 * X[:, 0] - X[:, 1]
    s += brentq(lambda b: expit(s + b).mean() - share, -20, 5)
    return X, (rng.random(n) < expit(s)).astype(int)


def test_equal_scores():
    """Rows that all have the same score know nothing that the labels of all rows do not: T is the mean of both."""
    f, y, share, m = np.full(400, -3.0), np.arange(400) < 8, 0.03, 1600.0
    T = (400 * y.mean() + m * share) / (400 + m)
    v = T * (1 - T)
    now = 1 / (level.KNOWN * v)
    want = (logit(T) + 3.0) * now / (now + level.DRIFT**2 + 1 / (v * (400 + m)))
    assert level.towards(f, y, share, m) == pytest.approx(want, rel=1e-9)


def test_the_formula(rng):
    f, m = rng.normal(-3, 1.5, 900), 5000.0
    y, share, b = rng.random(900) < expit(f + 0.4), 0.06, 0.0
    for _ in range(2):
        p = expit(f + b)
        s1 = (p * (1 - p)).mean() / 900
        s2 = p.var() * (1 / 900 - 1 / m) + (p * (1 - p)).mean() / m
        T = (s2 * y.mean() + s1 * share) / (s1 + s2)
        b = brentq(lambda b, T=T: expit(f + b).mean() - T, -4, 4, xtol=1e-14)
    v = (expit(f + b) * expit(-f - b)).mean()
    noise = 1 / (1 / s1 + 1 / s2) / v**2
    want = b / (1 + (0.3**2 + noise) * 150 * v)
    assert level.towards(f, y, share, m) == pytest.approx(want, rel=1e-9)
    assert level.towards(f - 20, y, share, m) == 0.0  # sure of all rows: nothing is known of the level


def test_rare_labels_have_their_share():
    """One in a hundred: the mean probability of a table is near the share of the label, whenever it is asked."""
    ratios = []
    for seed in range(4):
        X, y = rare(10_000, 0.01, seed)
        model = KernelClassifier(size="small", random_state=seed).partial_fit(X[:5000], y[:5000])
        for t in range(5000, 6000, 200):
            ratios.append(model.predict_proba(X[6000:])[:, 1].mean() / y[:t].mean())
            model.partial_fit(X[t : t + 200], y[t : t + 200])
    ratios = np.array(ratios)
    assert np.mean(np.abs(ratios - 1) < 0.15) >= 0.75 and ratios.min() > 0.65 and ratios.max() < 1.45, ratios


def test_it_follows_from_the_state():
    X, y = rare(3000, 0.03, 0)
    model, parts = (KernelClassifier(size="small", random_state=0) for _ in range(2))
    model.partial_fit(X, y)
    for cut in (slice(0, 1), slice(1, 1400), slice(1400, 1403), slice(1403, 3000)):
        parts.partial_fit(X[cut], y[cut])
    table = model.decision_function(X[:50])
    assert model._learner.level(model._state) != 0.0
    assert (reloaded(model).decision_function(X[:50]) == table).all()
    np.testing.assert_allclose(parts.decision_function(X[:50]), table, atol=1e-6)
    counts = model._state["o0"]["label_counts"]
    fades = (1 - 1 / 16000) ** np.arange(3000)[::-1]
    np.testing.assert_allclose(counts, [fades.sum(), fades @ y], rtol=1e-9)


def test_a_label_that_comes_late_changes_sides():
    """The first label, 1, counts as the second of two until a larger one comes."""
    X, y = rare(1500, 0.3, 0)
    labels = np.where(np.arange(1500) < 20, 1, 1 + y)
    model = KernelClassifier(size="small", random_state=0).partial_fit(X, labels)
    fades = (1 - 1 / 16000) ** np.arange(1500)[::-1]
    np.testing.assert_allclose(model._state["o0"]["label_counts"], [fades.sum(), fades @ (labels == 2)], rtol=1e-9)
