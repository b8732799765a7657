"""Support sets whose budget can change while they learn, which some strategies allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import budgets
from ...state.nested import State
from .._contract.learner import Learner
from ..budget.base import SLOTS, KernelExpansion

# Strategies whose memory of the vectors can be cut and padded slot by slot.
RESIZABLE = (budgets.RemoveRandom, budgets.BOGD, budgets.Forgetron, budgets.RemoveSmallest, budgets.Replace)


def is_budget(learner: Learner) -> bool:
    """Whether the learner keeps a support set whose budget can change."""
    return isinstance(learner, KernelExpansion) and type(learner.strategy) in RESIZABLE


def least(learner: Any) -> int:
    """The smallest budget that makes sense."""
    return learner.strategy.least


def sized(learner: Learner, n: int) -> Learner:
    """The learner with a budget of n, itself where it has that."""
    if learner.parameters["budget"] == n:
        return learner
    return type(learner)(learner.parameters | {"budget": n}, learner.context)


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
        if name in state:
            for axis in axes:
                state[name] = _take(state[name], slots, new, axis)
    state["n_support"] = len(slots)


def _take(A: np.ndarray, slots: np.ndarray, length: int, axis: int) -> np.ndarray:
    """The given slots of an axis, then zeros up to the length."""
    taken = np.take(A, slots, axis=axis)
    pad = [(0, length - len(slots) if i == axis else 0) for i in range(A.ndim)]
    return np.ascontiguousarray(np.pad(taken, pad))


def shares(theta: np.ndarray, total: int, least: int) -> np.ndarray:
    """Sizes (m,) that follow the weights: a quarter of the total evenly, the rest by weight; rounded down."""
    even = total / (4 * len(theta))
    return np.maximum(least, np.floor(even + 0.75 * total * theta)).astype(np.int64)
