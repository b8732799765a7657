"""The mean of the targets so far, from which a centred regression learns the difference; twin: cpp/base/center.hpp."""

from __future__ import annotations

import numpy as np


def offset_of(center: np.ndarray | None) -> float:
    """What is added to the scores of a row; center (2,) holds the sum of the weights and the mean, or is None."""
    return 0.0 if center is None else center[1]


def follow(center: np.ndarray | None, y: float, importance: float) -> None:
    """The mean after a row."""
    if center is not None:
        center[0] += importance
        center[1] += importance * (y - center[1]) / center[0]
