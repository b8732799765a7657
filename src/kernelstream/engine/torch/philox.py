"""The normal numbers of :mod:`kernelstream.core.philox` on a GPU: the same bits, made where they are used."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from ...core import philox
from ...core.philox import COS, LOG, MASK, SIN

_M0, _M1 = (tl.constexpr(m) for m in philox._MULTIPLIERS)
_W0, _W1 = (tl.constexpr(w) for w in philox._WEYL)
_HALF = tl.constexpr(philox.SQRT_HALF_BITS)
_LN = tl.constexpr(philox.MINUS_2_LN_2)
_PI = tl.constexpr(philox.PI_OVER_2_32)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = (tl.constexpr(c) for c in LOG)
_S0, _S1, _S2, _S3 = (tl.constexpr(c) for c in SIN)
_C0, _C1, _C2, _C3 = (tl.constexpr(c) for c in COS)


def normals(seed: int, block: int, d: int, D: int, stream: int, scale: float, out: torch.Tensor) -> None:
    """Rows 0..d-1 of a block, as columns: out (D, d) float32 holds ``philox.normals(...).T``."""
    groups = -(-D // 4)
    key = [int(np.int32(np.uint32(k))) for k in (seed & MASK, seed >> 32 & MASK)]
    grid = (triton.cdiv(groups, 32), triton.cdiv(d, 32))
    _normals[grid](out, d, D, groups, block, stream, *key, float(np.float32(scale)), out.stride(0), BG=32, BR=32,
                   num_warps=4, enable_fp_fusion=False)  # fmt: skip


@triton.jit(do_not_specialize=["d", "D", "groups", "block", "stream", "key0", "key1"])
def _normals(
    out, d, D, groups, block, stream, key0, key1, scale, stride, BG: tl.constexpr, BR: tl.constexpr
):  # fmt: skip
    group = tl.program_id(0) * BG + tl.arange(0, BG)
    row = tl.program_id(1) * BR + tl.arange(0, BR)
    zero = tl.zeros([BG, BR], tl.uint32)
    x0 = zero + group[:, None].to(tl.uint32)
    x1 = zero + row[None, :].to(tl.uint32)
    x2 = zero + block.to(tl.uint32)
    x3 = zero + stream.to(tl.uint32)
    k0 = zero + key0.to(tl.uint32)
    k1 = zero + key1.to(tl.uint32)
    m0 = zero + _M0
    m1 = zero + _M1
    for _ in tl.static_range(10):
        high0 = tl.umulhi(m0, x0)
        high1 = tl.umulhi(m1, x2)
        low0 = m0 * x0
        low1 = m1 * x2
        x0 = high1 ^ x1 ^ k0
        x1 = low1
        x2 = high0 ^ x3 ^ k1
        x3 = low0
        k0 = k0 + (zero + _W0)
        k1 = k1 + (zero + _W1)
    at = out + group[:, None].to(tl.int64) * stride + row[None, :]
    n0, n1 = _box_muller(x0, x1)
    n2, n3 = _box_muller(x2, x3)
    inside = (group < groups)[:, None] & (row < d)[None, :]
    step = groups.to(tl.int64) * stride
    tl.store(at, n0 * scale, mask=inside)
    tl.store(at + step, n1 * scale, mask=inside & (group + groups < D)[:, None])
    tl.store(at + 2 * step, n2 * scale, mask=inside & (group + 2 * groups < D)[:, None])
    tl.store(at + 3 * step, n3 * scale, mask=inside & (group + 3 * groups < D)[:, None])


@triton.jit
def _box_muller(a, b):
    """The operations of ``philox._box_muller``, in its order; each is rounded."""
    v = a.to(tl.float32) + 0.5
    shifted = v.to(tl.int32, bitcast=True) - _HALF
    exponent = (shifted >> 23).to(tl.float32)
    m = ((shifted & 0x7FFFFF) + _HALF).to(tl.float32, bitcast=True)
    x = m - 1.0
    p = ((((((_L7 * x + _L6) * x + _L5) * x + _L4) * x + _L3) * x + _L2) * x + _L1) * x + _L0
    log_m = x + (x * x) * p
    radius = tl.sqrt_rn((exponent - 32.0) * _LN + -2.0 * log_m)
    r = (b << 1).to(tl.int32, bitcast=True).to(tl.float32) * _PI
    z = r * r
    sine = r + (r * z) * (((_S3 * z + _S2) * z + _S1) * z + _S0)
    cosine = (1.0 - 0.5 * z) + (z * z) * (((_C3 * z + _C2) * z + _C1) * z + _C0)
    sign = b & 0x80000000
    radius = (radius.to(tl.uint32, bitcast=True) | sign).to(tl.float32, bitcast=True)
    return radius * cosine, radius * sine
