"""Has something changed? The one learner watches its own errors and rows.

After every 128 rows the :class:`~kernelstream.monitor.Monitor` takes the errors, averaged over four rows each, and
every fourth row as the members saw it. That is a quarter of its work for the same changes; what it finds are the
``changes_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...monitor import Mark, Monitor
from ...monitor.adwin import BUCKETS
from ...monitor.inputs import FIRST
from ...state.schema import Array, Schema
from ...state.turns import in_turn
from .._contract.base import State

ROWS = 128  # rows between two looks
EVERY = 4
MARKS = 100  # changes that are remembered
UNKNOWN = -1.0  # error of a row that nobody has seen


def start(state: State) -> State:
    """Entries of a model that has not watched anything yet."""
    return {
        "watch_errors": np.full(ROWS, UNKNOWN),
        "watch_X": np.zeros((ROWS // EVERY, state["n_features"]), state["dtype"]),
        "watch_marks": np.zeros((0, 3), np.int64),
    }


def follow(est: Any, state: State, X: np.ndarray, errors: np.ndarray, t: int, weight: np.ndarray | None) -> None:
    """Take rows X (n, d) as the members saw them, and errors (n,); t rows were learned before."""
    if weight is not None and not weight.all():
        X, errors = X[weight > 0], errors[weight > 0]
    begin = 0
    while begin < len(errors):
        at = (t + begin) % ROWS
        end = min(begin + ROWS - at, len(errors))
        state["watch_errors"][at : at + end - begin] = errors[begin:end]
        first = -at % EVERY
        chosen = X[begin + first : end : EVERY]
        place = (at + first) // EVERY
        state["watch_X"][place : place + len(chosen)] = chosen
        if at + end - begin == ROWS:
            look(est, state, t + end)
        begin = end


def look(est: Any, state: State, t: int) -> None:
    """The last 128 rows are there: has something changed?"""
    errors = state["watch_errors"]
    if errors.min() < 0:  # the model comes from a file without
        return
    monitor = est._cached("monitor", lambda: Monitor(random_state=state["seed"]))
    names = [*monitor.detectors]
    if "watch_adwin_rows" in state:
        for name, detector in monitor.detectors.items():
            detector.state = _entries(state, f"watch_{name}_")
    else:
        monitor = est._cache["monitor"] = Monitor(random_state=state["seed"])
    found = monitor.learn(errors.reshape(-1, EVERY).mean(axis=1), state["watch_X"])
    monitor.marks = []
    state |= {f"watch_{name}": value for name, value in monitor.state.items() if name != "marks"}
    if found:
        rows = [(t, max(t - EVERY * (mark.row - mark.since), 0), names.index(mark.detector)) for mark in found]
        state["watch_marks"] = np.concatenate([state["watch_marks"], np.array(rows, np.int64)])[-MARKS:]


def schema(state: State) -> Schema:
    """The entries, where there are some."""
    if "watch_X" not in state:
        return {}
    d, count = state["n_features"], Array((1,), "int64", low=0)
    marks: Any = state.get("watch_marks")
    n = min(len(marks), MARKS) if isinstance(marks, np.ndarray) and marks.ndim else 0
    own: Schema = {
        "watch_errors": Array((ROWS,), low=UNKNOWN),
        "watch_X": Array((ROWS // EVERY, d), state["dtype"]),
        "watch_marks": Array((n, 3), "int64", low=0),
    }
    if n and marks.shape == (n, 3) and marks[:, 2].max() > 2:
        raise ValueError("state_['watch_marks'] names a detector that there is not")
    if not any(name.startswith(("watch_adwin", "watch_page", "watch_kernel")) for name in state):
        return own
    fresh = Monitor().detectors["kernel"].state
    kept, first, W = (state.get(f"watch_kernel_{name}") for name in ("kept", "first", "W"))
    width = kept.shape[1] if isinstance(kept, np.ndarray) and kept.ndim == 2 else 0
    if width > d:
        raise ValueError("state_['watch_kernel_kept'] has more columns than the rows")
    seen = len(first) if isinstance(first, np.ndarray) and first.ndim == 2 else 0
    if W is not None:
        own["watch_kernel_W"] = Array((width, fresh["reference"].size and 16))
    return own | {
        "watch_adwin_rows": count,
        "watch_adwin_kept": Array((0,)),
        "watch_adwin_buckets": Array((BUCKETS, 3), low=0.0),
        "watch_adwin_used": Array((1,), "int64", low=0, high=BUCKETS - 1),
        "watch_adwin_first": Array((2,), low=0.0),
        "watch_page_hinkley_rows": count,
        "watch_page_hinkley_kept": Array((0,)),
        "watch_page_hinkley_moments": Array((3,), low=0.0),
        "watch_page_hinkley_sum": Array((2,), low=0.0),
        "watch_kernel_rows": count,
        "watch_kernel_kept": Array((0, width)),
        "watch_kernel_first": Array((min(seen, FIRST * 32), width)),
        "watch_kernel_reference": Array(fresh["reference"].shape),
        "watch_kernel_last": Array(fresh["last"].shape),
    }


class Watched:
    """Mixed into the one learner."""

    @property
    @in_turn
    def changes_(self: Any) -> list[Mark]:
        """The last hundred changes that were found, oldest first: of the errors, or of the rows themselves."""
        marks = self._fitted().get("watch_marks")
        names = [*Monitor().detectors]
        found = [] if marks is None else marks.tolist()
        return [Mark(row, since, "inputs" if names[d] == "kernel" else "loss", names[d]) for row, since, d in found]


def _entries(state: State, prefix: str) -> State:
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
