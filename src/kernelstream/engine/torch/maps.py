"""Feature maps on the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...core.threads import cuts
from ...features.fourier import FourierMapping
from ...features.nystroem import GaussianNystroemMapping
from ...features.preconditioned import PreconditionedMapping
from ...rows import dense, host, is_tensor
from . import from_array
from .kernel_blocks import squared_distances

PAD = 32  # width of rows and frequencies is a multiple of this: whole steps of the products
ANGLES = 2  # numbers of 11 bits that an angle is the sum of
LEAST, LOOK, FAR = 16, 64, 4.0  # rows that are examined, and how many of their deviations away the centre may be
KINDS = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class DeviceMap:
    """Features of rows (m, d) on the device, (m, n_out)."""

    def __init__(self, ops: Any, mapping: Any):
        self.ops = ops
        self.n_out, self.unit = mapping.n_out, mapping.unit
        self.dtype = KINDS[np.dtype(mapping.dtype)]

    def look(self, X: Any) -> None:
        """Prepare for rows (n, d) like these."""

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class ByProcessor(DeviceMap):
    """Features made on the CPU: works for every map."""

    def __init__(self, ops: Any, mapping: Any):
        super().__init__(ops, mapping)
        self.mapping = mapping

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        return self.ops.tensor(self.mapping(host(X), self.ops.host))


class Fourier(DeviceMap):
    """``[cos XW, sin XW] / sqrt(D)``, as ``cos((X - c) W + c'W)``.

    Rows far from 0 lose their differences when they are rounded to 11 bits, and much of them in float32, so a centre c
    is subtracted first.

    Attributes
    ----------
    middle : (d,)
        The centre; 0 until :meth:`look` sees rows for which that is too far away.
    Wt : (D, width)
        D × d: tensor cores read both factors of a product along the summed index. Behind the d columns are the angles
        c'W, in parts that tensor cores do not round. On a GPU padded to whole steps of such products, and rounded where
        they round.
    """

    def __init__(self, ops: Any, mapping: FourierMapping):
        super().__init__(ops, mapping)
        self.W = mapping.W
        self.d = d = len(mapping.W)
        self.width = padded(d) if ops.cuda else d + ANGLES
        self.Wt = torch.nn.functional.pad(ops.tensor(mapping.W).T, (0, self.width - d)).contiguous()
        self.middle = torch.zeros(d, dtype=self.dtype, device=ops.device)
        if ops.rounds(self.dtype):
            round_(self.Wt)

    def look(self, X: Any) -> None:
        """Move the centre if the first of these rows (n, d), as they came, are far from it."""
        if self.dtype == torch.float64:
            return
        found = far_middle(X, self.middle)
        if found is not None:
            self.middle.copy_(found)
            c = self.middle.double().cpu().numpy()
            angles = np.concatenate([c @ self.W[:, part].astype(np.float64) for part in cuts(self.n_out // 2, 4096)])
            put_angles(self.Wt, self.d, torch.from_numpy(angles))

    def place(self, into: torch.Tensor) -> None:
        """Rows (m, width) of which the first d columns are set, as factors of :attr:`Wt`; in place."""
        into[:, : self.d] -= self.middle
        into[:, self.d : self.d + ANGLES] = 1.0

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        X = torch.nn.functional.pad(X, (0, self.width - X.shape[1]))
        self.place(X)
        return self.of_placed(X)

    def of_placed(self, X: torch.Tensor) -> torch.Tensor:
        """Features of rows that :meth:`place` has changed, (m, n_out)."""
        return cos_sin(X @ self.Wt.T, X.new_empty((len(X), self.n_out)))


class GaussianNystroem(DeviceMap):
    """``exp(-gamma |x - s|^2) P``, distances taken about the mean of the landmarks: rows far from 0 cancel less."""

    def __init__(self, ops: Any, mapping: GaussianNystroemMapping):
        super().__init__(ops, mapping)
        S = ops.tensor(mapping.S)
        self.middle = S.mean(dim=0)
        self.S = S - self.middle
        self.P, self.gamma = ops.tensor(mapping.P), mapping.gamma

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        with self.ops.full():  # |x|^2 - 2 x's + |s|^2 cancels: its product is never rounded to tf32
            D2 = squared_distances(X - self.middle, self.S)
        return D2.mul_(-self.gamma).exp_() @ self.P


class DevicePreconditioned(DeviceMap):
    """``z - (s V) B`` of the features z of a map that the device has, and some of them, s."""

    def __init__(self, ops: Any, mapping: PreconditionedMapping):
        super().__init__(ops, mapping)
        self.inner = on_device(ops, mapping.inner)
        self.V, self.back = ops.tensor(mapping.V), ops.tensor(mapping.back)

    def look(self, X: Any) -> None:
        self.inner.look(X)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        Z = self.inner(X)
        p, middle = len(self.V), self.n_out // 2
        with self.ops.full():  # most of z is subtracted: rounding would show in what is left
            if p == self.n_out:
                psi = Z @ self.V
            else:  # the first cosines and the first sines
                psi = Z[:, : p // 2] @ self.V[: p // 2] + Z[:, middle : middle + p // 2] @ self.V[p // 2 :]
            return Z.addmm_(psi, self.back, alpha=-1.0)


def cos_sin(P: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    """``[cos P, sin P] / sqrt(D)`` of projections P (m, D), in Z (m, 2D)."""
    D = P.shape[1]
    torch.cos(P, out=Z[:, :D])
    torch.sin(P, out=Z[:, D:])
    return Z.mul_(1.0 / math.sqrt(D))


def padded(d: int) -> int:
    """Width of rows of d columns and the angles behind them, in whole steps of the products."""
    return -(-(d + ANGLES) // PAD) * PAD


def far_middle(X: Any, middle: torch.Tensor) -> torch.Tensor | None:
    """Mean of the first rows of X if it is more than FAR times as far from ``middle`` as the rows are from it."""
    if X.shape[0] < LEAST:
        return None
    some = X[:LOOK]
    some = (some.detach() if is_tensor(some) else from_array(dense(some))).double()
    mean = some.mean(dim=0)
    away = (mean - middle.double().to(mean.device)).square().sum()
    return mean if bool(away > FAR**2 * (some - mean).square().sum(dim=1).mean()) else None


def put_angles(Wt: torch.Tensor, d: int, angles: torch.Tensor) -> None:
    """Angles (D,) float64, less whole turns, into the columns of Wt from d on: a sum of numbers of 11 bits each."""
    rest = torch.remainder(angles.to(Wt.device) + math.pi, 2 * math.pi) - math.pi
    for k in range(ANGLES):
        part = rest.float()
        Wt[:, d + k] = round_(part)
        rest = rest - part.double()


def round_(A: torch.Tensor) -> torch.Tensor:
    """A float32 array rounded to tf32 in place; tensor cores cut the other bits off."""
    A.view(torch.int32).add_(1 << 12).bitwise_and_(-(1 << 13))
    return A


KNOWN: dict[type, Any] = {
    FourierMapping: Fourier,
    GaussianNystroemMapping: GaussianNystroem,
    PreconditionedMapping: DevicePreconditioned,
}


def is_known(mapping: Any) -> bool:
    """Whether the device can make the features of a mapping."""
    return type(mapping) in KNOWN and (not isinstance(mapping, PreconditionedMapping) or is_known(mapping.inner))


def on_device(ops: Any, mapping: Any) -> DeviceMap:
    """The device's form of a mapping; kept as long as the mapping, because models restart at every new label."""
    if not is_known(mapping):
        return ByProcessor(ops, mapping)
    if mapping not in ops.maps:
        ops.maps[mapping] = KNOWN[type(mapping)](ops, mapping)
    return ops.maps[mapping]
