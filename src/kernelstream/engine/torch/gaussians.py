r"""Products with a Gaussian kernel matrix that is never stored, as a Triton program.

With rows multiplied by :math:`\sqrt{2 \gamma \log_2 e}` beforehand,

.. math:: k(x, s) = 2^{\tilde x'\tilde s - |\tilde x|^2 / 2 - |\tilde s|^2 / 2} ,

so that a tile of values is one product of matrices and one power. Values are made in float32 and summed in float64.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

WIDEST = 128  # columns for which a tile of rows stays in registers
ROWS, OTHERS = 64, 64  # of a tile
PROGRAMS = 2048  # that keep a large device busy
LEAST = 16  # tiles that are worth a program

Scaled = tuple[torch.Tensor, torch.Tensor]  # rows (n, d), and half their squared norms (n,)


def scaled(X: torch.Tensor, gamma: float) -> Scaled:
    """Rows X (n, d) as the program compares them."""
    X = (X * math.sqrt(2 * gamma * math.log2(math.e))).contiguous()
    return X, 0.5 * (X * X).sum(dim=1)


def times(rows: Scaled, others: Scaled, v: torch.Tensor) -> torch.Tensor:
    """``k(X, S) v`` for rows X (n, d), others S (m, d) and v (m,) float64, (n,) float64."""
    (X, a), (S, b) = rows, others
    (n, d), m = X.shape, len(S)
    down = triton.cdiv(n, ROWS)
    splits = max(1, min(PROGRAMS // down, m // (LEAST * OTHERS)))
    share = triton.cdiv(triton.cdiv(m, splits), OTHERS) * OTHERS
    splits = triton.cdiv(m, share)
    parts = torch.empty((splits, n), dtype=torch.float64, device=X.device)
    width = max(16, triton.next_power_of_2(d))
    _times[(down, splits)](X, a, S, b, v, parts, n, m, d, share, BM=ROWS, BN=OTHERS, BD=width, num_warps=4)
    return parts.sum(dim=0)


@triton.jit
def _times(X, a, S, b, v, parts, n, m, d, share, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    j = tl.program_id(1).to(tl.int64) * share + tl.arange(0, BN)
    k = tl.arange(0, BD)
    x = tl.load(X + i[:, None] * d + k[None, :], mask=(i < n)[:, None] & (k < d)[None, :], other=0.0)
    half = tl.load(a + i, mask=i < n, other=0.0)
    total = tl.zeros([BM, BN], tl.float64)
    for _ in range(0, tl.minimum(share, m - tl.program_id(1) * share), BN):
        there = j < m
        s = tl.load(S + j[None, :] * d + k[:, None], mask=there[None, :] & (k < d)[:, None], other=0.0)
        power = tl.dot(x, s, input_precision="tf32x3") - half[:, None] - tl.load(b + j, mask=there, other=0.0)[None, :]
        value = tl.exp2(tl.minimum(power, 0.0))
        total += value.to(tl.float64) * tl.load(v + j, mask=there, other=0.0)[None, :]
        j += BN
    tl.store(parts + tl.program_id(1).to(tl.int64) * n + i, tl.sum(total, axis=1), mask=i < n)
