"""Ratios of densities by their duals: the loss is the dual that a grid finds, and its minimum the ratio."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernelstream import zoo
from kernelstream_papers.rivals.ratios import RelativeNovelty


def dual(r, chi, rho=0.0):
    """``sup over tau of chi tau - r(tau)``, on a fine grid that has the kink, exp(rho)."""
    tau = np.exp(rho + np.linspace(-12, 12, 200_001))
    return (chi * tau - r(tau)).max()


@pytest.mark.parametrize("rho", [0.5, 2.0])
@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 6.0])
def test_the_loss_is_the_dual_of_r_nv(rho, ratio):
    loss = RelativeNovelty(rho)
    expected = dual(lambda tau: np.maximum(0, rho - np.log(tau)), -ratio, rho)
    np.testing.assert_allclose(loss.value(1.0, ratio - 1.0) / 2, expected, atol=1e-6)
    assert loss.value(-1.0, ratio - 1.0) == pytest.approx(2 * ratio)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 6.0])
def test_a_large_rho_is_r_kl(ratio):
    loss, kl = RelativeNovelty(9.0), [dual(lambda tau: -np.log(tau), -r) for r in (ratio, 1.0)]
    np.testing.assert_allclose(loss.value(1.0, ratio - 1.0) / 2 - loss.value(1.0, 0.0) / 2, kl[0] - kl[1], atol=1e-6)


def test_gradient_of_arrays_and_of_numbers():
    f, h = np.linspace(-1.95, 4, 37), 1e-6
    for y in (-1.0, 1.0):
        loss = RelativeNovelty(1.5)
        slope = (loss.value(np.full(37, y), f + h) - loss.value(np.full(37, y), f - h)) / (2 * h)
        np.testing.assert_allclose(loss.gradient(np.full(37, y), f), slope, atol=1e-5)
        np.testing.assert_allclose([loss.gradient(y, float(v)) for v in f], slope, atol=1e-5)


@pytest.mark.parametrize("p, q", [(0.3, 0.6), (0.6, 0.3), (0.9, 0.05)])
def test_the_minimum_is_the_ratio_where_it_is_large_enough(p, q):
    loss = RelativeNovelty(1.5)
    best = minimize_scalar(
        lambda f: p * loss.value(-1.0, f) + q * loss.value(1.0, f), bounds=(-3, 8), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert 1 + best.x == pytest.approx(q / p if q / p > np.exp(-1.5) else 0.0, abs=1e-4)


@pytest.mark.slow
def test_ratio_of_two_normal_densities():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (2000, 1)), rng.normal(1, 1, (1000, 1))])
    model = zoo.make("doubly_relative_novelty", random_state=0).fit(X, np.repeat([False, True], [2000, 1000]))
    x = np.linspace(-1.5, 1.5, 7)[:, None]
    np.testing.assert_allclose(model.ratio(x), np.exp(x[:, 0] - 0.5), atol=0.3)
    np.testing.assert_array_equal(model.predict(x), model.ratio(x) > 1)
    with pytest.raises(ValueError, match="two samples"):
        model.fit(X, np.arange(3000) % 3)


def test_probability_of_equal_samples():
    np.testing.assert_allclose(RelativeNovelty(2.0).probability([0.0, 2.0, -5.0]), [0.5, 0.75, 1 / (1 + np.exp(2))])


def test_recipe():
    assert zoo.make("doubly_relative_novelty", rho=2.0).rho == 2.0
