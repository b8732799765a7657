r"""What each column added to an answer.

.. math:: f(x) - f(b) = \sum_j c_j

from a baseline b to a row x. Where gradients have a formula: integrated gradients along the straight line [1]_.
Elsewhere: columns change from b to x one after the other, in eight random orders and their reverses, and c_j is the
mean change of the answer when column j changes (Shapley values by sampling [2]_). The second sum is exact for every
function, even for one with steps.

.. [1] Sundararajan, Taly, Yan: Axiomatic attribution for deep networks, ICML 2017.
.. [2] Štrumbelj, Kononenko: Explaining prediction models and individual predictions with feature contributions, 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..named import Named
from ..random import SeedStream, generator

POINTS = 32  # on the straight line
ORDERS = 8  # and their reverses
ROOM = 1 << 20  # most numbers in the rows that are scored at once


class Explanation(NamedTuple):
    """Why a model gave its answers.

    Attributes
    ----------
    contributions : (n, d) array
        What each column added; a row sums to ``score - base``. It has the ``names`` of the columns.
    score : (n,) array
        The answers: predictions, or scores of the predicted class.
    base : (n,) array
        The model's answer for the baseline.
    baseline : (d,) array
        The row with which each is compared.
    """

    contributions: Named
    score: np.ndarray
    base: np.ndarray
    baseline: np.ndarray

    def to_frame(self) -> Any:
        """The contributions as a pandas data frame."""
        return self.contributions.to_frame()

    def plot(self, path: Any = None) -> Any:
        """Draw the contributions of one row, or the mean of their sizes over several."""
        return self.contributions.plot(path)


def along(gradients: Callable[[np.ndarray], np.ndarray], X: np.ndarray, base: np.ndarray, which: np.ndarray) -> Any:
    """Contributions (n, d) by gradients (n, outputs, d) along the straight line, of output ``which`` (n,)."""
    total, rows = np.zeros_like(X), np.arange(len(X))
    for k in range(POINTS):
        total += gradients(base + (k + 0.5) / POINTS * (X - base))[rows, which]
    return total / POINTS * (X - base)


def in_turns(
    answers: Callable[[np.ndarray], np.ndarray],
    X: np.ndarray,
    base: np.ndarray,
    which: np.ndarray,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Contributions (n, g) by random orders.

    Parameters
    ----------
    answers : callable
        Rows (m, d) -> (m, outputs).
    X : (n, d) array
    base : (d,) array
    which : (n,) ints
        The output that is explained.
    groups : (d,) ints, optional
        Columns of the same group change together, and have one contribution; by default each has its own.
    """
    d = X.shape[1]
    groups = np.arange(d) if groups is None else groups
    g = int(groups.max()) + 1
    found = np.zeros((len(X), g))
    at_once = max(1, ROOM // (d * (g + 1)))
    for start in range(0, len(X), at_once):
        rows = slice(start, start + at_once)
        n = len(X[rows])
        for k in range(2 * ORDERS):
            order = generator(0, SeedStream.COLUMN_ORDERS, k // 2).permutation(g)[:: -1 if k % 2 else 1]
            turn = np.empty(g, np.intp)
            turn[order] = np.arange(g)
            gone = np.arange(g + 1)[:, None] > turn[groups]  # (g + 1, d): columns changed after 0, 1, ... turns
            path = np.where(gone[:, None], X[None, rows], base)
            scores = answers(path.reshape(-1, d)).reshape(g + 1, n, -1)[:, np.arange(n), which[rows]]
            found[rows, order] += np.diff(scores, axis=0).T
    return found / (2 * ORDERS)
