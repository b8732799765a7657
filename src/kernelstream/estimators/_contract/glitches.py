"""Glitches among the first rows, which came before there was a range to compare them with."""

from __future__ import annotations

import numpy as np

from ...core.ranges import bulk
from ...rows import Rows

RARE = 16  # at most one row in RARE is a glitch; if there are more, they are not glitches
FAR_CELL = 50.0  # widths; large, because among hundreds of columns some are nearly constant, with rare other values


def outlying_values(values: np.ndarray, far: float) -> np.ndarray:
    """Which numbers (n,) lie far outside the range of the others; none if too many do."""
    low, high = bulk(values, far)
    odd = (values < low) | (values > high)
    return odd if np.count_nonzero(odd) <= len(values) / RARE else np.zeros(len(values), bool)


def odd_cells(X: Rows) -> np.ndarray:
    """Which rows of X (n, d) have such a cell; none of sparse rows, where most cells are 0."""
    odd = np.zeros(X.shape[0], bool)
    if not isinstance(X, np.ndarray) or len(X) < RARE:
        return odd
    ends = np.sort(X, axis=0)[[0, len(X) // 4, len(X) - 1 - len(X) // 4, -1]].astype(np.float64)
    middle = ends[2] - ends[1]
    suspect = (ends[1] - ends[0] > FAR_CELL * middle) | (ends[3] - ends[2] > FAR_CELL * middle)
    for j in np.flatnonzero(suspect & (middle > 0)):
        odd |= outlying_values(X[:, j].astype(np.float64), FAR_CELL)
    return odd if np.count_nonzero(odd) <= len(X) / RARE else np.zeros(len(X), bool)
