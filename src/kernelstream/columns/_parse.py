"""Cells of rows as numbers and codes of categories, which the pass over the rows takes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..streams.cells import LARGEST_NUMBER, Cells, is_missing, numbers
from ..streams.marks import DayAndMonth
from ._journal import Journal, NeedsCopy
from ._store import InputColumn, Store
from ._texts import texts_of
from .categories import word
from .dates import CYCLES, all_seconds, cycles, seconds
from .kinds import LARGEST_CODE, as_number, is_code

MAX_INTEGER_CODES = 64  # a column of integers with at most this many different values may hold codes


@dataclass(slots=True)
class Parsed:
    """Rows for the pass: numbers (n, M), the first row of each (M,), codes (n, K).

    ``cycles`` are columns of the result that only the cell itself decides: their column of dates, and content (n, 6).
    ``texts`` are those of columns: the column, its first row, and texts from there on.
    ``retired`` are columns of integers that turned out to have too many values; ``full`` is the table that has no room
    for the row after the last; ``wrong`` are cells that cannot be used: row, column, and the cell.
    """

    numbers: np.ndarray
    since: np.ndarray
    codes: np.ndarray
    cycles: list[tuple[InputColumn, np.ndarray]] = field(default_factory=list)
    texts: list[tuple[InputColumn, int, list[str]]] = field(default_factory=list)
    retired: list[InputColumn] = field(default_factory=list)
    full: InputColumn | None = None
    wrong: list[tuple[int, InputColumn, Any]] = field(default_factory=list)


def parse(
    store: Store,
    cells: Cells,
    start: int,
    end: int,
    since: dict[str, int],
    most: int | None,
    strict: bool,
    journal: Journal | None,
    before: int = 0,
) -> Parsed:
    """Rows from ``start`` to ``end``, or up to the first for which a table has no room.

    Parameters
    ----------
    since : dict
        First rows of columns that are new.
    most : int, or None
        Categories that a table may hold; None if nothing is learned: new names are then entered for this call only.
    journal : Journal, or None
        Where new names are noted; None where the store is a copy that may be changed freely.
    before : int
        Rows of the call before these cells, for messages.
    """
    n, stop = end - start, end
    learn = most is not None
    found = Parsed(
        np.full((n, store.moments.shape[1]), np.nan),
        store.from_start.copy(),
        np.full((n, len(store.mean_at)), -1, np.int32),
    )
    wrong = found.wrong

    for source in store.by_name.values():
        enter = functools.partial((journal or store).enter, source, for_good=learn)
        begin = max(since.get(source.name, 0), start)
        if source.number >= 0:
            found.since[source.number] = begin - start
        if source.kind == "ignored" or begin >= stop:
            continue
        values = cells.get(source.name)
        part = [None] * (stop - begin) if values is None else values[begin:stop]
        here = slice(begin - start, begin - start + len(part))
        if source.reads:
            texts, odd = texts_of(part)
            found.texts.append((source, begin - start, texts))
            wrong += [(begin + i, source, part[i]) for i in odd] if source.kind == "text" else []
        if source.number >= 0:
            x, odd = _numbers(part, source.form) if source.kind != "date" else _dates(part, source.form)
            found.numbers[here, source.number] = x
            wrong += [(begin + i, source, part[i]) for i in odd]
            if source.kind == "date":
                rest = np.zeros((n, len(CYCLES)))
                rest[here] = cycles(x)
                found.cycles.append((source, rest))
        if source.kind == "integer" and not source.retired:
            codes, ended = _integers(source, x, enter, learn)
            found.codes[begin - start : begin - start + len(codes), source.coded] = codes
            if ended:
                found.retired.append(source)
        elif source.kind == "category":
            names, odd, name = _names(part)
            wrong += [(begin + i, source, part[i]) for i in odd]
            codes, at = source.table.look_up(names, name, enter, most)  # type: ignore[union-attr]
            found.codes[begin - start : begin - start + len(codes), source.coded] = codes
            if at is not None:
                stop, found.full = begin + at, source
    if journal is not None and learn and (found.retired or found.full is not None):
        raise NeedsCopy
    wrong = sorted([cell for cell in wrong if cell[0] < stop], key=lambda cell: cell[0])
    if wrong and strict:
        row, source, value = wrong[0]
        kind = source.kind.replace("integer", "number")
        where = f"column {source.name!r}, row {before + row + 1}"
        raise ValueError(f"{where}: {str(value)[:40]!r} is not a {kind} that can be used")
    if learn:
        _count(store, wrong, start, journal)
    if stop < end:
        m = stop - start
        found.numbers, found.codes = found.numbers[:m].copy(), found.codes[:m].copy()
        found.cycles = [(date, rest[:m]) for date, rest in found.cycles]
        found.texts = [(source, first, texts[: max(m - first, 0)]) for source, first, texts in found.texts]
        # of the columns that were retired, those in the rows that are left
        found.retired = [s for s in found.retired if (found.codes[found.since[s.number] :, s.coded] < 0).any()]
    return found


def _count(store: Store, wrong: list[tuple[int, InputColumn, Any]], start: int, journal: Journal | None) -> None:
    """Count wrong cells."""
    for row, source, _ in wrong:
        if journal is not None:
            journal.count_wrong(source)
        source.first_wrong = source.first_wrong or store.t + row - start + 1
        source.wrong += 1


def _numbers(part: Any, mark: str) -> tuple[np.ndarray, list[int]]:
    """Cells as numbers, and the places of those that are none, with decimals behind a mark."""
    x, odd = numbers(part) if mark == "." or isinstance(part, np.ndarray) else (np.empty(len(part)), range(len(part)))
    wrong = []
    for i in odd:
        found = as_number(part[i], mark)
        x[i] = math.nan if found is None else found
        if found is None:
            wrong.append(i)
    return x, wrong


def _dates(part: Any, order: str) -> tuple[np.ndarray, list[int]]:
    x = all_seconds([_dated(value, order) for value in part] if order else part)
    x[np.abs(x) > LARGEST_NUMBER] = np.nan
    return x, [i for i in np.flatnonzero(np.isnan(x)).tolist() if not is_missing(part[i])]


def value_of(source: InputColumn, value: Any) -> float | None:
    """A cell of numbers or dates as a number: NaN if it is missing, None if it cannot be used."""
    if source.kind == "date":
        x = seconds(_dated(value, source.form))
        return None if abs(x) > LARGEST_NUMBER or (x != x and not is_missing(value)) else x
    return as_number(value, source.form)


def _dated(value: Any, order: str) -> Any:
    """A cell whose date, if it is a string, has the year first."""
    return DayAndMonth(order)(value) if order and isinstance(value, str) else value


def _integers(source: InputColumn, x: np.ndarray, enter: Any, learn: bool) -> tuple[Any, bool]:
    """Codes of whole numbers, up to the row where the column proves not to hold codes; and whether it does so."""
    table: Any = source.table
    odd = np.flatnonzero((np.abs(x) > LARGEST_CODE) | (np.floor(x) != x) & ~np.isnan(x))
    names = ["" if v != v else v for v in x.tolist()]
    if not learn:
        codes = np.array(table.look_up(names, _same, enter, None)[0], np.int32)
        codes[odd] = -1
        return codes, False
    end = int(odd[0]) if len(odd) else len(names)
    codes, at = table.look_up(names[:end], _same, enter, MAX_INTEGER_CODES)
    return codes, at is not None or end < len(names)


def _same(name: Any) -> Any:
    return name


def _names(part: Any) -> tuple[list[Any], list[int], Any]:
    """Cells of categories as keys of the table, cells that cannot be a category, and how to find a cell's name."""
    if isinstance(part, np.ndarray):
        part = part.tolist()
        names = {value: word(value) for value in set(part) if value == value}
        return [names.get(value, "") for value in part], [], _same
    if set(map(type, part)) == {str}:
        return part, [], word
    found = [value if type(value) is str else word(value) for value in part]
    wrong = [i for i, name in enumerate(found) if name is None]
    return ["" if name is None else name for name in found], wrong, word


# Numbers of the kinds in cpp/bind/columns.cpp, which does not read what has the last.
_IN_THE_CORE = {"category": 0, "number": 1, "integer": 2, "date": 3, "ignored": 4, "text": 4}
Plan = list[tuple[str, int, dict[Any, int] | None, int, int]]
Reader = Callable[[Plan, dict[Any, Any], np.ndarray, np.ndarray], tuple[int, list[int]]]


def _plan(store: Store) -> Plan:
    """What a reader of dictionaries does with each column: name, kind, table of codes, places of number and code."""
    plan = []
    for source in store.by_name.values():
        codes = None if source.table is None or source.retired else source.table.codes
        plan.append((source.name, _IN_THE_CORE[source.kind], codes, source.number, source.coded))
    return plan


def alone(rows: Any) -> Any:
    """The dictionary where rows are a list of one."""
    return rows[0] if type(rows) is list and len(rows) == 1 and type(rows[0]) is dict else rows


def parse_row(
    store: Store, row: dict[Any, Any], reader: Reader, most: int | None, ignore_unknown: bool, journal: Journal
) -> Parsed | None:
    """A dictionary for the pass; None where it needs what :func:`parse` does: new columns, wrong cells, full tables.

    Parameters
    ----------
    reader : callable
        ``columns_row`` of the core: it fills numbers and codes, and returns how many keys are columns and the places
        in the plan of the cells that are new or unusual.
    most : int, or None
        As for :func:`parse`.
    ignore_unknown : bool
        Whether keys that are not columns are left out without a warning.
    journal : Journal
        Where new names are noted; those of a row that is refused are removed again.
    """
    if store.plan is None:
        store.plan = _plan(store)
    numbers, codes = np.empty((1, store.moments.shape[1])), np.full((1, len(store.mean_at)), -1, np.int32)
    hits, odd = reader(store.plan, row, numbers, codes)
    if hits != len(row) and not (hits and ignore_unknown and all(type(key) is str for key in row)):
        return None
    found = Parsed(numbers, store.from_start, codes)
    for source in store.by_name.values():
        if source.reads:
            texts, wrong = texts_of([row.get(source.name)])
            if wrong and source.kind == "text":
                journal.undo()
                return None
            found.texts.append((source, 0, texts))
    for i in odd:
        if not _closer(store.by_name[store.plan[i][0]], row, found, most, journal):
            journal.undo()
            return None
    return found


def _closer(source: InputColumn, row: dict[Any, Any], found: Parsed, most: int | None, journal: Journal) -> bool:
    """One cell of a dictionary, new names and dates included; False where it is wrong or its table has no room."""
    value, learn = row.get(source.name), most is not None
    if source.kind == "category":
        name: Any = word(value)
        room = most
    else:
        x = value_of(source, value)
        if x is None:
            return False
        found.numbers[0, source.number] = x
        if source.kind == "date":
            found.cycles.append((source, cycles(np.array([x]))))
        if source.coded < 0:
            return True
        if source.retired:
            found.codes[0, source.coded] = -1
            return True
        if x == x and not is_code(x):
            found.codes[0, source.coded] = -1
            return not learn
        name, room = "" if x != x else x, MAX_INTEGER_CODES if learn else None
    if name is None:
        return False
    table: Any = source.table
    code = table.codes.get(name)
    if code is None:
        if room is not None and len(table.codes) >= room:
            return False
        code = journal.enter(source, name, learn)
    found.codes[0, source.coded] = code
    return True
