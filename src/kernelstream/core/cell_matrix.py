"""The sparse matrix of random binning, kept as one column number per row and grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

MOST_CELLS = 2**24 - 2  # of one grid: a slot of a compiled table has 24 bits for the column


class CellMatrix:
    """Z (n, D) with ``1/sqrt(R)`` in one column of each of R grids; the values are implicit.

    Parameters
    ----------
    cells : (R, n) int32
        Column of each row within each grid; -1 where the row has none.
    starts : (R + 1,) int64
        Where the columns of each grid begin.
    ops : module
        The cell functions of an engine.
    threads : int
        Threads of the products.
    missing : bool
        Whether some cells may be -1; then there are no transposed products.
    """

    def __init__(self, cells: np.ndarray, starts: np.ndarray, ops: Any, threads: int = 1, missing: bool = False):
        self.cells, self.starts, self.ops, self.threads, self.missing = cells, starts, ops, threads, missing
        self.shape = (cells.shape[1], int(starts[-1]))

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``Z V``, (D, C) -> (n, C) float64."""
        return self.ops.cells_times(self.cells, self.starts, V, self.missing, self.threads)

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``Z'U``, (n, C) -> (D, C) in the type of U."""
        return self.ops.cells_transposed_times(self.cells, self.starts, U, self.threads)

    def squares(self, A: np.ndarray) -> np.ndarray:
        """``sum_i A_ic z_ij^2``, (n, C) -> (D, C)."""
        return self.tdot(A) / np.asarray(np.sqrt(len(self.cells)), A.dtype)

    @property
    def index(self) -> np.ndarray:
        """The columns of all rows, (n, R); -1 for a cell without one."""
        offsets = self.starts[:-1, None].astype(_index_type(self.shape[1]))
        return np.where(self.cells >= 0, self.cells + offsets, -1).T if self.missing else (self.cells + offsets).T

    def tocsr(self, dtype: Any = np.float64) -> sp.csr_matrix:
        """The same as a CSR matrix, indices sorted; rows that lack a cell have fewer than R entries."""
        n, R = self.shape[0], len(self.cells)
        indices = np.ascontiguousarray(self.index).ravel()
        counts = np.full(n, R)
        if self.missing:
            counts = (self.cells >= 0).sum(axis=0)
            indices = indices[indices >= 0]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(_index_type(n * R))
        data = np.full(len(indices), 1 / np.sqrt(R), dtype)
        out = sp.csr_matrix((data, indices.astype(indptr.dtype, copy=False), indptr), shape=self.shape)
        out.has_sorted_indices = out.has_canonical_format = True
        return out


def _index_type(largest: int) -> Any:
    return np.int32 if largest < 2**31 else np.int64
