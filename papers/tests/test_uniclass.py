"""SPA for rows without labels: against a program of explicit vectors, and steps against their definition."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelstream import zoo
from kernelstream.kernels import Gaussian
from kernelstream.random import SeedStream, uniforms
from kernelstream_papers.rivals import SparseOneClass

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3)) + [2.0, 0.0, -1.0]
GIVEN = {"radius": 2.5, "alpha": 0.6, "beta": 1.5, "eta": 0.2}


def program(X, seed, radius, alpha, beta, eta):
    """Section 6 of Crammer and others with the chance of algorithm 7 of the thesis, on vectors with one more entry."""
    w, decisions, joined = np.append(np.zeros(X.shape[1]), radius), [], []
    for t, (x, u) in enumerate(zip(X, uniforms(seed, 0, len(X), SeedStream.BUDGET))):
        target = np.append(x, 0.0)
        distance = np.linalg.norm(target - w)
        decisions.append(radius**2 - w[-1] ** 2 - np.linalg.norm(x - w[:-1]) ** 2)
        loss = max(0.0, distance - radius)
        rho = min(alpha, loss) / beta
        if u < rho:
            w = w + min(eta / rho, loss) * (target - w) / distance
            joined.append(t)
    return np.array(decisions), w, joined


def linear(**given):
    return SparseOneClass("linear", standardize=False, random_state=3, **GIVEN | given)


def test_the_program_of_explicit_vectors():
    model = linear()
    decisions = np.concatenate([model.learn(X[i : i + 37]) for i in range(0, 400, 37)])
    expected, w, joined = program(X, model.state_["seed"], **GIVEN)
    np.testing.assert_allclose(decisions, expected, atol=1e-8)
    assert 5 < len(joined) < 0.6 / 1.5 * 400 and model.n_support_ == len(joined)
    np.testing.assert_allclose(model.dual_coef_ @ model.support_vectors_, w[None, :-1], atol=1e-9)
    np.testing.assert_allclose(model.offset_, w[-1] ** 2 - 2.5**2)
    np.testing.assert_allclose(model.score_samples(X), -((X - w[:-1]) ** 2).sum(axis=1), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X) == 1, ((X - w[:-1]) ** 2).sum(axis=1) <= 2.5**2 - w[-1] ** 2)


@pytest.mark.parametrize("eta", [0.01, 100.0])
def test_a_step_is_the_minimum_of_its_definition(eta):
    """alpha = beta = loss makes the chance 1: the row joins, by a short step or the whole way to the ball."""
    model = linear(alpha=1e-3, beta=1e-3, eta=eta * 1e-3).partial_fit(X[:30])
    w = np.append((model.dual_coef_ @ model.support_vectors_)[0], model.state_["slack"])
    far = np.array([6.0, -5.0, 4.0])
    model.partial_fit(far[None])
    target = np.append(far, 0.0)

    def price(v):
        return 0.5 * ((v - w) ** 2).sum() + eta * 1e-3 * max(0.0, np.linalg.norm(target - v) - 2.5)

    got = np.append((model.dual_coef_ @ model.support_vectors_)[0], model.state_["slack"])
    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 20000, "maxfev": 20000}
    best = min(
        (minimize(price, start, method="Nelder-Mead", options=options) for start in (w, got)), key=lambda r: r.fun
    )
    assert price(got) <= best.fun * (1 + 1e-9)
    assert price(got) < price(w)


def test_a_gaussian_kernel_keeps_its_norm_and_finds_what_is_far():
    model = SparseOneClass(gamma=0.3, beta=0.5, random_state=0).fit(X, passes=5)
    S, c = model.support_vectors_, model.dual_coef_[0]
    np.testing.assert_allclose(model.state_["norm"], c @ Gaussian(0.3).pairwise(S, S) @ c, rtol=1e-6)
    assert (model.predict(X) == 1).mean() > 0.8 and (model.predict(X + 9) == -1).all()


def test_weights_and_recipe():
    twice, once = linear().partial_fit(X, sample_weight=np.full(400, 2.0)), linear(eta=0.4).partial_fit(X)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X))
    np.testing.assert_array_equal(
        linear().partial_fit(X, sample_weight=np.arange(400) % 2).dual_coef_, linear().partial_fit(X[1::2]).dual_coef_
    )
    made = zoo.make("spa_novelty", radius=0.9, beta=4.0)
    assert (made.radius, made.beta, made.eta) == (0.9, 4.0, 0.01)
