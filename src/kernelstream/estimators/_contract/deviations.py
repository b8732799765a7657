r"""Targets in units of their deviation, so that step sizes and tubes mean the same for every target."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.ranges import FAR
from ...rows import Rows
from ...state.schema import POSITIVE, Number, Schema
from .base import State, StreamEstimator
from .first_rows import odd_ones
from .warm_up import WARM_UP

STANDARD = "standard"
UNIT = "unit"  # the entry of a state


class InDeviations(StreamEstimator):
    """A regressor that may learn ``y / s``, s the deviation of the targets among the first rows."""

    def _scales_target(self) -> bool:
        """Whether targets are divided by their deviation."""
        return self.center == STANDARD

    def _warm_up_rows(self) -> int:
        rows = super()._warm_up_rows()
        return max(rows, WARM_UP) if self._scales_target() else rows

    def _estimate(self, state: State, X: Rows) -> None:
        super()._estimate(state, X)
        if self._scales_target():  # a member keeps no first rows: the composite sets its unit
            state[UNIT] = deviation(state["warm_y"]) if "warm_y" in state else 1.0

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        unit = state.get(UNIT, 1.0)
        return super()._learn(state, X, y, weight) if unit == 1.0 else super()._learn(state, X, y / unit, weight) * unit

    def _score(self, state: State, X: Rows) -> np.ndarray:
        return super()._score(state, X) * state.get(UNIT, 1.0)

    def _schema(self, state: State, trained: bool) -> Schema:
        schema = super()._schema(state, trained)
        return schema | {UNIT: Number(POSITIVE)} if self._scales_target() and (trained or UNIT in state) else schema


def deviation(y: np.ndarray) -> float:
    """Standard deviation of targets (n,) without those far outside; their size where they are all the same."""
    usual = y[~odd_ones(y, FAR)]
    return float(np.std(usual)) or float(abs(usual[0])) or 1.0


def check_center(center: Any) -> None:
    """ValueError unless it is True, False or "standard"."""
    if not (isinstance(center, (bool, np.bool_)) or (isinstance(center, str) and center == STANDARD)):
        raise ValueError(f"center must be True, False or 'standard', got {center!r}")
