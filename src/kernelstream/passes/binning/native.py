"""Solvers on random binning features in C++; see :mod:`.python`."""

from __future__ import annotations

import numpy as np

from ... import _core
from ...core.cells_native import bucket_cells as bucket_cells
from ...core.cells_native import cell_hashes as cell_hashes
from ...core.cells_native import cell_table as cell_table
from ...core.cells_native import cells_times as cells_times
from ...core.cells_native import cells_transposed_times as cells_transposed_times
from ...core.cells_native import find_cells as find_cells
from ...core.cells_native import number_cells as number_cells
from ...core.cells_native import order_of_cells as order_of_cells
from . import python as _binning_python
from .python import Lasso, Lists

SWEPT = ("squared", "squared_hinge", "logistic")  # losses whose coordinate descent is compiled


def cg_dots(P: np.ndarray, Q: np.ndarray, threads: int = 1) -> np.ndarray:
    """``P'Q`` and ``P'P`` of every column, (2, C)."""
    sums = np.empty((2, P.shape[1]))
    _core.cg_dots(P, Q, sums, threads)
    return sums


def cg_step(step: np.ndarray, lam: float, arrays: dict[str, np.ndarray], threads: int = 1) -> np.ndarray:
    """``X += step P`` and ``R -= step (Q + lam P)`` in place; ``R'M R`` of every column, (C,)."""
    sums = np.empty(len(step))
    _core.cg_step(arrays, step, lam, sums, threads)
    return sums


def cg_turn(turn: np.ndarray, M: np.ndarray, R: np.ndarray, P: np.ndarray, threads: int = 1) -> None:
    """``P = M R + turn P`` in place."""
    _core.cg_turn(turn, M, R, P, threads)


def cell_lists(cells: np.ndarray, starts: np.ndarray, threads: int = 1) -> Lists:
    """Rows of each grid sorted by cell, (R, n); where each cell begins among them, (D,); and ``starts``."""
    rows, first = np.empty_like(cells), np.empty(starts[-1], np.int32)
    _core.cell_lists(cells, starts, rows, first, threads)
    return rows, first, starts


def sweep_cells(
    lists: Lists, order: np.ndarray, lasso: Lasso, active: bool, f: np.ndarray, w: np.ndarray, threads: int = 1
) -> tuple[float, float]:
    """One pass of coordinate descent over the grids; f and w change in place."""
    y, weight, loss, lam = lasso
    if loss.name not in SWEPT:
        return _binning_python.sweep_cells(lists, order, lasso, active, f, w, threads)
    spec = loss.name, float(lam), bool(active)
    return _core.sweep_cells({"f": f, "w": w}, lists, order, y, weight, spec, threads)


def sweep_columns(
    Z: np.ndarray, squares: np.ndarray, order: np.ndarray, lasso: Lasso, f: np.ndarray, w: np.ndarray
) -> tuple[float, float]:
    """One pass over dense features ``Z'`` (P, n)."""
    y, weight, loss, lam = lasso
    if loss.name not in SWEPT:
        return _binning_python.sweep_columns(Z, squares, order, lasso, f, w)
    return _core.sweep_columns({"f": f, "w": w}, (Z, squares), order, y, weight, (loss.name, float(lam), False))
