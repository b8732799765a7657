"""Trials of kernel ridge regression on the device: the formulas of :mod:`kernelstream.estimators.falkon.trials`.

Rows are copied to the device once; only the errors of a trial come back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse

from ...kernels import Kernel
from ...rows import dense
from .kernel_blocks import divided, factor, is_known, of_squares, squared_distances


def trials(ops: Any, kernel: Kernel, host: Any) -> Any:
    """Trials on the device; ``host``, those of the CPU, for sparse rows and kernels that only the CPU has."""
    return host if issparse(host.X) or not is_known(kernel) else DeviceTrials(ops, host)


class DeviceTrials:
    """Rows, targets and weights of ``host``, the trials of the CPU, copied to the device."""

    def __init__(self, ops: Any, host: Any):
        self.ops, self.m, self.lams, self.near = ops, host.m, host.lams, host.near
        self.dtype = np.dtype(host.X.dtype)
        self.X, self.XH = (ops.tensor(dense(X)) for X in (host.X, host.XH))
        self.a, self.Y, self.YH = (ops.tensor(part).double() for part in (host.a, host.Y, host.YH - host.offset))
        self.wH = torch.ones_like(self.YH[:, 0]) if host.wH is None else ops.tensor(host.wH).double()

    def at(self, width: np.ndarray) -> DeviceTrial:
        """The rows with their columns divided by widths (d,)."""
        by = self.ops.tensor(width.astype(self.dtype))
        return DeviceTrial(self, self.X / by, self.XH / by)


class DeviceTrial:
    """See :class:`~kernelstream.estimators.falkon.trials.Trial`."""

    def __init__(self, rows: DeviceTrials, X: torch.Tensor, XH: torch.Tensor):
        self.rows, middle = rows, X[: rows.m].mean(dim=0)
        X = X - middle
        self.XH, self.S = XH - middle, X[: rows.m]
        with rows.ops.full():
            self.squares = squared_distances(X, self.S), squared_distances(self.XH, self.S)
        S = self.S.double()
        self.centers = squared_distances(S, S).fill_diagonal_(0.0)

    def path(self, kernel: Kernel) -> tuple[np.ndarray, torch.Tensor]:
        """Squared errors of the held-out rows, and the coefficients that have them, on the device."""
        rows, m = self.rows, self.rows.m
        K, KH = (of_squares(kernel, D2.double()) for D2 in self.squares)
        centers = of_squares(kernel, self.centers.clone())
        T = factor(centers, max(m * float(np.finfo(float).eps), float(np.finfo(rows.dtype).eps)))
        B = divided(T, K.T @ (rows.a[:, None] * rows.Y), True)
        K *= rows.a.sqrt()[:, None]
        G = divided(T, divided(T, K.T @ K, True).T, True)
        G = 0.5 * (G + G.T)
        W = [torch.cholesky_solve(B, factor(G, lam), upper=True) for lam in rows.lams]
        alpha = divided(T, torch.cat(W, dim=1), False)
        F = (KH @ alpha).reshape(len(KH), len(rows.lams), -1)
        errors = (F - rows.YH[:, None]).square().sum(dim=2)
        errors = (errors * rows.wH[:, None]).sum(dim=0) / rows.wH.sum()
        return errors.cpu().numpy(), alpha.reshape(m, len(rows.lams), -1)

    def slopes(self, kernel: Kernel, alpha: torch.Tensor, some: int) -> np.ndarray:
        """Root of the mean square of ``d f / d x_j`` over some held-out rows and the outputs, (d,)."""
        at, S, near = self.XH[:some].double(), self.S.double(), self.rows.near
        D2 = squared_distances(at, S).clamp_(min=float(np.finfo(float).tiny))
        phi = (of_squares(kernel, D2 * (1 + near)) - of_squares(kernel, D2 * (1 - near))) / (2 * near * D2)
        squares = torch.zeros_like(at[0])
        for c in range(alpha.shape[1]):
            P = phi * alpha[:, c]
            squares += (2 * (at * P.sum(dim=1, keepdim=True) - P @ S)).square().sum(dim=0)
        return (squares / len(at)).sqrt().cpu().numpy()
