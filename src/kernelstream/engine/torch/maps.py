"""Feature maps on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...features.fourier import FourierMapping
from ...features.nystroem import GaussianNystroemMapping
from ...rows import host

PAD = 32  # width of rows and frequencies is a multiple of this: whole steps of the products
KINDS = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class DeviceMap:
    """Features of rows (m, d) on the device, (m, n_out)."""

    def __init__(self, ops: Any, mapping: Any):
        self.ops = ops
        self.n_out, self.unit = mapping.n_out, mapping.unit
        self.dtype = KINDS[np.dtype(mapping.dtype)]

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class ByProcessor(DeviceMap):
    """Right for every map."""

    def __init__(self, ops: Any, mapping: Any):
        super().__init__(ops, mapping)
        self.mapping = mapping

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        return self.ops.tensor(self.mapping(host(X), self.ops.host))


class Fourier(DeviceMap):
    """``[cos XW, sin XW] / sqrt(D)``.

    Attributes
    ----------
    Wt : (D, width)
        D × d: tensor cores read both factors of a product along the summed index. On a GPU padded to whole steps of
        such products, and rounded where they round.
    """

    def __init__(self, ops: Any, mapping: FourierMapping):
        super().__init__(ops, mapping)
        d = len(mapping.W)
        self.width = -(-d // PAD) * PAD if ops.cuda else d
        self.Wt = torch.nn.functional.pad(ops.tensor(mapping.W).T, (0, self.width - d)).contiguous()
        if ops.rounds(self.dtype):
            round_(self.Wt)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        P = torch.nn.functional.pad(X, (0, self.width - X.shape[1])) @ self.Wt.T
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


def round_(A: torch.Tensor) -> torch.Tensor:
    """A float32 array rounded to tf32 in place; tensor cores cut the other bits off."""
    A.view(torch.int32).add_(1 << 12).bitwise_and_(-(1 << 13))
    return A


def gaussian(ops: Any, X: torch.Tensor, S: torch.Tensor, gamma: float) -> torch.Tensor:
    """``exp(-gamma |x - s|^2)``, (m, n); |x|^2 - 2 x's + |s|^2 cancels, so its product is never rounded to tf32."""
    with ops.full():
        K = torch.addmm((S * S).sum(dim=1), X, S.T, alpha=-2.0)
    K += (X * X).sum(dim=1, keepdim=True)
    return K.clamp_(min=0.0).mul_(-gamma).exp_()


KNOWN: dict[type, Any] = {FourierMapping: Fourier, GaussianNystroemMapping: GaussianNystroem}


def is_known(mapping: Any) -> bool:
    """Whether the device makes the features of a mapping by itself."""
    return type(mapping) in KNOWN


def on_device(ops: Any, mapping: Any) -> DeviceMap:
    """The device's form of a mapping; kept as long as the mapping is, because models start anew at every new label."""
    if not is_known(mapping):
        return ByProcessor(ops, mapping)
    if mapping not in ops.maps:
        ops.maps[mapping] = KNOWN[type(mapping)](ops, mapping)
    return ops.maps[mapping]
