"""Group-sparse learning of many kernels: its step and its limit are minima that a general method finds too."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelstream import zoo
from kernelstream.kernels import Gaussian
from kernelstream_papers.rivals import GroupSparseClassifier
from kernelstream_papers.rivals.group_sparse import shrunk

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
y = np.where(X @ [2.0, -1.0, 0.0, 0.1, 0.0, 0.0] + 0.3 * rng.normal(size=60) > 0, 1, -1)


@pytest.mark.parametrize("mu", [0.01, 0.5, 20.0])
@pytest.mark.parametrize("norms", [[3.0, 1.0, 0.2], [1.0, 1.0, 1.0], [0.0, 0.0, 2.0]])
def test_shortened_norms_are_the_minimum(norms, mu):
    norms = np.array(norms)
    found = minimize(
        lambda x: 0.5 * ((x - norms) ** 2).sum() + 0.5 * mu * x.sum() ** 2, norms / (1 + mu), method="SLSQP",
        bounds=[(0, None)] * 3, options={"ftol": 1e-15},
    )  # fmt: skip
    np.testing.assert_allclose(shrunk(norms, mu), found.x, atol=1e-6)


def test_the_ends_of_the_range():
    np.testing.assert_array_equal(shrunk(np.zeros(3), 0.5), np.zeros(3))
    np.testing.assert_array_equal(shrunk(np.array([1.0, 2.0]), 0.0), [1.0, 2.0])
    np.testing.assert_allclose(shrunk(np.array([1.0, 2.0]), 1e100), [0.0, 0.0], atol=1e-12)


def test_a_step_is_the_minimum_of_its_penalty():
    """From weights after the gradient, the next ones minimise rate lam/2 (sum |w_i|)^2 beside half the distance."""
    model = GroupSparseClassifier("raw", 3, lam=0.2, eta=0.7, standardize=False).partial_fit(X[:20], y[:20], [-1, 1])
    w, x, label = model.coef_[0].copy(), X[20], y[20]
    rate = 0.7 / np.sqrt(21)
    there = w + rate * label * x * (label * (w @ x) < 1)

    def price(u):
        total = np.linalg.norm(u.reshape(3, 2), axis=1).sum()
        return 0.5 * ((u - there) ** 2).sum() + 0.5 * rate * 0.2 * total**2

    got = model.partial_fit([x], [label]).coef_[0]
    tries = np.random.default_rng(1).normal(size=(2000, 6)) * np.logspace(-6, 0, 2000)[:, None]
    assert price(got) <= min(price(got + step) for step in tries)
    found = minimize(price, there, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20000})
    np.testing.assert_allclose(price(got), found.fun, rtol=1e-6)


@pytest.mark.slow
def test_many_passes_come_to_the_minimum_of_the_objective():
    lam, n = 0.05, len(y)

    def split(v):
        return v[:6], v[6:9], v[9:]  # weights, bounds of the norms, slacks

    start = np.concatenate([np.full(6, 0.1), np.ones(3), np.full(n, 3.0)])
    inequalities = [
        lambda v: split(v)[2] - 1 + y * (X @ split(v)[0]),
        lambda v: split(v)[1] ** 2 - (split(v)[0].reshape(3, 2) ** 2).sum(axis=1),
    ]
    best = minimize(
        lambda v: 0.5 * lam * split(v)[1].sum() ** 2 + split(v)[2].mean(), start, method="SLSQP",
        constraints=[{"type": "ineq", "fun": fun} for fun in inequalities],
        bounds=[(None, None)] * 6 + [(0, None)] * (3 + n), options={"maxiter": 1000, "ftol": 1e-12},
    )  # fmt: skip
    assert best.success
    model = GroupSparseClassifier("raw", 3, lam=lam, eta=1.0, standardize=False, random_state=0)
    model.fit(X, y, passes=600)
    w = model.coef_[0]
    reached = 0.5 * lam * model.norms_.sum() ** 2 + np.maximum(0, 1 - y * (X @ w)).mean()
    assert best.fun - 1e-6 <= reached < best.fun * 1.02
    norms = np.linalg.norm(split(best.x)[0].reshape(3, 2), axis=1)
    np.testing.assert_array_equal(model.norms_[0] < 0.05, norms < 0.01)
    assert (norms < 0.01).any() and (norms > 0.5).any()


def test_recipe_finds_the_kernel():
    rows = np.random.default_rng(3).normal(size=(2000, 2))
    labels = (rows**2).sum(axis=1) > 1.4
    kernels = [Gaussian(1e-6), Gaussian(0.5), Gaussian(1e4)]  # too wide, right, too narrow
    model = zoo.make("opmkl", "binary", kernels=kernels, lam=0.01, random_state=0)
    model.fit(rows[:1500], labels[:1500], passes=4)
    assert model.score(rows[1500:], labels[1500:]) > 0.96
    assert model.norms_[0, 1] > 5 * max(model.norms_[0, [0, 2]])
    assert zoo.make("opmkl").groups == 13
