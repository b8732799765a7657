"""Has something changed? The one learner watches its own errors and rows.

After every 128 rows the :class:`~kernelstream.monitor.Monitor` takes the errors, averaged over four rows each, and
every fourth row as the members saw it. That is a quarter of its work for the same changes; what it finds are the
``changes_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...monitor import Mark, Monitor
from ...monitor.inputs import FIRST
from ...passes.monitor.python import BUCKETS
from ...state.schema import Array, Schema
from ...state.turns import in_turn
from .._contract.base import State

ROWS = 128  # rows between two looks
EVERY = 4
MARKS = 100  # changes that are remembered
UNKNOWN = -1.0  # error of a row that nobody has seen
NAMES = ("adwin", "page_hinkley", "kernel")  # the detectors, in the order that marks count them


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
    detectors: Watch = est._cached("monitor", lambda: Watch(state["seed"], est.engine))
    found = detectors.look(state, np.add.reduce(errors.reshape(-1, EVERY), axis=1) / EVERY, state["watch_X"])
    if found:
        rows = [(t, max(t - EVERY * (mark.row - mark.since), 0), NAMES.index(mark.detector)) for mark in found]
        state["watch_marks"] = np.concatenate([state["watch_marks"], np.array(rows, np.int64)])[-MARKS:]


class Watch:
    """The detectors, whose arrays are entries of the learner's state."""

    def __init__(self, seed: int, engine: str):
        self.seed, self.engine = seed, engine
        self._begin()

    def _begin(self) -> None:
        self.monitor = Monitor(random_state=self.seed, engine=self.engine)
        self.entries: list[tuple[str, dict[str, np.ndarray], str]] = []

    def look(self, state: State, errors: np.ndarray, X: np.ndarray) -> list[Mark]:
        """Take a block of errors (32,) and rows (32, d)."""
        if not self.entries or any(state.get(full) is not held[name] for full, held, name in self.entries):
            self._enter(state)
        monitor = self.monitor
        known = monitor.detectors["kernel"].state.get("W")
        if known is not None and len(known) == X.shape[1]:
            found = monitor.take(errors, X)
        else:  # the first rows, or columns that were not there before
            found = monitor.learn(errors, X)
            self.entries = []
        monitor.marks = []
        if not self.entries:
            self.entries = [
                (f"watch_{name}_{key}", detector.state, key)
                for name, detector in monitor.detectors.items()
                for key in detector.state
            ]
        for full, held, name in self.entries:
            state[full] = held[name]
        return found

    def _enter(self, state: State) -> None:
        """The arrays of a state that was loaded, or taken back; or none of a model that begins."""
        self._begin()
        for name, detector in self.monitor.detectors.items():
            start = f"watch_{name}_"
            own = {key[len(start) :]: value for key, value in state.items() if key.startswith(start)}
            detector.state = own or detector.state


def schema(state: State) -> Schema:
    """The entries; those of the detectors are there when they have looked at some rows."""
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
        marks = self._fitted().get("watch_marks")  # none before the warm-up ends
        found = [] if marks is None else marks.tolist()
        return [Mark(row, since, "inputs" if NAMES[d] == "kernel" else "loss", NAMES[d]) for row, since, d in found]
