"""Cells of rows as numbers and codes of categories, which the pass over the rows takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from ._journal import Journal, NeedsCopy
from ._store import Source, Store
from .categories import word
from .dates import CYCLES, all_seconds, cycles, seconds
from .kinds import LARGEST, WHOLE, is_missing
from .numbers import numbers
from .sources import Cells

VALUES = 64  # different values up to which a column of integers may be one of codes
_ABSENT = object()
_PLAIN = {float, int, np.float64, np.int64}


@dataclass
class Parsed:
    """Rows for the pass: numbers (n, M), the first row of each (M,), codes (n, K).

    ``cycles`` are columns of the result that only the cell itself decides: the first of them, and their content (n, 6).
    ``retired`` are columns of integers that turned out to have too many values; ``full`` is the table in which the row
    after the last has no room.
    """

    numbers: np.ndarray
    since: np.ndarray
    codes: np.ndarray
    cycles: list[tuple[int, np.ndarray]] = field(default_factory=list)
    retired: list[Source] = field(default_factory=list)
    full: Source | None = None


def parse(
    store: Store,
    cells: Cells,
    start: int,
    end: int,
    since: dict[str, int],
    most: int | None,
    strict: bool,
    journal: Journal | None,
) -> Parsed:
    """Rows from ``start`` to ``end``, or up to the first for which a table has no room.

    Parameters
    ----------
    since : dict
        First rows of columns that are new.
    most : int, or None
        Categories that a table may hold; None if nothing is to be learned: what is new is entered for a while.
    journal : Journal, or None
        Where new names are noted; None where the store is a copy of which anything may be changed.
    """
    n, stop = end - start, end
    learn = most is not None
    found = Parsed(
        np.full((n, store.moments.shape[1]), np.nan),
        np.zeros(store.moments.shape[1], np.int64),
        np.full((n, len(store.mean_at)), -1, np.int32),
    )
    wrong: list[tuple[int, Source, Any]] = []

    def enter_for(source: Source) -> Any:
        if journal is not None:
            return lambda name: journal.enter(source, name, learn)
        return lambda name: store.enter(source, name, learn)

    for source in store.sources:
        begin = max(since.get(source.name, 0), start)
        if source.number >= 0:
            found.since[source.number] = begin - start
        if source.kind == "text" or begin >= stop:
            continue
        values = cells.get(source.name)
        part = [None] * (stop - begin) if values is None else values[begin:stop]
        here = slice(begin - start, begin - start + len(part))
        if source.number >= 0:
            x, odd = numbers(part) if source.kind != "date" else _dates(part)
            found.numbers[here, source.number] = x
            wrong += [(begin + i, source, part[i]) for i in odd]
            if source.kind == "date":
                rest = np.zeros((n, len(CYCLES)))
                rest[here] = cycles(x)
                found.cycles.append((source.slots, rest))
        if source.kind == "integer" and not source.retired:
            codes, ended = _integers(source, x, enter_for(source), learn)
            found.codes[begin - start : begin - start + len(codes), source.coded] = codes
            if ended:
                found.retired.append(source)
        elif source.kind == "category":
            names, odd, name = _names(part)
            wrong += [(begin + i, source, part[i]) for i in odd]
            codes, at = source.table.look_up(names, name, enter_for(source), most)  # type: ignore[union-attr]
            found.codes[begin - start : begin - start + len(codes), source.coded] = codes
            if at is not None:
                stop, found.full = begin + at, source
    if journal is not None and learn and (found.retired or found.full is not None):
        raise NeedsCopy
    _count(store, [cell for cell in wrong if cell[0] < stop], start, strict, learn, journal)
    if stop < end:
        m = stop - start
        found.numbers, found.codes = found.numbers[:m].copy(), found.codes[:m].copy()
        found.cycles = [(first, rest[:m]) for first, rest in found.cycles]
        found.retired = [source for source in found.retired if _ends_before(found, source)]
    return found


def _ends_before(found: Parsed, source: Source) -> bool:
    """Whether a column of integers retired in the rows that were kept."""
    first = found.since[source.number]
    return bool((found.codes[first:, source.coded] < 0).any())


def _count(
    store: Store, wrong: list[tuple[int, Source, Any]], start: int, strict: bool, learn: bool, journal: Journal | None
) -> None:
    """Enter wrong cells into the books, or raise ValueError about the first."""
    if not wrong:
        return
    row, source, value = min(wrong, key=lambda cell: cell[0])
    if strict:
        kind = {"integer": "number"}.get(source.kind, source.kind)
        raise ValueError(
            f"column {source.name!r}, row {row - start + 1}: {str(value)[:40]!r} is no {kind} that can be used"
        )
    if not learn:
        return
    for row, source, _ in sorted(wrong, key=lambda cell: cell[0]):
        if journal is not None:
            journal.count_wrong(source)
        source.first_wrong = source.first_wrong or store.t + row - start + 1
        source.wrong += 1


def _dates(part: Any) -> tuple[np.ndarray, list[int]]:
    x = all_seconds(part)
    x[np.abs(x) > LARGEST] = np.nan
    return x, [i for i in np.flatnonzero(np.isnan(x)).tolist() if not is_missing(part[i])]


def _integers(source: Source, x: np.ndarray, enter: Any, learn: bool) -> tuple[Any, bool]:
    """Codes of whole numbers, up to the row where the column proves to be one of no codes; and whether it does."""
    table: Any = source.table
    odd = np.flatnonzero((np.abs(x) > WHOLE) | (np.floor(x) != x) & ~np.isnan(x))
    names = ["" if v != v else v for v in x.tolist()]
    if not learn:
        codes = np.array(table.look_up(names, _same, enter, None)[0], np.int32)
        codes[odd] = -1
        return codes, False
    end = int(odd[0]) if len(odd) else len(names)
    codes, at = table.look_up(names[:end], _same, enter, VALUES)
    return codes, at is not None or end < len(names)


def _same(name: Any) -> Any:
    return name


def _names(part: Any) -> tuple[list[Any], list[int], Any]:
    """Cells of categories as they are to be looked up, those that can be none, and how to find the name of one."""
    if isinstance(part, np.ndarray):
        part = part.tolist()
        names = {value: word(value) for value in set(part) if value == value}
        return [names.get(value, "") for value in part], [], _same
    if set(map(type, part)) == {str}:
        return part, [], word
    found = [value if type(value) is str else word(value) for value in part]
    wrong = [i for i, name in enumerate(found) if name is None]
    return ["" if name is None else name for name in found], wrong, word


_CATEGORY, _NUMBER, _INTEGER, _DATE, _TEXT = range(5)
_NUMERIC = (_NUMBER, _INTEGER)
_NUMBERS = {"category": _CATEGORY, "number": _NUMBER, "integer": _INTEGER, "date": _DATE, "text": _TEXT}


def _plan(store: Store) -> list[tuple[int, Any, Source]]:
    """What :func:`parse_row` does with each column: its kind, and how its codes are found."""
    plan = []
    for source in store.sources:
        codes = None if source.table is None or source.retired else source.table.codes.get
        plan.append((_NUMBERS[source.kind], codes, source))
    return plan


def parse_row(store: Store, row: dict[Any, Any]) -> Parsed | None:
    """A dictionary for the pass, if there is nothing new or odd about it; None otherwise."""
    if store.plan is None:
        store.plan = _plan(store)
    values, hits = map(row.get, store.by_name, repeat(_ABSENT)), 0
    x: list[float] = []
    codes: list[int] = []
    turns: list[tuple[int, np.ndarray]] = []
    for value, (kind, look_up, source) in zip(values, store.plan, strict=True):
        if value is _ABSENT:
            value = None
        else:
            hits += 1
        if kind == _CATEGORY:
            code = look_up(value if type(value) is str else word(value))
            if code is None:
                return None
            codes.append(code)
        elif kind in _NUMERIC:
            if value is None:
                x.append(math.nan)
                value = ""
            elif type(value) in _PLAIN and -LARGEST <= value <= LARGEST:
                x.append(value)
            else:
                return None
            if kind == _INTEGER:
                code = -1 if look_up is None else look_up(value)
                if code is None:
                    return None
                codes.append(code)
        elif kind == _DATE:
            s = seconds(value)
            if s != s and value is not None:
                return None
            x.append(s)
            turns.append((source.slots, cycles(np.array([s]))))
    if hits != len(row):
        return None
    return Parsed(np.array((x,), np.float64), store.from_start, np.array((codes,), np.int32), turns)
