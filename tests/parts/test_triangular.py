"""Triangular factors against scipy's."""

import numpy as np
import pytest
from scipy.linalg import cholesky

from kernelstream import settings
from kernelstream.core import triangular


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_is_that_of_scipy(dtype, monkeypatch):
    monkeypatch.setattr(triangular, "LAPACK_INVERSE_ROWS", 4)
    X = np.random.default_rng(0).normal(size=(40, 3))
    K = np.exp(-np.linalg.norm(X[:, None] - X, axis=2)).astype(dtype)
    diagonal = 1.0 + np.random.default_rng(1).random(40)
    A = K.copy()
    assert triangular.factorise(A, diagonal)
    B = K.astype(np.float64) - np.eye(40) + np.diag(diagonal)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(np.triu(A), cholesky(B), atol=50 * eps)
    np.testing.assert_array_equal(np.tril(A, -1), np.tril(K, -1))
    for columns in (1, 2, 9):
        V = np.random.default_rng(2).normal(size=(40, columns))
        np.testing.assert_allclose(triangular.divided_by(A, V), np.linalg.solve(B, V), atol=500 * eps)
    last = triangular.inverse_diagonal(A, 9)
    np.testing.assert_allclose(last, np.diag(np.linalg.inv(B))[-9:], atol=500 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1025, 2500])  # cut once, and in halves whose rest is cut in pieces
def test_a_large_factor_is_the_same_on_any_number_of_threads(rows, dtype):
    x = np.random.default_rng(0).normal(size=rows).astype(dtype)
    K, diagonal = np.exp(-np.abs(x[:, None] - x)).astype(dtype), np.full(rows, 1.5)
    found = []
    for count in (1, 2, 4):
        A = K.copy()
        with settings.using(threads=count):
            assert triangular.factorise(A, diagonal)
        found.append(A)
    np.testing.assert_allclose(np.triu(A), cholesky(K + np.eye(rows) / 2), atol=200 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.tril(A, -1), np.tril(K, -1))
    assert all(np.array_equal(A, other) for other in found)


@pytest.mark.parametrize("row", [3, 1500, 2400])
def test_a_large_matrix_without_a_factor_is_told(row):
    diagonal = np.ones(2500)
    diagonal[row] = -1.0
    assert not triangular.factorise(np.eye(2500), diagonal)


def test_as_little_is_added_as_arithmetic_allows():
    K = np.ones((8, 8))  # of rank 1
    before = K.copy()
    T = triangular.upper_factor(K, 0.0)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(T.T @ T, K, atol=1e-10)
    assert (np.tril(T, -1) == 0).all()
