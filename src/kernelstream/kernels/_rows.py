"""Rows, dense or CSR: the few array operations on them that kernels need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

try:
    from kernelstream._core import exp_scaled
except ImportError:  # installed without the compiled core
    exp_scaled = None  # type: ignore[assignment, unused-ignore]

from kernelstream.core.threads import cuts
from kernelstream.rows import Rows, canonical, dense

# Elements of a temporary that should stay in cache (coordinate loops) or in memory (dense copies of sparse rows).
CACHE_ELEMENTS = 1 << 16
MEMORY_ELEMENTS = 1 << 22

_EPS32 = float(np.finfo(np.float32).eps)
_EPS64 = float(np.finfo(np.float64).eps)
_GAUSSIAN_ERROR = 1e-14  # of a kernel value that close rows far from the origin may have in float64


def as_rows(X: Any, dtype: Any = None) -> Rows:
    """``X`` as float rows: float32 and float64 are kept (no copy), every other type becomes float64."""
    if sparse.issparse(X):
        X = canonical(X)  # nonlinear functions of the entries need every entry stored once
    elif type(X) is not np.ndarray:
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"expected rows in a 2-dimensional array, got {X.ndim} dimension(s)")
    if dtype is None:
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    if X.dtype != dtype:
        if X.dtype.kind not in "biuf":
            raise ValueError(f"expected rows of numbers, got dtype {X.dtype}")
        X = X.astype(dtype)
    return X


def inner(X: Rows, Z: Rows) -> np.ndarray:
    """``X Z'`` as a C-contiguous ndarray; sparse rows are multiplied as such."""
    if sparse.issparse(X):
        # With more than some 3 % nonzeros a dense right-hand side is faster, five times so at 10 %.
        if sparse.issparse(Z) and Z.shape[0] * Z.shape[1] > min(32 * Z.nnz, MEMORY_ELEMENTS):
            return (X @ Z.T).toarray()
        return np.ascontiguousarray(X @ np.ascontiguousarray(dense(Z).T))
    if sparse.issparse(Z):
        return np.ascontiguousarray((Z @ X.T).T)
    return X @ Z.T


def squared_norms(X: Rows) -> np.ndarray:
    """``||x||^2`` of every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X: Rows, Z: Rows, precision: float = np.inf) -> np.ndarray:
    """``||x - z||^2`` for every pair, by one product and clipped at zero.

    ``||x||^2 + ||z||^2 - 2 x'z`` cancels for close rows far from the origin. When its float32 rounding error would
    exceed ``precision``, the product is made in float64 (``precision=0``: always), and so is the result.
    """
    xx, zz = squared_norms(X), squared_norms(Z)
    # The comparison is written so that NaN and overflow go to float64 too.
    if X.dtype == np.float32 and not _EPS32 * (xx.max(initial=0) + zz.max(initial=0)) <= precision:
        X, Z = (X.astype(np.float64),) * 2 if X is Z else (X.astype(np.float64), Z.astype(np.float64))
        xx, zz = squared_norms(X), squared_norms(Z)
    D2 = inner(X * X.dtype.type(-2), Z)
    D2 += xx[:, None]
    D2 += zz
    np.maximum(D2, 0, out=D2)
    if X is Z:
        np.fill_diagonal(D2, 0)
    return D2


def exact_squared_distances(X: Rows, Z: Rows) -> np.ndarray:
    """``||x - z||^2`` for every pair in float64, with small relative error also where rows nearly coincide."""
    D2 = squared_distances(X, Z, precision=0)
    xx, zz = squared_norms(X).astype(np.float64), squared_norms(Z).astype(np.float64)
    for rows in cuts(X.shape[0], MEMORY_ELEMENTS // 4 // max(1, Z.shape[0])):
        # Too close for the cancelling formula, hence rare.
        close, other = np.nonzero(D2[rows] < 1e-9 * (xx[rows, None] + zz))
        _recompute(D2, X, Z, close + rows.start, other)
    return D2


def gaussian_distances(X: Rows, Z: Rows, gamma: float, precision: float) -> np.ndarray:
    """`squared_distances`, good enough for ``exp(-gamma D2)`` to err by at most some 1e-14 where they are float64.

    The rounding error of a distance is about ``4 eps (||x||^2 + ||z||^2)``; it matters where the kernel is not tiny.
    """
    D2 = squared_distances(X, Z, precision)
    if D2.dtype != np.float64 or D2.size == 0:
        return D2
    xx, zz = squared_norms(X).astype(np.float64), squared_norms(Z).astype(np.float64)
    error = 4 * _EPS64 * gamma / _GAUSSIAN_ERROR  # of a kernel value near 1, per unit of squared norm, in tolerances
    if error * (xx.max() + zz.max()) <= 1:
        return D2
    for rows in cuts(X.shape[0], CACHE_ELEMENTS // max(1, Z.shape[0])):
        with np.errstate(divide="ignore"):
            close, other = np.nonzero(D2[rows] * gamma < np.log(error * (xx[rows, None] + zz)))
        _recompute(D2, X, Z, close + rows.start, other)
    return D2


def _recompute(D2: np.ndarray, X: Rows, Z: Rows, i: np.ndarray, j: np.ndarray) -> None:
    """Distances of the pairs (i, j) by their differences, one pair at a time."""
    for pairs in cuts(len(i), MEMORY_ELEMENTS // 4 // max(1, X.shape[1])):
        a, b = i[pairs], j[pairs]
        D2[a, b] = squared_norms(dense(X[a]).astype(np.float64) - dense(Z[b]))


def _exp_neg(D2: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma D2)`` in place: the hot loop of every Gaussian Gram block."""
    if exp_scaled is not None and D2.flags.c_contiguous:
        exp_scaled(D2, float(gamma), False)
        return D2
    D2 *= D2.dtype.type(-gamma)
    return np.exp(D2, out=D2)
