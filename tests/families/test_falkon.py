"""Kernel machines through centres: against exact solutions by other means, and the contract of an estimator."""

import warnings
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import solve
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from kernelstream import FalkonClassifier, FalkonRegressor, engine, kernels, losses
from kernelstream.estimators.falkon import models
from kernelstream.estimators.falkon.choice import FalkonSearch
from kernelstream.estimators.falkon.trials import RidgeTrials, Trial
from kernelstream.solvers import kernel_blocks
from kernelstream.solvers.falkon import CenterMatrix, falkon
from kernelstream.solvers.kernel_ridge import kernel_ridge
from kernelstream.solvers.search import Fold, Sample

rng = np.random.default_rng(0)
X = rng.normal(size=(250, 4))
TARGET = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 5.0
CODES = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.5, 0.8])
WEIGHT = rng.uniform(0.2, 3.0, len(X))
NEW = rng.normal(size=(60, 4))
TIGHT = {"gamma": 0.4, "n_centers": 250, "tol": 1e-13, "max_iter": 300}
ENGINES = ["python", "native", pytest.param("torch", marks=pytest.mark.skipif(
    not engine.usable("torch"), reason="needs PyTorch"))]  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_all_rows_as_centres_is_kernel_ridge(name, weight):
    mean = np.average(TARGET, weights=weight)
    truth = KernelRidge(alpha=0.05, kernel="rbf", gamma=0.4).fit(X, TARGET - mean, sample_weight=weight).predict(NEW)
    model = FalkonRegressor(lam=0.05, engine=name, **TIGHT).fit(X, TARGET, sample_weight=weight)
    np.testing.assert_allclose(model.predict(NEW), truth + mean, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ENGINES)
def test_fewer_centres_is_the_minimum_on_them(name):
    """alpha solves (K'K + lam K_SS) alpha = K'y, which numpy solves here for the centres that were drawn."""
    model = FalkonRegressor(gamma=0.4, n_centers=30, lam=0.05, tol=1e-13, engine=name, random_state=3).fit(X, TARGET)
    S = model.centers_
    assert S.shape == (30, 4) and len({tuple(row) for row in S} & {tuple(row) for row in X}) == 30
    K, K_SS = rbf_kernel(X, S, gamma=0.4), rbf_kernel(S, S, gamma=0.4)
    alpha = solve(K.T @ K + 0.05 * K_SS, K.T @ (TARGET - TARGET.mean()), assume_a="pos")
    np.testing.assert_allclose(model.predict(NEW), rbf_kernel(NEW, S, gamma=0.4) @ alpha + TARGET.mean(), atol=1e-8)
    assert model.n_iter_ < 100 and model.history_[-1] <= 1e-13


@pytest.mark.skipif(not engine.usable("torch"), reason="needs PyTorch")
def test_factors_of_many_centres_are_in_float32(monkeypatch):
    """The minimum is the same: they are a way to it, divided by what the centres alone say."""
    from kernelstream.engine.torch import kernel_blocks

    monkeypatch.setattr(kernel_blocks, "FACTORS", 1 << 60)
    monkeypatch.setattr(kernel_blocks, "FACTOR_ROWS", 7)  # rows of the factor that are multiplied at once
    if not engine.get("torch").cuda:
        monkeypatch.setattr(kernel_blocks.DeviceCenters, "many", True)
    options = {"gamma": 0.4, "n_centers": 30, "lam": 0.05, "tol": 1e-12, "engine": "torch", "random_state": 3}
    model = FalkonRegressor(**options).fit(X, TARGET, sample_weight=WEIGHT)
    S = model.centers_
    K, K_SS = rbf_kernel(X, S, gamma=0.4), rbf_kernel(S, S, gamma=0.4)
    K_SS += np.finfo(np.float32).eps * np.sqrt(30) * np.eye(30)
    mean = np.average(TARGET, weights=WEIGHT)
    alpha = solve(K.T @ (WEIGHT[:, None] * K) + 0.05 * K_SS, K.T @ (WEIGHT * (TARGET - mean)), assume_a="pos")
    np.testing.assert_allclose(model.predict(NEW), rbf_kernel(NEW, S, gamma=0.4) @ alpha + mean, atol=1e-6)
    assert model.n_iter_ < 60 and model.history_[-1] <= 1e-12


@pytest.mark.skipif(not (engine.usable("torch") and engine.get("torch").cuda), reason="needs a GPU")
@pytest.mark.parametrize("n, m, d", [(3000, 70, 3), (1, 5000, 28), (700, 4097, 128), (64, 64, 1)])
def test_products_with_kernel_values_that_are_not_stored(n, m, d):
    """As by float64 matrices; values are those of float32 rows."""
    rng = np.random.default_rng(0)
    rows, S = (rng.normal(3.0, 1.0, (k, d)).astype(np.float32) for k in (n, m))
    gamma = 0.5 / d
    blocks = engine.get("torch").kernel_blocks(kernels.Gaussian(gamma), rows, S)
    K = rbf_kernel(rows.astype(np.float64), S.astype(np.float64), gamma=gamma)
    V, U, weight = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)), rng.uniform(size=(n, 1))
    assert blocks.times is not None
    for got, want, size in [
        (blocks.dot(V), K @ V, K @ np.abs(V)),
        (blocks.tdot(U), K.T @ U, K.T @ np.abs(U)),
        (blocks.normal(weight, V), K.T @ (weight * (K @ V)), K.T @ (weight * (K @ np.abs(V)))),
    ]:
        assert (np.abs(got - want) <= 2e-6 * size).all()


def newton_logistic(K, signs, weight, lam, offset):
    """Coefficients of kernel logistic regression by plain Newton steps: (W K + lam I) alpha = W K alpha - g."""
    alpha = np.zeros(len(K))
    for _ in range(50):
        f = K @ alpha + offset
        p = 1 / (1 + np.exp(signs * f))
        slope, curve = -weight * signs * p, weight * p * (1 - p)
        alpha = solve(curve[:, None] * K + lam * np.eye(len(K)), curve * (K @ alpha) - slope)
    return alpha


@pytest.mark.parametrize("name", ENGINES)
def test_logistic_is_the_newton_solution(name):
    labels = np.where(CODES == 1, "in", "out")
    signs = np.where(labels == "out", 1.0, -1.0)
    share = WEIGHT @ signs / (WEIGHT.sum() + 1)
    offset = np.log((1 + share) / (1 - share))
    K = rbf_kernel(X, X, gamma=0.4)
    f = rbf_kernel(NEW, X, gamma=0.4) @ newton_logistic(K, signs, WEIGHT, 0.3, offset) + offset
    model = FalkonClassifier(lam=0.3, loss="logistic", engine=name, **TIGHT).fit(X, labels, sample_weight=WEIGHT)
    np.testing.assert_allclose(model.decision_function(NEW), f, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-f)), atol=1e-7)
    assert (model.predict(NEW) == np.where(f >= 0, "out", "in")).all()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_gradient_vanishes_one_against_the_rest(loss):
    """At the minimum over alpha: K'l'(y, f) + lam K_SS alpha = 0 for every class."""
    model = FalkonClassifier(gamma=0.4, n_centers=40, lam=0.2, loss=loss, tol=1e-11, random_state=0).fit(X, CODES)
    S, alpha = model.centers_, model.dual_coef_.T
    K, K_SS = rbf_kernel(X, S, gamma=0.4), rbf_kernel(S, S, gamma=0.4)
    signs = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)
    f = K @ alpha + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-10)
    margin = signs * f
    slope = -signs / (1 + np.exp(margin)) if loss == "logistic" else -signs * np.maximum(0, 1 - margin)
    np.testing.assert_allclose(K.T @ slope + 0.2 * K_SS @ alpha, 0, atol=1e-7)


def test_blocks_never_hold_the_whole_matrix(monkeypatch):
    """Small blocks, none kept: the same model, and no array of kernel values larger than a block."""
    model = FalkonRegressor(gamma=0.4, n_centers=30, lam=0.05, tol=1e-12, random_state=3)
    truth = model.fit(X, TARGET).predict(NEW)
    monkeypatch.setattr(kernel_blocks, "ELEMENTS", 300)
    monkeypatch.setattr(kernel_blocks, "KEPT", 0)
    monkeypatch.setattr(kernel_blocks, "TALL", 10)
    sizes = []
    whole = kernel_blocks.Centers.__call__

    def watched(self, rows):
        sizes.append(rows.shape[0] * self.S.shape[0])
        return whole(self, rows)

    monkeypatch.setattr(kernel_blocks.Centers, "__call__", watched)
    np.testing.assert_allclose(model.fit(X, TARGET).predict(NEW), truth, atol=1e-9)
    assert max(sizes) <= 300 and len(sizes) > 25


@pytest.mark.parametrize("kernel", [kernels.Laplacian(0.3), kernels.Polynomial(gamma=0.2, degree=2)])
def test_other_kernels(kernel):
    mean = TARGET.mean()
    K = kernel.pairwise(X, X)
    f = kernel.pairwise(NEW, X) @ solve(K + 0.5 * np.eye(len(X)), TARGET - mean) + mean
    model = FalkonRegressor(kernel, None, 250, 0.5, tol=1e-13, max_iter=300).fit(X, TARGET)
    np.testing.assert_allclose(model.predict(NEW), f, atol=1e-7)


def test_far_from_the_origin():
    """Distances of rows near 1e4: the cancelling formula must not be trusted there."""
    far = X + 1e4
    model = FalkonRegressor(lam=0.05, **TIGHT)
    near = model.fit(X, TARGET).predict(NEW)
    np.testing.assert_allclose(model.fit(far, TARGET).predict(NEW + 1e4), near, atol=1e-5)
    np.testing.assert_allclose(model.fit(sp.csr_array(far), TARGET).predict(NEW + 1e4), near, atol=1e-5)


def test_repeated_rows_and_odd_penalties():
    """Centres that repeat each other make a singular Gram matrix; the model is still the minimum."""
    twice = np.concatenate([X, X])
    truth = KernelRidge(alpha=0.05, kernel="rbf", gamma=0.4).fit(twice, np.tile(TARGET - TARGET.mean(), 2)).predict(NEW)
    model = FalkonRegressor(gamma=0.4, n_centers=500, lam=0.05, tol=1e-12).fit(twice, np.tile(TARGET, 2))
    np.testing.assert_allclose(model.predict(NEW), truth + TARGET.mean(), atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for lam in (1e-14, 1e14):
            assert np.isfinite(FalkonRegressor(gamma=0.4, lam=lam).fit(X, TARGET).predict(NEW)).all()


def test_choices_suit_the_scale_of_the_columns():
    """Columns in units 1e12 apart: no kernel sees both unless each is divided by a number of its own."""
    A, b = make_moons(1200, noise=0.15, random_state=0)
    A = A * [1e6, 1e-6]
    model = FalkonClassifier(n_centers=100, random_state=0).fit(A[:800], b[:800])
    assert model.score(A[800:], b[800:]) > 0.97 and model.width_[0] / model.width_[1] > 1e11
    assert model.set_params(gamma="median").fit(A[:800], b[:800]).score(A[800:], b[800:]) < 0.95


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_penalty_is_found(loss, rng):
    """Pure noise wants the largest penalty; a clean boundary a small one."""
    noise = rng.integers(0, 2, len(X))
    heavy = FalkonClassifier(gamma=2.0, n_centers=60, loss=loss, random_state=0).fit(X, noise)
    clean = FalkonClassifier(gamma=0.2, n_centers=60, loss=loss, random_state=0).fit(X, X[:, 0] > 0)
    assert heavy.lam_ == 1.0 and clean.lam_ <= 0.1


def test_class_weight_is_sample_weight():
    by_class = FalkonClassifier(lam=0.1, class_weight={0: 3.0, 1: 0.5, 2: 1.0}, **TIGHT).fit(X, CODES)
    by_row = FalkonClassifier(lam=0.1, **TIGHT).fit(X, CODES, sample_weight=np.array([3.0, 0.5, 1.0])[CODES])
    np.testing.assert_allclose(by_class.decision_function(NEW), by_row.decision_function(NEW), atol=1e-9)
    some = WEIGHT * (CODES != 2)
    left_out = FalkonClassifier(lam=0.1, **TIGHT).fit(X, CODES, sample_weight=some)
    absent = FalkonClassifier(lam=0.1, **TIGHT).fit(X[CODES != 2], CODES[CODES != 2], sample_weight=WEIGHT[CODES != 2])
    np.testing.assert_array_equal(left_out.decision_function(NEW), absent.decision_function(NEW))


def test_says_when_it_has_not_converged():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        FalkonRegressor(gamma=0.4, n_centers=20, lam=1e-3, max_iter=1, tol=1e-9, random_state=0).fit(X, TARGET)


def test_solver_alone_begins_where_it_is_told():
    """Without an estimator: a start at the solution ends at once."""
    ops = engine.get("python")
    Z = CenterMatrix(kernels.Gaussian(0.4), X, np.arange(0, 250, 25), ops)
    loss = losses.get("squared", task="regression")
    found = falkon(Z, TARGET[:, None], loss, 0.05, ops, tol=1e-10)
    again = falkon(Z, TARGET[:, None], loss, 0.05, ops, tol=1e-9, start=found.W)
    assert found.converged and found.n_iter > 3 and again.n_iter == 0


def test_widths_follow_the_gradients():
    """Two columns of eight matter: nearly as good as if one had been told which."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    y = np.sin(2 * X[:, 3]) + 0.5 * X[:, 5]
    told = FalkonRegressor(n_centers=200, random_state=0).fit(X[:1000, [3, 5]], y[:1000])
    found = FalkonRegressor(n_centers=200, random_state=0).fit(X[:1000], y[:1000])
    width = found.width_ / found.width_[3]
    assert width[5] > 1.5 and np.delete(width, [3, 5]).min() > 3 * width[5]
    assert found.score(X[1000:], y[1000:]) > told.score(X[1000:][:, [3, 5]], y[1000:]) - 0.01


def test_probabilities_cost_no_second_search(monkeypatch):
    """Columns in other units: the like model that they come from is given the widths that were found."""
    search = Mock(wraps=FalkonSearch.widths_and_kernel)
    monkeypatch.setattr(FalkonSearch, "widths_and_kernel", lambda self, *args: search(self, *args))
    X, y = make_moons(800, noise=0.2, random_state=0)
    X = X * [1.0, 1e4]
    model = FalkonClassifier(n_centers=100, random_state=0).fit(X[:600], y[:600])
    assert search.call_count == 1
    loss = -np.log(model.predict_proba(X[600:])[np.arange(200), y[600:]]).mean()
    assert loss < 0.2  # 0.69 for one that knows nothing


RADIAL = [kernels.Gaussian(0.3), kernels.Matern(1.5, 1.2), kernels.Matern(2.5, 0.8), kernels.Matern(np.inf, 2.0)]


def trials(name, kernel, learned, held, m, lams):
    """The same rows for trials on the processor or by torch, which leaves some kernels to the processor."""
    whole = Sample(X, np.stack([TARGET, np.cos(X[:, 3])], axis=1), WEIGHT)
    host = RidgeTrials(Fold(whole.at(learned), whole.at(held)), m, lams)
    return host if name == "processor" else engine.get("torch").ridge_trials(kernel, host)


@pytest.mark.parametrize("name", ["processor", ENGINES[2]])
@pytest.mark.parametrize("kernel", [*RADIAL, kernels.Laplacian(0.5)], ids=str)
def test_trials_are_the_normal_equations(name, kernel):
    """Errors of every penalty, and slopes by differences of the function they belong to."""
    Y = np.stack([TARGET, np.cos(X[:, 3])], axis=1)
    width, lams, m = np.array([1.0, 2.0, 0.5, 1.5]), (1.0, 0.01), 40
    learned, held = slice(0, 200), slice(200, 250)
    at = trials(name, kernel, learned, held, m, lams)
    assert isinstance(at, RidgeTrials) == (name == "processor" or not kernel.radial)
    at = at.at(width)
    errors, coefficients = at.path(kernel)
    U, weight, mean = X / width, WEIGHT[learned], np.average(Y[learned], axis=0, weights=WEIGHT[learned])
    S = U[:m]
    K, K_SS = kernel.pairwise(U[learned], S), kernel.pairwise(S, S)
    for k, lam in enumerate(lams):
        alpha = solve(K.T @ (weight[:, None] * K) + lam * K_SS, K.T @ (weight[:, None] * (Y[learned] - mean)))
        error = np.square(kernel.pairwise(U[held], S) @ alpha + mean - Y[held]).sum(axis=1)
        np.testing.assert_allclose(errors[k], np.average(error, weights=WEIGHT[held]), rtol=1e-6)
    squares, E = [], np.eye(4)
    h = 1e-4 if kernel.radial else 0.02  # the Laplacian has kinks: differences of one step
    for j in range(4):
        rise = (kernel.pairwise(U[held] + h * E[j], S) - kernel.pairwise(U[held] - h * E[j], S)) @ alpha / (2 * h)
        squares.append(np.mean(np.sum(rise**2, axis=1)))
    np.testing.assert_allclose(at.slopes(kernel, coefficients[:, 1], 50), np.sqrt(squares), rtol=1e-4)


def test_search_costs_a_part_of_the_solution(monkeypatch):
    """Rows × centres² + 3 centres³ of all trials, beside the same of the sample that preconditions the solver."""
    work = []

    def counted(self, kernel):
        n, m = self.X.shape[0], self.rows.m
        work.append(n * m**2 + 3 * m**3)
        return path(self, kernel)

    path = Trial.path
    monkeypatch.setattr(Trial, "path", counted)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 3)).astype(np.float32)
    monkeypatch.setattr(models, "falkon", lambda *args, **options: 1 / 0)  # what it would cost is known
    with pytest.raises(ZeroDivisionError):
        FalkonRegressor(n_centers=1000, random_state=0).fit(rows, np.sin(3 * rows[:, 0]))
    m = 1000
    assert len(work) > 8 and sum(work) < 1.5 * (5 * m * m**2 + 3 * m**3)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_row_a_centre_in_either_precision(name, dtype):
    """A factor of float32 numbers is only where the conjugate gradients begin."""
    rows, lam, kernel = X.astype(dtype), 1e-4, kernels.Gaussian(0.2)
    K = kernel.pairwise(rows.astype(float), rows.astype(float))
    truth = solve(K + lam * np.diag(1 / WEIGHT), TARGET - 5.0)
    found = kernel_ridge(kernel, rows, TARGET[:, None] - 5.0, lam, engine.get(name), weight=WEIGHT, tol=1e-10)
    fitted = K @ truth
    assert found.converged
    np.testing.assert_allclose(K @ found.W[:, 0], fitted, atol=1e-8 if dtype == "float64" else 2e-3)


def test_centres_by_the_number_of_rows(monkeypatch):
    """All of few rows; on a GPU as many as its memory has room for."""
    model, rows = FalkonRegressor(), np.empty((models.FEW_ROWS, 1), np.float32)
    assert model._learner._center_count(rows) == models.FEW_ROWS
    many = np.empty((models.FEW_ROWS + 1, 1), np.float32)
    assert model._learner._center_count(many) == 2000
    assert FalkonClassifier(loss="logistic")._learner._center_count(rows) == 2000

    class Device:
        cuda, room = True, 1 << 20

        def room_for_rows(self, itemsize):
            return self.room

    monkeypatch.setattr("kernelstream.engine.get", lambda *_: Device())
    assert model._learner._center_count(many) == len(many)
    assert model._learner._center_count(np.empty((1 << 17, 1), np.float32)) == 1 << 14
    Device.room = 4000
    assert model._learner._center_count(many) == 2000
