"""Support sets whose budget can change while they learn, which some strategies allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import budgets
from ...state.nested import State
from .._contract.learner import Learner
from ..budget.base import SLOTS, KernelExpansion

# Strategies whose memory of the vectors can be cut and padded slot by slot.
RESIZABLE = (budgets.RemoveRandom, budgets.BOGD, budgets.Forgetron, budgets.RemoveSmallest, budgets.Replace)


def least(learner: Any) -> int:
    """The smallest budget that makes sense."""
    return learner.strategy.least


def check(capacity: str, updates: Any, examples: Callable[[], list[Learner]]) -> None:
    """Raise ValueError for members, or updates, that a way to share budgets does not fit."""
    if capacity == "shared" and updates == "deterministic":
        raise ValueError(
            "capacity='shared' is a common budget for learners that are drawn: set updates='stochastic' as well"
        )
    if capacity == "fixed":
        return
    if not all(isinstance(each, KernelExpansion) and type(each.strategy) in RESIZABLE for each in examples()):
        raise ValueError(f"capacity={capacity!r} needs learners with a budget that remove or replace support vectors")


def budgets_of(learners: list[Learner]) -> list[int]:
    """Of the members."""
    return [learner.parameters["budget"] for learner in learners]


def sized(learner: Learner, n: int) -> Learner:
    """The learner with a budget of n, itself where it has that."""
    if learner.parameters["budget"] == n:
        return learner
    return type(learner)(learner.parameters | {"budget": n}, learner.context)


# -------------------------------------------------------------------- one budget for all, while members learn
def _n_support(state: State) -> int:
    return sum(member["n_support"] for member in state["members"])


def run_length(state: State, rows: int) -> int:
    """Largest number of rows that can be learned at once without exhausting a shared budget."""
    if "capacity_total" not in state:
        return rows
    room = state["capacity_total"] - _n_support(state)
    if room == 0:
        return rows
    for member, size in zip(state["members"], state["capacity"].tolist(), strict=True):
        rows = min(rows, size - member["n_support"] or size)  # a full one doubles
    return max(1, min(rows, room // len(state["members"])))


def scarce(state: State) -> bool:
    """Whether what is left of a shared budget is too little for all learners, so that they must take turns."""
    return "capacity_total" in state and 0 < state["capacity_total"] - _n_support(state) < len(state["members"])


def needs_room(state: State, weight: np.ndarray | None) -> bool:
    """Whether the budget is shared and some rows count: a row of weight 0 makes no room for later ones."""
    return "capacity_total" in state and (weight is None or bool(weight.any()))


def has_room(state: State, learners: list[Learner], i: int) -> bool:
    """Make room for learner i of a shared budget; returns whether it can take a row at all.

    While there is budget left, every learner can add support vectors (its arrays double when they are full). After
    that all keep what they have: to take a row, a learner must drop one of its vectors.
    """
    size, n, fewest, spent = int(state["capacity"][i]), state["members"][i]["n_support"], least(learners[i]), False
    wanted = size
    if _n_support(state) >= state["capacity_total"]:
        spent, wanted = True, max(n, fewest)
    elif n == size:
        wanted = 2 * size
    if wanted != size:
        _resize_member(state, learners, i, wanted)
        state["capacity"][i] = wanted
    return n >= fewest or not spent


def follow(state: State, learners: list[Learner], theta: np.ndarray, total: int) -> bool:
    """Give the learners support vectors in proportion to their weights; returns whether it was worth it."""
    now, sizes = state["capacity"], shares(theta, total, max(map(least, learners)))
    if (np.abs(sizes - now) * 4 <= now).all():
        return False
    for i, n in enumerate(sizes.tolist()):
        _resize_member(state, learners, i, n)
    state["capacity"] = sizes
    return True


def _resize_member(state: State, learners: list[Learner], i: int, n: int) -> None:
    """A member with another budget is another learner of the same state."""
    if n != learners[i].parameters["budget"]:
        resize(learners[i], state["members"][i], n)
        learners[i] = sized(learners[i], n)


def resize(learner: Any, state: State, new: int) -> None:
    """Change the budget of what was learned. A larger one is the same function as before.

    The vectors with the largest ``|alpha|^2 k(s, s)`` stay; of equal ones the youngest, if vectors leave in turn. For
    the Forgetron, the youngest vectors stay.
    """
    n, memory, strategy = state["n_support"], state["budget_memory"], learner.strategy
    slots = np.arange(n)
    if strategy.turns:
        slots = np.roll(slots, -int(memory[-1]))  # from the oldest to the youngest
        memory[-1] = 0
    if isinstance(strategy, budgets.Forgetron):
        slots = slots[max(0, n - new) :]
    elif n > new:
        sizes = (state["alpha"][:, :n] * state["scale"][:, None]) ** 2
        sizes = (sizes.sum(axis=0) * state["diag"][:n])[slots]
        young = np.arange(n)[::-1] if strategy.turns else np.arange(n)
        slots = slots[np.sort(young[np.argsort(-sizes[young], kind="stable")[:new]])]
    for name, axes in SLOTS.items():
        for axis in axes if name in state else ():
            taken = np.take(state[name], slots, axis=axis)
            zeros = [(0, new - len(slots) if i == axis else 0) for i in range(taken.ndim)]
            state[name] = np.ascontiguousarray(np.pad(taken, zeros))
    state["n_support"] = len(slots)


def shares(theta: np.ndarray, total: int, least: int) -> np.ndarray:
    """Sizes (m,) that follow the weights: a quarter of the total evenly, the rest by weight; rounded down."""
    even = total / (4 * len(theta))
    return np.maximum(least, np.floor(even + 0.75 * total * theta)).astype(np.int64)
