"""Has something changed? The default learner watches its own errors and rows.

After every 128 rows the :class:`~kernelstream.monitor.Monitor` gets the errors, averaged over four rows each, and every
fourth row as the members saw it. It then finds the same changes with a quarter of the work; they are ``changes_``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...monitor import Mark, Monitor
from ...monitor.adwin import BUCKETS
from ...monitor.inputs import FIRST
from ...state.nested import State, part
from ...state.schema import Array, Inside, Schema
from ...state.turns import in_turn
from .._contract.composite import fitted
from .shell import StackShell

if TYPE_CHECKING:
    from .base import Stack

ROWS_A_LOOK = 128  # rows between two looks
ROWS_A_MEAN = 4
MARKS = 100  # changes that are remembered
UNKNOWN = -1.0  # error of a row that nobody has seen
NAMES = ("adwin", "kernel")  # the detectors, in the order that marks count them


def start(stack: Stack, state: State) -> State:
    """Entries of a model that has not watched anything yet."""
    return {
        "errors": np.full(ROWS_A_LOOK, UNKNOWN),
        "X": np.zeros((ROWS_A_LOOK // ROWS_A_MEAN, state["n_features"]), state["dtype"]),
        "marks": np.zeros((0, 3), np.int64),
    }


def follow(stack: Stack, state: State, X: np.ndarray, errors: np.ndarray, t: int, weight: np.ndarray | None) -> None:
    """Take rows X (n, d) as the members saw them, and errors (n,); t rows were learned before."""
    if weight is not None and not weight.all():
        X, errors = X[weight > 0], errors[weight > 0]
    watched, begin = state["watch"], 0
    while begin < len(errors):
        at = (t + begin) % ROWS_A_LOOK
        end = min(begin + ROWS_A_LOOK - at, len(errors))
        watched["errors"][at : at + end - begin] = errors[begin:end]
        first = -at % ROWS_A_MEAN
        chosen = X[begin + first : end : ROWS_A_MEAN]
        place = (at + first) // ROWS_A_MEAN
        watched["X"][place : place + len(chosen)] = chosen
        if at + end - begin == ROWS_A_LOOK:
            look(stack, state, t + end)
        begin = end


def look(stack: Stack, state: State, t: int) -> None:
    """The last 128 rows are complete: has something changed?"""
    watched = state["watch"]
    errors, X = watched["errors"], watched["X"]
    if errors.min() < 0:  # the model comes from a file without
        return
    monitor = _attached(stack, state)
    means = np.add.reduce(errors.reshape(-1, ROWS_A_MEAN), axis=1) / ROWS_A_MEAN
    found = monitor.learn(means, X)
    monitor.marks = []
    watched |= {name: detector.state for name, detector in monitor.detectors.items()}
    if found:
        rows = [(t, max(t - ROWS_A_MEAN * (mark.row - mark.since), 0), NAMES.index(mark.detector)) for mark in found]
        watched["marks"] = np.concatenate([watched["marks"], np.array(rows, np.int64)])[-MARKS:]


def _attached(stack: Stack, state: State) -> Monitor:
    """The detectors, whose states are part of the learner's; in a new model they have none yet."""
    watched, cache = state["watch"], stack.est._cache
    if "adwin" not in watched or "monitor" not in cache:
        cache["monitor"] = Monitor(random_state=state["seed"])
    monitor: Monitor = cache["monitor"]
    for name, detector in monitor.detectors.items():
        detector.state = watched.get(name, detector.state)
    return monitor


def schema(stack: Stack, state: State) -> Schema:
    """The entries; those of the detectors exist after the first look."""
    watched, d, count = part(state, "watch"), state["n_features"], Array((1,), "int64", low=0)
    marks: Any = watched.get("marks")
    n = min(len(marks), MARKS) if isinstance(marks, np.ndarray) and marks.ndim else 0
    own: Schema = {
        "errors": Array((ROWS_A_LOOK,), low=UNKNOWN),
        "X": Array((ROWS_A_LOOK // ROWS_A_MEAN, d), state["dtype"]),
        "marks": Array((n, 3), "int64", low=0),
    }
    if n and marks.shape == (n, 3) and marks[:, 2].max() >= len(NAMES):
        raise ValueError("state_['watch/marks'] names an unknown detector")
    if not any(name in watched for name in NAMES):
        return own
    fresh = Monitor().detectors["kernel"].state
    kernel = part(watched, "kernel")
    kept, first = kernel.get("kept"), kernel.get("first")
    width = kept.shape[1] if isinstance(kept, np.ndarray) and kept.ndim == 2 else 0
    if width > d:
        raise ValueError("state_['watch/kernel/kept'] has more columns than the rows")
    seen = len(first) if isinstance(first, np.ndarray) and first.ndim == 2 else 0
    adwin: Schema = {
        "rows": count,
        "kept": Array((0,)),
        "buckets": Array((BUCKETS, 3), low=0.0),
        "used": Array((1,), "int64", low=0, high=BUCKETS - 1),
        "first": Array((2,), low=0.0),
    }
    inputs: Schema = {
        "rows": count,
        "kept": Array((0, width)),
        "first": Array((min(seen, FIRST * 32), width)),
        "reference": Array(fresh["reference"].shape),
        "last": Array(fresh["last"].shape),
        "W": Array((width, fresh["reference"].size and 16), optional=True),
    }
    return own | {"adwin": Inside(adwin), "kernel": Inside(inputs)}


@in_turn
def changes(est: StackShell) -> list[Mark]:
    """The last hundred changes found, oldest first: of the errors, or of the rows themselves."""
    marks = fitted(est)["watch"]["marks"].tolist()
    return [Mark(row, since, "inputs" if NAMES[d] == "kernel" else "loss", NAMES[d]) for row, since, d in marks]
