"""How unusual rows are, in the native engine; see :mod:`.python`."""

from __future__ import annotations

import numpy as np

from ... import _core
from .python import MEMBERS, Tables


def surprises(X: np.ndarray, tables: Tables) -> np.ndarray:
    """The surprises of four members and of all, and the score, (n, 6); see the python engine."""
    out = np.empty((len(X), MEMBERS + 2))
    _core.surprises(X, tables, out)
    return out


def join(X: np.ndarray, weight: np.ndarray, tables: Tables, counts: np.ndarray) -> np.ndarray:
    """Count rows in their cells; returns their features, (n, 2D); see the python engine."""
    Z = np.empty((len(X), len(tables.factor)))
    _core.join_cells(X, weight, tables, counts, Z)
    return Z
