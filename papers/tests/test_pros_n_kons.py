"""PROS-N-KONS against the paper's listing."""

import numpy as np
import pytest

from kernelstream import engine
from kernelstream.kernels import Gaussian
from kernelstream.random import SeedStream, generator
from kernelstream_papers.rivals import ProsNKons

ENGINES = ["python"] + ["native"] * engine.has_native()

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 2))
y = np.clip(np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(200), -1, 1)


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
    coins = generator(3, SeedStream.MAP, 1).random(1024)
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
