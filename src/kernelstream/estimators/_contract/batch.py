"""Learners that take all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ...rows import Rows
from .base import State, StreamEstimator

CALLER = 7  # how far the caller of ``fit`` is from ``_solve``, for warnings


def counted(X: Rows, y: np.ndarray, weight: np.ndarray | None) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """The rows that have a weight."""
    if weight is None:
        return X, y, weight
    some = weight > 0
    if some.all():
        return X, y, weight
    return X[some], y[some], weight[some]


def _never(est: Any) -> bool:
    return False  # all rows must be there at once


class BatchEstimator(StreamEstimator):
    """Takes the place of a recursion over rows: a family supplies ``_solve``, and there is no ``learn``.

    It comes before the class of the target among the bases, so that it hides the methods which that one brings.
    """

    _at_once = True

    def _solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        """Enter the model of rows X (n, d) with targets Y (n, outputs)."""
        raise NotImplementedError

    def _run(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X, y, weight = counted(X, y, weight)
        self._solve(self._state, X, *self._batch_target(self._state, y, weight))
        self._state["t"] = X.shape[0]
        self._link_from(X, y, weight)
        return np.empty(0)

    @available_if(_never)
    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Not there: all rows are needed at once."""
        raise NotImplementedError

    @available_if(_never)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Not there: all rows are needed at once."""
        raise NotImplementedError
