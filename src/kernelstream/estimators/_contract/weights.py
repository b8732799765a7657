"""Weights of rows relative to their mean so far, so that models do not depend on their unit.

A learner for which a row of weight 2 is not two rows declares ``relative_weights``.
"""

from __future__ import annotations

import numpy as np

from ...state.nested import State
from ...state.schema import Array, Schema

SUMS = "weight_sums"  # (2,): rows of positive weight, and the sum of their weights; absent while every weight was 1


def relative(state: State, weight: np.ndarray | None, n: int) -> np.ndarray | None:
    r"""Weights of n rows over the mean weight of all rows up to each, itself included, (n,).

    .. math:: v_t = w_t \Big/ \frac1t \sum_{i \le t} w_i \le t

    Weights times any factor give the same numbers, so those of a survey (each row stands for hundreds of people) work
    as well as weights around 1: steps, penalties and shares are designed for rows that count as one. A row of weight 0
    does not count. Class weights are not among them: they multiply the result.
    """
    sums = state.get(SUMS)
    if sums is None:
        if weight is None or (weight[weight > 0] == 1.0).all():
            return weight
        sums = np.full(2, float(state["t"]))
    weight = np.ones(n) if weight is None else weight
    if not weight.any():
        return weight
    rows = sums[0] + np.cumsum(weight > 0)
    total = np.cumsum(np.concatenate([sums[1:], weight]))[1:]
    state[SUMS] = np.array([rows[-1], total[-1]])
    return np.divide(weight * rows, total, out=np.zeros(n), where=weight > 0)


def over_mean(state: State, weight: np.ndarray | None, n: int) -> np.ndarray | None:
    """Weights of n rows that were already counted, over the mean weight of all rows so far, (n,)."""
    if SUMS not in state:
        return weight
    rows, total = state[SUMS].tolist()
    return (np.ones(n) if weight is None else weight) / (total / rows)


def schema(state: State) -> Schema:
    """The entry, if there is one."""
    return {SUMS: Array((2,), low=0.0)} if SUMS in state else {}
