r"""The recursion over the rows of a block as one Triton program: a twin of ``expansion_pass`` without a budget.

``f = F_i``; ``(decay, tau) = step(loss, y_i, f, S_ii, t)``; the later F become ``decay F_j + tau S_ij``. Rows come in
groups of :data:`GROUP`, one row per lane of a warp. What a group does to the scores after it is one product with a
strip of S. The formulas are those of :mod:`kernelstream.losses` and :mod:`kernelstream.updates`.

With one output the time of a block is that of the chain from a tau to the next, so as little as possible is on it:
every lane works out the same numbers, the score of a lane's row is brought up to date in the lane, the score of row
i + 1 is fetched while row i is worked on, and what tau_i adds to it is ``S_(i+1)i tau_i``. With several outputs the
tau of the group are kept instead, and ``f = F_i + sum_j S_ij tau_j`` over its rows j before i.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ...losses import Loss
from ...registry.twins import twin
from ...updates import Update
from .formulas import centred, keep, load, mean_after, read_memory, shared, step_of, store, write_memory

GROUP = 32  # rows whose tau are held in registers: one per lane of a warp
TILE = 512  # rows of the strip of S handled at once
WARPS = 4
BOOK = 3  # t, and count and mean of the centred target

LOSSES = (
    "hinge", "squared_hinge", "logistic", "perceptron", "squared", "absolute", "epsilon_insensitive", "huber",
    "quantile", "crammer_singer", "multiclass_perceptron", "softmax",
)  # fmt: skip
REST = "one_vs_rest:"  # before the name of a binary loss
UPDATES = (
    "ogd", "pegasos", "norma", "perceptron", "passive_aggressive", "norm_adagrad", "coin_betting", "adagrad",
)  # fmt: skip


class Program(NamedTuple):
    """Which formulas a program uses; numbers that are parameters are in ``numbers``."""

    loss: str
    rest: bool  # one against the rest
    closed: bool
    update: str
    flag: int  # the update's variant
    kind: str
    numbers: tuple[float, ...]  # one of the loss, three of the update

    @property
    def decays(self) -> bool:
        """Whether a decay may differ from 1."""
        if self.update == "ogd":
            return self.numbers[2] > 0
        return self.update in ("pegasos", "norma", "coin_betting")


def program(loss: Loss, update: Update) -> Program | None:
    """The formulas of a loss and an update, or None if one of them is not known here."""
    losses = twin(loss, lambda name: name.removeprefix(REST) in LOSSES)
    updates = twin(update, UPDATES.__contains__)
    if losses is None or updates is None:
        return None
    (name, p), (step, q) = losses, updates
    rest, name = name.startswith(REST), name.removeprefix(REST)
    closed = name in ("hinge", "crammer_singer") and bool(p[0])
    number = float(p[0]) if p else 0.0
    flag, rest_of = {
        "ogd": lambda: (int(q[1]), (q[0], q[2], 0.0)),
        "pegasos": lambda: (0, (q[0], 0.0, 0.0)),
        "norma": lambda: (0, tuple(q)),
        "perceptron": lambda: (int(q[1]), (q[0], 0.0, 0.0)),
        "passive_aggressive": lambda: (int(q[1]), (q[0], 0.0, 0.0)),
        "norm_adagrad": lambda: (int(q[0] < 0), (q[0], 0.0, 0.0)),
        "coin_betting": lambda: (0, (0.0, 0.0, 0.0)),
        "adagrad": lambda: (int(q[0] < 0), (q[0], q[1], 0.0)),
    }[step]()
    return Program(name, rest, closed, step, flag, loss.kind, (number, *map(float, rest_of)))


def recursion(
    F: torch.Tensor,
    S: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    program: Program,
    numbers: torch.Tensor,
    memory: torch.Tensor,
    book: torch.Tensor,
    alpha: torch.Tensor,
    decay: torch.Tensor,
    *,
    center: bool,
    unit: bool,
) -> None:
    """One block: F (m, C) becomes the scores before each update, alpha (m, C) and decay (C,) what the block did.

    Parameters
    ----------
    F : (m, C)
        Scores under the weights at the start of the block.
    S : (m, m)
        Gram matrix; with ``unit`` its diagonal counts as 1.
    y, weight : (m,) of the type of F
    numbers : (4,) float64
        The parameters, on the device.
    memory : (n, C) float64
        Of the update; changed in place.
    book : (3,) float64
        Rows so far; count and mean of the target; changed in place.
    """
    m, C = F.shape
    columns = 1 if C == 1 else max(16, triton.next_power_of_2(C))  # the least width of a product
    tile = min(TILE if C == 1 else TILE // 4, max(16, triton.next_power_of_2(m)))
    _kernel[(1,)](
        F, S, y, weight, numbers, memory, book, alpha, decay, m, S.stride(0),
        C=C, CP=columns, LOSS=program.loss, REST=program.rest, CLOSED=program.closed, UPDATE=program.update,
        FLAG=program.flag, KIND=program.kind, DECAYS=program.decays, CENTER=center, UNIT=unit,
        ACC=tl.float64 if F.dtype == torch.float64 else tl.float32, GROUP=GROUP, TILE=tile,
        num_warps=WARPS,
    )  # fmt: skip


@triton.jit
def _kernel(
    F, S, y, weight, numbers, memory, book, alpha, decay_out, m, stride,
    C: tl.constexpr, CP: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr,
    UPDATE: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr, DECAYS: tl.constexpr, CENTER: tl.constexpr,
    UNIT: tl.constexpr, ACC: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    ONE: tl.constexpr = C == 1
    lane = tl.arange(0, GROUP)
    if ONE:
        col = lane * 0
    else:
        col = tl.arange(0, CP)
    real = col < C
    nothing = (col * 0).to(ACC)
    p = tl.load(numbers).to(ACC)
    q0 = tl.load(numbers + 1).to(ACC)
    q1 = tl.load(numbers + 2).to(ACC)
    q2 = tl.load(numbers + 3).to(ACC)
    t = shared(book, col, ONE)
    count = shared(book + 1, col, ONE)
    mean = shared(book + 2, col, ONE)
    a0, a1, a2, a3, v0, v1, v2, v3 = read_memory(memory, t, col, real, C, UPDATE)
    total = nothing + 1.0
    for base in range(0, m, GROUP):
        row = base + lane
        there = row < m
        # The strip of S beside the group is on its way while the rows of the group are worked on.
        later = base + GROUP + tl.arange(0, TILE)
        strip = tl.load(S + row[:, None] * stride + later[None, :], mask=(later < m)[None, :], other=0.0)
        # Reading the group's tile of S at once brings its lines near: row by row they would come from far away. S is
        # finite, so the sum of its entries times 0 changes nothing; it only keeps the compiler from dropping the load.
        tile = tl.load(S + row[:, None] * stride + row[None, :], mask=there[:, None] & there[None, :], other=0.0)
        near = 0.0 * tl.sum(tl.sum(tile, axis=1), axis=0).to(ACC)
        inside = nothing + (1.0 + near)
        # What a row needs is fetched while the row before is worked on. Rows that are missing have weight 0.
        if ONE:
            shown = tl.zeros([GROUP], ACC)
            taus = tl.zeros([GROUP], ACC)
            scores = tl.load(F + row, mask=there, other=0.0).to(ACC) + near  # without the last tau
            targets = tl.load(y + row, mask=there, other=0.0).to(ACC)
            weights = tl.load(weight + row, mask=there, other=0.0).to(ACC)
            diagonal = tl.load(S + row * (stride + 1), mask=there, other=0.0).to(ACC)
            at = S + base * stride + row
            s_next = tl.load(at, mask=there, other=0.0).to(ACC)
            link = nothing  # S_(i+1)i
            index = col
            f_next = tl.gather(scores, index, 0)
            y_next = tl.gather(targets, index, 0)
            weight_next = tl.gather(weights, index, 0)
            k_next = tl.gather(diagonal, index, 0)
        else:
            shown = tl.zeros([GROUP, CP], ACC)
            taus = tl.zeros([GROUP, CP], ACC)
            s_next = tl.load(S + base * stride + row[:, None], mask=there[:, None], other=0.0).to(ACC)
            f_next = load(F + base * C, col, real, ONE).to(ACC)
            k_next = tl.load(S + base * stride + base).to(ACC)
            y_next = tl.load(y + base).to(ACC)
            weight_next = tl.load(weight + base).to(ACC)
        tau = nothing
        decay = nothing + 1.0
        for i in range(0, GROUP):
            f = f_next
            s = s_next
            k = k_next
            y_i = y_next
            importance = weight_next
            if ONE:
                mine = lane == index
                if DECAYS:
                    f = decay * f
                f += link * tau
                index = (index + 1) & (GROUP - 1)
                at += stride
                s_next = tl.load(at, mask=there & (col + (base + i + 1) < m), other=0.0).to(ACC)
                link = tl.gather(s, index, 0)
                f_next = tl.gather(scores, index, 0)
                y_next = tl.gather(targets, index, 0)
                weight_next = tl.gather(weights, index, 0)
                k_next = tl.gather(diagonal, index, 0)
            else:
                mine = lane[:, None] == i
                if DECAYS:
                    f = inside * f
                f += tl.sum(s * taus, axis=0)
                ahead = tl.minimum(base + i + 1, m - 1)
                f_next = load(F + ahead * C, col, real, ONE).to(ACC)
                s_next = tl.load(S + ahead * stride + row[:, None], mask=there[:, None], other=0.0).to(ACC)
                k_next = tl.load(S + ahead * stride + ahead).to(ACC)
                y_next = tl.load(y + ahead).to(ACC)
                weight_next = tl.where(base + i + 1 < m, tl.load(weight + ahead).to(ACC), 0.0)
            target, score = centred(y_i, f, mean, CENTER, ACC)
            act = importance > 0.0
            t += tl.where(act, 1.0, 0.0)
            if UNIT:
                k = k * 0.0 + 1.0
            decay, tau, a0, a1, a2, a3, v0, v1, v2, v3 = step_of(
                target, f, k, act, t, col, real, p, q0, q1, q2, a0, a1, a2, a3, v0, v1, v2, v3,
                C, LOSS, REST, CLOSED, UPDATE, FLAG, KIND, UNIT, ACC,
            )  # fmt: skip
            tau = tl.where(act, tau * importance, 0.0)
            mean, count = mean_after(mean, count, y_i, importance, act, CENTER, ACC)
            if DECAYS:
                decay = tl.where(act, decay, 1.0)
                taus = decay * taus
                inside = inside * decay
            if ONE:
                if DECAYS:
                    scores = decay * scores
                scores += tau * s
            taus = tl.where(mine, tau, taus)
            shown = tl.where(mine, score, shown)
        # What the group did to the rows after it, and, where there is decay, to the coefficients before it.
        if ONE:
            tl.store(F + row, shown, mask=there)
            tl.store(alpha + row, taus, mask=there)
        else:
            own = there[:, None] & real[None, :]
            tl.store(F + row[:, None] * C + col[None, :], shown, mask=own)
            tl.store(alpha + row[:, None] * C + col[None, :], taus, mask=own)
        one = inside
        if ONE:
            one = tl.max(inside, axis=0)
        for start in range(base + GROUP, m, TILE):
            if start > base + GROUP:
                later = start + tl.arange(0, TILE)
                strip = tl.load(S + row[:, None] * stride + later[None, :], mask=(later < m)[None, :], other=0.0)
            if ONE:
                old = tl.load(F + later, mask=later < m, other=0.0)
                if DECAYS:
                    old *= one
                tl.store(F + later, old + tl.sum(strip.to(ACC) * taus[:, None], axis=0), mask=later < m)
            elif tl.float64 == ACC:
                for c in range(0, C):
                    part = tl.sum(tl.where(col[None, :] == c, taus, 0.0), axis=1)
                    old = tl.load(F + later * C + c, mask=later < m, other=0.0)
                    if DECAYS:
                        old *= tl.sum(tl.where(col == c, inside, 0.0), axis=0)
                    tl.store(F + later * C + c, old + tl.sum(strip * part[:, None], axis=0), mask=later < m)
            else:
                after = F + later[:, None] * C + col[None, :]
                below = (later < m)[:, None] & real[None, :]
                scores = tl.load(after, mask=below, other=0.0)
                if DECAYS:
                    scores *= inside[None, :]
                tl.store(after, scores + tl.dot(tl.trans(strip).to(ACC), taus, input_precision="ieee"), mask=below)
        if DECAYS:
            total *= inside
            for start in range(0, base, TILE):
                before = start + tl.arange(0, TILE)
                if ONE:
                    held = alpha + before
                    past = before < base
                    tl.store(held, tl.load(held, mask=past, other=0.0) * one, mask=past)
                else:
                    held = alpha + before[:, None] * C + col[None, :]
                    past = (before < base)[:, None] & real[None, :]
                    tl.store(held, tl.load(held, mask=past, other=0.0) * inside[None, :], mask=past)
        tl.debug_barrier()
    store(decay_out, total, col, real, ONE)
    keep(book, t, col, ONE)
    keep(book + 1, count, col, ONE)
    keep(book + 2, mean, col, ONE)
    write_memory(memory, col, real, a0, a1, a2, a3, v0, v1, v2, v3, C, UPDATE)
