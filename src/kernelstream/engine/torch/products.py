r"""Matrix products of a block on a GPU, with what belongs to them fused in, as Triton programs.

* features: ``[cos XW, sin XW] / sqrt(D)``, the cosines and sines with the product or in one reading of it;
* Gram matrix ``S = Z Z'``: tiles on and below the diagonal only, the sum over the features split among programs and
  added up in a fixed order;
* scores ``F = Z w'`` and weights ``w <- decay w + alpha'Z`` for features of any type, summed in float32.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ...core.philox import COS, SIN

_S0, _S1, _S2, _S3 = (tl.constexpr(c) for c in SIN)
_C0, _C1, _C2, _C3 = (tl.constexpr(c) for c in COS)
_INVERSE_PI, _HALF_PI = tl.constexpr(1.0 / math.pi), tl.constexpr(math.pi / 2)
_PI_1, _PI_2, _PI_3 = (tl.constexpr(c) for c in (3.140625, 9.67502593994140625e-4, 1.509957990978376e-7))

FREQUENCIES = 65536  # whose projections are made at once: 134 MB for 512 rows
GRAM = {
    torch.float32: {"BT": 128, "BK": 32, "num_warps": 4, "num_stages": 4},
    torch.float16: {"BT": 128, "BK": 64, "num_warps": 4, "num_stages": 4},
}
FOURIER = {"BM": 128, "BN": 128, "BK": 32, "num_warps": 4, "num_stages": 3}


def fourier(X: torch.Tensor, Wt: torch.Tensor, Z: torch.Tensor, room: torch.Tensor) -> None:
    """Z (m, 2D) = ``[cos XW, sin XW] / sqrt(D)`` of rows X (m, d), frequencies Wt (D, d); room (m, FREQUENCIES)."""
    m, D = len(X), len(Wt)
    for start in range(0, D, FREQUENCIES):
        size = min(FREQUENCIES, D - start)
        P = room.view(-1)[: m * size].view(m, size)
        torch.mm(X, Wt[start : start + size].T, out=P)
        grid = (m, triton.cdiv(size, 1024))
        _trig[grid](P, Z, start, size, D, Z.stride(0), 1.0 / math.sqrt(D), BN=1024, num_warps=4)


def fourier_tf32(X: torch.Tensor, Wt: torch.Tensor, Z: torch.Tensor, programs: int) -> None:
    """As :func:`fourier`, products in tf32, of rows and frequencies that are rounded already; Z of any type."""
    tiles = FOURIER
    grid = (min(programs, triton.cdiv(len(X), tiles["BM"]) * triton.cdiv(len(Wt), tiles["BN"])),)
    rows, frequencies = (
        TensorDescriptor(A, list(A.shape), [A.stride(0), 1], [tiles[size], tiles["BK"]])
        for A, size in ((X, "BM"), (Wt, "BN"))
    )
    _fourier[grid](rows, frequencies, Z, *X.shape, len(Wt), Z.stride(0), 1.0 / math.sqrt(len(Wt)), **tiles)


@triton.jit
def _fourier(X, Wt, Z, m, d, D, stride, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every program makes several tiles, so that the sines of one are worked out beside the products of the next."""
    down = tl.cdiv(m, BM)
    for tile in tl.range(tl.program_id(0), down * tl.cdiv(D, BN), tl.num_programs(0), flatten=True):
        row = tile % down * BM
        column = tile // down * BN
        total = tl.zeros([BM, BN], tl.float32)
        for k in range(0, d, BK):
            total = tl.dot(X.load([row, k]), Wt.load([column, k]).T, total, input_precision="tf32")
        # in four parts, for which the registers suffice
        left, right = _halved(total, BM, BN)
        a, b = _halved(left, BM, BN // 2)
        _sines(a, Z, row, column, m, D, stride, scale, BM, BN // 4)
        _sines(b, Z, row, column + BN // 4, m, D, stride, scale, BM, BN // 4)
        a, b = _halved(right, BM, BN // 2)
        _sines(a, Z, row, column + BN // 2, m, D, stride, scale, BM, BN // 4)
        _sines(b, Z, row, column + 3 * (BN // 4), m, D, stride, scale, BM, BN // 4)


@triton.jit
def _halved(A, BM: tl.constexpr, BN: tl.constexpr):
    """Left and right half of the columns."""
    return tl.split(tl.permute(tl.reshape(A, (BM, 2, BN // 2)), (0, 2, 1)))


@triton.jit
def _sines(P, Z, row, column, m, D, stride, scale, BM: tl.constexpr, BN: tl.constexpr):
    """Cosines and sines of projections P (BM, BN) to their places."""
    row += tl.arange(0, BM)
    column += tl.arange(0, BN)
    sine, cosine = sincos(P)
    at = Z + row.to(tl.int64)[:, None] * stride + column[None, :]
    there = (row < m)[:, None] & (column < D)[None, :]
    tl.store(at, (cosine * scale).to(Z.dtype.element_ty), mask=there)
    tl.store(at + D, (sine * scale).to(Z.dtype.element_ty), mask=there)


@triton.jit
def _trig(P, Z, first, size, D, stride, scale, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    there = column < size
    sine, cosine = sincos(tl.load(P + row * size + column, mask=there, other=0.0))
    at = Z + row * stride + first + column
    tl.store(at, (cosine * scale).to(Z.dtype.element_ty), mask=there)
    tl.store(at + D, (sine * scale).to(Z.dtype.element_ty), mask=there)


@triton.jit
def sincos(x):
    """Sine and cosine in float32: ``x = q pi + r`` with \\|r\\| <= pi/2, then polynomials in r."""
    q = tl.floor(x * _INVERSE_PI + 0.5)
    r = ((x - q * _PI_1) - q * _PI_2) - q * _PI_3
    # of angles so large that their remainder is not known at all (from 1e7 on, in float32) only the bounds are kept
    r = tl.minimum(tl.maximum(r, -_HALF_PI), _HALF_PI)
    odd = (q.to(tl.int32) & 1) == 1
    z = r * r
    sine = r + (r * z) * (((_S3 * z + _S2) * z + _S1) * z + _S0)
    cosine = (1.0 - 0.5 * z) + (z * z) * (((_C3 * z + _C2) * z + _C1) * z + _C0)
    return tl.where(odd, -sine, sine), tl.where(odd, -cosine, cosine)


class Gram:
    """``S = Z Z'`` for Z (m, P), m a multiple of the tile; products in tf32, or in the half type that Z has."""

    def __init__(self, m: int, P: int, device: Any, tiles: dict[str, int], programs: int):
        self.tiles = tiles
        self.n = triton.cdiv(m, tiles["BT"])
        self.pairs = self.n * (self.n + 1) // 2
        splits = max(1, min(programs // self.pairs, triton.cdiv(P, 8 * tiles["BK"])))
        self.share = triton.cdiv(triton.cdiv(P, splits), tiles["BK"]) * tiles["BK"]
        self.splits = triton.cdiv(P, self.share)
        self.parts = torch.empty((self.splits, self.pairs, tiles["BT"], tiles["BT"]), device=device)

    def __call__(self, Z: torch.Tensor, S: torch.Tensor) -> None:
        m, P = Z.shape
        _gram[(self.pairs, self.splits)](
            Z, self.parts, m, P, Z.stride(0), self.share, P % self.tiles["BK"] == 0, **self.tiles
        )
        _fold[(self.pairs, 4)](self.parts, S, m, S.stride(0), self.splits, self.pairs, BT=self.tiles["BT"], num_warps=8)


@triton.jit
def _pair(number):
    """Row and column of a tile on or below the diagonal, from its number 0, 1, 2, …"""
    i = tl.floor((tl.sqrt(8.0 * number.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
    i = tl.where(i * (i + 1) // 2 > number, i - 1, i)
    i = tl.where((i + 1) * (i + 2) // 2 <= number, i + 1, i)
    return i, number - i * (i + 1) // 2


@triton.jit
def _gram(Z, parts, m, P, stride, share, EVEN: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr):
    i, j = _pair(tl.program_id(0))
    tile = tl.arange(0, BT)
    k = tl.program_id(1) * share + tl.arange(0, BK)
    left = Z + ((i * BT + tile) % m).to(tl.int64)[:, None] * stride + k[None, :]
    right = Z + ((j * BT + tile) % m).to(tl.int64)[None, :] * stride + k[:, None]
    total = tl.zeros([BT, BT], tl.float32)
    stop = tl.minimum(share, P - tl.program_id(1) * share)
    for start in range(0, stop, BK):
        if EVEN:
            total = tl.dot(tl.load(left), tl.load(right), total, input_precision="tf32")
        else:
            there = start + tl.arange(0, BK) < stop
            a = tl.load(left, mask=there[None, :], other=0.0)
            b = tl.load(right, mask=there[:, None], other=0.0)
            total = tl.dot(a, b, total, input_precision="tf32")
        left += BK
        right += BK
    at = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BT * BT
    tl.store(parts + at + tile[:, None] * BT + tile[None, :], total)


@triton.jit
def _fold(parts, S, m, stride, splits, pairs, BT: tl.constexpr):
    """Sum of the parts of a tile, written to S and, mirrored, above the diagonal; a quarter of the rows each."""
    i, j = _pair(tl.program_id(0))
    Q: tl.constexpr = BT // 4
    tile = tl.arange(0, BT)
    part = tl.program_id(1) * Q + tl.arange(0, Q)
    at = parts + tl.program_id(0) * BT * BT + part[:, None] * BT + tile[None, :]
    total = tl.zeros([Q, BT], tl.float32)
    for _ in range(0, splits):
        total += tl.load(at)
        at += pairs * BT * BT
    row = i * BT + part
    column = j * BT + tile
    there = (row < m)[:, None] & (column < m)[None, :]
    tl.store(S + row[:, None] * stride + column[None, :], total, mask=there)
    tl.store(S + column[None, :] * stride + row[:, None], total, mask=there)


class Scores:
    """``F = Z w'`` for Z (m, P) of any type and w (C, P) float32."""

    SPLITS, BM, BP = 16, 16, 512

    def __init__(self, m: int, C: int, device: Any):
        self.parts = torch.empty((self.SPLITS, m, C), device=device)

    def __call__(self, Z: torch.Tensor, w: torch.Tensor, F: torch.Tensor) -> None:
        (m, P), C = Z.shape, len(w)
        share = triton.cdiv(triton.cdiv(P, self.SPLITS), self.BP) * self.BP
        grid = (triton.cdiv(m, self.BM), self.SPLITS)
        if C == 1:
            _scores[grid](Z, w, self.parts, m, P, Z.stride(0), share, BM=self.BM, BP=self.BP, num_warps=8)
        else:
            _many_scores[grid](
                Z, w, self.parts, m, P, Z.stride(0), share, C, BM=self.BM, BP=64, BC=_outputs(C), num_warps=4
            )
        torch.sum(self.parts, dim=0, out=F)


def _outputs(C: int) -> int:
    """Width of a product with C columns."""
    return max(16, triton.next_power_of_2(C))


@triton.jit
def _scores(Z, w, parts, m, P, stride, share, BM: tl.constexpr, BP: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    first = tl.program_id(1) * share
    f = tl.zeros([BM, BP], tl.float32)
    for start in range(first, tl.minimum(first + share, P), BP):
        p = start + tl.arange(0, BP)
        at = Z + row.to(tl.int64)[:, None] * stride + p[None, :]
        z = tl.load(at, mask=(row < m)[:, None] & (p < P)[None, :], other=0.0)
        f += z.to(tl.float32) * tl.load(w + p, mask=p < P, other=0.0)[None, :]
    tl.store(parts + tl.program_id(1) * m + row, tl.sum(f, axis=1), mask=row < m)


@triton.jit
def _many_scores(Z, w, parts, m, P, stride, share, C, BM: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    """Numbers as sums of three of tf32, whose products are as exact as those of float32."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BC)
    first = tl.program_id(1) * share
    f = tl.zeros([BM, BC], tl.float32)
    for start in range(first, tl.minimum(first + share, P), BP):
        p = start + tl.arange(0, BP)
        at = Z + row.to(tl.int64)[:, None] * stride + p[None, :]
        z = tl.load(at, mask=(row < m)[:, None] & (p < P)[None, :], other=0.0)
        v = tl.load(w + c[None, :].to(tl.int64) * P + p[:, None], mask=(c < C)[None, :] & (p < P)[:, None], other=0.0)
        f = tl.dot(z.to(tl.float32), v, f, input_precision="tf32x3")
    at = parts + (tl.program_id(1) * m + row)[:, None] * C + c[None, :]
    tl.store(at, f, mask=(row < m)[:, None] & (c < C)[None, :])


def absorb(Z: torch.Tensor, alpha: torch.Tensor, decay: torch.Tensor, w: torch.Tensor) -> None:
    """``w <- decay w + alpha'Z`` for Z (m, P) of any type, alpha (m, C), decay (C,), w (C, P) float32."""
    (m, P), C = Z.shape, len(w)
    if C == 1:
        _absorb[(triton.cdiv(P, 128),)](Z, alpha, decay, w, m, P, Z.stride(0), BM=32, BP=128, num_warps=4)
    else:
        _many_absorb[(triton.cdiv(P, 64),)](
            Z, alpha, decay, w, m, P, Z.stride(0), C, BM=32, BP=64, BC=_outputs(C), num_warps=4
        )


@triton.jit
def _absorb(Z, alpha, decay, w, m, P, stride, BM: tl.constexpr, BP: tl.constexpr):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    total = tl.zeros([BM, BP], tl.float32)
    for start in range(0, m, BM):
        row = start + tl.arange(0, BM)
        at = Z + row.to(tl.int64)[:, None] * stride + p[None, :]
        z = tl.load(at, mask=(row < m)[:, None] & (p < P)[None, :], other=0.0)
        total += z.to(tl.float32) * tl.load(alpha + row, mask=row < m, other=0.0)[:, None]
    old = tl.load(w + p, mask=p < P, other=0.0)
    tl.store(w + p, tl.load(decay) * old + tl.sum(total, axis=0), mask=p < P)


@triton.jit
def _many_absorb(Z, alpha, decay, w, m, P, stride, C, BM: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, BC)
    total = tl.zeros([BC, BP], tl.float32)
    for start in range(0, m, BM):
        row = start + tl.arange(0, BM)
        at = Z + row.to(tl.int64)[:, None] * stride + p[None, :]
        z = tl.load(at, mask=(row < m)[:, None] & (p < P)[None, :], other=0.0)
        a = tl.load(alpha + row[None, :] * C + c[:, None], mask=(row < m)[None, :] & (c < C)[:, None], other=0.0)
        total = tl.dot(a, z.to(tl.float32), total, input_precision="tf32x3")
    there = (c < C)[:, None] & (p < P)[None, :]
    at = w + c[:, None].to(tl.int64) * P + p[None, :]
    shrink = tl.load(decay + c, mask=c < C, other=0.0)
    tl.store(at, shrink[:, None] * tl.load(at, mask=there, other=0.0) + total, mask=there)
