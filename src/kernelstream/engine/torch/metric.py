"""Trials of metrics on the device: the formulas of :mod:`kernelstream.solvers.metric`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...solvers import metric as search
from ...solvers.kernel_ridge import FAR
from .kernel_blocks import blocks

EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"  # a difference of large squares says nothing of near rows

Pair = tuple[torch.Tensor, torch.Tensor]  # rows as the two kinds of kernels compare them


def table(rows: Pair, share: float) -> torch.Tensor:
    """Kernel values (n, n) of rows in a metric, in float32."""
    Z, U = rows
    K = torch.empty((len(Z), len(Z)), dtype=Z.dtype, device=Z.device)
    for part in blocks(len(Z)):
        near = torch.cdist(Z[part], Z, compute_mode=EXACT_DISTANCES).neg_().exp_().mul_(share)
        K[part] = near.add_(torch.cdist(U[part], U, p=1).neg_().exp_(), alpha=1 - share)
    return K


class DeviceTrials(search.Trials):
    """Targets and weights lie on the device, and so do tables, factors and coefficients."""

    side_by_side = False

    def __init__(self, ops: Any, X: search.Rows, Y: np.ndarray, a: np.ndarray, clock: Any):
        super().__init__(ops, X, Y, a, clock)
        self.targets, self.weight = ops.tensor(Y), ops.tensor(a)

    def _rows(self, metric: search.Metric) -> Pair:
        Z, U = metric.rows(self.X)
        return self.ops.tensor(Z), self.ops.tensor(U)

    def new_table(self, metric: search.Metric) -> torch.Tensor:
        return table(self._rows(metric), metric.share)

    def solved(self, K: torch.Tensor, lam: float) -> tuple[float, Any]:
        A = K.clone()
        A.diagonal().copy_(1 + lam * (1 / self.weight).clamp_(max=FAR))
        L, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            return np.inf, None
        with self.ops.full():
            alpha = torch.cholesky_solve(self.targets, L)
            last = min(search.JUDGED, len(L))
            eye = torch.eye(last, dtype=L.dtype, device=L.device)
            inverse = torch.linalg.solve_triangular(L[-last:, -last:], eye, upper=False).square_().sum(dim=0)
        errors, weight = (alpha[-last:] / inverse[:, None]).double().square_().sum(dim=1), self.weight[-last:]
        return float((errors * weight).sum() / weight.sum()), alpha

    def gradients(self, metric: search.Metric, alpha: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        (Z, U), R = self._rows(metric), self.ops.tensor(metric.root)
        n, d = Z.shape
        some = min(search.SLOPES, n)
        at, a = Z[:some], self.weight[:some]
        r = torch.cdist(at, Z, compute_mode=EXACT_DISTANCES)
        P = torch.where(r > search.NEAR, torch.exp(-r) / r.clamp(min=search.NEAR), 0.0)
        G = torch.zeros((d, d), dtype=torch.float64, device=Z.device)
        with self.ops.full():
            for column in alpha.T:
                Q = P * column
                slopes = (at * Q.sum(dim=1, keepdim=True) - Q @ Z).double()
                slopes = slopes * R if R.ndim == 1 else slopes @ R
                G += (slopes * a[:, None]).T @ slopes
            few = search.compared(n, d, some)
            K, a = torch.exp(-torch.cdist(U[:few], U, p=1)), self.weight[:few]
            along = [(K * torch.sign(U[:few, j, None] - U[:, j])) @ alpha for j in range(d)]
        g = torch.stack([a @ slopes.double().square_().sum(dim=1) for slopes in along]) / a.sum()
        return (G / self.weight[:some].sum()).cpu().numpy(), metric.scales**2 * g.cpu().numpy()
