"""Some of about the last thousand rows, kept to be looked at, and how answers change with the columns there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MAX_KEPT = 64  # rows that are kept,
MIN_KEPT, MAX_NUMBERS = 16, 8192  # at least MIN_KEPT where they hold more than MAX_NUMBERS numbers
KEEP_EVERY = 16  # later, one row in this many is kept
MAX_DIFFERENCES = 8192  # differences that are taken at once, at most, but of at least
MIN_ROWS = 8  # rows


def places(width: int) -> int:
    """How many rows are kept."""
    return int(np.clip(MAX_NUMBERS // max(width, 1), MIN_KEPT, MAX_KEPT))


def taken(t: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of n rows are kept in m places, after t others, and where; the later one where two have the same place."""
    numbers = t + np.arange(n)
    some = np.flatnonzero((numbers < m) | (numbers % KEEP_EVERY == 0))
    numbers = numbers[some]
    return some, np.where(numbers < m, numbers, numbers // KEEP_EVERY % m)


def some_of(rows: np.ndarray) -> np.ndarray:
    """So many of the rows (n, d) as can be looked at."""
    return rows[:: max(1, len(rows) // max(MIN_ROWS, MAX_DIFFERENCES // (2 * rows.shape[1])))]


def differences(answers: Callable[[np.ndarray], np.ndarray], X: np.ndarray, units: Any, step: float) -> np.ndarray:
    """Gradients (n, outputs, d) by central differences of ``step`` units of each column, per unit."""
    n, d = X.shape
    units, parts = np.broadcast_to(units, d), []
    for some in np.array_split(np.arange(d), max(1, -(-d * 2 * X.size >> 22))):
        moved = np.repeat(X[None], 2 * len(some), axis=0)
        for i, c in enumerate(some):
            moved[2 * i, :, c] += step * units[c]
            moved[2 * i + 1, :, c] -= step * units[c]
        found = answers(moved.reshape(-1, d)).reshape(len(some), 2, n, -1)
        parts.append(np.moveaxis((found[:, 0] - found[:, 1]) / (2 * step), 0, 2))
    return np.concatenate(parts, axis=2)
