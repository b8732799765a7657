"""Kernel functions at some rows in a learned metric, in the native engine; see :mod:`.python`."""

from __future__ import annotations

import numpy as np

from ... import _core
from .python import Functions


def metric_pass(
    X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None, follow: np.ndarray, functions: Functions
) -> np.ndarray:
    """Forecasts (n, C) before each row; see the python engine."""
    scores = np.empty((len(X), len(functions.offset)))
    if y is None:
        follow = follow.copy()  # that of a mapped file cannot be written to, and need not be
    _core.metric_pass(X, y, weight, follow, functions, scores)
    return scores
