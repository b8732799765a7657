"""What regressors answer: a number for every row, or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ...core.targets import TOTAL
from ...state.turns import in_turn
from .base import StreamEstimator
from .context import loss_of_numbers
from .numbers import Numbers
from .targets import public


class StreamRegressor(RegressorMixin, StreamEstimator):
    """Adds ``predict`` and ``partial_fit`` for real targets; several of them, y (n, k), where ``_several_targets``."""

    loss: Any

    _targets = Numbers
    _loss_rule = staticmethod(loss_of_numbers)

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the predictions made before each update.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array of numbers, or (n, k) where there may be several targets
        sample_weight : (n,) array, optional
            Factors of each row's loss; a row of weight 0 is predicted and skipped.
            A row of weight 2 need not be two rows: see "What a weight means" in the guide.

        Returns
        -------
        array like y
        """
        return self._learn_any(X, y, None, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> StreamRegressor:
        """Learn the rows in order; see :meth:`learn`."""
        self.learn(X, y, sample_weight)
        return self

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n,) or (n, k)."""
        return public(self._scores(X))

    @property
    @in_turn
    def set_aside_(self) -> int:
        """Rows that were not learned so far, because their target lies far outside the others; 0 before the first."""
        state = self._state or {}
        return int(state["target_range"][TOTAL, 0]) if "target_range" in state else 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_targets
        return tags
