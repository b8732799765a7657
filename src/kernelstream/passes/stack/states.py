"""Entries of a combination of learners: before the first row, and where the task changes. See :mod:`.python`."""

from __future__ import annotations

import functools

import numpy as np

from ...core.targets import Move
from ...state.nested import State

MEMORY = (1.0, 0.9995, 0.995)
G = len(MEMORY)
LEAST = 1e-7  # probability, at least
RECENT, KEPT = 9, 7  # inputs of the second level for labels; rows of its memory of the last ones
LAST = 6  # inputs of the second level for numbers, and numbers kept of the last rows


def start_stack(members: int, outputs: int, regression: bool) -> State:
    """Entries of a state before the first row."""
    M = members + 1
    state: State = {
        "stack_A": np.zeros((G, M, M)),
        "stack_w": np.zeros((G, M)),
        "stack_logs": np.zeros(G),
        "level_logs": np.zeros(2),
        "member_errors": np.zeros((3, members)),
    }
    if regression:
        K = LAST + 1
        state |= {"stack_b": np.zeros((G, M)), "stack_loss": np.zeros(members), "stack_numbers": np.zeros(6)}
        state |= {"recent_A": np.zeros((G, K, K)), "recent_b": np.zeros((G, K)), "recent_w": np.zeros((G, K))}
        state |= {"recent_loss": np.zeros(LAST), "recent_numbers": np.zeros(6), "recent_logs": np.zeros(G)}
        return state | {"recent_kept": np.zeros(LAST)}
    state["stack_w"][:, :members] = 1.0 / members
    return state | start_recent(outputs) | {"label_counts": np.zeros(2)}


def with_batch(state: State, share: float, error: float, rows: int) -> State:
    """Entries with one more input, a function that ``fit`` learned from a batch, and as a fourth memory that function.

    The function has ``share`` of the forecast; the other memories, which have the rest, do not use the new input yet.
    ``error`` is what it would have made on the ``rows`` so far, in the mean: squared, or 0 and 1.
    """
    N, lately = state["member_errors"].shape[1], state["member_errors"][2, 0]
    found = dict(state)
    for name, axes in {"stack_A": (1, 2), "stack_w": (1,), "stack_b": (1,)}.items():
        if name in state:
            found[name] = functools.reduce(lambda a, axis: np.insert(a, N, 0.0, axis), axes, state[name])
    earned = np.append((1 - share) * shares(state["stack_logs"], 0.0), share)
    found["stack_logs"] = np.log(np.maximum(earned, LEAST))
    found["member_errors"] = np.column_stack([state["member_errors"], (error * rows, error * lately, lately)])
    return found


def start_recent(outputs: int) -> State:
    """Entries of the second level of labels before the first row."""
    w = np.zeros((G, RECENT))
    w[:, 0] = 1.0
    kept = np.zeros((KEPT, outputs))
    if outputs > 1:
        kept[2:4] = 1.0 / outputs
    logs = {"recent_logs": np.zeros(G), "level_logs": np.zeros(2)}
    return {"recent_A": np.zeros((G, RECENT, RECENT)), "recent_w": w, "recent_kept": kept} | logs


def move_numbers(state: State, move: Move) -> None:
    """Carry over what is in the units of the target."""
    square = move.factor**2
    for level in ("stack", "recent"):
        numbers = state[f"{level}_numbers"]
        numbers[[2, 5]] *= square
        numbers[4] = move(numbers[4])
        state[f"{level}_loss"] *= square
    kept = state["recent_kept"]
    kept[[0, 4]] = move(kept[[0, 4]])
    kept[1:4] *= move.factor


def shares(logs: np.ndarray, share: float) -> np.ndarray:
    """Shares of forecasters: ``1 - share`` of what they have earned, the rest spread evenly."""
    p = np.exp(logs - logs.max())
    return (1 - share) * p / p.sum() + share / len(logs)
