"""Products with the kernel matrix of rows and centres on the device, and the triangular factors of the centres there.

The formulas of :mod:`kernelstream.solvers.kernel_blocks`; small matrices come and go as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ...core.threads import cuts
from ...kernels import Gaussian, Kernel
from ...rows import Rows, dense, host, take
from . import from_array

ELEMENTS = 1 << 26  # of a block
SHARE = 4  # blocks are kept in this part of the free memory of a GPU; the others are made again
ON_PROCESSOR = 1 << 28  # bytes of blocks that are kept where the device is the processor
DEVICE_ROWS = 1 << 32  # bytes of rows that lie on the device as a whole


class DeviceCenters:
    """``k(., S)`` for centres S (m, d); a kernel other than the Gaussian is computed by the processor."""

    def __init__(self, ops: Any, kernel: Kernel, S: Rows):
        self.ops, self.kernel, self.S = ops, kernel, S
        self.gaussian = type(kernel) is Gaussian
        self.dtype = np.dtype(S.dtype)
        if self.gaussian:
            centers = ops.tensor(dense(S))
            self.middle = centers.mean(dim=0)
            self.right = centers - self.middle
            self.norms = (self.right * self.right).sum(dim=1)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        """``k(X, S)`` of rows on the device, (n, m); products of float32 numbers are not rounded further."""
        if not self.gaussian:
            return self.ops.tensor(self.kernel.pairwise(host(X), self.S))
        X = X - self.middle
        with self.ops.full():
            D = torch.addmm(self.norms, X, self.right.T, alpha=-2.0)
        D += (X * X).sum(dim=1, keepdim=True)
        return D.clamp_(min=0.0).mul_(-float(self.kernel.gamma)).exp_()

    def gram(self) -> torch.Tensor:
        """``k(S, S)``, (m, m) float64 on the device."""
        if not self.gaussian:
            S = dense(self.S).astype(np.float64)
            return self.ops.tensor(self.kernel.pairwise(S, S))
        S = self.right.double()
        norms = (S * S).sum(dim=1)
        D = norms[:, None] + norms - 2 * (S @ S.T)
        return D.clamp_(min=0.0).fill_diagonal_(0.0).mul_(-float(self.kernel.gamma)).exp_()


class DeviceBlocks:
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
        for part in cuts(len(rows), max(1, ELEMENTS // m)):
            X = take(self.X, rows[part])
            K = self.values(X if isinstance(X, torch.Tensor) else self.ops.tensor(dense(X))).double() * root[part]
            total += K.T @ K
        return total


class DeviceFactor:
    """``T'T = K + e I`` with e = ``more``, on the device; see :class:`~kernelstream.solvers.kernel_blocks.Factor`."""

    def __init__(self, ops: Any, K: torch.Tensor, more: float):
        self.ops = ops
        self.T = _factor(0.5 * (K + K.T), more)

    def weigh(self, M: torch.Tensor, lam: float) -> None:
        """``A'A = T'^-1 M T^-1 + lam I``."""
        M = self._divide(self.T, self._divide(self.T, M, True).T, True)
        self.A = _factor(0.5 * (M + M.T), lam)

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


def _factor(K: torch.Tensor, more: float) -> torch.Tensor:
    """Upper triangular factor of ``K + more I``, with ten times as much as long as there is none."""
    least = float(np.finfo(float).eps) * float(K.diagonal().max())
    eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
    while True:
        L, failed = torch.linalg.cholesky_ex(K + more * eye)
        if not int(failed):
            return L.T.contiguous()
        more = 10 * max(more, least)
