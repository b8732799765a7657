"""Kernel values between many rows and some centres, made block by block: the n × m matrix never exists at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.utils.extmath import row_norms

from ..core import threads
from ..core.triangular import upper_factor
from ..kernels import Gaussian, Kernel, Laplacian, Matern
from ..rows import Rows, dense

ELEMENTS = 1 << 19  # of a block: what stays in a cache while it is made and used
KEPT = 1 << 28  # bytes of blocks that are kept for the next product; the others are made again
TALL, WIDE = 2048, 512  # rows of a block whose product with itself is wanted, and columns that a thread multiplies
SLOTS = 8  # partial sums, added up in their order, so that the number of threads changes nothing
#: Error of a Gaussian that the rounding of ``|x|^2 - 2 x's + |s|^2`` may cause; with more the kernel takes care itself.
ERROR = {"float32": 1e-5, "float64": 1e-11}


class Centers:
    """``k(., S)`` for centres S (m, d), dense or CSR; what depends on them alone is computed once.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth.
    S : (m, d) array or CSR
    ops : module
        An engine, for the exponentials.
    """

    def __init__(self, kernel: Kernel, S: Rows, ops: Any):
        self.kernel, self.S, self.ops = kernel, S, ops
        self.dtype = np.dtype(S.dtype)
        self.gaussian = type(kernel) is Gaussian
        self.norm, self.factor = (0, 0.0) if sp.issparse(S) or self.gaussian else _exponential(kernel)
        if self.norm:
            self.tiles = ops.tiles(S)
        if not self.gaussian:
            return
        # |x - s|^2 = |x|^2 - 2 x's + |s|^2, of dense rows about the mean of the centres, where it cancels less
        self.middle = None if sp.issparse(S) else S.mean(axis=0, dtype=np.float64).astype(S.dtype)
        S = dense(S) if self.middle is None else S - self.middle
        norms = row_norms(S, squared=True)
        self.far = ERROR[self.dtype.name] / (kernel.gamma * np.finfo(self.dtype).eps) - float(norms.max())
        # the squared norms are two more columns: one product gives the distances
        self.right = np.ascontiguousarray(np.concatenate([-2 * S, np.ones((len(S), 1), S.dtype), norms[:, None]], 1).T)

    def __call__(self, X: Rows) -> np.ndarray:
        """``k(X, S)`` of rows X (n, d), (n, m)."""
        if self.norm and not sp.issparse(X):
            return self.ops.exponential(X, self.tiles, len(self.S), self.norm, self.factor)
        if not self.gaussian:
            return self.kernel.pairwise(X, self.S)
        if self.middle is None or sp.issparse(X):
            if self.middle is not None:
                X = dense(X) - self.middle
            norms = row_norms(X, squared=True)
            D = np.ascontiguousarray(X @ self.right[:-2])
            D += norms[:, None]
            D += self.right[-1]
        else:
            left = np.empty((X.shape[0], X.shape[1] + 2), self.dtype)
            np.subtract(X, self.middle, out=left[:, :-2])
            norms = left[:, -2] = np.einsum("ij,ij->i", left[:, :-2], left[:, :-2])
            left[:, -1] = 1
            D = left @ self.right
        if not norms.max(initial=0.0) <= self.far:
            return self.kernel.pairwise(X, self.S)
        return self.ops.exp_scaled(D, float(self.kernel.gamma))

    def table(self, X: Rows) -> np.ndarray:
        """``k(X, S)`` as one array, made block by block on all threads."""
        K = np.empty((X.shape[0], self.S.shape[0]), self.dtype)

        def fill(rows: slice) -> None:
            K[rows] = self(X[rows])

        threads.each(fill, threads.cuts(len(K), max(1, ELEMENTS // max(1, K.shape[1]))))
        return K

    def gram(self) -> np.ndarray:
        """``k(S, S)``, (m, m) float64."""
        S = self.S.astype(np.float64)
        return self.kernel.pairwise(S, S)


def _exponential(kernel: Kernel) -> tuple[int, float]:
    """Norm and factor c of a kernel ``exp(-c |x - s|)``; the norm 0 for another kernel."""
    if type(kernel) is Laplacian:
        return 1, float(kernel.gamma)
    return (2, 1 / float(kernel.length)) if type(kernel) is Matern and kernel.nu == 0.5 else (0, 0.0)


class KernelBlocks:
    """Products with ``K = k(X, S)``, (n, m): values in the type of the rows, products in float64.

    Coefficients of kernel functions that are nearly dependent are large and cancel: products in float32 would leave
    conjugate gradients with more noise than they can bear.

    Parameters
    ----------
    values : Centers
        The function ``k(., S)``.
    X : (n, d) array or CSR
        Rows.
    keep : bool
        Whether there will be many products, so that some blocks are worth keeping.
    """

    def __init__(self, values: Centers, X: Rows, keep: bool = False):
        self.values, self.X, self.dtype = values, X, values.dtype
        n, m = self.shape = (X.shape[0], values.S.shape[0])
        self.cuts = threads.cuts(n, max(1, ELEMENTS // m))
        room = KEPT // (max(1, ELEMENTS // m) * m * self.dtype.itemsize) if keep else 0
        self.kept: list[np.ndarray | None] = [None] * min(len(self.cuts), room)

    def _each(self, work: Callable[[int, slice, np.ndarray], None]) -> None:
        """``work(slot, rows, K)`` for all blocks of rows."""

        def run(slot: int) -> None:
            for i in range(slot, len(self.cuts), SLOTS):
                rows = self.cuts[i]
                K = self.kept[i] if i < len(self.kept) else None
                if K is None:
                    K = self.values(self.X[rows])
                    if i < len(self.kept):
                        self.kept[i] = K
                work(slot, rows, K.astype(np.float64, copy=False))

        threads.each(run, range(min(SLOTS, len(self.cuts))))

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``K V``, (m, C) -> (n, C) float64."""
        out = np.empty((self.shape[0], V.shape[1]))

        def work(slot: int, rows: slice, K: np.ndarray) -> None:
            out[rows] = K @ V

        self._each(work)
        return out

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``K'U``, (n, C) -> (m, C) float64."""
        return self._sum(U.shape[1], lambda rows, K: K.T @ U[rows])

    def normal(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``K'(A * (K V))``, (n, 1) or (n, C) and (m, C) -> (m, C) float64."""
        return self._sum(V.shape[1], lambda rows, K: K.T @ (A[rows] * (K @ V)))

    def _sum(self, outputs: int, part: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
        """The sum of the parts (m, outputs) of all blocks of rows."""
        sums = np.zeros((SLOTS, self.shape[1], outputs))

        def work(slot: int, rows: slice, K: np.ndarray) -> None:
            sums[slot] += part(rows, K)

        self._each(work)
        return sums.sum(axis=0)

    def moment(self, rows: np.ndarray, a: np.ndarray) -> np.ndarray:
        """``K_r' diag(a) K_r`` for some rows r with weights a >= 0, (m, m) float64."""
        m, root = self.shape[1], np.sqrt(a)[:, None]
        total = np.zeros((m, m))
        for part in threads.cuts(len(rows), TALL):
            K = self.values(self.X[rows[part]]) * root[part]

            def add(columns: slice, K: np.ndarray = K) -> None:
                total[: columns.stop, columns] += K[:, : columns.stop].T @ K[:, columns]

            threads.each(add, threads.cuts(m, WIDE)[::-1])
        return np.triu(total) + np.triu(total, 1).T


def least_addition(K: Any, dtype: Any) -> float:
    """What to add to the diagonal of a Gram matrix K (m, m) for its factor to be of use.

    Kernel values of rows of a ``dtype`` have no say in directions where the kernel is smaller than their errors.
    """
    trace = float(K.diagonal().sum())
    error = float(np.finfo(dtype).eps) * trace / len(K)
    if K.itemsize < 8:  # independent errors of the values themselves
        error *= len(K) ** 0.5
    return max(float(np.finfo(float).eps) * trace, error, float(np.finfo(float).tiny))


class Factor:
    """``T'T = K + e I`` with a triangular T, e as little as arithmetic allows.

    Parameters
    ----------
    K : (m, m) float64 array
        A Gram matrix.
    more : float
        The least e to try; see :func:`least_addition`.
    """

    single = False  # in float64

    def __init__(self, K: np.ndarray, more: float):
        self.T = upper_factor(0.5 * (K + K.T), more)

    def weigh(self, M: np.ndarray, lam: float) -> None:
        """``A'A = T'^-1 M T^-1 + lam I``, M (m, m): :meth:`precondition` divides by it from now on."""
        M = self.tsolve(self.tsolve(M).T)
        # where lam is below the rounding: a worse preconditioner, the same solution
        self.A = upper_factor(0.5 * (M + M.T), lam)

    def solve(self, V: np.ndarray) -> np.ndarray:
        """``T^-1 V``, (m, C)."""
        return solve_triangular(self.T, V, check_finite=False)

    def tsolve(self, V: np.ndarray) -> np.ndarray:
        """``T'^-1 V``, (m, C)."""
        return solve_triangular(self.T, V, trans=1, check_finite=False)

    def precondition(self, R: np.ndarray) -> np.ndarray:
        """``(A'A)^-1 R``, (m, C)."""
        half = solve_triangular(self.A, R, trans=1, check_finite=False)
        return solve_triangular(self.A, half, check_finite=False)
