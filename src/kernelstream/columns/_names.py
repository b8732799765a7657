"""Names of the columns of the result, and lists of names in messages."""

from __future__ import annotations

from ..registry.names import did_you_mean
from ._store import GAP, MEAN, SLOT, VALUE, InputColumn, Store
from .dates import CYCLES


def result_names(store: Store) -> list[str]:
    """A name for every column of the result: that of the source, and which part of it."""
    return [_name(store, store.sources[at], part, index) for at, part, index in store.layout]


def _name(store: Store, source: InputColumn, part: int, index: int) -> str:
    if part == MEAN:  # the label is named where there are more than two
        return f"{source.name}:mean({store.labels[index + 1][1:]})" if len(store.labels) > 2 else f"{source.name}:mean"
    if part == SLOT:  # the category that has the slot, or the number of the slot while there is none
        owners = [name for name in source.table.codes if name != ""]  # type: ignore[union-attr]
        taken = index < source.table.own  # type: ignore[union-attr]
        return f"{source.name}={owners[index]}" if taken else f"{source.name}#{index}"
    return source.name + {VALUE: "", GAP: ":missing"}.get(part, f":{CYCLES[index]}")


def some(names: list[str], known: list[str] | None = None) -> str:
    """A few of the names, for a message; with ``known`` ones, a hint about the first."""
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    hint = did_you_mean(names[0], known) if known else ""
    return f"{shown} ({hint.rstrip(': ')})" if hint else shown
