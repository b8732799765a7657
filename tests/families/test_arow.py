"""AROW and the online Newton step against their papers' formulas, one row at a time."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelstream import AROWClassifier, NewtonClassifier, engine
from kernelstream.features import TaylorFeatures
from kernelstream.losses import Hinge, Logistic, Squared, SquaredHinge
from kernelstream.second_order import LeastSquares, Margin, Newton, start

ENGINES = ["python"] + ["native"] * engine.has_native()

X, labels = make_moons(400, noise=0.25, random_state=0)
y = 2.0 * labels - 1
map_ = TaylorFeatures(degree=3, gamma=0.5)
Z = map_.fit_transform(X)
rng = np.random.default_rng(0)


def arow(Z, y, r, diagonal=False):
    """Figure 1 of Crammer, Kulesza, Dredze (2009); the diagonal version keeps the diagonal of Sigma^-1."""
    w, Sigma, margins, precision = np.zeros(Z.shape[1]), np.eye(Z.shape[1]), [], np.ones(Z.shape[1])
    for z, label in zip(Z, y):
        margins.append(w @ z)
        if label * margins[-1] >= 1:
            continue
        Sigma = np.diag(1 / precision) if diagonal else Sigma
        beta = 1 / (z @ Sigma @ z + r)
        w = w + max(0, 1 - label * margins[-1]) * beta * label * (Sigma @ z)
        Sigma = Sigma - beta * np.outer(Sigma @ z, z @ Sigma)
        precision = precision + z**2 / r
    return np.array(margins), w


def newton(Z, y, slope, lam, curvature, bound=np.inf, diagonal=False):
    """A += curvature g g', w -= A^-1 g, projected on |w'z| <= bound in the norm of A before each row."""
    w, A, scores = np.zeros(Z.shape[1]), lam * np.eye(Z.shape[1]), []
    for z, label in zip(Z, y):
        f = w @ z
        if abs(f) > bound:
            Az = np.linalg.solve(A, z)
            w = w - (f - np.sign(f) * bound) / (z @ Az) * Az
            f = w @ z
        scores.append(f)
        g = slope(label, f) * z
        s, before = z @ np.linalg.solve(A, z), A
        A = A + curvature * np.outer(g, g)
        if diagonal:  # the step of the full matrix along z, then everything off the diagonal is dropped
            w = w - np.linalg.solve(before, g) / (1 + curvature * slope(label, f) ** 2 * s)
            A = np.diag(np.diag(A))
        else:
            w = w - np.linalg.solve(A, g)
    return np.array(scores), w


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("r", [0.1, 1.0])
def test_arow(name, diagonal, r):
    margins, w = arow(Z, y, r, diagonal)
    model = AROWClassifier(map_, lam=r, diagonal=diagonal, engine=name)
    scores = np.concatenate([model.learn(X[i : i + 90], labels[i : i + 90], classes=[0, 1]) for i in range(0, 400, 90)])
    np.testing.assert_allclose(scores, margins, atol=1e-10)
    np.testing.assert_allclose(model.coef_, w, atol=1e-10)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Hinge()], ids=str)
def test_newton(name, diagonal, loss):
    scores, w = newton(Z, y, lambda label, f: float(loss.gradient(label, f)), 0.3, 0.7, diagonal=diagonal)
    model = NewtonClassifier(map_, loss, lam=0.3, curvature=0.7, diagonal=diagonal, engine=name)
    np.testing.assert_allclose(model.learn(X, labels, classes=[0, 1]), scores, atol=1e-9)
    np.testing.assert_allclose(model.coef_, w, atol=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_newton_with_a_bound(name):
    """Squared loss, targets up to 3, predictions held within 0.8."""
    target = 3 * y
    expected, w = newton(Z, target, lambda label, f: f - label, 0.1, 0.2, bound=0.8)
    assert np.isclose(np.abs(expected), 0.8).sum() > 20
    state = {}
    start(state, Z.shape[1], 1, 1, np.array([0.1]), 1.0)
    rule = Newton(Squared(), 0.2, 0.8)
    recursion = engine.get(name).least_squares(state, rule)
    parts = [recursion.learn(Z[i : i + 37], target[i : i + 37, None], None)[0][:, 0, 0] for i in range(0, 400, 37)]
    np.testing.assert_allclose(rule.show(np.concatenate(parts)), expected, atol=1e-8)
    np.testing.assert_allclose(recursion.weights()[0, 0], w, atol=1e-8)


@pytest.mark.parametrize("rule", [LeastSquares(), Margin(), Newton(Logistic(), 0.5)], ids=lambda rule: rule.name)
def test_statistics_tell_everything(rule, rng):
    """Whatever the rule: w = A^-1 b with A = lam I + sum c z z', b = sum beta z, read off the state."""
    for name in ENGINES:
        state = {}
        start(state, Z.shape[1], 1, 1, np.array([0.2]), 1.0)
        recursion = engine.get(name).least_squares(state, rule)
        recursion.learn(Z, y[:, None], rng.integers(0, 3, len(y)).astype(float))
        n = state["n_window"]
        window, c, beta = state["window"][:n], state["window_c"][:n, 0], state["window_b"][:n, 0]
        upper = state["gram"][0]
        A = upper + np.triu(upper, 1).T + 0.2 * np.eye(len(upper)) + window.T @ (c[:, None] * window)
        b = state["b"][0] + beta @ window
        np.testing.assert_allclose(recursion.weights()[0, 0], np.linalg.solve(A, b), atol=1e-9)


def test_multiclass_is_one_against_the_rest():
    Xc, yc = make_blobs(300, n_features=2, centers=3, cluster_std=2.5, random_state=1)
    features = TaylorFeatures(gamma=0.05)
    F = features.fit_transform(Xc)
    for name in ENGINES:
        model = AROWClassifier(features, lam=1.0, engine=name)
        scores = model.learn(Xc, yc, classes=[0, 1, 2])
        for c in range(3):
            margins, w = arow(F, np.where(yc == c, 1.0, -1.0), 1.0)
            np.testing.assert_allclose(scores[:, c], margins, atol=1e-10)
            np.testing.assert_allclose(model.coef_[c], w, atol=1e-10)
