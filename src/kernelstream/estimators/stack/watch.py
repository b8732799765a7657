"""Has something changed? The default learner watches its own errors and rows.

After every 64 rows the detectors of :mod:`kernelstream.monitor` get the errors, and every fourth row as the members
saw it. What they find are ``changes_``. The last thousand rows are kept: after a rise of the errors, members begin anew
with the rows since then (:mod:`.renewal`). So they do with the last rows where numbers are forecast much worse than one
number would: what was learned is spoilt, as by wrong targets that ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...monitor import Adwin, KernelTwoSample
from ...monitor._blocks import BLOCK
from ...monitor.adwin import BUCKETS
from ...monitor.inputs import FIRST
from ...state import undo
from ...state.nested import State, part
from ...state.schema import Array, Count, Inside, Schema, length
from .._contract.warm_up import rows_until

ROWS_A_LOOK = 64  # rows between two looks
EVERY = 4  # rows of which one is looked at
MOST_KEPT, MOST_NUMBERS = 1024, 1 << 17  # rows that are kept, fewer where they hold more numbers
MARKS = 100  # changes that are remembered
LOST, LAST = 3.0, 256  # times the deviation of the last targets that an error of no use has; how many these are
UNKNOWN = -1.0  # error of a row that nobody has seen
NAMES = ("adwin", "kernel")  # the detectors, in the order that marks count them


def _room(state: State) -> int:
    """How many rows are kept: whole looks."""
    return ROWS_A_LOOK * int(np.clip(MOST_NUMBERS // state["first_width"], ROWS_A_LOOK, MOST_KEPT) // ROWS_A_LOOK)


def start(state: State, outputs: int) -> State:
    """Entries of a model, as its others are, that has not watched anything yet."""
    room = _room(state)
    return {
        "errors": np.full(ROWS_A_LOOK, UNKNOWN),
        "ring_rows": np.zeros((room, state["n_features"]), state["dtype"]),
        "ring_targets": np.zeros((room, outputs)),
        "ring_weights": np.ones(room),
        "first": state["t"],
        "marks": np.zeros((0, 3), np.int64),
    }


def next_look(t: int, begin: int, n: int, weight: np.ndarray | None) -> tuple[int, int]:
    """Where the rows from ``begin`` on up to the next look end, of n, and how many of them count; t did before."""
    left = ROWS_A_LOOK - t % ROWS_A_LOOK
    stop = rows_until(weight, begin, n, left)
    return stop, stop - begin if weight is None else int(np.count_nonzero(weight[begin:stop] > 0))


def follow(
    watched: State,
    about: tuple[int, bool],
    X: np.ndarray,
    y: np.ndarray,
    errors: np.ndarray,
    t: int,
    weight: np.ndarray | None,
) -> int | None:
    """Take rows X (n, d) as the members saw them, up to the next look, their targets and errors (n,); t came before.

    Returns the row from which members should begin anew, where a look finds one. ``about`` the model are its seed, and
    whether its targets are numbers.
    """
    if weight is not None:
        counted = weight > 0
        X, y, errors, weight = X[counted], y[counted], errors[counted], weight[counted]
    n = len(errors)
    if not n:
        return None
    watched["errors"][t % ROWS_A_LOOK : t % ROWS_A_LOOK + n] = errors
    room = len(watched["ring_targets"])
    places = slice(t % room, t % room + n)
    told = {"ring_rows": X, "ring_targets": y.reshape(n, -1), "ring_weights": 1.0 if weight is None else weight}
    for name, new in told.items():
        undo.rows(watched[name], places)
        watched[name][places] = new
    return look(watched, *about, t + n) if (t + n) % ROWS_A_LOOK == 0 else None


def kept(watched: State, since: int, t: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The rows kept from a row on, of t in all, their targets and weights."""
    room = len(watched["ring_targets"])
    at = np.arange(max(since, watched["first"], t - room), t) % room
    y, weight = watched["ring_targets"][at], watched["ring_weights"][at]
    return watched["ring_rows"][at], y[:, 0] if y.shape[1] == 1 else y, None if (weight == 1.0).all() else weight


def lost(watched: State, t: int) -> bool:
    """Whether the last numbers, t in all, were forecast much worse than their median would have done; by medians."""
    if t < LAST:
        return False
    y = kept(watched, t - LAST, t)[1].reshape(-1, watched["ring_targets"].shape[1])
    usual = np.median(np.abs(y - np.median(y, axis=0)), axis=0).mean()
    return bool(np.median(watched["errors"]) > LOST * usual > 0)


def look(watched: State, seed: int, numbers: bool, t: int) -> int | None:
    """The last rows are complete: has something changed?"""
    errors = watched["errors"]
    if errors.min() < 0:  # the model comes from a file without
        return None
    first = (t - ROWS_A_LOOK) % len(watched["ring_rows"])
    values = {"adwin": errors, "kernel": watched["ring_rows"][first : first + ROWS_A_LOOK : EVERY]}
    units, since = {"adwin": 1, "kernel": EVERY}, None
    detectors: dict[str, Any] = {"adwin": Adwin(), "kernel": KernelTwoSample(random_state=seed)}
    for name, detector in detectors.items():
        detector.state = watched.get(name, detector.state)  # there is none before the first look
        for row, begun in detector.learn(values[name]):
            mark = [t, max(t - units[name] * (row - begun), 0), NAMES.index(name)]
            watched["marks"] = np.concatenate([watched["marks"], np.array([mark], np.int64)])[-MARKS:]
            since = mark[1] if name == "adwin" else since
        watched[name] = detector.state
    return t - LAST if numbers and lost(watched, t) else since


def schema(state: State, outputs: int) -> Schema:
    """The entries; those of the detectors exist after the first look."""
    watched, d, count = part(state, "watch"), state["n_features"], Array((1,), "int64", low=0)
    marks: Any = watched.get("marks")
    n = min(len(marks), MARKS) if isinstance(marks, np.ndarray) and marks.ndim else 0
    own: Schema = {
        "errors": Array((ROWS_A_LOOK,), low=UNKNOWN),
        "ring_rows": Array((_room(state), d), state["dtype"]),
        "ring_targets": Array((_room(state), outputs)),
        "ring_weights": Array((_room(state),), low=0.0),
        "first": Count(0, state["t"]),
        "marks": Array((n, 3), "int64", low=0),
    }
    if n and marks.shape == (n, 3) and marks[:, 2].max() >= len(NAMES):
        raise ValueError("state_['watch/marks'] names an unknown detector")
    if not any(name in watched for name in NAMES):
        return own
    fresh = KernelTwoSample().state
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
        "kept": Array((length(kernel, "kept") % BLOCK, width)),
        "first": Array((min(seen, FIRST * BLOCK), width)),
        "reference": Array(fresh["reference"].shape),
        "last": Array(fresh["last"].shape),
        "W": Array((width, fresh["reference"].size and 16), optional=True),
    }
    return own | {"adwin": Inside(adwin), "kernel": Inside(inputs)}
