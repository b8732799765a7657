"""Kernel-AWV against its definition, PROS-N-KONS against the paper's listing."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.kernel_ridge import KernelRidge

from kernelstream import OnlineRidge, engine
from kernelstream.baselines import KernelAWV, KernelAWVClassifier, ProsNKons
from kernelstream.features import TaylorFeatures
from kernelstream.kernels import Gaussian
from kernelstream.random import Stream, generator

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


# ---------------------------------------------------------------- PROS-N-KONS
def pros_n_kons(X, y, gamma, alpha, beta, epsilon, C, coins):
    """The listing of Calandriello, Lazaric, Valko (2017) with the loss (y - f)^2, by dense linear algebra."""
    kernel, S, p, forecasts = Gaussian(gamma), [], [], []
    w = A = U = None
    for t, (x, target) in enumerate(zip(X, y)):
        f = 0.0
        if S:
            z = U.T @ kernel.pairwise(X[S], x[None])[:, 0]
            f = w @ z
            Az = np.linalg.solve(A, z)
            w = w - np.sign(f) * max(abs(f) - C, 0) / (z @ Az) * Az
            f = w @ z
            g = 2 * (f - target) * z
            A = A + np.outer(g, g) / (16 * C**2)
            w = w - np.linalg.solve(A, g)
        forecasts.append(f)
        star = [*S, t]  # the temporary dictionary, with this row at weight 1
        scale = np.diag(1 / np.sqrt([*p, 1.0]))
        k = scale @ kernel.pairwise(X[star], x[None])[:, 0]
        K = scale @ kernel.pairwise(X[star], X[star]) @ scale
        tau = (1 + epsilon) / alpha * (1.0 - k @ np.linalg.solve(K + alpha * np.eye(len(star)), k))
        chance = min(beta * tau, 1.0)
        if coins[t] < chance:
            S, p = star, [*p, chance]
            D, V = np.linalg.eigh(kernel.pairwise(X[S], X[S]))
            U = V / np.sqrt(D)
            w, A = np.zeros(len(S)), alpha * np.eye(len(S))
    return np.array(forecasts), S


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("alpha, beta, epsilon, C", [(1.0, 1.0, 0.5, 1.0), (0.3, 0.5, 0.2, 0.4), (3.0, 2.0, 0.0, 2.0)])
def test_pros_n_kons(name, alpha, beta, epsilon, C):
    model = ProsNKons(gamma=0.5, alpha=alpha, beta=beta, epsilon=epsilon, C=C, engine=name, random_state=3)
    scores = np.concatenate([model.learn(X[i : i + 33], y[i : i + 33]) for i in range(0, 200, 33)])
    coins = generator(3, Stream.MAP, 1).random(1024)
    expected, S = pros_n_kons(X, y, 0.5, alpha, beta, epsilon, C, coins)
    np.testing.assert_array_equal(model.dictionary_, X[S])
    assert model.n_restarts_ == len(S) > 3
    np.testing.assert_allclose(scores, expected, atol=1e-6)  # the Gram matrix of the dictionary is badly conditioned


def test_dictionary_follows_the_effective_dimension():
    line = np.concatenate([X[:, :1], np.zeros((200, 1))], axis=1)
    wide = ProsNKons(gamma=5.0, random_state=0).fit(X, y).n_restarts_
    narrow = ProsNKons(gamma=5.0, random_state=0).fit(line, y).n_restarts_
    assert narrow < wide < 100
    assert ProsNKons(gamma=5.0, budget=7, random_state=0).fit(X, y).n_restarts_ == 7


def test_several_targets():
    both = ProsNKons(gamma=1.0, random_state=0).learn(X, np.stack([y, -y], axis=1))
    one = ProsNKons(gamma=1.0, random_state=0).learn(X, y)
    np.testing.assert_allclose(both, np.stack([one, -one], axis=1), atol=1e-9)
    both = KernelAWV(gamma=1.0).learn(X, np.stack([y, 1 - y], axis=1))
    np.testing.assert_allclose(both[:, 0], KernelAWV(gamma=1.0).learn(X, y), atol=1e-12)
