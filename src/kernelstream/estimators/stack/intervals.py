"""How certain the default learner is: trackers of its forecasts, one for each combination.

For numbers they follow the quantiles of the targets, for labels the probability left to the others, 1 - P(truth).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.targets import Move
from ...state.nested import State
from ...state.schema import Inside, Schema
from ...trust.intervals import IntervalTracker
from ...trust.quantiles import QuantileTracker, ends

FEWEST_KEPT = 16  # rows kept, from which their errors count
OFF = 2.0  # mean errors, in deviations of the target, of forecasts that are of no use


class Wanted(NamedTuple):
    """Collects what was known before each row of a call: half-widths for labels, quantiles for numbers."""

    coverage: float
    found: list[tuple[int, Any]]  # output, (n,) or (n, L) of each stretch


class Tracked:
    """Trackers of forecasts; the state of that of output o is ``held["o{o}"]``."""

    def __init__(self, regression: bool, engine: Any, ops: Any):
        self.regression, self.engine, self.ops = regression, engine, ops

    def _new(self, columns: int, own: State | None = None) -> Any:
        if self.regression:
            return QuantileTracker(columns, engine=self.engine, state=own)
        return IntervalTracker(engine=self.engine, state=own)

    @cached_property
    def _blank(self) -> Any:  # to be asked for levels and schemas; that of labels needs no state, which is slow to make
        return self._new(0, None if self.regression else {})

    @property
    def levels(self) -> np.ndarray:
        """Coverages, or quantiles, that are followed."""
        return np.asarray(self._blank.levels)

    def tracker(self, own: State) -> Any:
        """What follows an output; its arrays are the state's own."""
        made = copy.copy(self._blank)
        made.state = own
        return made

    # ---------------------------------------------------------------- states
    def start(self, columns: int, outputs: int) -> State:
        """Of trackers that have learned nothing."""
        return {f"o{o}": self._new(columns).state for o in range(outputs)}

    def schema(self, columns: int, outputs: int) -> Schema:
        """What the entries may be, even if a file claims more columns than there is memory for."""
        own = self._blank.schema()
        if self.regression:
            own["columns"] = replace(own["columns"], shape=(columns, own["columns"].shape[1]))
        return {f"o{o}": Inside(own) for o in range(outputs)}

    def widen(self, held: State, d: int) -> None:
        """Take rows of d columns; the spread does not depend on the new ones yet."""
        if self.regression:
            for own in held.values():
                own["columns"] = np.pad(own["columns"], [(0, d - len(own["columns"])), (0, 0)])

    # ---------------------------------------------------------------- rows
    def errors(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Errors (n,) of forecasts (n, outputs): the probability left to other labels, or a mean over the outputs."""
        return np.abs(y.reshape(len(y), -1) - scores).mean(axis=1) if self.regression else self._doubts(scores, y)

    def follow(
        self, held: State, X: Any, scores: np.ndarray, errors: np.ndarray, y: np.ndarray, weight: Any, wanted: Any
    ) -> None:
        """Trackers learn the forecasts (n, outputs) before each row X and their errors (n,)."""
        if not self.regression:
            coverage = None if wanted is None else wanted.coverage
            _, widths = self.tracker(held["o0"]).learn(np.zeros(len(y)), errors, weight, coverage=coverage)
            if wanted is not None:
                wanted.found.append((0, widths))
            return
        for o, target in enumerate(y.reshape(len(y), -1).T):
            found = self.tracker(held[f"o{o}"]).learn(scores[:, o], target, X, weight)
            if wanted is not None:
                wanted.found.append((o, found))

    def start_from(self, held: State, X: np.ndarray, scores: np.ndarray, y: np.ndarray, weight: Any) -> None:
        """Learn rows in no order that were forecast before they were learned, with targets y (n, outputs)."""
        if not self.regression:
            doubts = self._doubts(scores, y[:, 0])
            self.tracker(held["o0"]).start_from(doubts if weight is None else doubts[weight > 0])
            return
        for o, target in enumerate(y.T):
            self.tracker(held[f"o{o}"]).start_from(scores[:, o], target, X, weight)

    def _doubts(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        wrong = np.empty(len(y))
        if scores.shape[1] > 1:  # a row of weight 0 may have an unknown label
            y = np.minimum(y, scores.shape[1] - 1.0)
        self.ops.doubts(np.ascontiguousarray(scores), np.ascontiguousarray(y, np.float64), wrong)
        return wrong

    def ways(self, held: State, X: np.ndarray, y: np.ndarray, said: np.ndarray, asked: np.ndarray) -> np.ndarray:
        r"""Factors (outputs, k) of the way from the median to a quantile, for rows of any time: at least 1.

        Successive rows are alike, and the next one is the easiest to forecast. How far forecasts are off at other times
        is measured on rows X that were kept, of about the last thousand, with targets y (m, outputs) and forecasts
        ``said`` now. With c = |2 tau - 1|, m such rows and quantiles L < M < H for (1 - c)/2, 1/2 and (1 + c)/2, their
        targets have gone (y - M)/(H - M) or (M - y)/(M - L) of the way, and the :math:`\lceil (m + 1) c \rceil`-th of
        these numbers is the factor (split conformal: Papadopoulos et al. 2002).
        """
        m, outputs = y.shape
        factors = np.ones((outputs, len(asked)))
        for i, c in enumerate(np.abs(2 * asked - 1)):
            for o in range(outputs if c > 0 else 0):
                levels = [ends(c)[0], 0.5, ends(c)[1]]
                low, middle, high = self.tracker(held[f"o{o}"]).quantiles(said[:, o], levels, X).T
                whole = np.where(y[:, o] > middle, high - middle, middle - low)
                way = np.divide(np.abs(y[:, o] - middle), whole, out=np.ones(m), where=whole > 0)
                factors[o, i] = max(1.0, np.sort(way)[min(m, int(np.ceil((m + 1) * c))) - 1])
        return factors


def moved(own: State, move: Move) -> None:
    """Carry over what is in the units of the target."""
    own["size"][1] *= move.factor
    own["recent"][0], own["knots"][:] = move(own["recent"][0]), move(own["knots"])
