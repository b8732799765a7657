"""Feature maps on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...features.fourier import FourierMapping
from ...features.nystroem import GaussianNystroemMapping
from ...rows import host

KINDS = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class DeviceMap:
    """Features of rows (m, d) on the device, (m, n_out)."""

    def __init__(self, ops: Any, mapping: Any):
        self.ops, self.mapping = ops, mapping
        self.n_out, self.unit = mapping.n_out, mapping.unit
        self.dtype = KINDS[np.dtype(mapping.dtype)]

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        """By the processor: right for every map."""
        return self.ops.tensor(self.mapping(host(X), self.ops.host))


class Fourier(DeviceMap):
    """``[cos XW, sin XW] / sqrt(D)``."""

    def __init__(self, ops: Any, mapping: FourierMapping):
        super().__init__(ops, mapping)
        # D × d: tensor cores read both factors of a product along the summed index
        self.Wt = ops.tensor(mapping.W.T)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        P = X @ self.Wt.T
        Z = torch.empty((len(X), self.n_out), dtype=P.dtype, device=P.device)
        D = P.shape[1]
        torch.cos(P, out=Z[:, :D])
        torch.sin(P, out=Z[:, D:])
        return Z.mul_(1.0 / math.sqrt(D))


class GaussianNystroem(DeviceMap):
    """``exp(-gamma |x - s|^2) P``, distances taken about the mean of the landmarks: rows far from 0 cancel less."""

    def __init__(self, ops: Any, mapping: GaussianNystroemMapping):
        super().__init__(ops, mapping)
        S = ops.tensor(mapping.S)
        self.middle = S.mean(dim=0)
        self.S = S - self.middle
        self.P, self.gamma = ops.tensor(mapping.P), mapping.gamma

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        return gaussian(self.ops, X - self.middle, self.S, self.gamma) @ self.P


def gaussian(ops: Any, X: torch.Tensor, S: torch.Tensor, gamma: float) -> torch.Tensor:
    """``exp(-gamma |x - s|^2)``, (m, n); |x|^2 - 2 x's + |s|^2 cancels, so its product is never rounded to tf32."""
    with ops.full():
        K = torch.addmm((S * S).sum(dim=1), X, S.T, alpha=-2.0)
    K += (X * X).sum(dim=1, keepdim=True)
    return K.clamp_(min=0.0).mul_(-gamma).exp_()


def is_known(mapping: Any) -> bool:
    """Whether the device makes the features of a mapping by itself."""
    return type(mapping) in (FourierMapping, GaussianNystroemMapping)


def on_device(ops: Any, mapping: Any) -> DeviceMap:
    """The device's form of a mapping."""
    if type(mapping) is FourierMapping:
        return Fourier(ops, mapping)
    if type(mapping) is GaussianNystroemMapping:
        return GaussianNystroem(ops, mapping)
    return DeviceMap(ops, mapping)
