r"""Columns as ranks: where in its column a value stands, whatever the column's unit and tails.

.. math:: r_j(x) = \hat F_j(x_j) \in [0, 1]

:math:`\hat F_j` is the distribution function of column j, linear between its 256 quantiles, and the middle of the jump
where a value is frequent. A kernel of ranks is narrow where rows are dense and wide where they are rare, as the cuts
of a tree are.
"""

from __future__ import annotations

import numpy as np

KNOTS = 256


def knots_of(X: np.ndarray) -> np.ndarray:
    """Quantiles of the columns of X (n, d), (d, 256)."""
    return np.ascontiguousarray(np.quantile(X, np.linspace(0.0, 1.0, KNOTS), axis=0).T, np.float64)


class Ranks:
    """Rows -> ranks, by the knots (d, 256) of their columns."""

    def __init__(self, knots: np.ndarray):
        places = np.linspace(0.0, 1.0, knots.shape[1])
        self.columns = []
        for column in knots:
            values, which = np.unique(column, return_inverse=True)
            self.columns.append((values, np.bincount(which, places) / np.bincount(which)))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Ranks (n, d) of the first d columns of X, as far as there are knots."""
        out = np.empty((len(X), len(self.columns)), X.dtype, order="F")
        for j, (values, places) in enumerate(self.columns):
            out[:, j] = np.interp(X[:, j], values, places)
        return np.ascontiguousarray(out)
