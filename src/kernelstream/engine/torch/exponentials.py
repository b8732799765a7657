"""Kernel values of the learned metric as a Triton program: both kinds of distances in one reading of the rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

TILE = 64  # rows and others of a program


def fill(rows: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...], share: float, K: torch.Tensor) -> None:
    """``K[i, j] = w exp(-|z_i - t_j|) + (1 - w) exp(-sum |u_i - v_j|)`` in float32.

    ``rows`` are Z and U, (n, d) each, ``others`` T and V (m, d), and K is (n, m) with contiguous rows.
    """
    (n, d), m = rows[0].shape, len(others[0])
    columns = [S.T.contiguous() for S in (*rows, *others)]  # neighbours of a column lie side by side
    grid = (triton.cdiv(n, TILE), triton.cdiv(m, TILE))
    _fill[grid](*columns, K, n, m, d, share, TILE=TILE, num_warps=4)


@triton.jit
def _fill(Z, U, T, V, K, n, m, d, share, TILE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    here, there = i < n, j < m
    squares = tl.zeros([TILE, TILE], tl.float32)
    sums = tl.zeros([TILE, TILE], tl.float32)
    for _ in range(d):
        z = tl.load(Z + i, mask=here, other=0.0)[:, None] - tl.load(T + j, mask=there, other=0.0)[None, :]
        squares += z * z
        u = tl.load(U + i, mask=here, other=0.0)[:, None] - tl.load(V + j, mask=there, other=0.0)[None, :]
        sums += tl.abs(u)
        Z += n
        U += n
        T += m
        V += m
    k = share * tl.exp(-tl.sqrt(squares)) + (1 - share) * tl.exp(-sums)
    tl.store(K + i[:, None] * m + j[None, :], k, mask=here[:, None] & there[None, :])
