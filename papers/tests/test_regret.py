"""Regret, effective dimension and the adversary, against dense formulas and a theorem."""

import numpy as np
import pytest

from kernelstream import KernelAWV, OnlineRidge, zoo
from kernelstream.features import TaylorFeatures
from kernelstream.kernels import Gaussian, Laplacian
from kernelstream_papers.regret import best_in_hindsight, effective_dimension, greedy_adversary, regret, regret_bound

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 2))
y = rng.uniform(-1, 1, 60)
kernel = Gaussian(0.7)


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_best_in_hindsight_is_the_minimum(lam, rng):
    K = kernel.pairwise(X, X)
    values = best_in_hindsight(X, y, kernel, lam)
    for n in (1, 7, 60):
        k = K[:n, :n]
        a = np.linalg.solve(k + lam * np.eye(n), y[:n])
        assert values[n - 1] == pytest.approx(np.sum((y[:n] - k @ a) ** 2) + lam * a @ k @ a, rel=1e-9)
        for _ in range(5):  # no other function does better
            b = a + 0.1 * rng.standard_normal(n)
            assert values[n - 1] <= np.sum((y[:n] - k @ b) ** 2) + lam * b @ k @ b


def test_effective_dimension():
    K = Laplacian(1.0).pairwise(X, X)
    assert effective_dimension(X, Laplacian(1.0), 0.5) == pytest.approx(
        np.trace(K @ np.linalg.inv(K + 0.5 * np.eye(60)))
    )


def test_bound_is_the_log_determinant():
    K = kernel.pairwise(X, X)
    expected = 4 * np.linalg.slogdet(np.eye(60) + K / 0.3)[1]
    assert regret_bound(X, kernel, 0.3, bound=2.0)[-1] == pytest.approx(expected)


def test_regret():
    P = KernelAWV(kernel).learn(X, y)
    curve = regret(X, y, P, kernel)
    assert curve[-1] == pytest.approx(np.sum((y - P) ** 2) - best_in_hindsight(X, y, kernel)[-1])
    assert (curve <= regret_bound(X, kernel, bound=np.abs(y).max()) + 1e-9).all()


def test_adversary():
    """Every row is worse for the learner than a random one, and the theorem still holds for Kernel-AWV."""
    learner = KernelAWV(kernel)
    rows, targets, P = greedy_adversary(learner, 25, 2, kernel, random_state=0)
    assert not hasattr(learner, "state_")
    assert (np.abs(rows) <= 1).all() and set(targets) <= {-1.0, 1.0}
    np.testing.assert_allclose(KernelAWV(kernel).learn(rows, targets), P, atol=1e-10)
    curve = regret(rows, targets, P, kernel)
    assert (np.diff(curve) > -1e-9).all() and (curve <= regret_bound(rows, kernel) + 1e-9).all()
    chance = regret(X[:25], np.sign(y[:25]), KernelAWV(kernel).learn(X[:25], np.sign(y[:25])), kernel)
    assert curve[-1] > chance[-1]


def test_adversary_hurts_others_more():
    final = {}
    for name, learner in {
        "kernel": KernelAWV(kernel),
        "taylor": OnlineRidge(TaylorFeatures(kernel, degree=4), forecaster="awv"),
        "gradient": zoo.make("fogd", "regression", gamma=0.7, n_components=50, eta=0.2, random_state=0),
    }.items():
        final[name] = regret(*greedy_adversary(learner, 20, 2, kernel, random_state=0), kernel)[-1]
    assert final["kernel"] <= final["taylor"] + 1e-6 < final["gradient"]
