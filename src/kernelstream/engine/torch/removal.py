r"""Kernel expansions under a budget on a GPU: a block's kernel values by products, then one Triton program.

``A`` holds the kernel values of the block's rows with the support vectors (rows 0 to B - 1) and with each other (rows
from B on). A support vector is a row of ``A``: the program keeps which, ``members``, and its coefficient. A row that
joins takes a slot, and what was in the slot leaves every later score: ``F_j <- decay F_j + tau A_(B+i)j - alpha_r
A_(r)j``. As in :mod:`recursion` rows come in groups of one per lane, and what a group does to later rows is a product.
One output; the strategies are those of :mod:`kernelstream.budgets.removal` in :data:`STRATEGIES`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from ...budgets.removal import BOGD, EQUAL, RemoveRandom, RemoveSmallest
from .formulas import centred, keep, mean_after, read_memory, shared, step_of, write_memory
from .maps import gaussian
from .recursion import GROUP, WARPS, Program, program

STRATEGIES = (RemoveRandom, RemoveSmallest, BOGD)
TILE = 128  # columns of A handled at once after a group
_EQUAL = tl.constexpr(1.0 + EQUAL)
_LOW, _HIGH = tl.constexpr(1e-6), tl.constexpr(1e6)  # between them the common factor of the coefficients may be


class DeviceRemoval:
    """The pass of a budget learner with one output.

    Parameters
    ----------
    ops : Ops
    gamma : float
        Of the Gaussian kernel.
    strategy : Budget
    program : Program
    """

    def __init__(self, ops: Any, gamma: float, strategy: Any, program: Program):
        self.ops, self.gamma, self.strategy, self.program = ops, gamma, strategy, program
        self.limit = float(getattr(strategy, "limit", math.inf))
        self.numbers = torch.tensor([*program.numbers, self.limit], dtype=torch.float64, device=ops.device)

    def __call__(
        self,
        X: np.ndarray,
        S: torch.Tensor,
        y: np.ndarray,
        weight: np.ndarray | None,
        u: np.ndarray | None,
        state: dict[str, Any],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Learn a block; all of the state but the support vectors is brought up to date.

        Parameters
        ----------
        X : (m, d), y : (m,), weight : (m,) or None
        S : (B, d)
            Support vectors on the device.
        u : (m,) or None
            Random numbers, the j-th for the j-th row of positive weight.

        Returns
        -------
        scores : (m, 1)
            Before each update.
        slots, rows : (q,)
            Row ``rows[j]`` of the block is the support vector ``slots[j]`` now.
        """
        ops, B, m = self.ops, len(S), len(X)
        A, weights = self._values(ops.tensor(X), S), np.ones(m) if weight is None else weight
        center = state.get("center", np.zeros(2))
        # all numbers travel together: a copy takes longer to begin than to end
        numbers = {
            "F": np.zeros(m), "alpha": state["alpha"][0], "members": np.arange(B),
            "kept": (state["n_support"], state["scale"][0], *_turn(self.strategy, state)),
            "memory": state["memory"], "book": (state["t"], *center), "y": y, "weight": weights,
            "chosen": _slots(u, weights, B),
        }  # fmt: skip
        sizes = np.cumsum([np.size(part) for part in numbers.values()])
        packed = ops.tensor(np.concatenate([np.ravel(part) for part in numbers.values()]).astype(np.float64))
        held = dict(zip(numbers, packed.tensor_split(sizes[:-1].tolist())))
        with ops.full():
            torch.mv(A[:B].T, (held["alpha"] * float(state["scale"][0])).to(A.dtype), out=(F := A.new_empty(m)))
        held["F"].copy_(F)
        removal(
            A, self.program, self.numbers, **held,
            center="center" in state, strategy=self.strategy.name, limited=self.limit < math.inf,
        )  # fmt: skip
        found = dict(zip(numbers, np.split(packed.cpu().numpy(), sizes[:-1])))
        state["alpha"][0] = found["alpha"]
        state["n_support"], state["scale"][0] = int(found["kept"][0]), found["kept"][1]
        if isinstance(self.strategy, RemoveSmallest):
            state["budget_memory"][:] = found["kept"][2]
        state["memory"][:] = found["memory"].reshape(state["memory"].shape)
        state["t"] = int(found["book"][0])
        center[:] = found["book"][1:]
        slots = np.flatnonzero(found["members"] >= B)
        state["diag"][slots] = 1.0
        return found["F"][:, None], slots, found["members"][slots].astype(np.int64) - B

    def _values(self, X: torch.Tensor, S: torch.Tensor) -> torch.Tensor:
        """A (B + m, m); rows of slots that are not in use are never looked at."""
        middle = X.mean(dim=0)
        A = gaussian(self.ops, torch.cat([S, X]) - middle, X - middle, self.gamma)
        A[len(S) :].fill_diagonal_(1.0)
        return A


def _turn(strategy: Any, state: dict[str, Any]) -> tuple[float]:
    """The slot from which on equal terms leave."""
    return (float(state["budget_memory"][0]) if isinstance(strategy, RemoveSmallest) else 0.0,)


def _slots(u: np.ndarray | None, counts: np.ndarray, B: int) -> np.ndarray:
    """The slot that a row would empty by chance, (m,)."""
    slots = np.zeros(len(counts))
    learned = np.flatnonzero(counts)
    if u is not None:
        slots[learned] = np.floor(u[: len(learned)] * B)
    return slots


def device_removal(ops: Any, kernel: Any, spec: Any, outputs: int) -> DeviceRemoval | None:
    """The pass for a spec, or None if a part of it is not known here."""
    known = program(spec.loss, spec.update)
    if known is None or outputs > 1 or type(spec.strategy) not in STRATEGIES:
        return None
    return DeviceRemoval(ops, float(kernel.gamma), spec.strategy, known)


def removal(
    A: torch.Tensor,
    program: Program,
    numbers: torch.Tensor,
    F: torch.Tensor,
    alpha: torch.Tensor,
    members: torch.Tensor,
    kept: torch.Tensor,
    memory: torch.Tensor,
    book: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    chosen: torch.Tensor,
    *,
    center: bool,
    strategy: str,
    limited: bool,
) -> None:
    """One block. All arrays but A, whose type is that of the arithmetic, are float64.

    Parameters
    ----------
    A : (B + m, m)
    numbers : (5,)
        Those of the program, and the largest coefficient allowed where they are ``limited``.
    F : (m,)
        Scores at the start of the block; become those before each update.
    alpha, members : (B,)
        Coefficient, without the common factor, and row of A of every slot; changed in place.
    kept : (3,)
        Slots in use, the common factor, and the slot from which on equal terms leave; changed in place.
    memory, book
        As in :func:`~kernelstream.engine.torch.recursion.recursion`.
    y, weight, chosen : (m,)
        Targets, weights of the rows, and the slot that a row would empty by chance.
    """
    B = len(alpha)
    _removal[(1,)](
        F, A, y, weight, chosen, numbers, memory, book, alpha, members, kept, len(F), A.stride(0),
        B=B, BP=triton.next_power_of_2(B), LOSS=program.loss, REST=program.rest, CLOSED=program.closed,
        UPDATE=program.update, FLAG=program.flag, KIND=program.kind, CENTER=center, STRATEGY=strategy,
        LIMITED=limited, ACC=tl.float64 if A.dtype == torch.float64 else tl.float32, GROUP=GROUP, TILE=TILE,
        num_warps=WARPS,
    )  # fmt: skip


@triton.jit
def _removal(
    F, A, y, weight, chosen, numbers, memory, book, alpha, members, kept, m, stride,
    B: tl.constexpr, BP: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr,
    UPDATE: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr, CENTER: tl.constexpr, STRATEGY: tl.constexpr,
    LIMITED: tl.constexpr, ACC: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, GROUP)
    col = lane * 0
    real = col < 1
    every = tl.arange(0, BP)
    nothing = (col * 0).to(ACC)
    p = tl.load(numbers).to(ACC)
    q0 = tl.load(numbers + 1).to(ACC)
    q1 = tl.load(numbers + 2).to(ACC)
    q2 = tl.load(numbers + 3).to(ACC)
    t = shared(book, col, True)
    count = shared(book + 1, col, True)
    mean = shared(book + 2, col, True)
    n = shared(kept, col, True).to(tl.int32)
    scale = shared(kept + 1, col, True)
    turn = shared(kept + 2, col, True).to(tl.int32)
    a0, a1, a2, a3, v0, v1, v2, v3 = read_memory(memory, t, col, real, 1, UPDATE)
    for base in range(0, m, GROUP):
        row = base + lane
        there = row < m
        scores = tl.load(F + row, mask=there, other=0.0).to(ACC)
        targets = tl.load(y + row, mask=there, other=0.0).to(ACC)
        weights = tl.load(weight + row, mask=there, other=0.0).to(ACC)
        chances = tl.load(chosen + row, mask=there, other=0.0).to(tl.int32)
        shown = tl.zeros([GROUP], ACC)
        taus = tl.zeros([GROUP], ACC)  # of the group's rows,
        gone = tl.zeros([GROUP], ACC)  # and of those that had to leave for them,
        whose = lane * 0  # which are these rows of A
        inside = nothing + 1.0
        for i in range(0, GROUP):
            index = col + i
            mine = lane == index
            f = tl.gather(scores, index, 0)
            y_i = tl.gather(targets, index, 0)
            importance = tl.gather(weights, index, 0)
            slot = tl.gather(chances, index, 0)
            s = tl.load(A + (B + base + i) * stride + row, mask=there & (col + (base + i) < m), other=0.0).to(ACC)
            target, score = centred(y_i, f, mean, CENTER, ACC)
            act = importance > 0.0
            t += tl.where(act, 1.0, 0.0)
            decay, tau, a0, a1, a2, a3, v0, v1, v2, v3 = step_of(
                target, f, nothing + 1.0, act, t, col, real, p, q0, q1, q2, a0, a1, a2, a3, v0, v1, v2, v3,
                1, LOSS, REST, CLOSED, UPDATE, FLAG, KIND, True, ACC,
            )  # fmt: skip
            tau = tl.where(act, tau * importance, 0.0)
            factor = tl.where(act, decay, 1.0)
            mean, count = mean_after(mean, count, y_i, importance, act, CENTER, ACC)
            joins = tau != 0.0
            full = n >= B
            removes = joins & full
            if STRATEGY == "bogd":
                factor = tl.where(removes, factor * (B / (B - 1)), factor)
            scale *= factor.to(tl.float64)
            folds = (scale <= _LOW) | (scale >= _HIGH)
            scores *= factor
            taus *= factor
            gone *= factor
            inside *= factor
            if tl.max((joins | folds).to(tl.int32), axis=0) > 0:
                if tl.max(folds.to(tl.int32), axis=0) > 0:
                    part = tl.load(alpha + every, mask=every < B, other=0.0)
                    tl.store(alpha + every, part * tl.max(scale, axis=0), mask=every < B)
                    scale = tl.where(folds, 1.0, scale)
                    tl.debug_barrier()
                if STRATEGY == "remove_smallest":  # noqa: SIM102  (known when the program is made, the next is not)
                    if tl.max(removes.to(tl.int32), axis=0) > 0:
                        part = tl.load(alpha + every, mask=every < B, other=0.0).to(ACC)
                        sizes = tl.where(every < B, part * part, float("inf"))
                        lowest = tl.min(sizes, axis=0)
                        first = tl.max(turn, axis=0)
                        place = tl.where(every >= first, every - first, every - first + B)  # counted from the turn on
                        slot = (turn + tl.min(tl.where(sizes <= lowest * _EQUAL, place, BP), axis=0)) % B
                        size = tl.load(alpha + slot).to(ACC) * scale.to(ACC)
                        joins = joins & (size * size <= tau * tau * _EQUAL)
                        removes = removes & joins
                        turn = tl.where(removes, (slot + 1) % B, turn)
                slot = tl.where(full, slot, n)
                member = tl.load(members + slot, mask=removes, other=0.0).to(tl.int32)
                old = tl.load(alpha + slot, mask=removes, other=0.0).to(ACC) * scale.to(ACC)
                column = tl.load(A + member.to(tl.int64) * stride + row, mask=removes & there, other=0.0).to(ACC)
                tau = tl.where(joins, tau, 0.0)
                tl.debug_barrier()
                tl.store(alpha + slot, (tau / scale.to(ACC)).to(tl.float64), mask=joins)
                tl.store(members + slot, (col + (B + base + i)).to(tl.float64), mask=joins)
                tl.debug_barrier()
                n += tl.where(joins & (n < B), 1, 0)
                scores += tau * s - old * column
                taus = tl.where(mine, tau, taus)
                gone = tl.where(mine, old, gone)
                whose = tl.where(mine, member, whose)
                if LIMITED:  # noqa: SIM102
                    if tl.max(removes.to(tl.int32), axis=0) > 0:
                        part = tl.load(alpha + every, mask=every < B, other=0.0).to(ACC)
                        largest = tl.max(tl.abs(part), axis=0) * tl.max(scale, axis=0).to(ACC)
                        limit = tl.load(numbers + 4).to(ACC)
                        less = tl.where(largest > limit, limit / largest, 1.0).to(ACC) + nothing
                        scale *= less.to(tl.float64)
                        scores *= less
                        taus *= less
                        gone *= less
                        inside *= less
            shown = tl.where(mine, score, shown)
        tl.store(F + row, shown.to(tl.float64), mask=there)
        common = tl.max(inside, axis=0)
        for start in range(base + GROUP, m, TILE):
            later = start + tl.arange(0, TILE)
            after = (later < m)[None, :]
            added = tl.load(A + (B + row)[:, None] * stride + later[None, :], mask=there[:, None] & after, other=0.0)
            lost = tl.load(A + whose.to(tl.int64)[:, None] * stride + later[None, :], mask=after, other=0.0)
            change = added.to(ACC) * taus[:, None] - lost.to(ACC) * gone[:, None]
            old_scores = tl.load(F + later, mask=later < m, other=0.0).to(ACC)
            new_scores = common * old_scores + tl.sum(change, axis=0)
            tl.store(F + later, new_scores.to(tl.float64), mask=later < m)
        tl.debug_barrier()
    keep(book, t, col, True)
    keep(book + 1, count, col, True)
    keep(book + 2, mean, col, True)
    keep(kept, n.to(tl.float64), col, True)
    keep(kept + 1, scale, col, True)
    keep(kept + 2, turn.to(tl.float64), col, True)
    write_memory(memory, col, real, a0, a1, a2, a3, v0, v1, v2, v3, 1, UPDATE)
