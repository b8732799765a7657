"""How sure the one learner is: intervals around numbers, sets of labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...state.schema import Schema
from ...trust.intervals import IntervalTracker, check_coverage
from .._contract.base import State

FEWEST = 16  # rows kept, from which their errors count


class Sure:
    """Mixed into the one learner: trackers of the errors of its forecasts, one for each combination.

    Of numbers the error is the distance to the truth, of labels what was left to the others, 1 - P(truth).
    """

    def _tracker(self: Any, state: State, o: int) -> IntervalTracker:
        """What follows the errors of an output; its arrays are the state's own."""
        tracker = self._cached(("tracker", o), lambda: IntervalTracker(engine=self.engine))
        names = {name: f"o{o}_interval_{name}" for name in tracker.state}
        tracker.state = {name: state[entry] for name, entry in names.items()}
        return tracker

    def _fresh_trackers(self: Any, n: int) -> State:
        """The entries of the trackers of n outputs that have learned nothing."""
        fresh = [IntervalTracker(engine=self.engine).state for _ in range(n)]
        return {f"o{o}_interval_{name}": value for o, entries in enumerate(fresh) for name, value in entries.items()}

    def _follow_errors(self: Any, state: State, o: int, scores: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
        """Errors (n,) of the forecasts (n, C) of output o before each row, which its tracker learns."""
        tracker = self._tracker(state, o)
        if self._regression:
            forecast, wrong = scores[:, 0], np.abs(y - scores[:, 0])
            ends = tracker.learn(forecast, y, weight, coverage=self.__dict__.get("_wanted"))
        else:
            wrong = np.empty(len(y))
            if scores.shape[1] > 1:  # a row of weight 0 may have an unknown label
                y = np.minimum(y, scores.shape[1] - 1.0)
            self._ops.doubts(np.ascontiguousarray(scores), np.ascontiguousarray(y, np.float64), wrong)
            ends = tracker.learn(np.zeros(len(y)), wrong, weight, coverage=self.__dict__.get("_wanted"))
        collected = self.__dict__.get("_ends")
        if collected is not None:
            collected.append((o, *ends))
        return wrong

    def _with_ends(
        self: Any, coverage: float, learn: Callable[[], np.ndarray]
    ) -> tuple[np.ndarray, list[tuple[int, Any, Any]]]:
        """What learning returns, and the intervals before each row: output, low, high of each stretch."""
        ends: list[tuple[int, Any, Any]] = []
        self._ends, self._wanted = ends, check_coverage(coverage)
        try:
            return learn(), ends
        finally:
            for name in ("_ends", "_wanted"):
                self.__dict__.pop(name, None)

    def _half(self: Any, o: int, coverage: float) -> float:
        """Half-width of the intervals of an output, infinite before there was a forecast to learn from."""
        state = self._state
        return self._tracker(state, o)._half(coverage) if f"o{o}_interval_size" in state else float("inf")

    def _table_half(self: Any, o: int, coverage: float) -> float:
        r"""Half-width of the intervals of an output for rows of a table, at least that for the next row.

        Rows that come in order are alike, and the next one is the easiest to forecast. How far the forecasts of other
        times are off is seen at the rows kept, of about the last thousand: the m errors that the model makes there now,
        of which the :math:`\lceil (m + 1) c \rceil`-th is the half-width (split conformal: Papadopoulos et al. 2002).
        """
        state, next_row = self._state, self._half(o, coverage)
        m = min(state["t"], len(state.get("reason_y", ())))
        if not np.isfinite(next_row) or m < FEWEST:
            return next_row
        errors = np.abs(state["reason_y"][:m, o] - self._combined(state, state["reason_X"][:m])[:, o])
        return max(next_row, float(np.sort(errors)[min(m, int(np.ceil((m + 1) * coverage))) - 1]))

    def _renew(self: Any) -> None:
        """Rows are learned again: what is said of them now was not said before they came."""
        held = self.__dict__.pop("_ends", None)
        super()._renew()  # type: ignore[misc]
        if held is not None:
            self._ends = held

    def _interval_schema(self: Any, state: State) -> Schema:
        schema: Schema = {}
        for o in range(self._outputs(state)):
            schema |= {f"o{o}_interval_{name}": entry for name, entry in IntervalTracker().schema().items()}
        return schema
