"""Columns that number the rows or name them, which teach nothing, and times among numbers, which must not run on.

A column whose every value is larger than those before is a time: as of a date, a value is how long ago it was, and what
lies ahead is of now. In a stream that is decided after 16, 32, 64, ... rows, and taken back where more than an eighth
of the rows come late. A column takes no part where no value comes twice and it holds words, or whole numbers of which
the rows have at least half of those in their range: in a table of at least ``TABLE_ROWS`` rows, and in a stream, words
alone, after ``NAMED_ROWS`` rows, for as long as none repeats.

Columns whose kind the user gave, and the last one that would be left, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._journal import Journal, NeedsCopy
from ._store import IDLE, TIMED, InputColumn, Store

GROWING_ROWS, TABLE_ROWS, NAMED_ROWS = 16, 64, 1024  # rows that tell a time in a stream, or a name
COUNTING = {"number": (TIMED, IDLE), "integer": (TIMED, IDLE), "category": (IDLE,)}  # roles that a kind may have


def counting_numbers(x: np.ndarray) -> str | None:
    """What numbers (n,) of a table are: TIMED where they grow, IDLE where they are numbers of rows; else None.

    >>> [counting_numbers(np.array(x)) for x in (np.arange(100.0), np.arange(100.0) ** 2, np.sin(np.arange(100.0)))]
    ['idle', 'timed', None]
    """
    if len(x) < TABLE_ROWS or not np.isfinite(x).all():
        return None
    steps, whole = np.diff(x), (np.floor(x) == x).all()
    if (steps > 0).all() and not (whole and (steps == 1).all()):
        return TIMED
    return IDLE if whole and np.ptp(x) < 2 * len(x) == 2 * len(np.unique(x)) else None


def decide_in_table(
    store: Store, numbers: np.ndarray, codes: np.ndarray, given: dict[str, str], warn_once: Callable[[str, str], None]
) -> None:
    """Which columns of a table take no part or are times, by their numbers (n, M) and codes (n, K)."""
    for source in _open(store, given):
        role = None
        if source.kind == "category" and len(codes) >= TABLE_ROWS:
            own = codes[:, source.coded]
            role = IDLE if len(np.unique(own)) == len(own) else None
        elif source.number >= 0:
            role = counting_numbers(numbers[:, source.number])
        _become(store, source, role, warn_once)


def decide_in_stream(
    store: Store, given: dict[str, str], journal: Journal | None, warn_once: Callable[[str, str], None]
) -> None:
    """Which columns of a stream take no part or are times; after a power of two of rows."""
    for source in _open(store, given) if store.t >= GROWING_ROWS else ():
        role = _role_in_stream(store, source)
        if role != source.role and journal is not None:
            raise NeedsCopy
        _become(store, source, role, warn_once)


def _role_in_stream(store: Store, source: InputColumn) -> str | None:
    if source.number >= 0:
        count, _, m2, low, high, _, late = store.moments[:, source.number].tolist()
        if source.role is not None:
            return source.role if source.role == IDLE or 8 * late <= count else None
        if source.table is not None and not source.retired:
            steady = len(source.table.codes) >= count  # all are different
        else:  # not two or three levels
            steady = high > low and 6 * m2 <= count * (high - low) ** 2
        return TIMED if count >= GROWING_ROWS and late == 0 and steady else None
    codes = list(source.table.codes.values())  # type: ignore[union-attr]
    if source.role is None and len(codes) < NAMED_ROWS:
        return None
    return IDLE if (store.counts[codes] <= 1).all() else None


def _open(store: Store, given: dict[str, str]) -> list[InputColumn]:
    return [s for s in store.by_name.values() if s.kind in COUNTING and s.name not in given]


def _become(store: Store, source: InputColumn, role: str | None, warn_once: Callable[[str, str], None]) -> None:
    others = [s for s in store.by_name.values() if s is not source and s.kind != "text" and s.role is None]
    if role == source.role or (role is not None and not others):
        return
    store.set_role(source, role)
    if role == IDLE:
        warn_once(
            f"idle {source.name}",
            f"column {source.name!r} only numbers or names the rows, none of its values comes twice: it takes no part. "
            f"Give its kind to keep it",
        )
