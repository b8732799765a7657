"""Combination of learners, in the native engine; see :mod:`.python`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core


def stack_pass(
    F: np.ndarray,
    y: np.ndarray | None,
    weight: np.ndarray | None,
    state: dict[str, Any],
    spec: tuple[bool, bool],
    notes: tuple[int, int, np.ndarray] | None = None,
) -> np.ndarray:
    """Forecasts (n, C) of the whole from those of the members, (N, n, C); see the python engine."""
    scores = np.empty(F.shape[1:])
    _core.stack_pass(state, F, y, weight, spec, scores, notes)
    return scores
