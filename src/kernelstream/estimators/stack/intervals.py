"""How sure the default learner is: trackers of the errors of its forecasts, one for each combination.

Of numbers the error is the distance to the truth, of labels what was left to the others, 1 - P(truth).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...engine import of_processor
from ...state.nested import State
from ...state.schema import Inside, Schema
from ...trust.intervals import IntervalTracker, check_coverage
from .shell import StackShell

if TYPE_CHECKING:
    from .base import Stack


FEWEST_KEPT = 16  # rows kept, from which their errors count


class Ends(NamedTuple):
    """Collects the intervals before each row of a call."""

    coverage: float
    found: list[tuple[int, Any, Any]]  # output, low, high of each stretch


def start(stack: Stack, state: State) -> State:
    """Trackers that have learned nothing."""
    return {f"o{o}": IntervalTracker(engine=of_processor(stack.est.engine)).state for o in range(stack.outputs(state))}


def schema(stack: Stack, state: State) -> Schema:
    """What the entries may be."""
    return {f"o{o}": Inside(IntervalTracker(state={}).schema()) for o in range(stack.outputs(state))}


def tracker(est: StackShell, state: State, o: int) -> IntervalTracker:
    """What follows the errors of an output; its arrays are the state's own."""
    own = state["intervals"][f"o{o}"]
    made = est._cached(("tracker", o), lambda: IntervalTracker(engine=of_processor(est.engine), state=own))
    made.state = own
    return made


def follow(stack: Stack, state: State, scores: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
    """Errors (n,) of the forecasts (n, outputs) before each row, which the trackers learn; their mean over outputs."""
    if stack.outputs(state) == 1:
        return _follow(stack, state, 0, scores, y, weight)
    targets, columns = np.ascontiguousarray(y.T), np.ascontiguousarray(scores.T)[:, :, None]
    return np.mean([_follow(stack, state, o, f, targets[o], weight) for o, f in enumerate(columns)], axis=0)


def _follow(stack: Stack, state: State, o: int, scores: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
    est = stack.est
    ends: Ends | None = None if est._renewing else est.__dict__.get("_ends")
    wanted = None if ends is None else ends.coverage
    if stack.regression:
        forecast, wrong = scores[:, 0], np.abs(y - scores[:, 0])
        found = tracker(est, state, o).learn(forecast, y, weight, coverage=wanted)
    else:
        wrong = np.empty(len(y))
        if scores.shape[1] > 1:  # a row of weight 0 may have an unknown label
            y = np.minimum(y, scores.shape[1] - 1.0)
        est._ops.doubts(np.ascontiguousarray(scores), np.ascontiguousarray(y, np.float64), wrong)
        found = tracker(est, state, o).learn(np.zeros(len(y)), wrong, weight, coverage=wanted)
    if ends is not None:
        ends.found.append((o, *found))
    return wrong


def collected(est: StackShell, coverage: float, learn: Callable[[], np.ndarray]) -> tuple[np.ndarray, list[Any]]:
    """What learning returns, and the intervals before each row: output, low, high of each stretch."""
    est._ends = Ends(check_coverage(coverage), [])
    try:
        return learn(), est._ends.found
    finally:
        est.__dict__.pop("_ends", None)


def half_width(est: StackShell, o: int, coverage: float) -> float:
    """Half-width of the intervals of an output, infinite before there was a forecast to learn from."""
    return tracker(est, est._state, o)._half(coverage) if "intervals" in est._state else float("inf")


def table_half_width(est: StackShell, o: int, coverage: float) -> float:
    r"""Half-width of the intervals of an output for rows of a table, at least that for the next row.

    Rows that come in order are alike, and the next one is the easiest to forecast. How far the forecasts of other
    times are off is seen at the rows kept, of about the last thousand: the m errors that the model makes there now,
    of which the :math:`\lceil (m + 1) c \rceil`-th is the half-width (split conformal: Papadopoulos et al. 2002).
    """
    find = functools.partial(_table_half_width, est, o, coverage)
    return est._learner.until_next_row(f"width {o}", est._state, coverage, find)


def _table_half_width(est: StackShell, o: int, coverage: float) -> float:
    state, next_row = est._state, half_width(est, o, coverage)
    kept = state.get("reasons", {})
    m = min(state["t"], len(kept.get("y", ())))
    if not np.isfinite(next_row) or m < FEWEST_KEPT:
        return next_row
    errors = np.abs(kept["y"][:m, o] - est._learner.combined(state, kept["X"][:m])[:, o])
    return max(next_row, float(np.sort(errors)[min(m, int(np.ceil((m + 1) * coverage))) - 1]))
