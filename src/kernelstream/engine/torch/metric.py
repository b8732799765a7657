"""Systems of metrics on the device: the formulas of :mod:`kernelstream.solvers.metric`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import has_triton
from .kernel_blocks import DeviceRowMatrix, blocks

EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"  # a difference of large squares says nothing of near rows

Pair = tuple[torch.Tensor, torch.Tensor]  # rows as the two kinds of kernels compare them


def between(rows: Pair, others: Pair, share: float) -> torch.Tensor:
    """Kernel values (n, m) of rows and others in a metric, in their type."""
    (Z, U), (T, V) = rows, others
    K = torch.empty((len(Z), len(T)), dtype=Z.dtype, device=Z.device)
    if K.is_cuda and K.dtype == torch.float32 and has_triton():
        from .exponentials import fill

        fill(rows, others, share, K)  # hundreds of times faster than torch's distances
        return K
    for part in blocks(*K.shape):
        near = torch.cdist(Z[part], T, compute_mode=EXACT_DISTANCES).neg_().exp_().mul_(share)
        K[part] = near.add_(torch.cdist(U[part], V, p=1).neg_().exp_(), alpha=1 - share)
    return K


def matrix(ops: Any, rows: Any, share: float, more: np.ndarray) -> DeviceRowMatrix:
    """Gram matrix of all rows in a metric, with ``more`` (n,) added to its diagonal."""
    here: Any = tuple(ops.tensor(part) for part in rows)
    return DeviceRowMatrix(ops, between(here, here, share), more)


class DeviceFunction:
    """``sum_i alpha_i k(x, x_i)`` for rows of a metric, with coefficients alpha (m, C), on the device."""

    def __init__(self, ops: Any, rows: Any, share: float, alpha: np.ndarray):
        self.ops, self.share = ops, share
        self.rows: Any = tuple(ops.tensor(part) for part in rows)
        self.alpha = ops.tensor(alpha).double()

    def __call__(self, rows: Any) -> np.ndarray:
        """Its values (n, C) at rows of the metric."""
        out = np.zeros((len(rows[0]), self.alpha.shape[1]))
        m = len(self.alpha)
        for part in blocks(len(out), m) if m else ():
            own: Any = tuple(self.ops.tensor(kind[part]) for kind in rows)
            out[part] = (between(own, self.rows, self.share).double() @ self.alpha).cpu().numpy()
        return out


class DeviceSystems:
    """Targets and weights of ``host`` lie on the device, and so do tables, factors and coefficients."""

    def __init__(self, ops: Any, host: Any):
        self.ops, self.host, self.X, self.Y, self.a = ops, host, host.X, ops.tensor(host.Y), ops.tensor(host.a)

    def columns(self) -> np.ndarray:
        return self.host.columns()

    def _rows(self, metric: Any) -> Pair:
        Z, U = metric.rows(self.X)
        return self.ops.tensor(Z, self.Y.dtype), self.ops.tensor(U, self.Y.dtype)

    def table(self, metric: Any) -> torch.Tensor:
        rows = self._rows(metric)
        return between(rows, rows, metric.share)

    def solved(self, K: torch.Tensor, lam: float) -> tuple[float, Any]:
        A = K.clone()
        A.diagonal().copy_(self.ops.tensor(self.host.diagonal(lam)))
        L, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            return np.inf, None
        with self.ops.full():
            alpha = torch.cholesky_solve(self.Y, L)
            last = self.host.judged
            eye = torch.eye(last, dtype=L.dtype, device=L.device)
            inverse = torch.linalg.solve_triangular(L[-last:, -last:], eye, upper=False).square_().sum(dim=0)
        errors, weight = (alpha[-last:] / inverse[:, None]).double().square_().sum(dim=1), self.a[-last:]
        return float((errors * weight).sum() / weight.sum()), alpha

    def gradients(self, metric: Any, alpha: Any) -> tuple[np.ndarray, np.ndarray]:
        (Z, U), R = self._rows(metric), self.ops.tensor(metric.root)
        alpha = torch.as_tensor(alpha, dtype=self.Y.dtype, device=self.Y.device)  # of either side
        d, some, few, least = Z.shape[1], self.host.some, self.host.few, self.host.near
        at, a = Z[:some], self.a[:some]
        r = torch.cdist(at, Z, compute_mode=EXACT_DISTANCES)
        P = torch.where(r > least, torch.exp(-r) / r.clamp(min=least), 0.0)
        G = torch.zeros((d, d), dtype=torch.float64, device=Z.device)
        with self.ops.full():
            for column in alpha.T:
                Q = P * column
                slopes = (at * Q.sum(dim=1, keepdim=True) - Q @ Z).double()
                slopes = slopes * R if R.ndim == 1 else slopes @ R
                G += (slopes * a[:, None]).T @ slopes
            K, a = torch.exp(-torch.cdist(U[:few], U, p=1)), self.a[:few]
            along = [(K * torch.sign(U[:few, j, None] - U[:, j])) @ alpha for j in range(d)]
        g = torch.stack([a @ slopes.double().square_().sum(dim=1) for slopes in along]) / a.sum()
        return (G / self.a[:some].sum()).cpu().numpy(), metric.scales**2 * g.cpu().numpy()
