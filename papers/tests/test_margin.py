"""Learners of margins: against their papers' listings by dense algebra, and against what a step is the minimum of."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelstream import zoo
from kernelstream_papers.rivals import ConfidenceWeightedClassifier, LargeMarginClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = np.where(X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.5 * rng.normal(size=300) > 0, 1, -1)
PHI = NormalDist().inv_cdf(0.8)


def sop(X, y, a=0.5):
    """Cesa-Bianchi, Conconi, Gentile: the rows of the mistakes, S, and the row itself in the matrix of a forecast."""
    S, v, forecasts = [], np.zeros(X.shape[1]), []
    for x, label in zip(X, y):
        now = np.array([*S, x]).T
        forecasts.append(np.linalg.solve(a * np.eye(len(x)) + now @ now.T, v) @ x)
        if label * forecasts[-1] <= 0:
            v, S = v + label * x, [*S, x]
    return np.array(forecasts), np.linalg.solve(a * np.eye(len(v)) + np.array(S).T @ np.array(S), v)


def confident(X, y, rule, diagonal, C=0.3, phi=PHI, lam=2.0):
    """The listings of Dredze, Crammer, Pereira and of Wang, Zhao, Hoi, in their letters."""
    mu, Sigma, forecasts = np.zeros(X.shape[1]), np.eye(X.shape[1]) / lam, []
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    for x, label in zip(X, y):
        forecasts.append(mu @ x)
        v, m = x @ Sigma @ x, label * (mu @ x)
        if rule == "cw":
            root = np.sqrt((1 + 2 * phi * m) ** 2 - 8 * phi * (m - phi * v))
            alpha = max(0, (-(1 + 2 * phi * m) + root) / (4 * phi * v))
        elif rule == "scw1":
            alpha = min(C, max(0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)) / (v * zeta)))
        else:
            n = v + 1 / (2 * C)
            gamma = phi * np.sqrt(phi**2 * m**2 * v**2 + 4 * n * v * (n + v * phi**2))
            alpha = max(0, (-(2 * m * n + phi**2 * m * v) + gamma) / (2 * (n**2 + n * v * phi**2)))
        u = 0.25 * (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2
        mu = mu + alpha * label * Sigma @ x
        inverse = np.linalg.inv(Sigma)
        inverse += 2 * alpha * phi * np.outer(x, x) if rule == "cw" else 0
        if rule != "cw":
            beta = alpha * phi / (np.sqrt(u) + v * alpha * phi)
            inverse = np.linalg.inv(Sigma - beta * Sigma @ np.outer(x, x) @ Sigma)
        Sigma = np.diag(1 / np.diag(inverse)) if diagonal else np.linalg.inv(inverse)
    return np.array(forecasts)


def alma(X, y, alpha):
    """Gentile: ALMA_2(alpha; B, C), B = sqrt(8)/alpha, C = sqrt(2)."""
    w, k, forecasts = np.zeros(X.shape[1]), 1, []
    for x, label in zip(X, y):
        forecasts.append(w @ x)
        unit = x / np.linalg.norm(x)
        if label * (w @ unit) <= (1 - alpha) * np.sqrt(8) / alpha / np.sqrt(k):
            w = w + np.sqrt(2) / np.sqrt(k) * label * unit
            w, k = w / max(1, np.linalg.norm(w)), k + 1
    return np.array(forecasts)


def ball(X, y, eta, radius):
    w, forecasts = np.zeros(X.shape[1]), []
    for x, label in zip(X, y):
        forecasts.append(w @ x)
        if label * (w @ x) < 1:
            w = w + eta * label * x
            w = w * min(1, radius / np.linalg.norm(w))
    return np.array(forecasts)


def romma(X, y, limit):
    """Li and Long, with the norms they write."""
    w, forecasts = np.zeros(X.shape[1]), []
    for x, label in zip(X, y):
        f = w @ x
        forecasts.append(f)
        if label * f > limit or (limit and label * f >= limit):
            continue
        ww, xx = w @ w, x @ x
        if label * f >= xx * ww:
            w = label * x / xx
        else:
            w = (xx * ww - label * f) / (xx * ww - f**2) * w + ww * (label - f) / (xx * ww - f**2) * x
    return np.array(forecasts)


def learned(model):
    """Forecasts before each row, the rows in pieces."""
    return np.concatenate([model.learn(X[i : i + 37], y[i : i + 37], classes=[-1, 1]) for i in range(0, 300, 37)])


def linear(kind, rule, **given):
    return kind("raw", rule, standardize=False, **given)


def test_sop():
    model = linear(ConfidenceWeightedClassifier, "sop", lam=0.5)
    scores = learned(model)
    forecasts, w = sop(X, y)
    np.testing.assert_array_equal(scores > 0, forecasts > 0)  # ours are larger, by the factor 1 + z'A^-1 z
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("rule", ["cw", "scw1", "scw2"])
def test_confidence(rule, diagonal):
    model = linear(ConfidenceWeightedClassifier, rule, confidence=0.8, C=0.3, lam=2.0, diagonal=diagonal)
    np.testing.assert_allclose(learned(model), confident(X, y, rule, diagonal), rtol=1e-6, atol=1e-9)


def divergence(w, A, w0, A0):
    """KL(N(w, A^-1) | N(w0, A0^-1))."""
    S = np.linalg.inv(A)
    return 0.5 * (np.trace(A0 @ S) - len(w) + (w - w0) @ A0 @ (w - w0) - np.linalg.slogdet(A0 @ S)[1])


@pytest.mark.parametrize("rule", ["cw", "scw1", "scw2"])
def test_the_step_is_the_nearest_gaussian(rule):
    """Among all (alpha, c), the step of one row minimises divergence and price; without a price it is just sure."""
    C, x, label = (0.4 if rule != "cw" else 1e9), np.array([1.0, -0.5, 2.0]), 1
    model = linear(ConfidenceWeightedClassifier, rule, confidence=0.8, C=C, lam=2.0).partial_fit([x], [label], [-1, 1])
    w0, A0 = np.zeros(3), 2.0 * np.eye(3)

    def price(p):
        w, A = w0 + p[0] * np.linalg.solve(A0, x), A0 + np.exp(p[1]) * np.outer(x, x)
        v = x @ np.linalg.solve(A, x)
        lack = max(0.0, PHI * (v if rule == "cw" else np.sqrt(v)) - label * (w @ x))
        return divergence(w, A, w0, A0) + (C * lack**2 if rule == "scw2" else min(C, 1e3) * lack)

    starts = [minimize(price, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})
              for start in ([0.2, -1.0], [0.1, -3.0])]  # fmt: skip
    best = min(starts, key=lambda found: found.fun)
    np.testing.assert_allclose(model.coef_, best.x[0] * x / 2, atol=2e-4)


def test_alma_and_the_ball():
    np.testing.assert_allclose(learned(linear(LargeMarginClassifier, "alma", alpha=0.7)), alma(X, y, 0.7), atol=1e-10)
    model = linear(LargeMarginClassifier, "ogd", eta=0.7, radius=1.5)
    np.testing.assert_allclose(learned(model), ball(X, y, 0.7, 1.5), atol=1e-10)
    assert np.linalg.norm(model.coef_) <= 1.5 * (1 + 1e-12)


@pytest.mark.parametrize("rule, limit", [("romma", 0.0), ("aggressive_romma", 1.0)])
def test_romma(rule, limit):
    clean = np.where(X @ [1.0, -2.0, 0.5, 0.0, 1.0] > 0, 1, -1)
    model = linear(LargeMarginClassifier, rule)
    scores = model.learn(X, clean, classes=[-1, 1])
    np.testing.assert_allclose(scores, romma(X, clean, limit), rtol=1e-8, atol=1e-9)


def test_romma_is_the_shortest_of_both_half_spaces():
    model = linear(LargeMarginClassifier, "romma").partial_fit(X[:40], y[:40], [-1, 1])
    wrong = next(i for i in range(40, 300) if model.predict(X[i : i + 1])[0] != y[i])
    w, x, label = np.ravel(model.coef_).copy(), X[wrong], y[wrong]
    u = np.ravel(model.partial_fit([x], [label]).coef_)
    np.testing.assert_allclose([label * (u @ x), u @ w], [1.0, w @ w], rtol=1e-9)  # both bind: w is wrong about x
    within = np.linalg.lstsq(np.stack([label * x, w]), [1.0, w @ w], rcond=None)[0]
    np.testing.assert_allclose(u, within, rtol=1e-8)


def test_romma_stays_finite_where_no_plane_parts_the_labels():
    labels = np.tile([1, -1, -1, 1], 5000)
    rows = np.repeat(np.random.default_rng(1).normal(size=(5000, 2)), 4, axis=0) + 1e-3
    scores = linear(LargeMarginClassifier, "romma").learn(rows, labels, classes=[-1, 1])
    assert np.isfinite(scores).all() and np.abs(scores).max() > 1


@pytest.mark.parametrize("rule", ["alma", "romma", "aggressive_romma", "ogd"])
@pytest.mark.parametrize("before", [0, 40])
def test_rows_without_a_length_are_not_learned(rule, before):
    rows = np.concatenate([X[:before], np.zeros((1, 5)), np.full((1, 5), 1e-170), X[before:60]])
    labels = np.concatenate([y[:before], [1, -1], y[before:60]])
    model = linear(LargeMarginClassifier, rule).partial_fit(rows, labels, [-1, 1])
    without = linear(LargeMarginClassifier, rule).partial_fit(X[:60], y[:60], [-1, 1])
    np.testing.assert_array_equal(model.coef_, without.coef_)


@pytest.mark.parametrize("name", ["sop", "cw", "scw", "alma", "romma", "ogd_ball", "metagrad"])
def test_recipes_learn_labels_of_three_classes(name):
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    own = np.random.default_rng(2)
    codes = own.integers(3, size=600)
    rows = centres[codes] + 0.5 * own.normal(size=(600, 2))
    model = zoo.make(name, "multiclass", random_state=0).fit(rows, np.array(["a", "b", "c"])[codes])
    assert model.score(rows, np.array(["a", "b", "c"])[codes]) > 0.95


def test_options_of_recipes():
    assert zoo.make("scw", variant=2, C=0.5).rule == "scw2"
    assert zoo.make("romma", aggressive=True).rule == "aggressive_romma"
