"""Sparse rows of a block, as the compiled expansion takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rows import Rows


@dataclass(slots=True)
class SparseRows:
    """Rows of a CSR matrix, cut out without copying them."""

    X: Any
    rows: slice
    norms: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.norms), self.X.shape[1]

    @property
    def csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.X.data, self.X.indices, self.X.indptr[self.rows.start : self.rows.stop + 1]

    def plain(self) -> Rows:
        """The same rows as a separate matrix."""
        return self.X[self.rows]


class WideRows(SparseRows):
    """The same for rows with so many columns that no work may be done for each column."""

    def entries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of some rows, the number of entries (len(rows),) and their columns, row by row."""
        start = self.X.indptr[self.rows.start + rows]
        count = self.X.indptr[self.rows.start + rows + 1] - start
        before = np.cumsum(count) - count
        return count, self.X.indices[np.arange(count.sum()) + np.repeat(start - before, count)]
