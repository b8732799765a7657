"""Batch learners on fixed features: against scikit-learn on the same features, and the contract of an estimator."""

import warnings

import numpy as np
import pytest
from reloaded import reloaded
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, Ridge
from sklearn.svm import LinearSVC

from kernelstream import zoo
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.solvers import CoordinateDescent
from kernelstream_papers.rivals import FixedFeatureClassifier, FixedFeatureRegressor
from kernelstream_papers.rivals.solvers import SDCA

X2, y2 = make_moons(200, noise=0.15, random_state=0)
X4, y4 = make_blobs(150, n_features=3, centers=4, cluster_std=2.0, random_state=1)
target = np.sin(2 * X2[:, 0]) + 3.0
FOURIER = RandomFourier(gamma=1.0, n_components=20, random_state=0)
TIGHT = SDCA(tol=1e-8, max_iter=3000)
NAMES = [f"{letter}_{solver}" for letter in "rn" for solver in ("pegasos", "sdca", "sbmd", "rbcd", "cd")]


def test_llsvm_is_a_linear_svm_on_nystroem_features_of_chosen_landmarks():
    model = zoo.make("llsvm", gamma=1.0, n_components=20, lam=0.5)
    model.set_params(solver=TIGHT, features__random_state=0).fit(X2, y2)
    Z = Nystroem("gaussian", 20, gamma=1.0, landmarks="kmeans++", random_state=0).fit_transform(X2)
    truth = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, tol=1e-9, max_iter=10**6).fit(Z, y2)
    np.testing.assert_allclose(model.decision_function(X2), truth.decision_function(Z), atol=5e-3)


def test_regressor_is_ridge_on_the_features():
    model = FixedFeatureRegressor(FOURIER, lam=0.3, solver=TIGHT).fit(X2[:150], target[:150])
    Z = FOURIER.fit_transform(X2)
    truth = Ridge(alpha=0.3, fit_intercept=False, solver="cholesky").fit(Z[:150], target[:150] - target[:150].mean())
    np.testing.assert_allclose(model.predict(X2[150:]), truth.predict(Z[150:]) + target[:150].mean(), atol=1e-3)


def test_coordinate_descent_is_the_lasso_on_the_features():
    model = FixedFeatureRegressor(FOURIER, lam=0.5, solver=CoordinateDescent(1e-9, 20_000)).fit(X2, target)
    truth = Lasso(0.5 / len(X2), fit_intercept=False, tol=1e-12, max_iter=10**6)
    truth.fit(FOURIER.fit_transform(X2), target - target.mean())
    np.testing.assert_allclose(model.coef_[0], truth.coef_, atol=1e-5)
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size / 2


def test_classes_one_against_the_rest():
    names = np.array(["ant", "bee", "cat", "dog"])[y4]
    model = FixedFeatureClassifier(FOURIER, "squared_hinge", 0.5, TIGHT).fit(X4, names)
    truth = LinearSVC(C=1.0, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)
    truth.fit(FOURIER.fit_transform(X4), names)
    np.testing.assert_allclose(model.coef_, truth.coef_, atol=3e-3)
    assert list(model.classes_) == ["ant", "bee", "cat", "dog"]
    assert (model.predict(X4) == truth.predict(FOURIER.transform(X4))).mean() > 0.99


@pytest.mark.parametrize("name", NAMES)
def test_recipes_learn(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = zoo.make(name, gamma=1.0, n_components=50, lam=0.1, random_state=0).fit(X2[:150], y2[:150])
        curve = zoo.make(name, "regression", gamma=1.0, n_components=50, lam=0.1, random_state=0).fit(X2, target)
    assert model.score(X2[150:], y2[150:]) > 0.9
    assert curve.score(X2, target) > 0.5
    assert not hasattr(model, "partial_fit") and not hasattr(model, "learn")
    np.testing.assert_array_equal(reloaded(model).decision_function(X2), model.decision_function(X2))
