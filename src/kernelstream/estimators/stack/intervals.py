"""How certain the default learner is: trackers of its forecasts, one for each combination.

For numbers they follow the quantiles of the targets, for labels the probability left to the others, 1 - P(truth).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import threads
from ...core.targets import Move
from ...engine import of_processor
from ...rows import Rows, dense
from ...state.nested import State
from ...state.schema import Inside, Schema
from ...trust.intervals import IntervalTracker, check_coverage
from ...trust.quantiles import QuantileTracker, ends
from .._contract.base import Shell
from .._contract.state import scaled_rows

if TYPE_CHECKING:
    from .base import Stack


FEWEST_KEPT = 16  # rows kept, from which their errors count
OFF = 2.0  # mean errors, in deviations of the target, of forecasts that are of no use
AT_ONCE = 4096  # rows whose quantiles are computed at once


class Wanted(NamedTuple):
    """Collects what was known before each row of a call: half-widths for labels, quantiles for numbers."""

    coverage: float
    found: list[tuple[int, Any]]  # output, (n,) or (n, L) of each stretch


def _new(stack: Stack, state: State, own: State | None = None) -> Any:
    engine = of_processor(stack.parameters["engine"])
    if stack.regression:
        return QuantileTracker(state["n_features"], engine=engine)
    return IntervalTracker(engine=engine, state=own)


def start(stack: Stack, state: State) -> State:
    """Trackers that have learned nothing."""
    return {f"o{o}": _new(stack, state).state for o in range(stack.outputs(state))}


def schema(stack: Stack, state: State) -> Schema:
    """What the entries may be, even if a file claims more columns than there is memory for."""
    own = _new(stack, state | {"n_features": 0}, {}).schema()
    if stack.regression:
        own["columns"] = replace(own["columns"], shape=(state["n_features"], own["columns"].shape[1]))
    return {f"o{o}": Inside(own) for o in range(stack.outputs(state))}


def widen(stack: Stack, state: State, d: int) -> None:
    """Take rows of d columns; the spread does not depend on the new ones yet."""
    if stack.regression:
        for part in state["intervals"].values():
            part["columns"] = np.pad(part["columns"], [(0, d - len(part["columns"])), (0, 0)])


def off(own: State, move: Move) -> bool:
    """Whether the forecasts of late are worse than one number for the targets that a move leads to."""
    return bool(own["size"][1] > OFF * move.deviation)


def moved(own: State, move: Move) -> None:
    """Carry over what is in the units of the target."""
    own["size"][1] *= move.factor
    own["recent"][0], own["knots"][:] = move(own["recent"][0]), move(own["knots"])


def tracker(stack: Stack, state: State, o: int) -> Any:
    """What follows an output; its arrays are the state's own."""
    own = state["intervals"][f"o{o}"]
    made = stack.cached(("tracker", o), lambda: _new(stack, state, own))
    made.state = own
    return made


def errors(stack: Stack, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Errors (n,) of forecasts (n, outputs): the probability left to other labels, or a mean over the outputs."""
    if not stack.regression:
        return _doubts(stack, scores, y)
    return np.abs(y.reshape(len(y), -1) - scores).mean(axis=1)


def follow(
    stack: Stack, state: State, X: Any, scores: np.ndarray, errors: np.ndarray, y: np.ndarray, weight: Any, wanted: Any
) -> None:
    """Trackers learn the forecasts (n, outputs) before each row X and their errors (n,)."""
    if not stack.regression:
        own = tracker(stack, state, 0)
        if wanted is None:  # nobody asks for widths
            own._pass(errors if weight is None else errors[weight > 0])
        else:
            wanted.found.append((0, own.learn(np.zeros(len(y)), errors, weight, coverage=wanted.coverage)[1]))
        return
    targets = y.reshape(len(y), -1)
    for o, target in enumerate(targets.T):
        found = tracker(stack, state, o).learn(scores[:, o], target, X, weight)
        if wanted is not None:
            wanted.found.append((o, found))


def fit(stack: Stack, state: State, X: np.ndarray, scores: np.ndarray, y: np.ndarray, weight: Any) -> None:
    """Start over with rows in no order that were forecast before they were learned, with targets y (n, outputs)."""
    state["intervals"] = start(stack, state)
    if not stack.regression:
        doubts = _doubts(stack, scores, y[:, 0])
        tracker(stack, state, 0).start_from(doubts if weight is None else doubts[weight > 0])
        return
    for o in range(stack.outputs(state)):
        tracker(stack, state, o).start_from(scores[:, o], y[:, o], X, weight)


def _doubts(stack: Stack, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    wrong = np.empty(len(y))
    if scores.shape[1] > 1:  # a row of weight 0 may have an unknown label
        y = np.minimum(y, scores.shape[1] - 1.0)
    stack.ops.doubts(np.ascontiguousarray(scores), np.ascontiguousarray(y, np.float64), wrong)
    return wrong


def collected(coverage: float, learn: Callable[..., np.ndarray]) -> tuple[np.ndarray, list[Any]]:
    """What learning returns, and what was known before each row: the output and the numbers of each stretch."""
    wanted = Wanted(check_coverage(coverage), [])
    return learn(wanted=wanted), wanted.found


def half_width(est: Shell[Stack], coverage: float) -> float:
    """Probability that the labels of a set may leave to others; infinite before the first forecast."""
    return tracker(est._learner, est._state, 0)._half(coverage) if "intervals" in est._state else float("inf")


def quantiles(est: Shell[Stack], X: Rows, scores: np.ndarray, asked: np.ndarray, following: bool) -> np.ndarray:
    """Quantiles (n, outputs, k) of the targets of rows X with forecasts (n, outputs).

    With ``following``, each row is the next of the stream; for rows of any time see :func:`_ways`.
    """
    state = est._state
    if "intervals" not in state:
        return np.where(asked == 0.5, scores[:, :, None], np.copysign(np.inf, asked - 0.5))
    found, median = np.empty((*scores.shape, len(asked))), np.empty(scores.shape)
    for rows in threads.cuts(len(scores), AT_ONCE):
        seen = est._ops.squashed(dense(scaled_rows(est._ops, X[rows], state)))
        for o in range(scores.shape[1]):
            part = tracker(est._learner, state, o).quantiles(scores[rows, o], np.append(asked, 0.5), seen, following)
            found[rows, o], median[rows, o] = part[:, :-1], part[:, -1]
    if not following:
        ways = est._learner.until_next_row("ways", state, tuple(asked), lambda: _ways(est._learner, state, asked))
        found = median[:, :, None] + ways * (found - median[:, :, None])
    order = np.argsort(asked)
    found[:, :, order] = np.sort(found, axis=2)
    return found


def _ways(stack: Stack, state: State, asked: np.ndarray) -> np.ndarray:
    r"""Factors (outputs, k) of the way from the median to a quantile, for rows of any time: at least 1.

    Successive rows are alike, and the next one is the easiest to forecast. How far forecasts are off at other times is
    measured on the rows kept, of about the last thousand. With c = |2 tau - 1|, m such rows and quantiles L < M < H for
    (1 - c)/2, 1/2 and (1 + c)/2, their targets have gone (y - M)/(H - M) or (M - y)/(M - L) of the way, and the
    :math:`\lceil (m + 1) c \rceil`-th of these numbers is the factor (split conformal: Papadopoulos et al. 2002).
    """
    kept, outputs = state["reasons"], stack.outputs(state)
    m, factors = min(state["t"], len(kept["y"])), np.ones((outputs, len(asked)))
    if m < FEWEST_KEPT:
        return factors
    rows, y = kept["X"][:m], kept["y"][:m]
    said = stack.combined(state, rows)
    for i, c in enumerate(np.abs(2 * asked - 1)):
        for o in range(outputs if c > 0 else 0):
            three = tracker(stack, state, o).quantiles(said[:, o], [ends(c)[0], 0.5, ends(c)[1]], rows)
            low, middle, high = three.T
            whole = np.where(y[:, o] > middle, high - middle, middle - low)
            way = np.divide(np.abs(y[:, o] - middle), whole, out=np.ones(m), where=whole > 0)
            factors[o, i] = max(1.0, np.sort(way)[min(m, int(np.ceil((m + 1) * c))) - 1])
    return factors
