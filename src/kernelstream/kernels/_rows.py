"""Rows, dense or CSR: the few array operations on them that kernels need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

#: An (n, d) float ndarray, CSR matrix or CSR array.
Rows = Any

# Elements of a temporary that should stay in cache (coordinate loops) or in memory (dense copies of sparse rows).
CACHE_ELEMENTS = 1 << 16
MEMORY_ELEMENTS = 1 << 22


def as_rows(X: Any, dtype: Any = None) -> Rows:
    """``X`` as float rows: float32 and float64 are kept (no copy), every other type becomes float64."""
    if sparse.issparse(X):
        X = X if X.format == "csr" else X.tocsr()
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


def dense(X: Rows) -> np.ndarray:
    """Rows as an ndarray."""
    return X.toarray() if sparse.issparse(X) else X


def spans(n: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most ``size`` (at least one) rows that cover ``range(n)``."""
    size = max(1, size)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def inner(X: Rows, Z: Rows) -> np.ndarray:
    """``X Z'`` as a C-contiguous ndarray; sparse rows are multiplied as such."""
    if sparse.issparse(X):
        # A small dense right-hand side is several times faster than a sparse-sparse product whose result is dense anyway.
        if sparse.issparse(Z) and Z.shape[0] * Z.shape[1] > MEMORY_ELEMENTS:
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
    if X.dtype == np.float32 and xx.size and zz.size:
        if not np.finfo(np.float32).eps * (float(xx.max()) + float(zz.max())) <= precision:
            same = X is Z
            X = X.astype(np.float64)
            Z = X if same else Z.astype(np.float64)
            xx, zz = squared_norms(X), squared_norms(Z)
    D2 = inner(X * X.dtype.type(-2), Z)
    D2 += xx[:, None]
    D2 += zz
    np.maximum(D2, 0, out=D2)
    if X is Z:
        np.fill_diagonal(D2, 0)
    return D2
