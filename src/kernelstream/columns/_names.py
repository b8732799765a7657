"""Names of the columns of the result, and lists of names in messages."""

from __future__ import annotations

from collections.abc import Callable

from ..registry.names import did_you_mean
from ._store import CYCLE, GAP, MEAN, SLOT, VALUE, InputColumn, Store
from .dates import CYCLES


def result_names(store: Store) -> list[str]:
    """A name for every column of the result: that of the source, and which part of it."""
    sources = store.sources
    return [sources[at].name + _TAILS[part](store, sources[at], index) for at, part, index in store.layout]


def _mean_tail(store: Store, source: InputColumn, index: int) -> str:
    """The label is named where there are more than two."""
    return f":mean({store.labels[index + 1][1:]})" if len(store.labels) > 2 else ":mean"


def _slot_tail(store: Store, source: InputColumn, index: int) -> str:
    """The category that has the slot, or the number of the slot while there is none."""
    owners = [name for name in source.table.codes if name != ""]  # type: ignore[union-attr]
    return f"={owners[index]}" if index < source.table.own else f"#{index}"  # type: ignore[union-attr]


_TAILS: dict[int, Callable[[Store, InputColumn, int], str]] = {
    VALUE: lambda store, source, index: "",
    GAP: lambda store, source, index: ":missing",
    MEAN: _mean_tail,
    SLOT: _slot_tail,
    CYCLE: lambda store, source, index: f":{CYCLES[index]}",
}


def some(names: list[str], known: list[str] | None = None) -> str:
    """A few of the names, for a message; with ``known`` ones, a hint about the first."""
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    hint = did_you_mean(names[0], known) if known else ""
    return f"{shown} ({hint.rstrip(': ')})" if hint else shown
