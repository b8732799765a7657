"""Products with the kernel matrix of rows and centres on the device, and the triangular factors of the centres there.

The formulas of :mod:`kernelstream.solvers.kernel_blocks`; small matrices come and go as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ...core.threads import cuts
from ...kernels import Gaussian, Kernel, Matern
from ...rows import Rows, dense, host, take
from . import from_array

ELEMENTS = 1 << 26  # of a block
SHARE = 4  # blocks are kept in this part of the free memory of a GPU; the others are made again
ON_PROCESSOR = 1 << 28  # bytes of blocks that are kept where the device is the processor
DEVICE_ROWS = 1 << 32  # bytes of rows that lie on the device as a whole


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
    """``k(., S)`` for centres S (m, d); kernels without a formula for the device are computed by the processor."""

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

    def gram(self) -> torch.Tensor:
        """``k(S, S)``, (m, m) float64 on the device."""
        if not self.known:
            S = dense(self.S).astype(np.float64)
            return self.ops.tensor(self.kernel.pairwise(S, S))
        S = self.right.double()
        return of_squares(self.kernel, squared_distances(S, S).fill_diagonal_(0.0))


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


class RowMatrix:
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
        """The same matrix, as far as the factor knows it, divides V."""
        right = self.ops.tensor(V)
        size = right.abs().amax(dim=0).clamp_(min=float(np.finfo(float).tiny))  # float32 has a narrower range
        with self.ops.full():
            found = torch.cholesky_solve((right / size).to(self.T.dtype), self.T, upper=True)
        return (found.double() * size).cpu().numpy()

    def left_out(self, alpha: np.ndarray, last: int) -> np.ndarray:
        """Residuals (last, C) of the last rows where the other rows alone are learned; alpha (n, C) is of all."""
        upper = self.T[-last:, -last:].double()
        return (upper.T @ (upper @ self.ops.tensor(alpha[-last:]))).cpu().numpy()


class DeviceKernelBlocks:
    """Products with ``K = k(X, S)``; see :class:`~kernelstream.solvers.kernel_blocks.KernelBlocks`."""

    def __init__(self, ops: Any, kernel: Kernel, X: Rows, S: Rows, keep: bool):
        self.ops, self.values = ops, DeviceCenters(ops, kernel, S)
        self.dtype = self.values.dtype
        n, m = self.shape = (X.shape[0], S.shape[0])
        whole = n * X.shape[1] * self.dtype.itemsize <= DEVICE_ROWS
        self.X = ops.tensor(dense(X)) if whole else X
        size = max(1, ELEMENTS // m)
        self.cuts = cuts(n, size)
        free = torch.cuda.mem_get_info(ops.device)[0] // SHARE if ops.cuda else ON_PROCESSOR
        self.room = free // (size * m * self.dtype.itemsize) if keep else 0
        self.kept: dict[int, torch.Tensor] = {}

    def _blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """``(rows, K)`` for all blocks of rows."""
        for i, rows in enumerate(self.cuts):
            K = self.kept.get(i)
            if K is None:
                X = self.X[rows]
                K = self.values(X if isinstance(X, torch.Tensor) else self.ops.tensor(dense(X)))
                if i < self.room:
                    self.kept[i] = K
            yield rows, K.double()

    def _here(self, V: np.ndarray) -> torch.Tensor:
        return from_array(V).to(self.ops.device, torch.float64)

    def _nothing(self, outputs: int) -> torch.Tensor:
        return torch.zeros((self.shape[1], outputs), dtype=torch.float64, device=self.ops.device)

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``K V``, (m, C) -> (n, C) float64."""
        A, out = self._here(V), np.empty((self.shape[0], V.shape[1]))
        for rows, K in self._blocks():
            out[rows] = (K @ A).cpu().numpy()
        return out

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``K'U``, (n, C) -> (m, C) float64."""
        A, total = self._here(U), self._nothing(U.shape[1])
        for rows, K in self._blocks():
            total += K.T @ A[rows]
        return total.cpu().numpy()

    def normal(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``K'(A * (K V))``, (n, 1) or (n, C) and (m, C) -> (m, C) float64."""
        weight, right, total = self._here(A), self._here(V), self._nothing(V.shape[1])
        for rows, K in self._blocks():
            total += K.T @ (weight[rows] * (K @ right))
        return total.cpu().numpy()

    def moment(self, rows: np.ndarray, a: np.ndarray) -> torch.Tensor:
        """``K_r' diag(a) K_r`` for some rows r with weights a >= 0, (m, m) float64 on the device."""
        m = self.shape[1]
        total, root = self._nothing(m), self._here(np.sqrt(a)[:, None])
        for part in blocks(len(rows), m):
            X = take(self.X, rows[part])
            K = self.values(X if isinstance(X, torch.Tensor) else self.ops.tensor(dense(X))).double() * root[part]
            total += K.T @ K
        return total


class DeviceFactor:
    """``T'T = K + e I`` with e = ``more``, on the device; see :class:`~kernelstream.solvers.kernel_blocks.Factor`."""

    def __init__(self, ops: Any, K: torch.Tensor, more: float):
        self.ops = ops
        self.T = factor(0.5 * (K + K.T), more)

    def weigh(self, M: torch.Tensor, lam: float) -> None:
        """``A'A = T'^-1 M T^-1 + lam I``."""
        M = self._divide(self.T, self._divide(self.T, M, True).T, True)
        self.A = factor(0.5 * (M + M.T), lam)

    def _divide(self, U: torch.Tensor, V: torch.Tensor, transposed: bool) -> torch.Tensor:
        return torch.linalg.solve_triangular(U.T if transposed else U, V, upper=not transposed)

    def solve(self, V: np.ndarray) -> np.ndarray:
        """``T^-1 V``, (m, C)."""
        return self._divide(self.T, self.ops.tensor(V), False).cpu().numpy()

    def tsolve(self, V: np.ndarray) -> np.ndarray:
        """``T'^-1 V``, (m, C)."""
        return self._divide(self.T, self.ops.tensor(V), True).cpu().numpy()

    def precondition(self, R: np.ndarray) -> np.ndarray:
        """``(A'A)^-1 R``, (m, C)."""
        return self._divide(self.A, self._divide(self.A, self.ops.tensor(R), True), False).cpu().numpy()


def factor(K: torch.Tensor, more: float) -> torch.Tensor:
    """Upper triangular factor of ``K + more I``, with ten times as much as long as there is none; K stays."""
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
