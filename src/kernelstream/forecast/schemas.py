"""What the entries of a forecaster's state may be."""

from __future__ import annotations

import numpy as np

from ..state.nested import State
from ..state.schema import Anything, Array, Count, Number, Schema, Text, check, length
from .arrivals import NAMES
from .clock import UNITS
from .known import WIDEST
from .series import Series

SEED = Count(0, 2**63)
CLOCK: Schema = {"unit": Text(UNITS), "step": Number(1e-9, 1e12), "origin": Number(-1e15, 1e15)}


def check_start(state: State) -> None:
    """ValueError unless words and clock, which say how large the rest is, are as they must be."""
    for name in (*NAMES, "keys"):
        value = state.get(name)
        if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.ndim != 1:
            raise ValueError(f"state_[{name!r}] must be an array of words")
    if not len(state["target"]) or not all(isinstance(state.get(name), str) for name in ("time", "container")):
        raise ValueError("state_ must name the targets, the time and the kind of frame")
    check({"seed": state.get("seed")}, {"seed": SEED})
    if "unit" in state:
        check({name: state[name] for name in CLOCK if name in state}, CLOCK)


def schema(state: State, learner: Series | None) -> Schema:
    """The entries of a state, whose words and clock have been checked; ``learner`` is None without a clock."""
    series, held = len(state["keys"]), length(state, "held_series")
    found: Schema = {
        "t": Count(),
        "seed": SEED,
        **dict.fromkeys((*NAMES, "keys", "time", "container", "indexed", "dates"), Anything(optional=False)),
        "rows": Array((series,), "int64", low=0),
        "latest": Array((series,)),
        "held_series": Array((held,), low=0, high=max(series - 1, 0)),
        "held_times": Array((held,)),
        "held_values": Array((held, len(state["target"])), gaps=True),
        "held_known": Array((held, WIDEST * len(state["known_names"]))),
    }
    if learner is None:
        return found
    found |= CLOCK | {name: Array(shape) for name, shape in learner.shared().items()}
    for name, (shape, kind) in learner.entries().items():
        found[name] = Array((series, *shape), kind, low=0 if kind == "int64" and name != "last_place" else -np.inf)
    return found | {"absorbed": Number(0.0), "due": Number(0.0), "solved_at": Count()}
