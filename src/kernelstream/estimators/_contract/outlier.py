"""Rows without a target: novelty detection on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from ...rows import Rows
from ...state.turns import in_turn
from . import warm_up
from .base import State, StreamEstimator


class StreamOutlier(OutlierMixin, StreamEstimator):
    """Adds ``learn`` and ``predict`` of scikit-learn's outlier contract; a family supplies ``decision_function``."""

    def learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the decision values before each update, (n,): negative for novelties.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored
        sample_weight : (n,) array, optional
        """
        return self._learn_any(X, None, None, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StreamOutlier:
        """Learn the rows in order; see :meth:`learn`."""
        self.learn(X, None, sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of rows, (n,): negative for novelties."""
        raise NotImplementedError

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """-1 for novelties, +1 for the rest, (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _check_target(self, y: Any, classes: Any, n: Any, weight: Any, fresh: Any) -> Any:
        return np.zeros(n), None

    def _learn_task(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return warm_up.learn(self, X, y, weight)[:, 0]

    def _encode(self, state: State, y: np.ndarray) -> np.ndarray:
        return y
