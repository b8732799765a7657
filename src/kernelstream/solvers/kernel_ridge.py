r"""Kernel ridge regression with every row as a centre.

.. math:: (K + \lambda A^{-1})\, \alpha = y - b

One triangular factor, and conjugate gradients that take off what its rounding left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.triangular import divided_by, factorise
from ..kernels import Kernel
from ..rows import Rows
from ..state.blas_threads import on_one_blas_thread
from ._problem import Solution
from .cg import System, conjugate_gradients
from .kernel_blocks import Centers

LARGEST_INVERSE_WEIGHT = 1e15  # times lam: a row of so little weight has no say


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
