"""The operator of a Gaussian process: against its recursion, feature by feature, and against the exact posterior."""

import numpy as np
import pytest

from kernelstream import zoo
from kernelstream.kernels import Gaussian
from kernelstream.passes.doubly.descent import batches
from kernelstream_papers.rivals import OperatorGP

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (300, 1))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
x = np.linspace(-3, 3, 13)[:, None]


def test_the_recursion_of_appendix_d():
    """theta_ij number by number, as printed, for the same batches and features; the mean as a ridge regression."""
    T, noise, eta, theta0 = 4, 0.3, 0.7, 5.0
    model = OperatorGP(gamma=1.0, noise=noise, iterations=T, batch_size=3, block_size=1, eta=eta, theta0=theta0)
    model.set_params(random_state=1).fit(X[:20], y[:20])
    phi, other = model._learner.blocks(model.state_)
    theta: dict[tuple[int, int], np.ndarray] = {}
    alpha: list[np.ndarray] = []
    for t, rows in enumerate(batches(20, 3, T, model.state_["seed"])):
        gamma, new = eta * theta0 / (theta0 + t + 1), {(i, t): np.zeros((2, 2)) for i in range(t + 1)}
        step = np.zeros(2)
        for i in rows:
            z = X[i : i + 1]
            right = [other.features(z, j)[0] for j in range(t + 1)]
            for k in range(t):
                inner = sum(theta[k, j] @ right[j] for j in range(k, t))
                new[k, t] -= gamma / 3 * np.outer(inner, right[t])
            new[t, t] += gamma / 3 * np.outer(phi.features(z, t)[0], right[t])
            step += gamma / 3 * (y[i] - sum(alpha[j] @ right[j] for j in range(t))) * right[t]
        theta = {key: (1 - gamma * noise / 20) * value for key, value in theta.items()} | new
        alpha = [(1 - gamma * noise / 20) * value for value in alpha] + [step]
    matrix = np.zeros((2 * T, 2 * T))
    for (i, j), value in theta.items():
        matrix[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = value
    np.testing.assert_allclose(model.state_["theta"], matrix, atol=1e-12)
    np.testing.assert_allclose(model.state_["w"], np.concatenate(alpha), atol=1e-12)
    mean, std = model.predict(x, return_std=True)
    for at, m, s in zip(x[:, None], mean, std):
        left, right = (np.concatenate([b.features(at, i)[0] for i in range(T)]) for b in (phi, other))
        np.testing.assert_allclose([m, s**2], [right @ model.state_["w"], np.clip(1 - left @ matrix @ right, 0, 1)])


def expected(noise, steps):
    """Mean of the recursions at x after steps of given sizes, and the posterior, their limit.

    On the eigenvectors of K/n the operator and the regression take the steps of numbers: with the eigenvalue mu,
    ``a <- (1 - gamma noise/n) a - gamma (a mu - mu)``, which ends at mu/(mu + noise/n).
    """
    mu, V = np.linalg.eigh(Gaussian(1.0).pairwise(X, X) / 300)
    mu, k = np.maximum(mu, 1e-12), Gaussian(1.0).pairwise(x, X) @ V
    a = np.zeros(300)
    for gamma in steps:
        a = (1 - gamma * noise / 300) * a - gamma * (a * mu - mu)
    limit = mu / (mu + noise / 300)
    return [(k @ (b / mu / 300 * (V.T @ y)), 1 - (k**2 @ (b / mu / 300))) for b in (a, limit)]


@pytest.mark.slow
def test_the_mean_of_many_models_is_that_of_the_recursion():
    """With all rows in every batch, where nothing but the features is random."""
    given = {"gamma": 1.0, "noise": 1.0, "iterations": 40, "block_size": 16, "eta": 2.0, "batch_size": 300}
    models = [OperatorGP(**given, random_state=seed).fit(X, y) for seed in range(20)]
    means = [model.predict(x) for model in models]
    variances = []
    for model in models:
        left, right = (model._learner.features(b, x, 40) for b in model._learner.blocks(model.state_))
        variances.append(1 - np.einsum("ij,ij->i", left @ model.state_["theta"], right))
    (mean, variance), (_, limit) = expected(1.0, [20.0 / (11 + t) for t in range(40)])
    for drawn, true in ((variances, variance), (means, mean)):
        error = np.std(drawn, axis=0, ddof=1) / np.sqrt(20)
        assert error.max() < 0.05 and (np.abs(np.mean(drawn, axis=0) - true) < 4 * error).all()
    assert np.abs(variance - limit).max() < 0.2  # far from the rows it is slow
    std = models[0].predict(x, return_std=True)[1]
    np.testing.assert_allclose(std**2, np.clip(variances[0], 0, 1), atol=1e-9)
    assert np.corrcoef(std, np.sqrt(limit))[0, 1] > 0.9


def test_many_steps_end_at_the_posterior():
    """Of the recursion's mean; the direct formula is the same as its limit."""
    few, many = (expected(1.0, np.full(steps, 1.0)) for steps in (40, 4000))
    K, k = Gaussian(1.0).pairwise(X, X) + np.eye(300), Gaussian(1.0).pairwise(x, X)
    direct = k @ np.linalg.solve(K, y), 1 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(many[1], direct, atol=1e-6)
    np.testing.assert_allclose(many[0], direct, atol=1e-3)
    assert np.abs(few[0][1] - direct[1]).max() > 0.05


def test_recipe_and_steps_that_are_too_large():
    assert zoo.make("gp_operator", iterations=5).iterations == 5
    with pytest.raises(ValueError, match="smaller steps"):
        OperatorGP(gamma=1.0, eta=1e40, iterations=30, block_size=2).fit(X, y)
