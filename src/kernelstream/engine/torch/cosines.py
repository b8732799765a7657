"""Fourier features on a GPU, as Triton programs: the cosines and sines with the product or in one reading of it."""

from __future__ import annotations

import math

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
    """As :func:`fourier`, products in tf32, of rows and frequencies that are rounded already."""
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
