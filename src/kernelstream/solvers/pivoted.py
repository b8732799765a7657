r"""Kernel ridge regression with every row as a centre, by products alone: time grows with the square of the rows.

.. math:: (K + D)\, \alpha = y, \qquad K \approx F F'

Conjugate gradients, preconditioned by the inverse of :math:`F F' + D`. F has few columns, a Cholesky factor of K with
pivots where the rest :math:`K - F F'` has much on its diagonal [1]_. The same products serve the system of all rows and
that of all rows but the last ones, which tells what these are worth as a test.

References
----------
.. [1] Díaz, Epperly, Frangella, Tropp, Webber: Robust, randomized preconditioning for kernel ridge regression,
   arXiv 2304.12465, 2023.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs

from ..core import threads
from ..core.triangular import divided_by, factorise, upper_factor
from .cg import System, conjugate_gradients

LEAST_ROWS, ROWS_FOR_AN_OUTPUT, LEAST_PENALTY = 6000, 800, 1e-3
ROWS_FOR_A_PIVOT, MOST_PIVOTS, PIVOTS_AT_ONCE = 24, 500, 64
FEW_COLUMNS = 4  # whose product takes both halves of K from one
ROWS_AT_ONCE = 512  # of a product
ROWS_FOR_A_PRODUCT, MOST_PRODUCTS = 160, 150  # a factor takes the time of a product for each so many rows


def least_rows(outputs: int, lam: float) -> float:
    """Rows from which a system with a penalty takes less time by products than by a factor of the whole matrix."""
    return max(LEAST_ROWS, ROWS_FOR_AN_OUTPUT * outputs) if lam >= LEAST_PENALTY else float("inf")


def solved(
    K: np.ndarray, more: np.ndarray, Y: np.ndarray, last: int, tol: float, ops: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Coefficients (n, C) for targets Y (n, C), and residuals (last, C) of the last rows where the others are learned.

    Parameters
    ----------
    K : (n, n) array
        The Gram matrix.
    more : (n,) array
        What is added to its diagonal.
    tol : float
        Relative size of the residual, by the preconditioner, at which to stop.
    ops : module
        An engine, for products.

    Returns
    -------
    pair of arrays, or None where a factor of the whole takes less time
    """
    n, C = Y.shape
    others = n - last
    targets = np.concatenate([Y, Y], axis=1) if last else Y.copy()
    targets[others:, C:] = 0.0
    F = pivoted_factor(K, min(n // ROWS_FOR_A_PIVOT, MOST_PIVOTS))
    rest = float(np.trace(K)) - float(np.einsum("ij,ij->", F, F, dtype=np.float64))
    if 3 * np.sqrt(max(rest, 0.0) / (len(F) * np.median(more))) > n / ROWS_FOR_A_PRODUCT:  # products, by experience
        return None
    inverses = [_Inverse(F, more), _Inverse(F[:, :others], more[:others])] if last else [_Inverse(F, more)]

    def product(V: np.ndarray) -> np.ndarray:
        out = _product(K, more, V, ops)
        out[others:, C:] = 0.0
        return out

    def divide(R: np.ndarray) -> np.ndarray:
        out = np.zeros_like(R)
        for i, inverse in enumerate(inverses):
            part = slice(others if i else n), slice(i * C, (i + 1) * C)
            out[part] = inverse(R[part])
        return out

    X = np.zeros_like(targets)
    _, converged = conjugate_gradients(product, divide, System(None, X, targets, None, tol, MOST_PRODUCTS))
    if not converged:
        return None
    if not last:
        return X, np.empty((0, C))
    return X[:, :C], Y[others:] - K[others:, :others] @ X[:others, C:].astype(K.dtype)


def pivoted_factor(K: np.ndarray, rank: int) -> np.ndarray:
    """F' (at most rank, n) with K (n, n) nearly F F': pivots lie evenly along the sums of what is left to explain."""
    n, rest, found = len(K), np.diagonal(K).astype(np.float64), 0
    F = np.empty((rank, n), K.dtype)
    (trsm,) = get_blas_funcs(("trsm",), (K,))
    while found < rank:
        sums = np.cumsum(np.maximum(rest, 0.0))
        some = min(PIVOTS_AT_ONCE, rank - found)
        pivots = np.unique(np.searchsorted(sums, (np.arange(some) + 0.5) * (sums[-1] / some)).clip(max=n - 1))
        before, new = F[:found], F[found : found + len(pivots)]
        rows = K[pivots] - _on_threads(before[:, pivots].T, before)
        own = rows[:, pivots].astype(np.float64)
        least = float(np.finfo(K.dtype).eps) * len(pivots) ** 0.5  # errors of the values themselves
        T = upper_factor(0.5 * (own + own.T), least).astype(K.dtype)
        new[:] = trsm(1.0, T, rows, trans_a=1)
        rest -= np.einsum("ij,ij->j", new, new)
        found += len(pivots)
    return F


class _Inverse:
    """``(F F' + D)^-1 = D^-1 - D^-1 F (I + F' D^-1 F)^-1 F' D^-1`` for F' (r, n) and D (n,)."""

    def __init__(self, F: np.ndarray, more: np.ndarray):
        self.F, self.more, r = F, more[:, None], len(F)
        parts = threads.cuts(F.shape[1], 4 * ROWS_AT_ONCE)
        sums = np.empty((len(parts), r, r), F.dtype)

        def work(i: int) -> None:
            own = F[:, parts[i]]
            np.matmul(own / more[parts[i]].astype(F.dtype), own.T, out=sums[i])

        threads.each(work, range(len(parts)))
        self.factor = sums.sum(axis=0, dtype=np.float64)
        if not factorise(self.factor, np.diagonal(self.factor) + 1.0):
            raise np.linalg.LinAlgError("the preconditioner has no factor")

    def __call__(self, R: np.ndarray) -> np.ndarray:
        """The product with R (n, C)."""
        scaled = R / self.more
        along = divided_by(self.factor, (self.F @ scaled.astype(self.F.dtype)).astype(np.float64))
        return scaled - (self.F.T @ along.astype(self.F.dtype)) / self.more


def _product(K: np.ndarray, more: np.ndarray, V: np.ndarray, ops: Any) -> np.ndarray:
    """``(K + D) V``, (n, C)."""
    if V.shape[1] <= FEW_COLUMNS:
        return np.ascontiguousarray(ops.symmetric_product(K, np.diagonal(K) + more, V))
    out, single = more[:, None] * V, V.astype(K.dtype)

    def work(part: slice) -> None:
        out[part] += K[part] @ single

    threads.each(work, threads.cuts(len(K), ROWS_AT_ONCE))
    return out


def _on_threads(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``A B``, some columns a thread."""
    out = np.empty((len(A), B.shape[1]), B.dtype)

    def work(part: slice) -> None:
        out[:, part] = A @ B[:, part]

    threads.each(work, threads.cuts(B.shape[1], 4 * ROWS_AT_ONCE))
    return out
