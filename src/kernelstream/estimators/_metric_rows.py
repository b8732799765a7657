"""Rows and targets as a learned metric sees them: in deviations of their columns, with the ranks of some."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rows import Rows, dense
from ..solvers.metric import Rows as Pair
from ._contract.base import State

RANKS = ("ranked", "places", "heights")  # entries: columns with ranks, and where they have which


def units_of(X: np.ndarray, weight: np.ndarray | None) -> State:
    """Means and deviations of the columns of X (n, d); 1 for a column that never varies."""
    middle = np.average(X, axis=0, weights=weight).astype(np.float64)
    return {"middle": middle, "unit": deviations(X, middle, weight)}


def scaled_targets(
    Y: np.ndarray, weight: np.ndarray | None, regression: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets (n, C) about their means, numbers in deviations; these means and deviations, (C,)."""
    offset = np.average(Y, axis=0, weights=weight)
    unit = deviations(Y, offset, weight) if regression else np.ones(Y.shape[1])
    return (Y - offset) / unit, offset, unit


def deviations(X: np.ndarray, middle: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Those of the columns of X (n, d) about the middle, (d,); 1 for a column that never varies."""
    away = np.abs(X.astype(np.float64) - middle)
    most = away.max(axis=0)
    most[most == 0] = 1.0
    found = most * np.sqrt(np.average(np.square(away / most), axis=0, weights=weight))
    return np.where(found > 0, found, 1.0)


def dense_rows(X: Rows) -> np.ndarray:
    """Rows as an array (n, d)."""
    return np.asarray(dense(X))


def standard_rows(state: State, X: Rows, ops: Any, dtype: Any = np.float32) -> np.ndarray:
    """Rows (n, d) of deviation 1, far values drawn in."""
    return ops.squashed(((dense_rows(X) - state["middle"]) / state["unit"]).astype(dtype))


def pair_of(state: State, X: np.ndarray, ops: Any) -> Pair:
    """Rows X (n, d) of deviation 1, and their ranks."""
    return X, ops.ranks_of(X, *(state[name] for name in RANKS))
