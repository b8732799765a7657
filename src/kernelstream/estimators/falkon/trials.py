r"""Kernel ridge regression through few centres, for several penalties at once, judged on held-out rows.

.. math:: (K' A K + \lambda K_{SS})\, \alpha_\lambda = K' A (y - b)

With ``K_SS = T'T``, ``Z = K T^-1`` and ``w = T alpha`` the matrix is ``Z'A Z + lam I``, whose part without lam serves
every penalty. The squared distances of rows and centres, or the sums over their coordinates, serve every bandwidth of a
kernel that is a function of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve

from ...core.triangular import upper_factor
from ...kernels import Kernel
from ...kernels._coordinates import CoordinateKernel
from ...kernels._rows import squared_distances
from ...rows import Rows, divided
from ...solvers.kernel_blocks import Factor, least_addition
from ...solvers.search import Fold

SLOPE_STEP = 1e-3  # relative step of a squared distance, for the slope of a radial kernel
STEP = 0.02  # of a column, for the slope of other kernels, in units of the width of the rows


class RidgeTrials:
    """Some rows to learn from, the first m of which are the centres, and others to judge by.

    Parameters
    ----------
    fold : Fold
    m : int
        How many of the rows are centres.
    lams : tuple of float
        The penalties.
    """

    def __init__(self, fold: Fold, m: int, lams: Any):
        (X, Y, weight), (self.XH, self.YH, self.wH) = fold
        self.X, self.lams, self.near = X, lams, SLOPE_STEP
        self.m = min(m, X.shape[0])
        self.offset = np.average(Y, axis=0, weights=weight)
        self.a = np.ones(len(Y)) if weight is None else weight
        self.Y = Y - self.offset

    def at(self, width: np.ndarray) -> Trial:
        """The rows with their columns divided by widths (d,)."""
        return Trial(self, divided(self.X, width), divided(self.XH, width))


class Trial:
    """Trials on the same columns, one for each kernel."""

    def __init__(self, rows: RidgeTrials, X: Rows, XH: Rows):
        self.rows, self.X, self.XH = rows, X, XH
        self.S = X[: rows.m]
        self.shared: tuple[np.ndarray, np.ndarray] | None = None  # squared distances, or totals of coordinates

    def _values(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """``k(X, S)`` (n, m) and ``k(XH, S)`` (h, m), in float64."""
        if getattr(kernel, "radial", False):
            if self.shared is None:
                self.shared = self._squared_distances()
            both = (kernel.of_squares(D2.copy()) for D2 in self.shared)
        elif isinstance(kernel, CoordinateKernel) and kernel.common_terms and not sp.issparse(self.X):
            if self.shared is None:
                self.shared = kernel.totals(self.X, self.S), kernel.totals(self.XH, self.S)
            both = (kernel.of_totals(S.copy()) for S in self.shared)
        else:
            both = (kernel.pairwise(rows, self.S) for rows in (self.X, self.XH))
        K, KH = (values.astype(np.float64, copy=False) for values in both)
        return K, KH

    def _squared_distances(self) -> tuple[np.ndarray, np.ndarray]:
        X, XH, S = self.X, self.XH, self.S
        if not sp.issparse(X):  # about their mean, where the formula cancels less
            middle = S.mean(axis=0, dtype=np.float64).astype(X.dtype)
            X, XH, S = X - middle, XH - middle, S - middle
        D2 = squared_distances(X, S)
        m = S.shape[0]
        S = S.astype(np.float64)
        D2[:m] = squared_distances(S, S)  # of one row with itself it is 0
        return D2, squared_distances(XH, S.astype(XH.dtype))

    def path(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """Squared errors of the held-out rows (penalties,), and the coefficients (m, penalties, C) that have them."""
        rows, (K, KH) = self.rows, self._values(kernel)
        m = rows.m
        centers = K[:m]
        factor = Factor(centers, least_addition(centers, self.X.dtype))
        B = factor.tsolve(K.T @ (rows.a[:, None] * rows.Y))
        K *= np.sqrt(rows.a)[:, None]
        G = factor.tsolve(factor.tsolve(K.T @ K).T)
        G = 0.5 * (G + G.T)
        W = np.stack([cho_solve((upper_factor(G, lam), False), B, check_finite=False) for lam in rows.lams], axis=1)
        alpha = factor.solve(W.reshape(m, -1))
        F = (KH @ alpha).reshape(len(KH), *W.shape[1:]) + rows.offset
        errors = np.square(F - rows.YH[:, None]).sum(axis=2)
        return np.average(errors, axis=0, weights=rows.wH), alpha.reshape(W.shape)

    def slopes(self, kernel: Kernel, alpha: np.ndarray, some: int) -> np.ndarray:
        """Root of the mean square of ``d f / d x_j`` over some held-out rows and the outputs, (d,); dense rows.

        Parameters
        ----------
        kernel : Kernel
        alpha : (m, C) array
            Coefficients of f.
        some : int
            How many rows.
        """
        at = self.XH[:some].astype(np.float64)
        S = self.S.astype(np.float64)
        d = at.shape[1]
        squares = np.zeros(d)
        if getattr(kernel, "radial", False):  # k = phi(|x - s|^2): the gradient is 2 phi' (x - s)
            D2 = np.maximum(squared_distances(at, S), np.finfo(float).tiny)
            phi = (kernel.of_squares(D2 * (1 + SLOPE_STEP)) - kernel.of_squares(D2 * (1 - SLOPE_STEP))) / (
                2 * SLOPE_STEP * D2
            )
            for c in range(alpha.shape[1]):
                P = phi * alpha[:, c]
                squares += np.square(2 * (at * P.sum(axis=1)[:, None] - P @ S)).sum(axis=0)
            return np.sqrt(squares / len(at))
        totals = None
        if isinstance(kernel, CoordinateKernel) and kernel.combine is np.add:  # one term of the sums changes
            totals = kernel.totals(at, S)
        for j in range(d):
            f = []
            for step in (STEP, -STEP):
                if totals is not None:
                    values = kernel.of_totals(kernel.moved(totals, at[:, j], S[:, j], at[:, j] + step))
                else:
                    side = at.copy()
                    side[:, j] += step
                    values = kernel.pairwise(side, S)
                f.append(values @ alpha)
            squares[j] = np.square(f[0] - f[1]).sum() / (2 * STEP) ** 2
        return np.sqrt(squares / len(at))
