r"""The recursion over the rows of a block as one Triton program: a twin of ``expansion_pass`` without a budget.

``f = F_i``; ``(decay, tau) = step(loss, y_i, f, S_ii, t)``; the later F become ``decay F_j + tau S_ij``. Rows come in
groups of :data:`GROUP`, whose tau are held in registers: ``f = F_i + sum_j S_ij tau_j`` over the rows j of the group
before i. What a group does to the scores after it is one product with a strip of S. The formulas are those of
:mod:`kernelstream.losses` and :mod:`kernelstream.updates`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ...losses import Loss
from ...updates import NormAdaGrad, Update

GROUP = 32  # rows whose tau are held in registers: one per lane of a warp
TILE = 512  # rows of the strip of S handled at once
WARPS = 8
TINY = tl.constexpr(1e-12)
AUTO = tl.constexpr(NormAdaGrad.AUTO)
BOOK = 3  # t, and count and mean of the centred target

LOSSES = (
    "hinge", "squared_hinge", "logistic", "perceptron", "squared", "absolute", "epsilon_insensitive", "huber",
    "quantile", "crammer_singer", "multiclass_perceptron", "softmax",
)  # fmt: skip
UPDATES = ("ogd", "pegasos", "norma", "perceptron", "passive_aggressive", "norm_ada_grad", "coin_betting")


class Program(NamedTuple):
    """Which formulas a recursion uses; numbers that are parameters are in ``numbers``."""

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
    """The recursion of a loss and an update, or None if one of them is not known here."""
    try:
        (name, p), (step, q) = loss.native(), update.native()
    except NotImplementedError:
        return None
    head, _, inner = name.partition(":")
    rest = head == "one_vs_rest"
    name = inner if rest else head
    if name not in LOSSES or step not in UPDATES:
        return None
    closed = name in ("hinge", "crammer_singer") and bool(p[0])
    number = float(p[0]) if p else 0.0
    flag, rest_of = {
        "ogd": lambda: (int(q[1]), (q[0], q[2], 0.0)),
        "pegasos": lambda: (0, (q[0], 0.0, 0.0)),
        "norma": lambda: (0, tuple(q)),
        "perceptron": lambda: (int(q[1]), (q[0], 0.0, 0.0)),
        "passive_aggressive": lambda: (int(q[1]), (q[0], 0.0, 0.0)),
        "norm_ada_grad": lambda: (int(q[0] < 0), (q[0], 0.0, 0.0)),
        "coin_betting": lambda: (0, (0.0, 0.0, 0.0)),
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
        num_warps=WARPS if C == 1 else WARPS // 2,
    )  # fmt: skip


@triton.jit
def _load(at, col, real, ONE: tl.constexpr):
    if ONE:
        return tl.load(at)
    else:
        return tl.load(at + col, mask=real, other=0.0)


@triton.jit
def _store(at, value, col, real, ONE: tl.constexpr):
    if ONE:
        tl.store(at, value)
    else:
        tl.store(at + col, value, mask=real)


@triton.jit
def _total(x, ONE: tl.constexpr):
    """Sum over the outputs."""
    if ONE:
        return x
    else:
        return tl.sum(x, axis=0)


@triton.jit
def _kernel(
    F, S, y, weight, numbers, memory, book, alpha, decay_out, m, stride,
    C: tl.constexpr, CP: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr,
    UPDATE: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr, DECAYS: tl.constexpr, CENTER: tl.constexpr,
    UNIT: tl.constexpr, ACC: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    ONE: tl.constexpr = C == 1  # then what belongs to an output is a plain number
    lane = tl.arange(0, GROUP)
    if ONE:
        col = tl.load(numbers).to(tl.int32) * 0
    else:
        col = tl.arange(0, CP)
    real = col < C
    p = tl.load(numbers).to(ACC)
    q0 = tl.load(numbers + 1).to(ACC)
    q1 = tl.load(numbers + 2).to(ACC)
    q2 = tl.load(numbers + 3).to(ACC)
    t = tl.load(book)
    count = tl.load(book + 1)
    mean = tl.load(book + 2)
    # Memory of the update: numbers shared by all outputs (a0..a3) and numbers of each (v0..v3).
    a0 = t * 0.0
    a1 = a0
    a2 = a0
    a3 = a0
    v0 = (col * 0).to(tl.float64)
    v1 = v0
    v2 = v0
    v3 = v0
    if UPDATE == "norma":
        a0 = tl.load(memory)
        a1 = tl.load(memory + C)
    if UPDATE == "norm_ada_grad":
        a0 = tl.load(memory)
        a1 = tl.load(memory + C)
        a2 = tl.load(memory + 2 * C)
        a3 = tl.load(memory + 3 * C)
        v0 = _load(memory + 4 * C, col, real, ONE)
    if UPDATE == "coin_betting":
        v0 = _load(memory, col, real, ONE)
        v1 = _load(memory + C, col, real, ONE)
        v2 = _load(memory + 2 * C, col, real, ONE)
        v3 = _load(memory + 3 * C, col, real, ONE)
    total = (col * 0).to(ACC) + 1.0
    for base in range(0, m, GROUP):
        row = base + lane
        # The strip of S beside the group is on its way while the rows of the group are worked on.
        later = base + GROUP + tl.arange(0, TILE)
        strip = tl.load(S + row[:, None] * stride + later[None, :], mask=(later < m)[None, :], other=0.0)
        if ONE:
            shown = tl.zeros([GROUP], ACC)
            taus = tl.zeros([GROUP], ACC)
        else:
            shown = tl.zeros([GROUP, CP], ACC)
            taus = tl.zeros([GROUP, CP], ACC)
        # Reading the group's tile of S at once brings its lines near: row by row they would come from far away. S is
        # finite, so the sum of its entries times 0 changes nothing; it only keeps the compiler from dropping the load.
        tile = tl.load(
            S + row[:, None] * stride + row[None, :], mask=(row < m)[:, None] & (row < m)[None, :], other=0.0
        )
        inside = (col * 0).to(ACC) + (1.0 + 0.0 * tl.sum(tl.sum(tile, axis=1), axis=0).to(ACC))
        size = tl.minimum(GROUP, m - base)
        # what a row needs is loaded while the row before is worked on
        f_next = _load(F + base * C, col, real, ONE).to(ACC)
        if ONE:
            s_next = tl.load(S + base * stride + row, mask=row < m, other=0.0).to(ACC)
        else:
            s_next = tl.load(S + base * stride + row[:, None], mask=(row < m)[:, None], other=0.0).to(ACC)
        k_next = tl.load(S + base * stride + base).to(ACC)
        y_next = tl.load(y + base).to(ACC)
        weight_next = tl.load(weight + base).to(ACC)
        for i in range(0, size):
            f = f_next
            s = s_next
            k = k_next
            y_i = y_next
            importance = weight_next
            ahead = base + tl.minimum(i + 1, size - 1)
            f_next = _load(F + ahead * C, col, real, ONE).to(ACC)
            if ONE:
                s_next = tl.load(S + ahead * stride + row, mask=row < m, other=0.0).to(ACC)
                mine = lane == i
            else:
                s_next = tl.load(S + ahead * stride + row[:, None], mask=(row < m)[:, None], other=0.0).to(ACC)
                mine = lane[:, None] == i
            k_next = tl.load(S + ahead * stride + ahead).to(ACC)
            y_next = tl.load(y + ahead).to(ACC)
            weight_next = tl.load(weight + ahead).to(ACC)
            if DECAYS:
                f = inside * f
            f += tl.sum(s * taus, axis=0)
            if CENTER:
                offset = mean.to(ACC)
                target = y_i - offset
                score = f + offset
            else:
                target = y_i
                score = f
            act = importance > 0.0
            t += tl.where(act, 1.0, 0.0)
            if UNIT:
                k = k * 0.0 + 1.0
            value, g = _loss(target, f, col, real, p, C, LOSS, REST, CLOSED, KIND, ACC)
            now = tl.maximum(t.to(ACC), 1.0)
            decay = inside * 0.0 + 1.0
            if UPDATE == "ogd":
                if FLAG == 0:
                    eta = q0
                elif FLAG == 1:
                    eta = q0 / tl.sqrt(now)
                else:
                    eta = 1.0 / (q1 * now)
                tau = -eta * g
                decay = decay * (1.0 - eta * q1)
            if UPDATE == "pegasos":
                tau = -g / (q0 * now)
                decay = decay * (1.0 - 1.0 / now)
            if UPDATE == "norma":
                decay = decay * (1.0 - q0 * q1)
                if LOSS == "epsilon_insensitive":
                    epsilon = tl.where(a1 > 0.0, a0.to(ACC), p)
                    gap = target - f
                    outside = tl.abs(gap) > epsilon
                    tau = tl.where(outside, tl.where(gap > 0.0, q0, -q0), 0.0)
                    step = _total(tl.where(outside, (1.0 - q2) * q0, -q2 * q0), ONE)
                    a0 = tl.where(act, tl.maximum(0.0, epsilon + step).to(tl.float64), a0)
                    a1 = tl.where(act, 1.0, a1)
                else:
                    tau = -q0 * g
            if UPDATE == "perceptron":
                if KIND == "binary":
                    if FLAG == 1:
                        tau = tl.where(target * f <= 0.0, q0 * target, 0.0)
                    else:
                        tau = tl.where((f >= 0.0) != (target > 0.0), q0 * target, 0.0)
                elif KIND == "regression":
                    tau = tl.where(value > 0.0, tl.where(target - f >= 0.0, q0, -q0), 0.0)
                elif ONE:
                    tau = g * 0.0
                else:
                    best = tl.argmax(tl.where(real, f, -float("inf")), axis=0, tie_break_left=True)
                    wrong = best != target.to(tl.int32)
                    up = tl.where(col == target.to(tl.int32), q0, 0.0)
                    tau = tl.where(wrong, up - tl.where(col == best, q0, 0.0), 0.0)
            if UPDATE == "passive_aggressive":
                n = _total(g * g, ONE) * k
                safe = tl.where(n > 0.0, n, 1.0)
                if FLAG == 1:
                    length = tl.minimum(q0, value / safe)
                else:
                    length = value / (safe + 0.5 / q0)
                length = tl.where(n > 0.0, length, tl.where(q0 < float("inf"), q0, 0.0))
                tau = tl.where(g == 0.0, 0.0, -length * g)
            if UPDATE == "norm_ada_grad":
                if FLAG == 1:
                    # quotients in ACC: those of float64 would take longer than all the rest
                    n = a0 + 1.0
                    share = 1.0 / n.to(ACC)
                    if UNIT:
                        k_mean = n * 0.0 + 1.0
                        eta = share * 0.0 + AUTO
                    else:
                        k_mean = a3 + ((k - a3.to(ACC)) * share).to(tl.float64)
                        eta = tl.where(k_mean > 0.0, AUTO / tl.sqrt(tl.maximum(k_mean.to(ACC), TINY * TINY)), 0.0)
                    if KIND == "regression":
                        delta = target.to(tl.float64) - a1
                        y_mean = a1 + (delta.to(ACC) * share).to(tl.float64)
                        squares = a2 + delta * (target.to(tl.float64) - y_mean)
                        eta = eta * 0.3 * tl.sqrt(squares.to(ACC) * share)
                        a1 = tl.where(act, y_mean, a1)
                        a2 = tl.where(act, squares, a2)
                    a0 = tl.where(act, n, a0)
                    a3 = tl.where(act, k_mean, a3)
                else:
                    eta = q0
                added = v0 + (g * g * k).to(tl.float64)
                tau = -eta * g / tl.sqrt((added + TINY).to(ACC))
                v0 = tl.where(act, added, v0)
            if UPDATE == "coin_betting":
                bet = tl.abs(g) * tl.sqrt(k)
                L = tl.maximum(v0, bet.to(tl.float64))
                G = v1 + bet.to(tl.float64)
                R = tl.maximum(v2 - (g * f).to(tl.float64), 0.0)
                begun = L > 0.0
                new = tl.where(begun, (L + R) / tl.where(begun, L * (G + L), 1.0), 1.0)
                decay = tl.where(v3 > 0.0, new / tl.where(v3 > 0.0, v3, 1.0), 1.0).to(ACC)
                tau = -new.to(ACC) * g
                v0 = tl.where(act, L, v0)
                v1 = tl.where(act, G, v1)
                v2 = tl.where(act, R, v2)
                v3 = tl.where(act, tl.where(begun, new, 0.0), v3)
            tau = tl.where(act, tau * importance, 0.0)
            if CENTER:
                count += importance.to(tl.float64)
                drift = importance * (y_i - mean.to(ACC))
                mean += tl.where(act, drift / tl.where(act, count, 1.0).to(ACC), 0.0).to(tl.float64)
            if DECAYS:
                decay = tl.where(act, decay, 1.0)
                taus = decay * taus
                inside = inside * decay
            taus = tl.where(mine, tau, taus)
            shown = tl.where(mine, score, shown)
        # What the group did to the rows after it, and, where there is decay, to the coefficients before it.
        if ONE:
            tl.store(F + row, shown, mask=row < m)
            tl.store(alpha + row, taus, mask=row < m)
        else:
            own = (row < m)[:, None] & real[None, :]
            tl.store(F + row[:, None] * C + col[None, :], shown, mask=own)
            tl.store(alpha + row[:, None] * C + col[None, :], taus, mask=own)
        for start in range(base + GROUP, m, TILE):
            if start > base + GROUP:
                later = start + tl.arange(0, TILE)
                strip = tl.load(S + row[:, None] * stride + later[None, :], mask=(later < m)[None, :], other=0.0)
            if ONE:
                old = tl.load(F + later, mask=later < m, other=0.0)
                if DECAYS:
                    old *= inside
                tl.store(F + later, old + tl.sum(strip.to(ACC) * taus[:, None], axis=0), mask=later < m)
            elif tl.float64 == ACC:
                for c in range(0, C):
                    one = tl.sum(tl.where(col[None, :] == c, taus, 0.0), axis=1)
                    old = tl.load(F + later * C + c, mask=later < m, other=0.0)
                    if DECAYS:
                        old *= tl.sum(tl.where(col == c, inside, 0.0), axis=0)
                    tl.store(F + later * C + c, old + tl.sum(strip * one[:, None], axis=0), mask=later < m)
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
                    tl.store(held, tl.load(held, mask=past, other=0.0) * inside, mask=past)
                else:
                    held = alpha + before[:, None] * C + col[None, :]
                    past = (before < base)[:, None] & real[None, :]
                    tl.store(held, tl.load(held, mask=past, other=0.0) * inside[None, :], mask=past)
        tl.debug_barrier()
    _store(decay_out, total, col, real, ONE)
    tl.store(book, t)
    tl.store(book + 1, count)
    tl.store(book + 2, mean)
    if UPDATE == "norma":
        tl.store(memory, a0)
        tl.store(memory + C, a1)
    if UPDATE == "norm_ada_grad":
        tl.store(memory, a0)
        tl.store(memory + C, a1)
        tl.store(memory + 2 * C, a2)
        tl.store(memory + 3 * C, a3)
        _store(memory + 4 * C, v0, col, real, ONE)
    if UPDATE == "coin_betting":
        _store(memory, v0, col, real, ONE)
        _store(memory + C, v1, col, real, ONE)
        _store(memory + 2 * C, v2, col, real, ONE)
        _store(memory + 3 * C, v3, col, real, ONE)


@triton.jit
def _loss(
    y, f, col, real, p, C: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr,
    KIND: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Value (a number) and gradient (CP,) of the loss of one row with scores f (CP,)."""
    ONE: tl.constexpr = C == 1
    if KIND == "multiclass" and ONE:
        g = f * 0.0
        value = g
    elif KIND == "multiclass" and not REST:
        code = y.to(tl.int32)
        own = col == code
        if LOSS == "softmax":
            top = tl.max(tl.where(real, f, -float("inf")), axis=0)
            e = tl.where(real, tl.exp(f - top), 0.0)
            g = e / tl.sum(e, axis=0) - tl.where(own, 1.0, 0.0)
            value = tl.log(tl.sum(e, axis=0)) + top - tl.sum(tl.where(own, f, 0.0), axis=0)
        else:
            others = tl.where(real & (col != code), f, -float("inf"))
            rival = tl.argmax(others, axis=0, tie_break_left=True)
            margin = tl.sum(tl.where(own, f, 0.0), axis=0) - tl.max(others, axis=0)
            if LOSS == "crammer_singer":
                value = tl.maximum(0.0, 1.0 - margin)
                if CLOSED:
                    act = margin <= 1.0
                else:
                    act = margin < 1.0
            else:
                value = tl.maximum(0.0, -margin)
                best = tl.argmax(tl.where(real, f, -float("inf")), axis=0, tie_break_left=True)
                act = best != code
            g = tl.where(act, tl.where(col == rival, 1.0, 0.0) - tl.where(own, 1.0, 0.0), 0.0)
    else:
        if REST:
            sign = tl.where(col == y.to(tl.int32), 1.0, -1.0).to(ACC)
        else:
            sign = y + 0.0 * f
        if LOSS == "hinge":
            margin = sign * f
            v = tl.maximum(0.0, 1.0 - margin)
            if CLOSED:
                g = tl.where(margin <= 1.0, -sign, 0.0)
            else:
                g = tl.where(margin < 1.0, -sign, 0.0)
        elif LOSS == "squared_hinge":
            gap = tl.maximum(0.0, 1.0 - sign * f)
            v = 0.5 * gap * gap
            g = -sign * gap
        elif LOSS == "logistic":
            margin = sign * f
            e = tl.exp(-tl.abs(margin))
            v = tl.maximum(0.0, -margin) + tl.log(1.0 + e)
            g = -sign * (tl.where(margin <= 0.0, 1.0, e) / (1.0 + e))
        elif LOSS == "perceptron":
            v = tl.maximum(0.0, -sign * f)
            g = tl.where((f >= 0.0) != (sign > 0.0), -sign, 0.0)
        else:
            r = f - sign
            size = tl.abs(r)
            direction = tl.where(r > 0.0, 1.0, tl.where(r < 0.0, -1.0, 0.0)).to(ACC)
            if LOSS == "squared":
                v = tl.maximum(0.0, 0.5 * (r * r - p * p))
                g = tl.where(size > p, r, 0.0)
            elif LOSS == "absolute":
                v = size
                g = direction
            elif LOSS == "epsilon_insensitive":
                v = tl.maximum(0.0, size - p)
                g = tl.where(size > p, direction, 0.0)
            elif LOSS == "huber":
                near = tl.minimum(size, p)
                v = 0.5 * near * near + p * (size - near)
                g = tl.maximum(-p, tl.minimum(p, r))
            else:
                v = tl.maximum((1.0 - p) * r, -p * r)
                g = tl.where(r >= 0.0, 1.0 - p, -p)
        g = tl.where(real, g, 0.0)
        value = _total(tl.where(real, v, 0.0), ONE)
    return value.to(ACC), g.to(ACC)
