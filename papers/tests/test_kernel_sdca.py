"""k-SDCA against closed forms, a general optimiser and scikit-learn's solvers of the same problems."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

import kernelstream_papers.rivals.kernel_sdca as module
from kernelstream import losses, zoo
from kernelstream.losses._base import dual_of
from kernelstream_papers.rivals import KernelSDCAClassifier, KernelSDCARegressor

X, y = make_moons(60, noise=0.3, random_state=0)
target = np.sin(2 * X[:, 0]) + X[:, 1]
GAMMA, LAM = 1.5, 0.01
K = rbf_kernel(X, gamma=GAMMA)
sign = 2.0 * y - 1
PRECISE = {"gamma": GAMMA, "lam": LAM, "tol": 1e-7, "max_iter": 20_000, "random_state": 0}


def reach(est):
    """Largest distance of a score from its value at the minimum: the objective is lam-strongly convex, k(x, x) = 1."""
    assert -1e-12 < est.dual_gap_ < 1e-6
    return np.sqrt(2 * max(est.dual_gap_, 1e-14) / LAM)


def primal(loss, alpha, targets):
    f = K @ alpha
    return 0.5 * LAM * alpha @ f + np.mean(loss.value(targets, f))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_objective_and_gap(loss):
    """The objective is what its formula says, no other coefficients do better, and the gap encloses the minimum."""
    est = KernelSDCAClassifier(loss=loss, **PRECISE).fit(X, y)
    found = losses.get(loss)
    f = est.decision_function(X)
    norm = est.dual_coef_[0] @ est.decision_function(est.support_vectors_)
    assert est.objective_ == pytest.approx(0.5 * LAM * norm + found.value(sign, f).mean(), rel=1e-9)
    assert -1e-12 < est.dual_gap_ <= 1e-7
    alpha = np.linalg.lstsq(K, f, rcond=None)[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert primal(found, alpha + 0.05 * rng.normal(size=len(y)) * np.abs(alpha).max(), sign) > est.objective_


def cholesky_features():
    return np.linalg.cholesky(K + 1e-12 * np.eye(len(y)))


def test_hinge_is_a_support_vector_machine():
    """The dual is a quadratic programme in a box: L-BFGS-B solves it; scikit-learn's SVM adds an intercept."""
    C = 1 / (LAM * len(y))
    Q = sign[:, None] * K * sign
    best = minimize(
        lambda b: (0.5 * b @ Q @ b - b.sum(), Q @ b - 1), np.zeros(len(y)), jac=True, bounds=[(0, C)] * len(y),
        options={"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    est = KernelSDCAClassifier(**PRECISE).fit(X, y)
    assert est.objective_ == pytest.approx(-LAM * best.fun, abs=est.dual_gap_ + 1e-9)
    np.testing.assert_allclose(est.decision_function(X), K @ (best.x * sign), atol=reach(est) + 1e-5)
    agree = est.predict(X) == SVC(C=C, gamma=GAMMA).fit(X, y).predict(X)
    assert agree.mean() > 0.97


def test_squared_hinge_is_liblinear():
    Z = cholesky_features()
    C = 1 / (LAM * len(y))
    other = LinearSVC(C=C / 2, fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(Z, y)
    est = KernelSDCAClassifier(loss="squared_hinge", **PRECISE).fit(X, y)
    np.testing.assert_allclose(est.decision_function(X), other.decision_function(Z), atol=reach(est) + 1e-5)


def test_logistic_is_logistic_regression():
    Z = cholesky_features()
    other = LogisticRegression(C=1 / (LAM * len(y)), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(Z, y)
    est = KernelSDCAClassifier(loss="logistic", **PRECISE).fit(X, y)
    np.testing.assert_allclose(est.predict_proba(X), other.predict_proba(Z), atol=reach(est) + 1e-5)


def test_squared_is_kernel_ridge():
    other = KernelRidge(alpha=LAM * len(y), kernel="rbf", gamma=GAMMA).fit(X, target)
    est = KernelSDCARegressor(center=False, **PRECISE).fit(X, target)
    np.testing.assert_allclose(est.predict(X), other.predict(X), atol=reach(est))
    centred = KernelSDCARegressor(**PRECISE).fit(X, target)
    other.fit(X, target - target.mean())
    np.testing.assert_allclose(centred.predict(X), other.predict(X) + target.mean(), atol=reach(centred))


def test_sample_weight_is_a_repeated_row():
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    for loss in ("hinge", "logistic"):
        weighted = KernelSDCAClassifier(loss=loss, **PRECISE).fit(X, y, sample_weight=weight)
        repeated = KernelSDCAClassifier(loss=loss, **PRECISE).fit(X[rows], y[rows])
        gap = weighted.dual_gap_ + repeated.dual_gap_
        assert weighted.objective_ == pytest.approx(repeated.objective_, abs=gap)
        far = reach(weighted) + reach(repeated)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=far)


def test_tube():
    """Epsilon-insensitive: the optimality conditions of every row."""
    epsilon = 0.1
    est = KernelSDCARegressor(loss=losses.EpsilonInsensitive(epsilon), center=False, **PRECISE).fit(X, target)
    residual = target - est.predict(X)
    alpha = np.zeros(len(y))
    for vector, a in zip(est.support_vectors_, est.dual_coef_[0]):
        alpha[np.flatnonzero((vector == X).all(axis=1))[0]] = a
    C = 1 / (LAM * len(y))
    inside, slack = np.abs(alpha) < C - 1e-9, reach(est)
    assert (np.abs(residual[inside]) <= epsilon + slack).all()
    free = inside & (np.abs(alpha) > 0.05 * C)
    np.testing.assert_allclose(residual[free], epsilon * np.sign(alpha[free]), atol=10 * slack)
    assert (residual[~inside] * np.sign(alpha[~inside]) >= epsilon - slack).all()


@pytest.mark.parametrize("name", [name for name in losses.names() if losses.get(name).dual() is not None])
def test_step_is_the_best_of_a_grid(name):
    """All but one number fixed, the dual is a function of one number; a fine grid finds nothing better."""
    loss = losses.get(name)
    dual = dual_of(loss)
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, q, f = rng.uniform(0.1, 3), rng.uniform(0.1, 2), rng.normal(scale=2)
        label = float(rng.choice([-1.0, 1.0])) if loss.kind == "binary" else float(rng.normal())
        s = label if loss.kind == "binary" else 1.0
        bounds = {"hinge": (0, a), "logistic": (0, a), "squared_hinge": (0, 20)}.get(name)
        bounds = bounds or ((-20, 20) if name == "squared" else (-a, a))
        beta = rng.uniform(max(bounds[0], -1), min(bounds[1], 1))

        def value(b, beta=beta, label=label, a=a, f=f, q=q, s=s):
            b = np.atleast_1d(b)
            own = dual.value(np.full(len(b), label), b, np.full(len(b), a))
            return own - s * (b - beta) * f - 0.5 * q * (b - beta) ** 2

        best = dual.best(label, f, beta, a, q)
        assert bounds[0] <= best <= bounds[1]
        assert value(best)[0] >= value(np.linspace(*bounds, 4001)).max() - 1e-9


def test_rows_of_the_gram_matrix_made_anew(monkeypatch):
    kept = KernelSDCAClassifier(gamma=GAMMA, random_state=0).fit(X, y)
    monkeypatch.setattr(module, "KEPT", 10)
    anew = KernelSDCAClassifier(gamma=GAMMA, random_state=0).fit(X, y)
    np.testing.assert_allclose(kept.decision_function(X), anew.decision_function(X), rtol=1e-9)


def test_says_when_it_stops_early():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        KernelSDCAClassifier(gamma=GAMMA, lam=1e-6, max_iter=1).fit(X, y)


def test_zoo_and_the_online_learner_that_approaches_it():
    """Pegasos minimises the same objective: its function ends up close to the minimum, and never below it."""
    batch = zoo.make("ksdca", gamma=GAMMA, lam=LAM, tol=1e-6, max_iter=5000).fit(X, y)
    online = zoo.make("pegasos", gamma=GAMMA, lam=LAM, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(30):
            online.partial_fit(X, y)
    f = online.decision_function(X)
    norm = online.dual_coef_[0] @ online.decision_function(online.support_vectors_)
    reached = 0.5 * LAM * norm + np.maximum(0, 1 - sign * f).mean()
    assert batch.objective_ <= reached < 1.1 * batch.objective_
    assert not hasattr(batch, "partial_fit")
    assert isinstance(zoo.make("ksdca", task="regression", epsilon=0.1), KernelSDCARegressor)
