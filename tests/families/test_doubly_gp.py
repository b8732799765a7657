"""Gaussian-process posterior by doubly stochastic gradients, against the closed form and a naive program."""

import numpy as np
import pytest
from doubly_features import SEED
from doubly_features import fourier_block as features
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from kernelstream import DoublyStochasticGP, kernels
from kernelstream.estimators import DoublySchedule, DoublyStep

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (400, 1))
y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(400)
grid = np.linspace(-4, 4, 41)[:, None]
FIXED = {"gamma": 0.7, "noise": 0.2, "step": DoublyStep(1.0, 7.0, precondition=0.0), "schedule": DoublySchedule(16, 6),
         "variance_features": 6, "random_state": SEED}  # fmt: skip


def closed_form(X, y, points, gamma, noise, mean=0.0, amplitude=1.0):
    """Posterior mean and standard deviation by the formula."""
    kernel = kernels.Gaussian(gamma)
    K = amplitude * kernel.pairwise(X, X) + noise * np.eye(len(X))
    Kx = amplitude * kernel.pairwise(points, X)
    variance = amplitude - np.einsum("ij,ji->i", Kx, np.linalg.solve(K, Kx.T))
    return mean + Kx @ np.linalg.solve(K, y - mean), np.sqrt(variance)


def test_our_closed_form_is_scikit_learns():
    other = GaussianProcessRegressor(RBF(0.5), alpha=0.1, optimizer=None).fit(X, y)
    for ours, theirs in zip(closed_form(X, y, grid, 2.0, 0.1), other.predict(grid, return_std=True)):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("form", [pytest.param("operator", marks=pytest.mark.slow), "points"])
def test_closed_form(form):
    """Inside the data, at their edge and far from them."""
    model = DoublyStochasticGP(gamma=2.0, noise=0.1, points=grid if form == "points" else None, random_state=0)
    mean, std = model.fit(X, y).predict(grid, return_std=True)
    true_mean, true_std = closed_form(X, y, grid, 2.0, 0.1)
    assert np.sqrt(np.mean((mean - true_mean) ** 2)) < 0.1 * np.sqrt(np.mean(true_mean**2))
    assert np.sqrt(np.mean((std - true_std) ** 2)) < 0.2 * true_std.mean()
    inside = np.abs(grid[:, 0]) < 2.5
    assert np.mean(np.abs(std - true_std)[inside]) < 0.3 * true_std[inside].mean()
    assert np.array_equal(mean, model.predict(grid))


@pytest.mark.slow
def test_prior_from_the_targets():
    model = DoublyStochasticGP(gamma=2.0, noise=10.0, normalize_y=True, random_state=0).fit(X, 10 * y + 50)
    mean, std = model.predict(grid, return_std=True)
    spread = (10 * y).var()
    true_mean, true_std = closed_form(X, 10 * y + 50, grid, 2.0, 10.0, (10 * y + 50).mean(), spread)
    assert np.sqrt(np.mean((mean - true_mean) ** 2)) < 0.1 * true_mean.std()
    assert np.sqrt(np.mean((std - true_std) ** 2)) < 0.2 * true_std.mean()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_operator_is_the_recursion(engine):
    """theta_ij, one iteration after the other: 25 batches of 16 rows, lam = noise / rows so far."""
    model = DoublyStochasticGP(**FIXED | {"schedule": DoublySchedule(16, 6, None)}, engine=engine).partial_fit(X, y)
    theta = np.zeros((6, 0))  # features of the second stream × features so far
    mean_theta = theta.copy()
    left = features(X, 0, 3, stream=1)
    for t in range(1, 26):
        rows = slice(16 * (t - 1), 16 * t)
        right = [features(X[rows], j, 6, stream=0) for j in range(t)]
        A = np.concatenate([theta, np.zeros((6, 12))], axis=1) @ np.concatenate(right, axis=1).T
        gamma = 7.0 / (7.0 + t)
        theta = np.concatenate(
            [(1 - gamma * 0.2 / (16 * t)) * theta, gamma / 16 * (left[rows].T - A) @ right[-1]], axis=1
        )
        w = 4 / (t + 3)
        mean_theta = (1 - w) * np.concatenate([mean_theta, np.zeros((6, 12))], axis=1) + w * theta
    inside = features(grid, 0, 3, stream=1)
    right = np.concatenate([features(grid, j, 6, stream=0) for j in range(25)], axis=1)
    variance = 1 - np.einsum("ij,ij->i", inside @ mean_theta, right)
    _, std = model.predict(grid, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(np.clip(variance, 0.2 / 400.2, 1)), atol=1e-9)


def test_one_block_converges_to_the_ridge_solution():
    """All rows in the batch and one block: gradient descent in its 12 features, whose limit has a formula."""
    step = DoublyStep(1.0, 1e9, average=False, precondition=1e-3)
    params = FIXED | {"step": step, "schedule": DoublySchedule(400, 6, max_blocks=1, passes=1000)}
    model = DoublyStochasticGP(**params).fit(X, y)
    mean, std = model.predict(grid, return_std=True)
    Z, z = features(X, 0, 6, 0), features(grid, 0, 6, 0)
    H = np.linalg.solve(Z.T @ Z + 0.2 * np.eye(12), Z.T)
    np.testing.assert_allclose(mean, z @ H @ y, atol=1e-6)
    explained = np.einsum("ij,ij->i", features(grid, 0, 3, 1), z @ H @ features(X, 0, 3, 1))
    np.testing.assert_allclose(std, np.sqrt(np.clip(1 - explained, 0.2 / 400.2, 1)), atol=1e-5)


@pytest.mark.parametrize(
    "kernel, size",
    [("laplacian", 32), pytest.param("matern", 128, marks=pytest.mark.slow), ("arc_cosine", 32), ("linear", 32)],
)
def test_other_kernels(kernel, size):
    model = DoublyStochasticGP(kernel, noise=0.1, schedule=DoublySchedule(block_size=size), random_state=0).fit(X, y)
    K = model.kernel_.pairwise(X, X)
    true = model.kernel_.diag(X) - np.einsum("ij,ji->i", K, np.linalg.solve(K + 0.1 * np.eye(400), K))
    mean, std = model.predict(X, return_std=True)
    assert abs(np.sqrt(np.mean(std**2)) / np.sqrt(true.mean()) - 1) < 0.5
    true_mean = K @ np.linalg.solve(K + 0.1 * np.eye(400), y)
    assert np.sqrt(np.mean((mean - true_mean) ** 2)) < 0.15 * y.std()


def test_before_the_first_batch():
    mean, std = DoublyStochasticGP(**FIXED).partial_fit(X[:5], y[:5]).predict(grid, return_std=True)
    np.testing.assert_allclose([mean, std], [np.zeros(41), np.ones(41)], atol=1e-12)


def test_points_and_nothing_else():
    model = DoublyStochasticGP(**FIXED, points=grid).fit(X, y)
    model.predict(X)
    with pytest.raises(ValueError, match="row 1 of X is not among the points"):
        model.predict([grid[3], [0.123]], return_std=True)
    with pytest.raises(ValueError, match="points have 1 columns"):
        model.widen(3)
    with pytest.raises(ValueError, match="points have 1 columns, the rows have 2"):
        DoublyStochasticGP(**FIXED, points=grid).fit(np.c_[X, X], y)
    with pytest.raises(ValueError, match="no variance was learned"):
        DoublyStochasticGP(**FIXED | {"variance_features": 0}).fit(X, y).predict(X, return_std=True)
