"""Rows as they arrive: which series they are of, whether they are next in time, and the first ones, without a clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import few
from ..state.nested import State
from .clock import StepClock, doubled_hour
from .frames import Names, dates_of
from .series import Series

HELD = 16  # rows of a series after which the step of its clock is known
WAITING = ("held_series", "held_times", "held_values", "held_known")  # entries of rows that wait for a clock
NAMES = ("target", "by", "known_names")  # entries that are lists of names


class TooFewRows(ValueError):
    """A series has fewer rows than a forecast needs."""


def start(names: Names, seed: int, known: int) -> State:
    """The state of a model that has seen the columns of its first rows; ``known`` are encoded ones."""
    shapes = zip(WAITING, ((), (), (len(names.target),), (known,)), strict=True)
    return {
        "t": 0,
        "seed": seed,
        "target": np.array(names.target, dtype=str),
        "by": np.array(names.by, dtype=str),
        "known_names": np.array(names.known, dtype=str),
        **{name: getattr(names, name) for name in ("time", "indexed", "dates", "container")},
        "keys": np.zeros(0, dtype=str),
        "rows": np.zeros(0, np.int64),
        "latest": np.zeros(0),
        **{name: np.zeros((0, *shape)) for name, shape in shapes},
    }


def names_in(state: State) -> Names:
    """What the columns are."""
    target, by, known = (tuple(state[name].tolist()) for name in NAMES)
    return Names(target, state["time"], by, known, bool(state["indexed"]), bool(state["dates"]), state["container"])


def series_of(state: State, keys: list[str], learner: Series | None, enter: bool) -> np.ndarray:
    """The series of rows (n,) by their keys; new keys are entered, or refused."""
    known = {key: k for k, key in enumerate(state["keys"].tolist())}
    new = [key for key in dict.fromkeys(keys) if key not in known]
    if new and not enter:
        raise ValueError(f"unknown keys {few(map(shown_key, new))}: learn rows of these series first")
    if new:
        known |= {key: len(known) + j for j, key in enumerate(new)}
        state["keys"] = np.array(list(known))
        for name in ("rows", "latest"):
            state[name] = np.concatenate([state[name], np.zeros(len(new), state[name].dtype)])
        if learner is not None:
            learner.enter(state, len(known))
    return np.array([known[key] for key in keys], np.int64)


def is_next(state: State, k: int, time: float, names: Names, clock: StepClock | None, say: Callable[..., None]) -> bool:
    """Whether a row is the next of series k; False for one that counts as there already. ValueError if it goes back."""
    last, shown = float(state["latest"][k]), dates_of if names.dates else np.asarray
    if names.time and state["rows"][k]:
        text = str(shown(np.array([time]))[0])[:19]
        if time <= last and names.dates and doubled_hour(time, last, 3600.0 if clock is None else clock.step):
            say("doubled", f"the clock shows an hour twice ({text}): it counts once")
            return False
        if time <= last:
            whose = f"the series {shown_key(state['keys'][k])}" if names.by else "the series"
            raise ValueError(
                f"{whose} {'has two rows of' if time == last else 'goes back to'} the time {text}: give every time "
                f"once, in order; if there are several series, name the columns that tell them apart with by="
            )
        gap = 1 if clock is None else int(np.diff(clock.places(np.array([last, time])))[0])
        if gap == 0:
            say("close", f"there are two rows within one step ({text}): the first one counts")
            return False
        if gap > 1:
            say("gap", f"there is no row in {gap - 1:,} steps before {text}: they count as they were forecast")
    state["latest"][k] = time
    state["rows"][k] += 1
    return True


def hold(state: State, row: tuple[Any, ...], dates: bool) -> StepClock | None:
    """Keep a row (series, time, values, known columns); the clock once it is known."""
    for name, value in zip(WAITING, row, strict=True):
        state[name] = np.concatenate([state[name], np.asarray(value, np.float64)[None]])
    times = state["held_times"][state["held_series"] == row[0]]
    return None if len(times) < HELD else StepClock.of(times, dates)


def learn_held(state: State, learner: Series) -> Any:
    """Learn the rows that were kept; returns what was said after the last one, (H, m)."""
    held, made = [state[name] for name in WAITING], None
    seen: dict[Any, int] = {}
    state |= {name: state[name][:0] for name in WAITING}
    for k, time, values, known in zip(*held, strict=True):
        place = int(learner.layout.clock.places(np.array([time]))[0])
        if seen.get(k) != place:
            seen[k] = place
            made = learner.row(state, int(k), float(time), place, values, known)
    return made


def shown_key(key: str) -> str:
    """A key for people."""
    return ", ".join(map(str, json.loads(key)))
