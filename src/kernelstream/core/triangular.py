"""Triangular factors of symmetric matrices, ``K = U'U``, in the upper part of K: what is below the diagonal stays."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from . import threads

try:
    from .blas import CHOLESKY
except ImportError:  # installed without the compiled core
    CHOLESKY = {}

FEW_COLUMNS = 4  # that are divided one by one, which takes OpenBLAS a fifth of the time for one of them
LAPACK_INVERSE_ROWS = 64  # rows of an inverse that LAPACK computes at once: products are several times faster


def factorise(K: np.ndarray, diagonal: np.ndarray) -> bool:
    """Put the triangular factor of a symmetric K (n, n), with another diagonal, into its upper part; False if none.

    The same to the last bit on any number of threads.
    """
    np.fill_diagonal(K, diagonal)
    if CHOLESKY:
        return CHOLESKY[K.dtype.char].factorise(K, threads.get_num_threads())
    (potrf,) = get_lapack_funcs(("potrf",), (K,))
    return not potrf(K.T, lower=1, overwrite_a=1, clean=0)[1]  # LAPACK stores columns: its lower part is our upper


def divided_by(K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The matrix of a factor in the upper part of K (n, n) divides V (n, C), in the type of K."""
    if CHOLESKY:  # scipy's functions keep other threads from running
        turned = np.array(V.T, K.dtype, order="C")
        CHOLESKY[K.dtype.char].divide(K, turned)
        return turned.T
    V = V.astype(K.dtype, copy=False)
    if V.shape[1] > FEW_COLUMNS:
        (potrs,) = get_lapack_funcs(("potrs",), (K,))
        return potrs(K.T, V, lower=1)[0]
    (trsv,) = get_blas_funcs(("trsv",), (K,))
    divided = [trsv(K.T, trsv(K.T, column, lower=1), lower=1, trans=1, overwrite_x=1) for column in V.T]
    return np.stack(divided, axis=1)


def inverse_diagonal(K: np.ndarray, last: int) -> np.ndarray:
    """The last numbers on the diagonal of the inverse of the matrix of a factor in the upper part of K (n, n)."""
    inverse = np.triu(K[-last:, -last:])
    _invert(inverse)
    return np.einsum("ij,ij->i", inverse, inverse)


def _invert(U: np.ndarray) -> None:
    """Put the inverse of a triangular U (n, n) with zeros below its diagonal in its place, by halves."""
    if len(U) <= LAPACK_INVERSE_ROWS:
        (trtri,) = get_lapack_funcs(("trtri",), (U,))
        U[:] = trtri(U.T, lower=1)[0].T
        return
    half = len(U) // 2
    first, corner, second = U[:half, :half], U[:half, half:], U[half:, half:]
    _invert(first)
    _invert(second)
    np.negative(first @ (corner @ second), out=corner)


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


def inverse_factor(K: np.ndarray, more: float) -> np.ndarray:
    """A triangular F with ``F F' = (K + more I)^-1``, C-contiguous."""
    (trtri,) = get_lapack_funcs(("trtri",), (K,))
    return np.ascontiguousarray(trtri(upper_factor(K, more))[0])
