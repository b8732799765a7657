"""Losses and updates inside a Triton program: the formulas of :mod:`kernelstream.losses`, ``updates``.

An output's numbers are a vector (CP,) over the outputs; with one output they are a number.
"""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl

from ... import updates
from ...losses import Loss
from ...registry.twins import twin
from ...updates import Update

TINY = tl.constexpr(1e-12)
AUTO = tl.constexpr(updates.NormAdaGrad.AUTO)
AUTO_EACH = tl.constexpr(updates.AdaGrad.AUTO)
REACH = tl.constexpr(updates.REACH)
SETTLED = tl.constexpr(float(updates.SETTLED))

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


@triton.jit
def total(x, ONE: tl.constexpr):
    """Sum over the outputs."""
    if ONE:
        return x
    else:
        return tl.sum(x, axis=0)


@triton.jit
def load(at, col, real, ONE: tl.constexpr):
    """Numbers of the outputs."""
    if ONE:
        return tl.load(at + col)
    else:
        return tl.load(at + col, mask=real, other=0.0)


@triton.jit
def store(at, value, col, real, ONE: tl.constexpr):
    """Numbers of the outputs."""
    if ONE:
        tl.store(at + col, value)
    else:
        tl.store(at + col, value, mask=real)


@triton.jit
def centred(y, f, mean, CENTER: tl.constexpr, ACC: tl.constexpr):
    """The target that is learned, and the score that is shown, of a row whose targets have the mean so far."""
    if CENTER:
        offset = mean.to(ACC)
        return y - offset, f + offset
    else:
        return y, f


@triton.jit
def mean_after(mean, count, y, importance, act, CENTER: tl.constexpr, ACC: tl.constexpr):
    """The weighted mean of the targets, and the sum of their weights, after a row."""
    if CENTER:
        count += importance.to(tl.float64)
        drift = importance * (y - mean.to(ACC))
        mean += tl.where(act, drift / tl.where(act, count, 1.0).to(ACC), 0.0).to(tl.float64)
    return mean, count


@triton.jit
def read_memory(memory, t, col, real, C: tl.constexpr, UPDATE: tl.constexpr):
    """Memory of an update: numbers shared by all outputs (a0..a3) and numbers of each (v0..v3)."""
    ONE: tl.constexpr = C == 1
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
    if UPDATE == "norm_adagrad" or UPDATE == "adagrad":
        a0 = tl.load(memory)
        a1 = tl.load(memory + C)
        a2 = tl.load(memory + 2 * C)
        a3 = tl.load(memory + 3 * C)
    if UPDATE == "norm_adagrad":
        v0 = load(memory + 4 * C, col, real, ONE)
    if UPDATE == "adagrad":
        v0 = v0 + tl.load(memory + 4 * C)  # the number of weights
    if UPDATE == "coin_betting":
        v0 = load(memory, col, real, ONE)
        v1 = load(memory + C, col, real, ONE)
        v2 = load(memory + 2 * C, col, real, ONE)
        v3 = load(memory + 3 * C, col, real, ONE)
    return a0, a1, a2, a3, v0, v1, v2, v3


@triton.jit
def write_memory(memory, col, real, a0, a1, a2, a3, v0, v1, v2, v3, C: tl.constexpr, UPDATE: tl.constexpr):
    """Where :func:`read_memory` found it."""
    ONE: tl.constexpr = C == 1
    if UPDATE == "norma":
        tl.store(memory, a0)
        tl.store(memory + C, a1)
    if UPDATE == "norm_adagrad" or UPDATE == "adagrad":
        tl.store(memory, a0)
        tl.store(memory + C, a1)
        tl.store(memory + 2 * C, a2)
        tl.store(memory + 3 * C, a3)
    if UPDATE == "norm_adagrad":
        store(memory + 4 * C, v0, col, real, ONE)
    if UPDATE == "coin_betting":
        store(memory, v0, col, real, ONE)
        store(memory + C, v1, col, real, ONE)
        store(memory + 2 * C, v2, col, real, ONE)
        store(memory + 3 * C, v3, col, real, ONE)


@triton.jit
def stable_rate(eta, k, LOSS: tl.constexpr):
    """The step, at most 1 / k where the derivative of the loss has no bound."""
    if LOSS == "squared" or LOSS == "squared_hinge":
        return tl.where(eta * k > 1.0, 1.0 / tl.maximum(k, TINY * TINY), eta)
    else:
        return eta


@triton.jit
def automatic(
    eta, target, k, act, a0, a1, a2, a3, LOSS: tl.constexpr, KIND: tl.constexpr, UNIT: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """The automatic step of a factor ``eta``, the limit of the derivative, and the memory if the row counts.

    None of it depends on the score.
    """
    # quotients in ACC: those of float64 would take longer than all the rest
    n = a0 + 1.0
    share = 1.0 / n.to(ACC)
    if UNIT:
        k_mean = n * 0.0 + 1.0
    else:
        k_mean = a3 + ((k - a3.to(ACC)) * share).to(tl.float64)
        eta = tl.where(k_mean > 0.0, eta / tl.sqrt(tl.maximum(k_mean.to(ACC), TINY * TINY)), 0.0)
    most = eta * 0.0 + float("inf")
    if KIND == "regression":
        delta = target.to(tl.float64) - a1
        y_mean = a1 + (delta.to(ACC) * share).to(tl.float64)
        squares = a2 + delta * (target.to(tl.float64) - y_mean)
        deviation = tl.sqrt(squares.to(ACC) * share)
        eta = eta * 0.3 * deviation
        if LOSS == "squared":
            most = tl.where(n > SETTLED, REACH * deviation, most)
        a1 = tl.where(act, y_mean, a1)
        a2 = tl.where(act, squares, a2)
    a0 = tl.where(act, n, a0)
    a3 = tl.where(act, k_mean, a3)
    return eta, most, a0, a1, a2, a3


@triton.jit
def limited(g, most, LOSS: tl.constexpr, KIND: tl.constexpr):
    """The derivative within the limit of :func:`automatic`, where it has no bound of its own."""
    if KIND == "regression" and LOSS == "squared":
        return tl.minimum(tl.maximum(g, -most), most)
    else:
        return g


@triton.jit
def rate_of_each(
    target, k, act, col, q0, a0, a1, a2, a3, v0,
    LOSS: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr, UNIT: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """AdaGrad's step scale, the limit of the derivative and the memory; v0 is the number of weights."""
    eta = (col * 0).to(ACC) + q0
    most = (col * 0).to(ACC) + float("inf")
    if FLAG == 1:
        eta = AUTO_EACH / tl.sqrt(tl.maximum(v0.to(ACC), 1.0))
        eta, most, a0, a1, a2, a3 = automatic(eta, target, k, act, a0, a1, a2, a3, LOSS, KIND, UNIT, ACC)
    return eta, most, a0, a1, a2, a3


@triton.jit
def step_of(
    target, f, k, act, t, col, real, p, q0, q1, q2, a0, a1, a2, a3, v0, v1, v2, v3,
    C: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr, UPDATE: tl.constexpr,
    FLAG: tl.constexpr, KIND: tl.constexpr, UNIT: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """(decay, tau) of one row with scores f and k = z'z (1 with UNIT), and the memory after it if the row counts."""
    ONE: tl.constexpr = C == 1
    value, g = loss_of(target, f, col, real, p, C, LOSS, REST, CLOSED, KIND, ACC)
    now = tl.maximum(t.to(ACC), 1.0)
    decay = (col * 0).to(ACC) + 1.0
    if UPDATE == "ogd":
        if FLAG == 0:
            eta = q0
        elif FLAG == 1:
            eta = q0 / tl.sqrt(now)
        else:
            eta = 1.0 / (q1 * now)
        eta = stable_rate(eta, k, LOSS)
        tau = -eta * g
        decay = decay * (1.0 - eta * q1)
    if UPDATE == "pegasos":
        if LOSS == "squared" or LOSS == "squared_hinge":
            eta = 1.0 / (q0 * now + k)
            tau = -eta * g
            decay = decay * (1.0 - eta * q0)
        else:
            tau = -g / (q0 * now)
            decay = decay * (1.0 - 1.0 / now)
    if UPDATE == "norma":
        eta = stable_rate(q0, k, LOSS)
        decay = decay * (1.0 - eta * q1)
        if LOSS == "epsilon_insensitive":
            epsilon = tl.where(a1 > 0.0, a0.to(ACC), p)
            gap = target - f
            outside = tl.abs(gap) > epsilon
            tau = tl.where(outside, tl.where(gap > 0.0, q0, -q0), 0.0)
            step = total(tl.where(outside, (1.0 - q2) * q0, -q2 * q0), ONE)
            a0 = tl.where(act, tl.maximum(0.0, epsilon + step).to(tl.float64), a0)
            a1 = tl.where(act, 1.0, a1)
        else:
            tau = -eta * g
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
        n = total(g * g, ONE) * k
        safe = tl.where(n > 0.0, n, 1.0)
        if FLAG == 1:
            length = tl.minimum(q0, value / safe)
        else:
            length = value / (safe + 0.5 / q0)
        length = tl.where((n > 0.0) & (length < float("inf")), length, tl.where(q0 < float("inf"), q0, 0.0))
        tau = tl.where(g == 0.0, 0.0, -length * g)
    if UPDATE == "norm_adagrad":
        eta = (col * 0).to(ACC) + q0
        if FLAG == 1:
            eta = (col * 0).to(ACC) + AUTO
            eta, most, a0, a1, a2, a3 = automatic(eta, target, k, act, a0, a1, a2, a3, LOSS, KIND, UNIT, ACC)
            g = limited(g, most, LOSS, KIND)
        added = g * g
        if not UNIT:
            added = added * k
        # The sum is kept in float64; for the step it is rounded before the row is added, while f is not known yet.
        if tl.float64 == ACC:
            tau = -eta * g / tl.sqrt(v0 + added + TINY)
        else:
            tau = -eta * g * tl.rsqrt(v0.to(ACC) + added + TINY)
        v0 = tl.where(act, v0 + added.to(tl.float64), v0)
    if UPDATE == "coin_betting":
        bet = tl.abs(g) * tl.sqrt(k)
        L = tl.maximum(v0, bet.to(tl.float64))
        G = v1 + bet.to(tl.float64)
        R = tl.maximum(v2 - (g * f).to(tl.float64), 0.0)
        begun = L > 0.0
        new = tl.where(begun, (1.0 + R / tl.where(begun, L, 1.0)) / tl.where(begun, G + L, 1.0), 1.0)
        decay = tl.where(v3 > 0.0, new / tl.where(v3 > 0.0, v3, 1.0), 1.0).to(ACC)
        tau = -new.to(ACC) * g
        v0 = tl.where(act, L, v0)
        v1 = tl.where(act, G, v1)
        v2 = tl.where(act, R, v2)
        v3 = tl.where(act, tl.where(begun, new, 0.0), v3)
    return decay, tau, a0, a1, a2, a3, v0, v1, v2, v3


@triton.jit
def loss_of(
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
            sign = y + (col * 0).to(ACC)
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
        value = total(tl.where(real, v, 0.0), ONE)
    return value.to(ACC), g.to(ACC)
