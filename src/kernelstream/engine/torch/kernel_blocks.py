"""Products with the kernel matrix of rows and centres on the device, and the triangular factors of the centres there.

The formulas of :mod:`kernelstream.solvers.kernel_blocks`; small matrices come and go as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ...core.threads import cuts
from ...kernels import Gaussian, Kernel, Matern
from ...rows import Rows, dense, host, take
from . import from_array

ELEMENTS = 1 << 26  # of a block
SHARE = 4  # blocks are kept in this part of the free memory of a GPU; the others are made again
CPU_BYTES = 1 << 28  # bytes of blocks that are kept where the device is the CPU
DEVICE_ROWS = 1 << 32  # bytes of rows that lie on the device as a whole
FACTORS = 6  # matrices (m, m) that the factors of m centres in float64 need, with what they are made of
FACTOR_ROWS = 8192  # rows of a factor that are multiplied at once
FEW_OUTPUTS = 4  # for which kernel values are made again: that takes less time than to store and read them

SMOOTH = (1.5, 2.5, math.inf)  # Matérn kernels that the rounding of small distances does no harm


def is_known(kernel: Kernel) -> bool:
    """Whether a device has the formula of a kernel, a function of the distance."""
    return type(kernel) is Gaussian or (type(kernel) is Matern and kernel.nu in SMOOTH)


def of_squares(kernel: Any, D2: torch.Tensor) -> torch.Tensor:
    """A known kernel at squared distances, whose memory is used."""
    if isinstance(kernel, Gaussian):
        return D2.mul_(-float(kernel.gamma)).exp_()
    if kernel.nu == math.inf:
        return D2.mul_(-0.5 / kernel.length**2).exp_()
    r = D2.mul_(2 * kernel.nu / kernel.length**2).sqrt_()
    near = torch.exp(-r)
    return near.mul_(1 + r if kernel.nu == 1.5 else 1 + r + r * r / 3)


def squared_distances(X: torch.Tensor, S: torch.Tensor) -> torch.Tensor:
    """``|x - s|^2`` of rows about zero, (n, m)."""
    D2 = torch.addmm((S * S).sum(dim=1), X, S.T, alpha=-2.0)
    D2 += (X * X).sum(dim=1, keepdim=True)
    return D2.clamp_(min=0.0)


class DeviceCenters:
    """``k(., S)`` for centres S (m, d); kernels without a formula for the device are computed by the CPU."""

    def __init__(self, ops: Any, kernel: Kernel, S: Rows):
        self.ops, self.kernel, self.S = ops, kernel, S
        self.known = is_known(kernel)
        self.dtype = np.dtype(S.dtype)
        if self.known:
            centers = ops.tensor(dense(S))
            self.middle = centers.mean(dim=0)
            self.right = centers - self.middle

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        """``k(X, S)`` of rows on the device, (n, m); products of float32 numbers are not rounded further."""
        if not self.known:
            return self.ops.tensor(self.kernel.pairwise(host(X), self.S))
        with self.ops.full():
            return of_squares(self.kernel, squared_distances(X - self.middle, self.right))

    @cached_property
    def many(self) -> bool:
        """Whether there is no room for their factors in float64."""
        free = torch.cuda.mem_get_info(self.ops.device)[0] if self.ops.cuda else math.inf
        return FACTORS * 8 * self.S.shape[0] ** 2 > free

    def gram(self) -> torch.Tensor:
        """``k(S, S)``, (m, m) float64 on the device, rounded to float32 where there are many centres."""
        if not self.known:
            S = dense(self.S).astype(np.float64)
            return self.ops.tensor(self.kernel.pairwise(S, S))
        S, m = self.right.double(), len(self.right)
        K = torch.empty((m, m), dtype=torch.float32 if self.many else torch.float64, device=S.device)
        for rows in blocks(m, m):
            K[rows] = of_squares(self.kernel, squared_distances(S[rows], S))
        return K.fill_diagonal_(1.0)


def gram(ops: Any, kernel: Kernel, X: Rows) -> torch.Tensor:
    """``k(X, X)`` of rows (n, d), in their type."""
    values, n = DeviceCenters(ops, kernel, X), X.shape[0]
    kind = values.right.dtype if values.known else from_array(np.empty(0, values.dtype)).dtype
    K = torch.empty((n, n), dtype=kind, device=ops.device)
    for rows in blocks(n, n):
        K[rows] = values(ops.tensor(dense(X[rows])))
    return K


def blocks(n: int, m: int) -> list[slice]:
    """Rows of a matrix (n, m) that are worked on at once."""
    return cuts(n, max(1, ELEMENTS // m))


class DeviceRowMatrix:
    """``K + diag(more)`` for a Gram matrix K (n, n), in its type; see ``kernelstream.solvers.kernel_ridge``.

    Products are made in float64, block by block: the factor may be one of float32, the solution is not.
    """

    def __init__(self, ops: Any, K: torch.Tensor, more: np.ndarray):
        self.ops, self.K, self.cuts = ops, K, blocks(*K.shape)
        diagonal = K.diagonal()
        self.more = ops.tensor(more).double()
        exact = diagonal.clone()
        diagonal += self.more.to(K.dtype)
        self.T = factor(K, 0.0)
        diagonal.copy_(exact)

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``(K + diag(more)) V``, (n, C) -> (n, C) float64."""
        right = self.ops.tensor(V)
        out = self.more[:, None] * right
        for rows in self.cuts:
            out[rows] += self.K[rows].double() @ right
        return out.cpu().numpy()

    def divide(self, V: np.ndarray) -> np.ndarray:
        """V divided by the matrix, to the precision of the factor."""
        right = self.ops.tensor(V)
        size = right.abs().amax(dim=0).clamp_(min=float(np.finfo(float).tiny))  # float32 has a narrower range
        with self.ops.full():
            found = torch.cholesky_solve((right / size).to(self.T.dtype), self.T, upper=True)
        return (found.double() * size).cpu().numpy()

    def left_out(self, alpha: np.ndarray, last: int) -> np.ndarray:
        """Residuals (last, C) of the last rows where the other rows alone are learned; alpha (n, C) is of all."""
        upper = self.T[-last:, -last:].double()
        return (upper.T @ (upper @ self.ops.tensor(alpha[-last:]))).cpu().numpy()


def row_matrix(ops: Any, kernel: Kernel, X: Rows, more: np.ndarray) -> DeviceRowMatrix:
    """Gram matrix of all rows, with ``more`` (n,) added to its diagonal."""
    return DeviceRowMatrix(ops, gram(ops, kernel, X), more)


class DeviceKernelBlocks:
    """Products with ``K = k(X, S)``; see :class:`~kernelstream.solvers.kernel_blocks.KernelBlocks`."""

    def __init__(self, ops: Any, kernel: Kernel, X: Rows, S: Rows, keep: bool = False):
        self.ops, self.values = ops, DeviceCenters(ops, kernel, S)
        self.dtype = self.values.dtype
        n, m = self.shape = (X.shape[0], S.shape[0])
        whole = n * X.shape[1] * self.dtype.itemsize <= DEVICE_ROWS
        self.X = ops.tensor(dense(X)) if whole else X
        size = max(1, ELEMENTS // m)
        self.cuts = cuts(n, size)
        free = torch.cuda.mem_get_info(ops.device)[0] // SHARE if ops.cuda else CPU_BYTES
        self.room = free // (size * m * self.dtype.itemsize) if keep and not self.values.many else 0
        self.kept: dict[int, torch.Tensor] = {}
        self.times: Any = None
        if whole and ops.cuda and ops.triton and self.dtype == np.float32 and isinstance(kernel, Gaussian):
            from . import gaussians

            if X.shape[1] <= gaussians.WIDEST:
                self.times = gaussians.times
                self.pair = (
                    gaussians.scaled(self.X - self.values.middle, float(kernel.gamma)),
                    gaussians.scaled(self.values.right, float(kernel.gamma)),
                )

    def _blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """``(rows, K)`` for all blocks of rows."""
        for i, rows in enumerate(self.cuts):
            K = self.kept.get(i)
            if K is None:
                K = self._values(self.X[rows])
                if i < self.room:
                    self.kept[i] = K
            yield rows, K.double()

    def _values(self, X: Any) -> torch.Tensor:
        """Kernel values of rows, here or there."""
        return self.values(X if isinstance(X, torch.Tensor) else self.ops.tensor(dense(X)))

    def _here(self, V: np.ndarray) -> torch.Tensor:
        return from_array(V).to(self.ops.device, torch.float64)

    def _nothing(self, outputs: int) -> torch.Tensor:
        return torch.zeros((self.shape[1], outputs), dtype=torch.float64, device=self.ops.device)

    def _unstored(self, V: torch.Tensor) -> bool:
        """Whether a program makes products with V (., C) without the matrix."""
        return self.times is not None and V.shape[1] <= FEW_OUTPUTS

    def _made(self, V: torch.Tensor, transposed: bool = False) -> torch.Tensor:
        """``K V`` or ``K'V`` by the program."""
        left, right = reversed(self.pair) if transposed else self.pair
        return torch.stack([self.times(left, right, v.contiguous()) for v in V.T], dim=1)

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``K V``, (m, C) -> (n, C) float64."""
        A = self._here(V)
        if self._unstored(A):
            return self._made(A).cpu().numpy()
        out = np.empty((self.shape[0], V.shape[1]))
        for rows, K in self._blocks():
            out[rows] = (K @ A).cpu().numpy()
        return out

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``K'U``, (n, C) -> (m, C) float64."""
        A = self._here(U)
        if self._unstored(A):
            return self._made(A, True).cpu().numpy()
        total = self._nothing(U.shape[1])
        for rows, K in self._blocks():
            total += K.T @ A[rows]
        return total.cpu().numpy()

    def normal(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``K'(A * (K V))``, (n, 1) or (n, C) and (m, C) -> (m, C) float64."""
        weight, right = self._here(A), self._here(V)
        if self._unstored(right):
            return self._made(weight * self._made(right), True).cpu().numpy()
        total = self._nothing(V.shape[1])
        for rows, K in self._blocks():
            total += K.T @ (weight[rows] * (K @ right))
        return total.cpu().numpy()

    def moment(self, rows: np.ndarray, a: np.ndarray) -> torch.Tensor:
        """``K_r' diag(a) K_r`` for some rows r with weights a >= 0, (m, m) float64 on the device."""
        m = self.shape[1]
        total, root = self._nothing(m), self._here(np.sqrt(a)[:, None])
        for part in blocks(len(rows), m):
            K = self._values(take(self.X, rows[part])).double() * root[part]
            total += K.T @ K
        return total


class DeviceFactor:
    """``T'T = K + e I`` with e = ``more``, on the device; see :class:`~kernelstream.solvers.kernel_blocks.Factor`.

    T has the type of K. A float32 factor is refined: what it divides is divided once more, for what rounding has left.
    """

    def __init__(self, ops: Any, K: torch.Tensor, more: float):
        self.ops, self.T = ops, factor(K, more)
        self.single = K.dtype == torch.float32

    def weigh(self, M: torch.Tensor, lam: float) -> None:
        """``A'A = T'^-1 M T^-1 + lam I``."""
        self.A = factor(divided(self.T, divided(self.T, M, True).T, True), lam)

    def weigh_centers(self, each: float, lam: float) -> None:
        """``A'A = c T T' + lam I``: what the centres alone say of ``Z'A Z``, ``each`` a weight c."""
        M, T = torch.zeros_like(self.T), self.T
        with self.ops.full():
            for rows in cuts(len(T), FACTOR_ROWS):
                torch.mm(T[rows, rows.start :], T[: rows.stop, rows.start :].T, out=M[rows, : rows.stop])
        self.A = factor(M.mul_(each), lam)

    def _exactly(self, V: np.ndarray, transposed: bool) -> np.ndarray:
        right = self.ops.tensor(V)
        if not self.single:
            return divided(self.T, right, transposed).cpu().numpy()
        found, rest = torch.zeros_like(right), right
        for _ in range(2):
            found += self._roughly(self.T, rest, transposed)
            rest = right - self._product(found, transposed)
        return found.cpu().numpy()

    def _roughly(self, U: torch.Tensor, V: torch.Tensor, transposed: bool) -> torch.Tensor:
        """V (m, C) float64 divided in the type of U; float32 has a narrower range."""
        size = V.abs().amax(dim=0).clamp_(min=float(np.finfo(float).tiny))
        return divided(U, (V / size).to(U.dtype), transposed).double() * size

    def _product(self, V: torch.Tensor, transposed: bool) -> torch.Tensor:
        """``T V`` or ``T'V`` in float64."""
        out = torch.zeros_like(V)
        for rows in blocks(*self.T.shape):
            part = self.T[rows].double()
            if transposed:
                out += part.T @ V[rows]
            else:
                out[rows] = part @ V
        return out

    def solve(self, V: np.ndarray) -> np.ndarray:
        """``T^-1 V``, (m, C)."""
        return self._exactly(V, False)

    def tsolve(self, V: np.ndarray) -> np.ndarray:
        """``T'^-1 V``, (m, C)."""
        return self._exactly(V, True)

    def precondition(self, R: np.ndarray) -> np.ndarray:
        """``(A'A)^-1 R``, (m, C)."""
        half = self._roughly(self.A, self.ops.tensor(R), True)
        return self._roughly(self.A, half, False).cpu().numpy()


def divided(U: torch.Tensor, V: torch.Tensor, transposed: bool) -> torch.Tensor:
    """``U^-1 V`` or ``U'^-1 V`` for an upper triangular U."""
    return torch.linalg.solve_triangular(U.T if transposed else U, V, upper=not transposed)


def factor(K: torch.Tensor, more: float) -> torch.Tensor:
    """Upper triangular factor of ``K + more I``, with ten times as much as long as there is none; K stays.

    Only what is on and below the diagonal of K is read.
    """
    diagonal = K.diagonal()
    exact = diagonal.clone()
    least = float(torch.finfo(K.dtype).eps) * float(exact.max())
    while True:
        diagonal += more
        L, failed = torch.linalg.cholesky_ex(K)
        diagonal.copy_(exact)
        if not int(failed):
            return L.mT
        more = 10 * max(more, least)
