"""Few rows at a time: all members and their combination in one call of the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...trust.intervals import STEPS

AT_ONCE = 8  # rows of a call up to which they go this way
AGAIN = 64  # rows after which a member that could not take single rows is asked again
SQUASH = 3.0  # deviations beyond which a value counts by its logarithm


class RowByRow:
    """Mixed into the one learner: its short path for calls of few plain rows."""

    def _learn_plain(self: Any, X: Any, y: np.ndarray) -> np.ndarray:
        if len(X) <= AT_ONCE:
            rows = self._row_stack()
            if rows is not None:
                scores = rows.learn(X, y, bool(self.recent))
                if scores is not None:
                    return scores
        return super()._learn_plain(X, y)  # type: ignore[misc]

    def _scores(self: Any, X: Any) -> np.ndarray:
        hot = self.__dict__.get("_hot")
        if hot is not None and type(X) is np.ndarray and len(X) == 1 and self._plain_rows(X, hot):
            rows = self._row_stack()
            if rows is not None:
                # a row asked alone is the next of the stream
                scores = rows.score(X, bool(self.recent) and bool(self._state["recent_on"]))
                if scores is not None:
                    return scores
        return super()._scores(X)  # type: ignore[misc]

    def _row_stack(self: Any) -> Any:
        """The compiled whole, or None where a member has no compiled form, or none now."""
        held, until, engine = self._cache.get("rows", (None, -1, None))
        if held is not None and held.usable and engine is self.engine:
            return held
        state = self._state
        if held is None and engine is self.engine and state["t"] < until:
            return None
        held = None
        if self._may_change(state):
            learners = [_row_learner(member) for member in self._learners]
            if all(learner is not None for learner in learners):
                intervals = (self._tracker(state, 0).levels, STEPS) if self._regression else None
                held = self._ops.RowStack(state, learners, SQUASH, intervals)
        self._cache["rows"] = (held, state["t"] + AGAIN, self.engine)
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
