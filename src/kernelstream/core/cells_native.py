"""Cells of random binning in C++; see :mod:`.cells_python`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelstream import _core
from kernelstream.core.cells_python import order_of_cells as order_of_cells
from kernelstream.core.grids import Grids
from kernelstream.rows import Rows


def _rows(X: Rows, grids: Grids) -> tuple[Any, Any]:
    """Rows and grids as the compiled functions take them."""
    dtype = grids.inverse.dtype
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype), grids.arrays
    return (X.data.astype(dtype, copy=False), X.indices, X.indptr), grids.arrays


def cell_hashes(X: Rows, grids: Grids, threads: int = 1) -> np.ndarray:
    """Names of the cells of all rows, (R, n) uint64."""
    out = np.empty((grids.count, X.shape[0]), np.uint64)
    _core.bin_hashes(*_rows(X, grids), out, threads)
    return out


def number_cells(X: Rows, grids: Grids, threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``cells`` (R, n), the names of the cells (D,) and ``starts`` (R + 1,)."""
    cells = np.empty((grids.count, X.shape[0]), np.int32)
    keys, starts = _core.bin_number(*_rows(X, grids), cells, threads)
    return cells, keys, starts


def cell_table(keys: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slots of the hash tables of all grids, and where each begins."""
    return _core.bin_slots(keys, starts)


def find_cells(X: Rows, grids: Grids, table: tuple[np.ndarray, np.ndarray], threads: int = 1) -> np.ndarray:
    """``cells`` (R, n) of other rows; -1 where the cell has no column."""
    out = np.empty((grids.count, X.shape[0]), np.int32)
    _core.bin_find(*_rows(X, grids), *table, out, threads)
    return out


def bucket_cells(X: Rows, grids: Grids, width: int, threads: int = 1) -> np.ndarray:
    """``cells`` (R, n) hashed into ``width`` columns per grid."""
    out = np.empty((grids.count, X.shape[0]), np.int32)
    _core.bin_buckets(*_rows(X, grids), width, out, threads)
    return out


def cells_times(cells: np.ndarray, starts: np.ndarray, V: np.ndarray, missing: bool, threads: int = 1) -> np.ndarray:
    """``Z V``, (D, C) -> (n, C) float64."""
    out = np.empty((cells.shape[1], V.shape[1]))
    _core.bin_times(cells, starts, np.ascontiguousarray(V), out, missing, threads)
    return out


def cells_transposed_times(cells: np.ndarray, starts: np.ndarray, U: np.ndarray, threads: int = 1) -> np.ndarray:
    """``Z'U``, (n, C) -> (D, C) in the type of U."""
    out = np.empty((starts[-1], U.shape[1]), U.dtype)
    _core.bin_transposed_times(cells, starts, np.ascontiguousarray(U), out, threads)
    return out
