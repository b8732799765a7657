"""Coordinates drawn uniformly: the printed step, and the minimum that scikit-learn finds."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression

from kernelstream import BinningRegressor, engine, losses
from kernelstream.random import SeedStream, generator
from kernelstream.solvers import CoordinateDescent, DenseMatrix, Problem
from kernelstream_papers.rivals import FixedFeatureClassifier
from kernelstream_papers.rivals.solvers import UniformCoordinateDescent

rng = np.random.default_rng(0)
Z = rng.normal(size=(80, 12)) * (rng.uniform(size=(80, 12)) < 0.5)
y = Z @ np.r_[2.0, -1.0, np.zeros(10)] + 0.1 * rng.normal(size=80)


def problem(Y, loss, lam, **given):
    return Problem(DenseMatrix(Z), Y[:, None], losses.get(loss), lam, engine.get("python"), seed=5, **given)


def test_draws_and_steps_of_the_listing():
    found = UniformCoordinateDescent(1e-12, 3).solve(problem(y, "squared", 4.0))
    draws, w = generator(5, SeedStream.SOLVER), np.zeros(12)
    for _ in range(3):
        for j in draws.integers(12, size=12):
            g, M = Z[:, j] @ (Z @ w - y), (Z[:, j] ** 2).sum()
            v = w[j] - g / M
            w[j] = 0.0 if abs(v) <= 4.0 / M else v - 4.0 / M if v > 0 else v + 4.0 / M
    np.testing.assert_allclose(found.W[:, 0], w, atol=1e-12)
    assert found.n_iter == 3 and not found.converged
    assert found.history[-1] == pytest.approx(0.5 * ((Z @ w - y) ** 2).sum() + 4.0 * np.abs(w).sum())


def test_the_lasso():
    found = UniformCoordinateDescent(1e-9, 2000).solve(problem(y, "squared", 8.0))
    expected = Lasso(alpha=8.0 / 80, fit_intercept=False, tol=1e-12).fit(Z, y).coef_
    assert found.converged and 0 < (expected == 0).sum() < 12
    np.testing.assert_allclose(found.W[:, 0], expected, atol=1e-7)


def test_logistic_regression_with_weights_and_a_start():
    labels, weight = np.where(y > 0, 1.0, -1.0), np.random.default_rng(1).uniform(0.5, 2.0, 80)
    given = problem(labels, "logistic", 2.0, weight=weight, start=np.full((12, 1), 0.3))
    found = UniformCoordinateDescent(1e-9, 5000).solve(given)
    model = LogisticRegression(C=0.5, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10000)
    expected = model.fit(Z, labels, weight).coef_[0]
    np.testing.assert_allclose(found.W[:, 0], expected, atol=1e-4)


@pytest.mark.slow
def test_it_serves_random_binning_and_fourier_features():
    X = np.random.default_rng(2).uniform(-2, 2, (120, 2))
    target = np.sin(2 * X[:, 0]) + X[:, 1]
    ours, usual = (
        BinningRegressor("laplacian", 1.0, n_components=4, lam=1.0, solver=solver, random_state=0).fit(X, target)
        for solver in (UniformCoordinateDescent(1e-8, 5000), CoordinateDescent(1e-8, 5000))
    )
    np.testing.assert_allclose(ours.predict(X), usual.predict(X), atol=1e-3)
    assert ours.coef_.shape[1] < ours.state_["n_columns"]  # cells without a weight are left out
    model = FixedFeatureClassifier(solver=UniformCoordinateDescent(), lam=0.1, random_state=0).fit(X, target > 0)
    assert model.score(X, target > 0) > 0.95 and (model.coef_ == 0).any()
