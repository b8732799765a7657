"""Blocks of random features that are made on the device when needed: scores, and the descent of ``fit``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch

from ...core.threads import cuts
from ...passes.doubly.descent import Descent
from ...random import SeedStream, generator
from ...rows import dense
from . import from_array
from .maps import ANGLES, cos_sin, far_middle, padded, put_angles

ENTRIES = 1 << 26  # frequencies × rows whose features exist at the same time


class BlockFeatures:
    """Fourier features of block i = 0, 1, 2, … on the device.

    Parameters
    ----------
    ops : Ops
    blocks : FeatureBlocks
        Those of a Fourier kernel; Gaussian frequencies in float32 are made on the GPU, others on the CPU.
    """

    def __init__(self, ops: Any, blocks: Any):
        self.ops, self.blocks = ops, blocks
        self.D, self.d = blocks.draws, blocks.d
        self.kind = torch.float32 if blocks.dtype == np.float32 else torch.float64
        self.generated = ops.cuda and blocks.normal and self.kind == torch.float32 and ops.triton
        self.Wt = torch.zeros((self.D, padded(self.d)), dtype=self.kind, device=ops.device)
        self.middle = torch.zeros(self.d, dtype=self.kind, device=ops.device)  # taken off the rows, as in maps.Fourier
        self.moved = False  # whether it is not 0
        self.size = min(max(ENTRIES // self.D, 128), 8192)  # rows at a time
        self._room(self.size)
        self.held = -1  # the block whose frequencies Wt holds

    def _room(self, n: int) -> None:
        """Buffers for the features of n rows."""
        self.Z = torch.empty((n, 2 * self.D), dtype=self.kind, device=self.ops.device)
        self.P = torch.empty((n, self.D), dtype=self.kind, device=self.ops.device)

    def rows(self, X: Any) -> torch.Tensor:
        """Rows on the device, about the centre and padded like the frequencies; earlier ones become invalid."""
        out = torch.zeros((X.shape[0], self.Wt.shape[1]), dtype=self.kind, device=self.ops.device)
        out[:, : self.d] = from_array(dense(X)).to(self.ops.device)
        found = far_middle(out[:, : self.d], self.middle) if self.kind == torch.float32 else None
        if found is not None:
            self.middle.copy_(found)
            self.held, self.moved = -1, True
        out[:, : self.d] -= self.middle
        out[:, self.d : self.d + ANGLES] = 1.0
        return out

    def frequencies(self, i: int) -> torch.Tensor:
        """Those of block i, (D, d padded)."""
        if i == self.held:
            return self.Wt
        if self.generated:
            from .philox import normals

            scale = math.sqrt(2.0 * self.blocks.kernel.gamma)
            normals(self.blocks.seed, i, self.d, self.D, self.blocks.stream >> 32, scale, self.Wt)
        else:
            self.Wt[:, : self.d] = torch.from_numpy(np.ascontiguousarray(self.blocks.random_part(i).T))
        if self.moved:
            put_angles(self.Wt, self.d, self.Wt[:, : self.d].double() @ self.middle.double())
        self.held = i
        return self.Wt

    def features(self, X: torch.Tensor, i: int) -> torch.Tensor:
        """Features of rows from :meth:`rows`, in a buffer that the next call uses again."""
        if len(X) > len(self.Z):
            self._room(len(X))
        Wt, Z, P = self.frequencies(i), self.Z[: len(X)], self.P[: len(X)]
        if self.ops.cuda and self.ops.triton and self.kind == torch.float32:
            from .cosines import fourier

            fourier(X, Wt, Z, P)
            return Z
        return cos_sin(torch.mm(X, Wt.T, out=P), Z)

    def scores(self, X: torch.Tensor, A: torch.Tensor, first: int = 0, together: bool = True) -> torch.Tensor:
        """``sum_i Z_i(X) A_i`` over blocks from ``first`` on, (n, C) float64, of rows from :meth:`rows`."""
        out = torch.zeros((len(X), A.shape[2]), dtype=torch.float64, device=self.ops.device)
        for k in range(len(A)):
            for part in cuts(len(X), self.size):
                Z = self.features(X[part], first + k)
                with self.ops.full():  # few columns: memory decides, not the rate of products
                    out[part] += (Z @ A[k]).to(out.dtype)
        return out


class Training(Descent):
    """A :class:`Descent` on blocks of the device: weights and sums are tensors, derivatives of the loss arrays."""

    xp: ClassVar[Any] = torch

    def _direction(self, Z: torch.Tensor, G: np.ndarray, F: np.ndarray) -> torch.Tensor:
        ops: Any = self.blocks.ops
        if not self.precondition:
            return Z.T @ ops.tensor(G / len(G)).to(Z.dtype)
        with ops.full():
            return conditioned(Z, G, F, self.damping, self.lam)

    def _home(self, sums: torch.Tensor) -> np.ndarray:
        return sums.cpu().numpy()


def training(ops: Any, descent: Any) -> Training:
    """A descent whose weights and features are on the device."""
    return Training(**descent.__dict__ | {"blocks": descent.blocks.device})


def conditioned(Z: torch.Tensor, G: np.ndarray, F: np.ndarray, damping: float, lam: float) -> torch.Tensor:
    """The direction of ``Descent._conditioned``: divided by the batch's feature covariance, damped by its top.

    Z (b, width), G and F (b, C).
    """
    b, width = Z.shape
    dual = b < width
    S = ((Z @ Z.T) if dual else (Z.T @ Z)).double() / b
    top = largest_eigenvalue(S) or 1.0
    rho = damping * top
    S.diagonal().add_(rho)
    R = torch.from_numpy((G - lam / rho * F) * (top / b)).to(S.device)
    factor = torch.linalg.cholesky(S)
    if dual:
        return Z.T @ torch.cholesky_solve(R, factor).to(Z.dtype)
    return torch.cholesky_solve((Z.T @ R.to(Z.dtype)).double(), factor).to(Z.dtype)


def largest_eigenvalue(K: torch.Tensor, rounds: int = 30) -> float:
    """Largest eigenvalue of a positive semi-definite matrix, by the power method."""
    v = torch.from_numpy(generator(0, SeedStream.POWER_START).standard_normal(len(K))).to(K)
    for _ in range(rounds):
        w = K @ v
        v = w / w.norm().clamp_min(1e-300)
    return float(v @ K @ v)
