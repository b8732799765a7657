"""Kernels that are a sum or a product over the coordinates of two rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelstream.core.threads import cuts
from kernelstream.kernels._base import Draw, Kernel
from kernelstream.kernels._rows import CACHE_ELEMENTS, MEMORY_ELEMENTS
from kernelstream.rows import Rows, dense


class CoordinateKernel(Kernel):
    """``k(x, z) = of_totals(sum_i term(x_i, z_i))``, or the product over i when `combine` is ``np.multiply``.

    A subclass writes `_term` with broadcasting array code; Gram blocks, diagonals and the sparse shortcut follow.
    ``term(0, 0)`` must be 0 (sum) or 1 (product), so that coordinates where both rows are 0 can be left out.
    """

    combine: ClassVar[np.ufunc] = np.add
    #: Whether terms do not depend on the parameters: `totals` then serve every bandwidth.
    common_terms: ClassVar[bool] = False
    takes_csr = True

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Term of a coordinate, for arrays that broadcast against each other."""
        raise NotImplementedError

    def of_totals(self, S: np.ndarray) -> np.ndarray:
        """The kernel at combined terms ``S`` of any shape, whose memory it may use."""
        return S

    def moved(self, S: np.ndarray, x: np.ndarray, z: np.ndarray, to: np.ndarray) -> np.ndarray:
        """Totals ``S`` (n, m) of a sum when a coordinate of n rows goes from ``x`` ``to`` others; ``z`` (m,) stays."""
        return S + self._term(to[:, None], z) - self._term(x[:, None], z)

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        if sparse.issparse(X) and sparse.issparse(Z):
            return self.of_totals(self._combine_sparse(X, Z))
        return self.of_totals(self.totals(X, Z))

    def _diag(self, X: Rows) -> np.ndarray:
        S = np.empty(X.shape[0], X.dtype)
        for rows in cuts(X.shape[0], MEMORY_ELEMENTS // max(1, X.shape[1])):
            block = dense(X[rows])
            S[rows] = self.combine.reduce(self._term(block, block), axis=1)
        return self.of_totals(S)

    def totals(self, X: Rows, Z: Rows) -> np.ndarray:
        """Combined terms (n, m), which `of_totals` turns into kernel values.

        Loops over blocks of rows and of coordinates whose (coordinates, rows, rows) terms stay in cache.
        """
        (n, d), m = X.shape, Z.shape[0]
        S = np.full((n, m), self.combine.identity, X.dtype)
        for columns in cuts(m, min(1024, MEMORY_ELEMENTS // max(1, d))):
            ZT = np.ascontiguousarray(dense(Z[columns]).T)  # a coordinate is then one run of memory
            width = ZT.shape[1]
            for rows in cuts(n, min(CACHE_ELEMENTS // width, MEMORY_ELEMENTS // max(1, d))):
                XT = np.ascontiguousarray(dense(X[rows]).T)
                out = S[rows, columns]
                for js in cuts(d, CACHE_ELEMENTS // (XT.shape[1] * width)):
                    terms = self._term(XT[js, :, None], ZT[js, None, :])
                    terms = terms[0] if len(terms) == 1 else self.combine.reduce(terms, axis=0)
                    self.combine(out, terms, out=out, casting="same_kind")
        return S

    def _combine_sparse(self, X: Rows, Z: Rows) -> np.ndarray:
        """Terms of one row against 0, corrected for the coordinates where both rows are nonzero.

        With t the term (its logarithm in a product), the sum over i of t(x_i, z_i) is the sum of t(x_i, 0) + t(0, z_i)
        plus the sum, over coordinates where both are nonzero, of t(x_i, z_i) - t(x_i, 0) - t(0, z_i).
        """
        logarithm = self.combine is np.multiply

        def t(x: Any, z: Any) -> np.ndarray:
            return np.log(self._term(x, z)) if logarithm else self._term(x, z)

        X, Z = X.astype(np.float64), Z.astype(np.float64)  # the corrections cancel
        zero = np.zeros(1)
        S = _row_sums(X, t(X.data, zero))[:, None] + _row_sums(Z, t(zero, Z.data))
        ZC = Z.tocsc()
        for rows in cuts(X.shape[0], MEMORY_ELEMENTS // max(1, Z.shape[0])):
            XC, out = X[rows].tocsc(), S[rows]
            for j in np.flatnonzero((np.diff(XC.indptr) > 0) & (np.diff(ZC.indptr) > 0)):
                i, x = _column(XC, j)
                k, z = _column(ZC, j)
                x = x[:, None]
                out[i[:, None], k] += t(x, z) - t(x, zero) - t(zero, z)
        return np.exp(S, out=S) if logarithm else S


class DrawnFrequencies(CoordinateKernel):
    """One whose random features are functions of ``w'g(x)``, with a random w for each."""

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        return {"W": self._frequencies(rng, d, D)}


def _row_sums(X: Rows, values: np.ndarray) -> np.ndarray:
    """Sums over the stored entries of each row, where ``values`` replace the data."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(rows, values, X.shape[0]).astype(np.float64, copy=False)  # integers where there are no entries


def _column(X: Any, j: Any) -> tuple[np.ndarray, np.ndarray]:
    """Row indices and values of column ``j`` of a CSC array."""
    span = slice(X.indptr[j], X.indptr[j + 1])
    return X.indices[span], X.data[span]
