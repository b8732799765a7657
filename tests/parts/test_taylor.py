"""Taylor features against their defining formula, one multi-index at a time."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream import engine, features
from kernelstream.features import TaylorFeatures
from kernelstream.features.taylor import taylor_degree
from kernelstream.kernels import DotProduct, Gaussian, Linear, Polynomial

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (40, 4))


def formula(X, degree, sigma):
    """The features of the paper, by a loop over all multi-indices; columns sorted by multi-index."""
    indices = [k for k in itertools.product(range(degree + 1), repeat=X.shape[1]) if sum(k) <= degree]
    norm = (X**2).sum(axis=1)
    columns = []
    for k in indices:
        column = np.exp(-norm / (2 * sigma**2))
        for i, power in enumerate(k):
            column = column * X[:, i] ** power / (sigma**power * math.sqrt(math.factorial(power)))
        columns.append(column)
    return np.stack(columns, axis=1)


def sorted_columns(Z):
    return Z[:, np.lexsort(np.round(Z, 12))]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
def test_formula(degree, sigma):
    Z = TaylorFeatures(degree=degree, gamma=1 / (2 * sigma**2)).fit_transform(X)
    assert Z.shape[1] == math.comb(degree + 4, degree)
    np.testing.assert_allclose(sorted_columns(Z), sorted_columns(formula(X, degree, sigma)), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_each_monomial_once(d):
    """At a point whose coordinates are logarithms of primes no two monomials agree."""
    primes = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0])[:d]
    mapping = TaylorFeatures(DotProduct([1.0] * 5), degree=4).fit(np.ones((1, d))).mapping_
    monomials = np.round(mapping(primes[None])[0] / mapping.coef).astype(np.int64)
    assert len(np.unique(monomials)) == mapping.n_out == math.comb(d + 4, 4)


@pytest.mark.parametrize("degree", range(1, 9))
def test_error_is_below_the_bound(degree):
    R, sigma = np.sqrt((X**2).sum(axis=1).max()), 1.3
    Z = TaylorFeatures(degree=degree, gamma=1 / (2 * sigma**2)).fit_transform(X)
    error = np.abs(Z @ Z.T - Gaussian(1 / (2 * sigma**2)).pairwise(X, X)).max()
    bound = (R / sigma) ** (2 * degree + 2) / math.factorial(degree + 1)
    assert error <= bound + 1e-15
    assert error >= 0.01 * bound or degree == 8  # a bound, not a wild guess


@pytest.mark.parametrize(
    "kernel", [Polynomial(3, 0.5, 0.7), Polynomial(2, 0.0, 1.0), DotProduct([1.0, 0.0, 2.0, 0.3]), Linear()], ids=str
)
def test_finite_expansions_are_exact(kernel):
    Z = TaylorFeatures(kernel, degree="auto").fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel.pairwise(X, X), rtol=1e-12, atol=1e-13)


def test_polynomial_bandwidth_from_data():
    map_ = TaylorFeatures("polynomial", degree=3, gamma="scale").fit(X)
    Z = map_.transform(X)
    exact = Polynomial(3, 1.0, map_.entries_["gamma"]).pairwise(X, X)
    np.testing.assert_allclose(Z @ Z.T, exact, rtol=1e-12, atol=1e-13)  # sums that cancel


def test_engines_and_containers_agree():
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 1e-6)):
        mapping = TaylorFeatures(degree=4, gamma=0.4).fit(X.astype(dtype)).mapping_
        Z = mapping(X.astype(dtype), engine.get("python"))
        assert Z.dtype == dtype and Z.flags.c_contiguous
        np.testing.assert_allclose(mapping(sp.csr_array(X.astype(dtype))), Z, rtol=tolerance)
        rows = np.concatenate([mapping(row[None], engine.get("python")) for row in X.astype(dtype)])
        assert np.array_equal(rows, Z)
        if engine.has_native():
            np.testing.assert_allclose(
                mapping(X.astype(dtype), engine.get("native")), Z, rtol=tolerance, atol=tolerance * 1e-3
            )


def test_far_rows_and_narrow_bandwidths_stay_finite():
    Z = TaylorFeatures(degree=40, gamma=50.0, max_features=1000).fit_transform(
        np.float32([[0.1, 0.0], [3.0, -2.0], [30.0, 30.0]])
    )
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(np.linalg.norm(Z[0]), 1.0, rtol=1e-5)


def test_degree_of_the_theorem():
    # d = 1, R = 1, sigma = 1: 8 R^2/sigma^2 = 8 is below 2 log(4 n / min(lam, 1/lam))
    assert taylor_degree(1.0, 1.0, 100) == math.ceil(2 * math.log(400))
    assert (
        taylor_degree(1.0, 1.0, 100, lam=0.01)
        == taylor_degree(1.0, 1.0, 100, lam=100.0)
        == math.ceil(2 * math.log(40000))
    )
    assert taylor_degree(3.0, 1.0, 100) == 72
    x = np.linspace(-1, 1, 50)[:, None]
    map_ = TaylorFeatures(degree="auto", gamma=0.5).fit(x)
    assert map_.entries_["degree"] == taylor_degree(1.0, 1.0, 50)
    Z = map_.transform(x)
    np.testing.assert_allclose(Z @ Z.T, Gaussian(0.5).pairwise(x, x), atol=1e-9)


def test_auto_stays_below_max_features(rng):
    map_ = TaylorFeatures(degree="auto", gamma=0.5, max_features=300).fit(rng.uniform(-1, 1, (4000, 5)))
    assert map_.entries_["degree"] == 5 and map_.transform(np.zeros((1, 5))).shape[1] == 252


def test_registered():
    assert isinstance(features.get("taylor", degree=3), TaylorFeatures)
