"""Learning on cells, in the native engine; see :mod:`.python`."""

from __future__ import annotations

import numpy as np

from ... import _core
from ...core import threads
from ...state.nested import State
from .python import KEPT

CELLS_TO_SHARE = 1 << 14  # cells in a call from which a second thread takes half of them


def _threads(cells: int) -> int:
    return 2 if cells >= CELLS_TO_SHARE and threads.second() else 1


def _room(n: int, state: State) -> tuple[np.ndarray, np.ndarray]:
    C = state["bias"].shape[1]
    return np.empty((n, C)), np.empty((n, min(C, KEPT)))


def cells_pass(
    index: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: tuple[bool, float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Learn rows in order; see the python engine."""
    scores, downhill = _room(len(index), state)
    _core.cells_pass(state, index, y, weight, spec, scores, downhill)
    return scores, downhill


def cells_score(index: np.ndarray, state: State, regression: bool) -> np.ndarray:
    """Scores (n, C) of rows with these cells, (n, R)."""
    scores = np.empty((len(index), state["bias"].shape[1]))
    _core.cells_pass(state, index, None, None, (regression, 0.0, 1.0), scores, None)
    return scores


def by_levels(
    X: np.ndarray, levels: np.ndarray, n_levels: np.ndarray, columns: np.ndarray, maps: np.ndarray, cells: int
) -> np.ndarray:
    """Cells (n, R) of rows in grids over few columns; see the python engine."""
    out = np.empty((len(X), len(columns)), np.int32)
    _core.cells_find(X, (levels, n_levels, columns, maps, cells), _threads(out.size), out)
    return out


def grid_maps(
    columns: np.ndarray, edges: np.ndarray, n_edges: np.ndarray, levels: np.ndarray, n_levels: np.ndarray
) -> np.ndarray:
    """What each code of a column adds to the number of a grid's cell, (R, K, L + 1) int32; see the python engine."""
    maps = np.zeros((*columns.shape, levels.shape[1] + 1), np.int32)
    _core.grid_maps(columns, edges, n_edges, levels, n_levels, maps)
    return maps


def by_hashing(
    X: np.ndarray, columns: np.ndarray, offset: np.ndarray, density: np.ndarray, salt: np.ndarray, bits: int
) -> np.ndarray:
    """Cells (n, R) of rows in grids over many columns; see the python engine."""
    out = np.empty((len(X), len(columns)), np.int32)
    _core.cells_find(X, (columns, offset, density, salt, bits), _threads(out.size), out)
    return out


def cells_gains(index: np.ndarray, v: np.ndarray, cells: int) -> np.ndarray:
    """What grids would explain of vectors v (n, C), (R,); see the python engine."""
    out = np.empty(index.shape[1])
    _core.cells_gains(index, v, cells, _threads(index.size), out)
    return out
