"""Kernel-AWV against its definition."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.kernel_ridge import KernelRidge

from kernelstream import KernelAWV, KernelAWVClassifier, OnlineRidge, engine
from kernelstream.features import TaylorFeatures
from kernelstream.kernels import Gaussian

ENGINES = ["python"] + ["native"] * engine.has_native()

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 2))
y = np.clip(np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(200), -1, 1)


def kernel_awv(X, y, gamma, lam, awv=True, weight=None):
    """argmin_f sum_{s<t} w_s (y_s - f(x_s))^2 + lam |f|^2 + f(x_t)^2, f = sum_i a_i k(x_i, .), by a dense solve."""
    K, forecasts = Gaussian(gamma).pairwise(X, X), []
    weight = np.ones(len(y)) if weight is None else weight
    for t in range(len(y)):
        rows = [s for s in range(t) if weight[s] > 0] + ([t] if awv else [])
        if not rows:
            forecasts.append(0.0)
            continue
        target = np.array([y[s] if s < t else 0.0 for s in rows])
        noise = np.array([lam / weight[s] if s < t else lam for s in rows])
        a = np.linalg.solve(K[np.ix_(rows, rows)] + np.diag(noise), target)
        forecasts.append(K[t, rows] @ a)
    return np.array(forecasts)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
def test_kernel_awv(name, forecaster, rng):
    weight = rng.choice([0.0, 1.0, 2.5], len(y))
    for w in (None, weight):
        expected = kernel_awv(X, y, 2.0, 0.3, forecaster == "awv", w)
        model = KernelAWV(gamma=2.0, lam=0.3, forecaster=forecaster, engine=name)
        np.testing.assert_allclose(model.learn(X, y, sample_weight=w), expected, atol=1e-10)


def test_kernel_ridge_after_all_rows():
    model = KernelAWV(gamma=2.0, lam=0.3, forecaster="ridge").fit(X, y)
    batch = KernelRidge(alpha=0.3, kernel="rbf", gamma=2.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X * 0.8), batch.predict(X * 0.8), atol=1e-10)


def test_kernel_awv_is_the_limit_of_its_taylor_features():
    exact = KernelAWV(gamma=0.5).learn(X, y)
    models = [OnlineRidge(TaylorFeatures(degree=M, gamma=0.5), forecaster="awv") for M in (1, 3, 5, 8)]
    gaps = [np.abs(model.learn(X, y) - exact).max() for model in models]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] and gaps[3] < 1e-4


def test_kernel_awv_classes_that_appear_late():
    Xc, yc = make_blobs(120, n_features=2, centers=4, cluster_std=2.0, random_state=1)
    order = np.argsort(yc, kind="stable")[::-1]
    late = KernelAWVClassifier(gamma=0.1).partial_fit(Xc[order], yc[order])
    known = KernelAWVClassifier(gamma=0.1).partial_fit(Xc[order], yc[order], classes=range(4))
    np.testing.assert_allclose(late.decision_function(Xc), known.decision_function(Xc), atol=1e-10)


def test_several_targets():
    both = KernelAWV(gamma=1.0).learn(X, np.stack([y, 1 - y], axis=1))
    np.testing.assert_allclose(both[:, 0], KernelAWV(gamma=1.0).learn(X, y), atol=1e-12)
