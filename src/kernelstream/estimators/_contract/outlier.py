"""Rows without a target: novelty detection on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from ...state.turns import in_turn
from .base import StreamEstimator


class StreamOutlier(OutlierMixin, StreamEstimator):
    """Adds ``learn`` and ``predict`` of scikit-learn's outlier contract.

    A family supplies ``decision_function`` and the property ``offset_``, the least score of a row that is not novel.
    """

    offset_: Any

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, shuffle: bool = True, passes: int = 1
    ) -> StreamOutlier:
        """Forget everything, then learn the rows in random order.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored
        sample_weight : (n,) array, optional
            Factors of what each row changes; a row of weight 0 is skipped.
        shuffle : bool, default=True
            Take the rows in a random order. False keeps the order: what ``learn`` does on a fresh model.
        passes : int, default=1
            How often to go through the rows, each time in another order.

        Returns
        -------
        self
        """
        super().fit(X, None, sample_weight, shuffle=shuffle, passes=passes)
        return self

    def learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the decision values before each update, (n,): negative for novelties.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored
        sample_weight : (n,) array, optional
        """
        return self._learn_any(X, None, None, sample_weight)

    def novel(self, answers: np.ndarray) -> np.ndarray:
        """Which rows were novel, (n,) bool, by what ``learn`` returned of them."""
        return answers < 0

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StreamOutlier:
        """Learn the rows in order; see :meth:`learn`."""
        self.learn(X, None, sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of rows, (n,): negative for novelties."""
        raise NotImplementedError

    @in_turn
    def score_samples(self, X: Any) -> np.ndarray:
        """Scores of rows, (n,): the larger, the more like the rows learned; ``decision_function + offset_``."""
        return self.decision_function(X) + self.offset_

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """-1 for novelties, +1 for the rest, (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    _loss_rule = staticmethod(lambda parameters, n_classes: None)  # there is no target
