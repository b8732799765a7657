"""Targets of regression: one real number per row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from .. import losses
from .._turns import in_turn
from ._base import State, StreamEstimator


class StreamRegressor(RegressorMixin, StreamEstimator):
    """Adds ``predict`` and ``partial_fit`` for real targets."""

    loss: Any

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the predictions made before each update.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array of numbers
        sample_weight : (n,) array, optional
            Factors of each row's loss; a row of weight 0 is predicted and skipped.

        Returns
        -------
        (n,) array
        """
        return self._learn_any(X, y, None, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> StreamRegressor:
        """Learn the rows in order; see :meth:`learn`."""
        self.learn(X, y, sample_weight)
        return self

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n,)."""
        return self._scores(X)[:, 0]

    def _check_target(self, y, classes, n, weight, fresh):
        y = column_or_1d(y, warn=True)
        try:
            y = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"y must hold numbers for a regressor, got dtype {y.dtype}") from None
        assert_all_finite(y, input_name="y")
        return y, None

    def _run(self, X, y, weight):
        return self._advance(X, y, weight)[:, 0]

    def _loss_now(self, state: State) -> losses.Loss:
        return self._cached("loss", lambda: losses.get(self.loss, task="regression"))

    def _encode(self, state: State, y: np.ndarray) -> np.ndarray:
        return y

    def _batch_target(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        return y[:, None], weight

    def _hot_row(self, y: Any) -> np.ndarray | None:
        return np.array([y], np.float64) if type(y) in (float, int) and math.isfinite(y) else None

    def _hot_target(self, y: Any, n: int) -> np.ndarray | None:
        if type(y) is not np.ndarray or y.shape != (n,) or y.dtype.kind not in "fiu" or self._hot is None:
            return None
        y = np.ascontiguousarray(y, np.float64)
        return y if self._hot[2](y) else None
