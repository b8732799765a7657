"""Targets of regression: a real number per row, or several."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from ...core.ranges import FAR
from ...core.targets import DOUBT, HIGH, LOW, MOVES, TOTAL, Move, look, no_targets, stay
from ...registry.caller import caller
from ...state.turns import in_turn
from .base import State, StreamEstimator
from .context import loss_of_numbers
from .first_rows import outlying_values


class StreamRegressor(RegressorMixin, StreamEstimator):
    """Adds ``predict`` and ``partial_fit`` for real targets; several of them, y (n, k), where ``_several_targets``."""

    loss: Any

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
        return self._public(self._scores(X))

    @property
    @in_turn
    def set_aside_(self) -> int:
        """Rows that were not learned so far, because their target lies far outside the others; 0 before the first."""
        state = self.__dict__.get("_state") or {}
        return int(state["target_range"][TOTAL, 0]) if "target_range" in state else 0

    def _check_target(self, y: Any, classes: Any, n: Any, weight: Any, fresh: Any) -> Any:
        several = self._several_targets
        y = np.asarray(y) if several else y
        if not (several and y.ndim == 2 and y.shape[1] > 1):
            y = column_or_1d(y, warn=not several)
        if y.dtype.kind in "mM":
            raise ValueError(f"y holds {y.dtype}: pass numbers, such as days, (y - y.min()) / np.timedelta64(1, 'D')")
        try:
            y = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"y must contain numbers in the range of floats, got dtype {y.dtype}") from None
        assert_all_finite(y, input_name="y")
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if fresh:
            return y, outputs
        if outputs != self._state["n_outputs"]:
            raise ValueError(f"y has {outputs} columns, the model has {self._state['n_outputs']} outputs")
        return y, None

    def _declare(self, state: State, declared: Any) -> None:
        state["n_outputs"] = 1 if declared is None else declared
        if not self._at_once:
            state |= no_targets(state["n_outputs"])

    _sets_aside = True

    def _believed(self, y: np.ndarray, weight: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray | None]]:
        seen, last = self._state["target_range"], self._state["target_last"]
        own, n, start, stop, wild = np.empty(len(y)), len(y), 0, 0, 0
        while stop < n:
            given = None if weight is None else weight[stop:]
            taken, due, found = self._ops.take_targets(y[stop:], given, seen, last, own[stop:])
            stop, wild = stop + taken, wild + found
            if found and seen[TOTAL, 0] == found:
                _warn_of_wild(seen)
            before = seen.copy() if due else seen
            moves = look(seen, last) if due else []
            if stop < n and not any(moves):
                continue
            yield slice(start, stop), own[start:stop] if wild else None if weight is None else weight[start:stop]
            start, wild = stop, 0
            for o, move in enumerate(moves):
                if move is not None and not self._learner.moved(self._state, o, move):
                    stay(seen, before, o)
                elif move is not None and seen[MOVES].sum() == 1:
                    _warn_of_move(move)

    def _trusted(self, X: Any, y: Any, weight: Any) -> Any:
        weight = super()._trusted(X, y, weight)
        seen = self._state["target_range"]
        for o, column in enumerate(y.reshape(len(y), -1).T):
            odd = outlying_values(column, FAR)
            seen[LOW, o], seen[HIGH, o] = column[~odd].min(), column[~odd].max()
            weight = np.where(odd, 0.0, weight)
        return weight

    _loss_rule = staticmethod(loss_of_numbers)

    def _batch_target(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        return y[:, None], weight

    def _fast_row(self, y: Any) -> np.ndarray | None:
        plain = type(y) in (float, int) and abs(y) < 2.0 ** self._cache["fast"].exponent
        return np.array([y], np.float64) if plain else None

    def _fast_target(self, y: Any, n: int) -> np.ndarray | None:
        if type(y) is not np.ndarray or y.shape != (n,) or y.dtype.kind not in "fiu" or self._state["n_outputs"] > 1:
            return None
        y, fast = np.ascontiguousarray(y, np.float64), self._cache["fast"]
        return y if fast.all_below(y, fast.exponent) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_targets
        return tags


def _warn_of_wild(seen: np.ndarray) -> None:
    """Warn once that a row was set aside."""
    o = int(seen[DOUBT].argmax())
    warnings.warn(
        f"a target lies far outside the others, more than {FAR:g} times their range ({seen[LOW, o]:g} to "
        f"{seen[HIGH, o]:g}): the row was not learned, and neither will similar rows be, unless a dozen of them arrive "
        f"within a short time",
        RuntimeWarning,
        stacklevel=caller(),
    )


def _warn_of_move(move: Move) -> None:
    """Warn once that the target has another level or unit."""
    unit = "" if move.factor == 1 else f", and varies {move.factor:.3g} times as much"
    warnings.warn(
        f"the target has moved from about {move.middle:g} to about {move.to:g}{unit}, which is said once. The default "
        "learner carries over what it has learned, others learn the new level row by row",
        RuntimeWarning,
        stacklevel=caller(),
    )
