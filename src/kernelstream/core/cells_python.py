"""Cells of random binning and the matrix they make: the readable specification.

Each function has a twin of the same name in :mod:`.cells_native`; only the twin uses ``threads``.

Z (n, D) has one entry ``1/sqrt(R)`` per row and grid; it is kept as ``cells`` (R, n) int32, the column of each row
within each grid (-1 for none), and ``starts`` (R + 1,), where the columns of each grid begin.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kernelstream.core.grids import Grids
from kernelstream.rows import Rows, dense

Tables = list[dict[int, int]]


def cell_hashes(X: Rows, grids: Grids, threads: int = 1) -> np.ndarray:
    """Names of the cells of all rows, (R, n) uint64.

    A cell with indices i_j is named ``2^32 a + b`` with ``a = sum_j A_j i_j`` and ``b = sum_j B_j i_j`` modulo 2^32,
    for random A and B: two different cells share both numbers with a probability of about 2^-64.
    """
    A, B = grids.multipliers.astype(np.uint64)
    out = np.empty((grids.count, X.shape[0]), np.uint64)
    for start in range(0, X.shape[0], 4096):
        rows = slice(start, start + 4096)
        block = dense(X[rows])
        for r, (inverse, offset) in enumerate(zip(grids.inverse, grids.offset)):
            # float32: the product is exact in float64, so it is rounded once, to the integer
            with np.errstate(over="ignore"):
                place = (block - offset).astype(np.float64) * inverse.astype(np.float64)
            index = np.rint(np.clip(place, -(2.0**62), 2.0**62)).astype(np.int64)
            index = index.astype(np.uint64)  # modulo 2^64, so also modulo 2^32
            a = (index * A).sum(axis=1) & np.uint64(0xFFFFFFFF)
            b = (index * B).sum(axis=1) & np.uint64(0xFFFFFFFF)
            out[r, rows] = (a << np.uint64(32)) | b
    return out


def number_cells(X: Rows, grids: Grids, threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``cells`` (R, n), a column for every cell in order of first appearance; their names (D,); ``starts``."""
    names = cell_hashes(X, grids)
    tables: Tables = [{} for _ in names]
    cells = np.array(
        [[table.setdefault(name, len(table)) for name in row.tolist()] for table, row in zip(tables, names)]
    )
    keys = np.array([name for table in tables for name in table], np.uint64)
    starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
    return cells.astype(np.int32), keys, starts.astype(np.int64)


def cell_table(keys: np.ndarray, starts: np.ndarray) -> Tables:
    """What :func:`find_cells` looks cells up in, from the names of :func:`number_cells`."""
    return [{name: column for column, name in enumerate(keys[low:high].tolist())} for low, high in pairwise(starts)]


def find_cells(X: Rows, grids: Grids, table: Tables, threads: int = 1) -> np.ndarray:
    """``cells`` (R, n) of other rows; -1 where the cell has no column."""
    names = cell_hashes(X, grids)
    return np.array([[known.get(name, -1) for name in row.tolist()] for known, row in zip(table, names)], np.int32)


def bucket_cells(X: Rows, grids: Grids, width: int, threads: int = 1) -> np.ndarray:
    """``cells`` (R, n) hashed into ``width`` columns per grid: cells may share a column, and none is remembered."""
    names = cell_hashes(X, grids)
    return ((names >> np.uint64(32)) * np.uint64(width) >> np.uint64(32)).astype(np.int32)


def cells_times(cells: np.ndarray, starts: np.ndarray, V: np.ndarray, missing: bool, threads: int = 1) -> np.ndarray:
    """``Z V``, (D, C) -> (n, C) float64; ``missing`` says that some cells are -1."""
    out = np.zeros((cells.shape[1], V.shape[1]))
    for row, start in zip(cells, starts) if len(V) else ():  # where there are no cells, all are -1
        out += np.where(row[:, None] >= 0, V[start + row], 0.0) if missing else V[start + row]
    return out / np.sqrt(len(cells))


def cells_transposed_times(cells: np.ndarray, starts: np.ndarray, U: np.ndarray, threads: int = 1) -> np.ndarray:
    """``Z'U``, (n, C) -> (D, C) in the type of U; no cell may be missing."""
    out = np.zeros((starts[-1], U.shape[1]))
    for row, start in zip(cells, starts):
        np.add.at(out, start + row, U)
    return (out / np.sqrt(len(cells))).astype(U.dtype)


def order_of_cells(names: np.ndarray) -> Any:
    """Order of rows in which those that share a cell of ``names`` (levels, n), coarse first, come together."""
    return np.lexsort(names[::-1])
