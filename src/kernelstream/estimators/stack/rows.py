"""Few rows at a time: all members and their combination in one call of the compiled core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays import SQUASH
from ...trust.intervals import STEPS
from .._contract.state import scaled_rows
from . import batch, watch

AT_ONCE = 8  # rows of a call up to which they go this way


class RowByRow:
    """Mixed into the default learner: its short path for calls of few plain rows.

    Whether a call takes it follows from the rows and the state alone, so that a model that was saved and loaded goes on
    to the same bits.
    """

    def _learn_plain(self: Any, X: Any, y: np.ndarray) -> np.ndarray:
        before_look = watch.ROWS - self._state["t"] % watch.ROWS
        few = (
            len(X) <= AT_ONCE and len(X) < before_look and not batch.present(self._state)
        )  # only the long path can undo a look, or what others undo
        if few and "_ends" not in self.__dict__ and "_open" not in self.__dict__:
            scores = self._by_rows(lambda rows: rows.learn(X, y, bool(self.recent)))
            if scores is not None:
                return scores
        return super()._learn_plain(X, y)  # type: ignore[misc]

    def _score_in_cuts(self: Any, state: dict[str, Any], X: Any) -> np.ndarray:
        if len(X) == 1 and not state["warm_rows"]:
            # a row asked alone is the next of the stream
            recent = bool(self.recent) and bool(state["recent_on"])
            scores = self._by_rows(lambda rows: rows.score(X, recent))
            if scores is not None and batch.present(state):
                return batch.blended(self, state, self._ops.squashed(scaled_rows(X, state)), scores, state["t"])
            if scores is not None:
                return scores
        return super()._score_in_cuts(state, X)  # type: ignore[misc]

    def _by_rows(self: Any, work: Callable[[Any], np.ndarray | None]) -> np.ndarray | None:
        """The answer of the compiled learner of single rows; None where it needs the long path."""
        rows = self._row_stack()
        scores = None if rows is None else work(rows)
        if scores is None and rows is not None and not rows.usable:  # the arrays are others by now
            rows = self._row_stack()
            scores = None if rows is None else work(rows)
        return scores

    def _row_stack(self: Any) -> Any:
        """The compiled whole, or None where a member has no compiled form, or none yet."""
        held, engine = self._cache.get("rows", (None, None))
        if engine is self.engine and (held is None or held.usable):
            return held
        state, held = self._state, None
        if not self._may_change(state):
            return None
        try:
            learners = [_row_learner(member) for member in self._learners]
        except ValueError:  # a member that is out of range begins anew on the long way
            return None
        if any(learner is NotImplemented for learner in learners):
            return None
        if all(learner is not None for learner in learners):
            coverages = self._tracker(state, 0).levels, STEPS
            held = self._ops.RowStack(state, learners, SQUASH, self._regression, coverages)
        self._cache["rows"] = (held, self.engine)
        return held

    def _may_change(self: Any, state: dict[str, Any]) -> bool:
        """Whether single rows are learned into these states, which those of a mapped file cannot be."""
        if self.__dict__.get("_fitting") or self._outputs(state) != 1:
            return False
        arrays = (value for part in (state, *self._states) for value in part.values() if isinstance(value, np.ndarray))
        return all(array.flags.writeable or array.dtype.kind not in "fiu" for array in arrays)


def _row_learner(member: Any) -> Any:
    """The member's learner of single rows; None of a class that learns or scores in a way of its own."""
    order = type(member).__mro__
    place = {name: next(i for i, cls in enumerate(order) if name in vars(cls)) for name in _OURS}
    return member._row_learner(member._state) if place["_row_learner"] == min(place.values()) else None


_OURS = ("_row_learner", "_learn", "_score")
