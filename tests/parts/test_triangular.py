"""Triangular factors against scipy's."""

import numpy as np
import pytest
from scipy.linalg import cholesky

from kernelstream.core import triangular


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_once, part", [(40, 7), (39, 7), (39, 20), (10, 39)])
def test_a_factor_in_parts_is_that_of_the_whole(at_once, part, dtype, monkeypatch):
    monkeypatch.setattr(triangular, "LAPACK_ROWS", at_once)
    monkeypatch.setattr(triangular, "BLOCK_ROWS", part)
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


@pytest.mark.parametrize("at_once", [3, 100])
def test_as_little_is_added_as_arithmetic_allows(at_once, monkeypatch):
    monkeypatch.setattr(triangular, "LAPACK_ROWS", at_once)
    monkeypatch.setattr(triangular, "BLOCK_ROWS", 3)
    K = np.ones((8, 8))  # of rank 1
    before = K.copy()
    T = triangular.upper_factor(K, 0.0)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(T.T @ T, K, atol=1e-10)
    assert (np.tril(T, -1) == 0).all()
