r"""Kernel ridge regression with every row as a centre.

.. math:: (K + \lambda A^{-1})\, \alpha = y - b

One triangular factor, and conjugate gradients that take off what its rounding left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..rows import Rows
from ._problem import Solution
from .kernel_blocks import Centers, Factor

FAR = 1e15  # times lam: a row of so little weight has no say


class RowMatrix:
    """``K + diag(more)`` for the Gram matrix K of rows X (n, d), with its factor, in float64.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) array or CSR
    ops : module
    more : (n,) array
    """

    def __init__(self, kernel: Kernel, X: Rows, ops: Any, more: np.ndarray):
        self.K = Centers(kernel, X, ops).gram()
        self.K[np.diag_indices_from(self.K)] += more
        self.factor = Factor(self.K, 0.0)

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``(K + diag(more)) V``, (n, C) -> (n, C)."""
        return self.K @ V

    def divide(self, V: np.ndarray) -> np.ndarray:
        """The same matrix, as far as the factor knows it, divides V."""
        return self.factor.solve(self.factor.tsolve(V))


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
    """Coefficients alpha (n, C) of the kernel functions of rows X (n, d) for targets Y (n, C) without their constant.

    ``tol`` is the relative size of the residual r, ``sqrt(r'M r)`` with M the factor's inverse, at which to stop.
    """
    more = lam * (np.ones(len(Y)) if weight is None else np.minimum(1 / weight, FAR))
    own = getattr(ops, "row_matrix", None)
    matrix = RowMatrix(kernel, X, ops, more) if own is None else own(kernel, X, more)
    alpha, R = np.zeros_like(Y), Y.copy()
    D = P = matrix.divide(R)
    rz = (R * P).sum(axis=0)
    scale = np.maximum(np.sqrt(rz), 1e-300)
    history: list[float] = []
    for iteration in range(1, max_iter + 1):
        going = np.sqrt(rz) > tol * scale
        if not going.any():
            return Solution(alpha, history, len(history), True)
        Q = matrix.dot(P)
        pq = (P * Q).sum(axis=0)
        step = np.where(going & (pq > 0), rz / np.where(pq > 0, pq, 1), 0.0)
        alpha += step * P
        R -= step * Q
        D = matrix.divide(R)
        new = np.maximum((R * D).sum(axis=0), 0.0)
        P = D + np.where(going & (rz > 0), new / np.where(rz > 0, rz, 1), 0.0) * P
        rz = np.where(going, new, rz)
        history.append(float((np.sqrt(rz) / scale).max()))
        report(iteration, history[-1])
    return Solution(alpha, history, len(history), bool((np.sqrt(rz) <= tol * scale).all()))
