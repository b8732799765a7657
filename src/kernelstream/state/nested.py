"""States inside states: the one place that knows how a nested state becomes a flat one, and back.

The state of a learner made of others holds theirs: a dict for what is learned beside it, a list of dicts for its
members. Public ``state_`` and model files are flat, with paths as names::

    {"t": 9, "watch": {"errors": e}, "members": [{"w": v}, {"w": w}]}
    {"t": 9, "watch/errors": e, "members/0/w": v, "members/1/w": w}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

State = dict[str, Any]

# Entries that a learner and its members have in common; a flat state holds them once.
SHARED = ("n_features", "dtype", "warm_rows", "warm_count", "classes", "class_counts", "classes_fixed")
WARM: State = {"warm_rows": 0, "warm_count": 0}  # members have no warm-up of their own: the whole has one for all
DEPTH = 6  # most levels


def flatten(state: State) -> State:
    """The entries of a state and of all states inside, by their paths; the state itself where there are none inside."""
    if not any(isinstance(value, (dict, list)) for value in state.values()):
        return state
    flat: State = {}
    _enter(flat, "", state)
    return flat


def _enter(flat: State, path: str, state: State) -> None:
    for name, value in state.items():
        if isinstance(value, dict):
            _enter(flat, f"{path}{name}/", value)
        elif isinstance(value, list):
            for i, member in enumerate(value):
                own = {entry: part for entry, part in member.items() if entry not in SHARED}
                _enter(flat, f"{path}{name}/{i}/", own)
        else:
            flat[path + name] = value


def nest(flat: State) -> State:
    """Inverse of :func:`flatten`; ValueError for names that it never makes."""
    if not any("/" in name for name in flat):
        return flat
    state: State = {}
    for name, value in flat.items():
        *path, last = name.split("/")
        at: Any = state
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                break
        if len(path) > DEPTH or not isinstance(at, dict) or last in at:
            raise ValueError(f"state_ has an entry {name!r} that does not belong there")
        at[last] = value
    return _with_lists(state, "")


def _with_lists(state: State, path: str) -> State:
    """Dicts whose names are numbers become lists of members, which get what they share with the whole."""
    for name, value in state.items():
        if not isinstance(value, dict):
            continue
        if not all(number.isdecimal() for number in value):
            state[name] = _with_lists(value, f"{path}{name}/")
            continue
        if set(value) != {str(i) for i in range(len(value))}:
            raise ValueError(f"state_ has entries {path}{name}/ of {', '.join(sorted(value)[:9])}, with gaps")
        common = {entry: state[entry] for entry in SHARED if entry in state} | WARM
        members = [value[str(i)] for i in range(len(value))]
        for i, member in enumerate(members):
            if not isinstance(member, dict) or not member.keys().isdisjoint(SHARED):
                raise ValueError(f"state_ has an entry {path}{name}/{i} that all learners have in common")
        state[name] = [common | _with_lists(member, f"{path}{name}/{i}/") for i, member in enumerate(members)]
    return state


def parts(state: State) -> list[State]:
    """The state and all dicts inside; not the members, which are learners of their own."""
    found = [state]
    for value in state.values():
        if isinstance(value, dict):
            found += parts(value)
    return found


def thawed(state: State) -> State:
    """A state with dicts of its own, whose entries can be replaced; the arrays are the same."""
    return _mapped(state, lambda value: value)


def copied(state: State) -> State:
    """A state with dicts and arrays of its own."""
    return _mapped(state, lambda value: value.copy() if isinstance(value, np.ndarray) else value)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(entry, change) for name, entry in value.items()}
    return [_mapped(member, change) for member in value] if isinstance(value, list) else change(value)


def part(state: State, name: str) -> State:
    """The dict inside a state that has not been checked; an empty one where there is none."""
    found = state.get(name)
    return found if isinstance(found, dict) else {}


def under(state: State, prefix: str) -> State:
    """Entries of a part whose names begin with a prefix, by the names without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


def renew_under(state: State, prefix: str, entries: State) -> None:
    """Put these entries in the place of those under a prefix."""
    for name in under(state, prefix):
        del state[prefix + name]
    state |= {prefix + name: value for name, value in entries.items()}
