"""Triangular factors of symmetric matrices, ``K = U'U``, in the upper part of K: what is below the diagonal stays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from . import threads

AT_ONCE = 16_384  # rows that LAPACK factorises at once: OpenBLAS on ARM crashes on 20,000 with two threads;
PART = 4096  # of more, so many


def factorise(K: np.ndarray, diagonal: np.ndarray) -> bool:
    """Put the triangular factor of a symmetric K (n, n) with another diagonal into its upper part; False: none."""
    np.fill_diagonal(K, diagonal)
    if len(K) <= AT_ONCE:
        return _factorised(K)
    cuts = threads.cuts(len(K), PART)
    for k, rows in enumerate(cuts):
        before = cuts[:k]
        square = K[rows, rows] - _products(K, before, rows, rows)
        if not _factorised(square):
            return False
        K[rows, rows] = np.triu(square) + np.tril(K[rows, rows], -1)
        for later in cuts[k + 1 :]:
            rest = K[rows, later] - _products(K, before, rows, later)
            K[rows, later] = solve_triangular(square, rest, trans="T", overwrite_b=True, check_finite=False)
    return True


def _factorised(K: np.ndarray) -> bool:
    """The same for a K (n, n) with its own diagonal, by LAPACK."""
    (potrf,) = get_lapack_funcs(("potrf",), (K,))
    return not potrf(K.T, lower=1, overwrite_a=1, clean=0)[1]  # LAPACK stores columns: its lower part is our upper


def _products(K: np.ndarray, before: list[slice], left: slice, right: slice) -> Any:
    """``sum_p K_pl' K_pr`` over some rows p."""
    return sum(K[rows, left].T @ K[rows, right] for rows in before)


def divided_by(K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The matrix of a factor in the upper part of K (n, n) divides V (n, C), in the type of K."""
    (potrs,) = get_lapack_funcs(("potrs",), (K,))
    return potrs(K.T, V.astype(K.dtype, copy=False), lower=1)[0]


def inverse_diagonal(K: np.ndarray, last: int) -> np.ndarray:
    """The last numbers on the diagonal of the inverse of the matrix of a factor in the upper part of K (n, n)."""
    upper = np.triu(K[-last:, -last:])
    (trtri,) = get_lapack_funcs(("trtri",), (K,))
    upper = trtri(upper.T, lower=1, overwrite_c=1)[0]
    return np.einsum("ij,ij->j", upper, upper)


def upper_factor(K: np.ndarray, more: float) -> np.ndarray:
    """Upper triangular T with ``T'T = K + more I``, or with as little more as arithmetic allows; K stays."""
    diagonal = np.diag(K).copy()
    while True:
        T = np.array(K, order="C")
        if factorise(T, diagonal + more):
            return np.asfortranarray(np.triu(T))
        more = 10 * max(more, np.finfo(float).eps * float(diagonal.max()))
        if not np.isfinite(more):
            raise np.linalg.LinAlgError("the matrix has no factor")
