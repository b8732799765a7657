r"""Targets in units of their deviation, so that step sizes and tubes mean the same for every target."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.ranges import FAR
from .glitches import outlying_values

STANDARD = "standard"
UNIT = "unit"  # the entry of a state


def means(y: np.ndarray, weight: np.ndarray) -> list[float]:
    """Weighted mean of each target of y (n,) or (n, k)."""
    return [np.average(column, weights=weight) for column in y.reshape(len(y), -1).T]


def deviation(y: np.ndarray) -> float:
    """Standard deviation of targets (n,) without those far outside; their size where they are all the same."""
    usual = y[~outlying_values(y, FAR)]
    return float(np.std(usual)) or float(abs(usual[0])) or 1.0


def in_units(learn: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Decorator of the ``learn`` of a learner: where its state has a unit, targets come and scores leave in it."""

    @functools.wraps(learn)
    def learn_in_units(self: Any, state: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        unit = state.get(UNIT, 1.0)
        return learn(self, state, X, y, weight) if unit == 1.0 else learn(self, state, X, y / unit, weight) * unit

    return learn_in_units


def check_center(center: Any) -> None:
    """ValueError unless it is True, False or "standard"."""
    if not (isinstance(center, (bool, np.bool_)) or (isinstance(center, str) and center == STANDARD)):
        raise ValueError(f"center must be True, False or 'standard', got {center!r}")
