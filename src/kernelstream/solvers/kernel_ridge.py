r"""Kernel ridge regression with every row as a centre.

.. math:: (K + \lambda A^{-1})\, \alpha = y - b

One triangular factor, and conjugate gradients that take off what its rounding left; or for many rows, as time of a
factor grows with their cube and that of products with their square, conjugate gradients and a factor of few columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..core import threads
from ..core.triangular import divided_by, factorise, upper_factor
from ..kernels import Kernel
from ..rows import Rows
from ..state.blas_threads import on_one_blas_thread
from ._problem import Solution
from .cg import System, conjugate_gradients
from .kernel_blocks import Centers

LARGEST_INVERSE_WEIGHT = 1e15  # times lam: a row of so little weight has no say
LEAST_ROWS, PIVOTS = 7000, 500  # rows from which products may take less time than a factor, and what divides them
ITERATION, ROWS_AT_ONCE = 40, 512  # C + 4 times so many rows: a factor takes as much more time as an iteration


class RowMatrix:
    """A Gram matrix K with something added to its diagonal, and its factor, in the type of K.

    One array holds both: the kernel below the diagonal, the triangular factor on it and above. Products are in float64.

    Parameters
    ----------
    K : (n, n) array
        The Gram matrix, which is overwritten.
    diagonal : (n,) array
        Its diagonal with what is added to it.
    ops : module
        An engine, for products.
    """

    def __init__(self, K: np.ndarray, diagonal: np.ndarray, ops: Any):
        self.K, self.diagonal, self.ops = K, diagonal, ops
        less = 0.0
        while not factorise(self.K, self.diagonal + less):  # with as little more as arithmetic allows
            less = 10 * max(less, float(np.finfo(self.K.dtype).eps * self.diagonal.max()))
            if not np.isfinite(less):
                raise np.linalg.LinAlgError("the kernel matrix has no factor")
            for i in range(1, len(K)):
                K[:i, i] = K[i, :i]

    def dot(self, V: np.ndarray) -> np.ndarray:
        """The matrix times V, (n, C) -> (n, C)."""
        return self.ops.symmetric_product(self.K, self.diagonal, V)

    def divide(self, V: np.ndarray) -> np.ndarray:
        """The same matrix, as far as the factor knows it, divides V."""
        size = np.maximum(np.abs(V).max(axis=0), np.finfo(float).tiny)  # float32 has a narrower range
        return divided_by(self.K, V / size) * size

    def left_out(self, alpha: np.ndarray, last: int) -> np.ndarray:
        r"""Residuals (last, C) that the last rows have where the other rows alone are learned; alpha (n, C) is of all.

        .. math:: y_H - f_{-H}(x_H) = ((B^{-1})_{HH})^{-1} \alpha_H = L_{HH} L_{HH}'\, \alpha_H, \qquad B = L L'

        for the matrix B and its factor L.
        """
        upper = np.triu(self.K[-last:, -last:]).astype(np.float64)
        return upper.T @ (upper @ alpha[-last:])


@on_one_blas_thread
def kernel_ridge(
    kernel: Kernel,
    X: Rows,
    Y: np.ndarray,
    lam: float,
    ops: Any,
    *,
    weight: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    report: Callable[[int, float], Any] = lambda iteration, value: None,
) -> Solution:
    """Coefficients alpha (n, C) of the kernel functions of rows X (n, d) for targets Y (n, C) without the constant."""
    return descend(row_matrix(kernel, X, lam, ops, weight), Y, tol, max_iter, report)


def row_matrix(kernel: Kernel, X: Rows, lam: float, ops: Any, weight: np.ndarray | None) -> Any:
    """``K + lam A^-1`` of rows X (n, d) with its factor, by an engine."""
    more = addition(lam, X.shape[0], weight)
    own = getattr(ops, "row_matrix", None)
    if own is not None:
        return own(kernel, X, more)
    return RowMatrix(Centers(kernel, X, ops).table(X), kernel.diag(X).astype(np.float64) + more, ops)


def addition(lam: float, n: int, weight: np.ndarray | None) -> np.ndarray:
    """What the penalty adds to the diagonal, (n,)."""
    return lam * (np.ones(n) if weight is None else np.minimum(1 / weight, LARGEST_INVERSE_WEIGHT))


def descend(
    matrix: Any,
    Y: np.ndarray,
    tol: float,
    max_iter: int = 100,
    report: Callable[[int, float], Any] = lambda iteration, value: None,
) -> Solution:
    """The matrix divides targets Y (n, C).

    ``tol`` is the relative size of the residual r, ``sqrt(r'M r)`` with M the factor's inverse, at which to stop.
    """
    alpha = np.zeros_like(Y)
    system = System(None, alpha, Y.copy(), None, tol, max_iter, report)
    history, converged = conjugate_gradients(matrix.dot, matrix.divide, system)
    return Solution(alpha, history, len(history), converged)


def by_products(
    K: np.ndarray, more: np.ndarray, Y: np.ndarray, last: int, tol: float
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Coefficients (n, C) of K + D, and residuals (last, C) of the last rows by the others; None: a factor is faster.

    .. math:: K \approx F F', \qquad (F F' + D)^{-1} = D^{-1} - D^{-1} F\, (I + F' D^{-1} F)^{-1} F' D^{-1}

    divides the residuals, with F from the columns of K at some rows, evenly spread. Rows to leave out have no weight.
    """
    (n, C), most = Y.shape, int(len(Y) / (ITERATION * (Y.shape[1] + 4)))
    if n < LEAST_ROWS:
        return None
    pivots = np.arange(PIVOTS) * n // PIVOTS
    T = upper_factor(K[np.ix_(pivots, pivots)].astype(np.float64), float(np.finfo(K.dtype).eps) * PIVOTS**0.5)
    F = solve_triangular(T.astype(K.dtype), K[pivots], trans=1)  # F', (pivots, n)
    rest = max(n - float(np.einsum("ij,ij->", F, F, dtype=np.float64)), 0.0)
    if 5 * np.sqrt(rest / (PIVOTS * np.median(more))) > most:  # so many iterations, by experience
        return None
    targets, D = np.concatenate([Y, Y], axis=1), np.repeat([more, more], C, axis=0).T
    targets[n - last :, C:], D[n - last :, C:] = 0.0, LARGEST_INVERSE_WEIGHT
    inner = [((F / more.astype(K.dtype)) @ F.T).astype(np.float64) for more in (D[:, 0], D[:, C])]
    if not all(factorise(A, np.diagonal(A) + 1.0) for A in inner):
        return None

    def product(V: np.ndarray) -> np.ndarray:
        out, single = D * V, V.astype(K.dtype)

        def work(part: slice) -> None:
            out[part] += K[part] @ single

        threads.each(work, threads.cuts(n, ROWS_AT_ONCE))
        return out

    def divide(R: np.ndarray) -> np.ndarray:
        along = np.split((F @ (R / D).astype(K.dtype)).astype(np.float64), 2, axis=1)
        found = np.concatenate([divided_by(A, V) for A, V in zip(inner, along, strict=True)], axis=1)
        return (R - F.T @ found.astype(K.dtype)) / D

    X = np.zeros_like(targets)
    _, converged = conjugate_gradients(product, divide, System(None, X, targets, None, tol, 2 * most))
    left = Y[n - last :] - K[n - last :] @ X[:, C:].astype(K.dtype)
    return (X[:, :C], left) if converged else None
