"""Learners of a size that can change while they learn: Fourier features, and support sets of some budget strategies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import budgets
from ...features import RandomFourier
from .._contract.base import State
from ..budget.base import SLOTS, KernelExpansion
from ..feature import Linear

# Strategies whose memory of the vectors can be cut and padded slot by slot.
RESIZABLE = (budgets.RemoveRandom, budgets.BOGD, budgets.Forgetron, budgets.RemoveSmallest, budgets.Replace)
TURN = {budgets.Forgetron: 2, budgets.RemoveSmallest: 0}  # where a memory has the oldest slot


def is_budget(member: Any) -> bool:
    """Whether the member is a support set whose budget can change."""
    return isinstance(member._learner, KernelExpansion) and type(member._learner.strategy) in RESIZABLE


def is_fourier(member: Any) -> bool:
    """Whether the member learns on Fourier features, of which there can be more or fewer."""
    learner = member._learner
    return type(learner) is Linear and isinstance(learner.map, RandomFourier) and learner.map.sampling == "iid"


def size(member: Any) -> int:
    """Frequencies or support vectors for which the member has room."""
    return int(member.budget if is_budget(member) else member._learner.map.n_components)


def least(member: Any) -> int:
    """The smallest size that makes sense."""
    return member._learner.strategy.least if is_budget(member) else 1


def set_size(member: Any, n: int) -> None:
    """Change the parameter; the state must fit already."""
    if is_budget(member):
        member.set_params(budget=n)
    else:
        member.set_params(features=member._learner.map.set_params(n_components=n))


def resize(member: Any, n: int) -> None:
    """Change the size of a member that has learned. A larger one is the same function as before."""
    if n == size(member):
        return
    if is_budget(member):
        _resize_support(member._state, n, type(member._learner.strategy))
    else:
        _resize_features(member._state, size(member), n)
    set_size(member, n)


def _resize_features(state: State, old: int, new: int) -> None:
    """Keep the first frequencies; features are scaled by 1/sqrt(D), so weights by sqrt(D), and squares by 1/D."""
    factors = {"w": math.sqrt(new / old), "w_mean": math.sqrt(new / old), "G": old / new}
    kept = min(old, new)
    for name, factor in factors.items():
        if name in state:
            before = state[name]
            after = np.zeros((len(before), 2 * new), before.dtype)
            after[:, :kept] = before[:, :kept] * before.dtype.type(factor)
            after[:, new : new + kept] = before[:, old : old + kept] * before.dtype.type(factor)
            state[name] = after


def _resize_support(state: State, new: int, strategy: type) -> None:
    """The vectors with the largest ``|alpha|^2 k(s, s)`` stay, of equal ones the youngest where there is a turn.

    For the Forgetron the youngest ones stay.
    """
    n, memory = state["n_support"], state["budget_memory"]
    slots = np.arange(n)
    if strategy in TURN:
        slots = np.roll(slots, -int(memory[TURN[strategy]]))  # from the oldest to the youngest
        memory[TURN[strategy]] = 0
    if strategy is budgets.Forgetron:
        slots = slots[max(0, n - new) :]
    elif n > new:
        sizes = (state["alpha"][:, :n] * state["scale"][:, None]) ** 2
        sizes = (sizes.sum(axis=0) * state["diag"][:n])[slots]
        young = np.arange(n)[::-1] if strategy in TURN else np.arange(n)
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
