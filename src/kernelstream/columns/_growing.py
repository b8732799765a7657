"""New columns and labels of an encoder, and columns that turn out to be of another kind than their first cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..streams.cells import Cells, is_missing, listed
from ..streams.marks import DATE
from ._counting import decide_in_stream
from ._journal import Journal, NeedsCopy
from ._store import InputColumn, Store
from ._targets import Targets
from .kinds import DECIDING_CELLS, KINDS, MIN_CELLS_REPEATED, kind_of, readings, repeats, votes_cast, votes_of
from .spellings import misspelt

Widths = list[tuple[int, int]]  # rows of a call, and the columns that the result has from there on


def grow(
    store: Store,
    cells: Cells,
    targets: Targets | None,
    given: dict[str, str],
    max_columns: int,
    shuffled: bool,
    journal: Journal | None,
    warn_once: Callable[[str, str], None],
) -> tuple[dict[str, int], Widths]:
    """Add new columns and labels, in the order in which they appear.

    Returns the first row of each new column, and the width of the result from the first row on and wherever it grows.

    Parameters
    ----------
    given : dict of name: kind
        Kinds that the user knows.
    shuffled : bool
        Whether the rows are a table, all of whose cells decide; in a stream the first one decides until more have come.
    journal : Journal, or None
        None where the store is a copy that may be changed freely.
    warn_once : callable
        Takes what is said, in a word, and the sentence.
    """
    if targets is not None and not store.task:
        if journal is not None:
            raise NeedsCopy
        store.begin_target(targets.task)
    _note_names(store, cells, max_columns, journal)
    first: dict[str, tuple[int, Any]] = {}  # the row of the first value of a column, and its cells
    blank = [store.sources[at].name for at in store.undecided if not store.votes[at].any()]
    for name, values in [*((name, cells.get(name)) for name in blank), *cells.others(store.by_name)]:
        row = next((i for i, value in enumerate(listed(values, cells.n)) if not is_missing(value)), None)
        if row is not None:
            first[name] = row, values
    found, votes = {}, dict[str, np.ndarray]()
    if shuffled:
        votes = {name: votes_of(values, cells.hints.get(name)) for name, (_, values) in first.items()}
        few = frozenset(
            name for name, (_, values) in first.items() if votes[name][KINDS.index("text")] and repeats(values)
        )
        found = readings(votes, {}, given, few)
    for name, (row, values) in first.items() if not shuffled else ():
        found |= readings({name: votes_of(values[row : row + 1], cells.hints.get(name))}, {}, given)
    events = [(row, 0, name) for name, (row, _) in first.items() if name not in store.by_name]
    events = sorted(events, key=lambda event: event[0])  # within a row, the order of the columns
    free = max_columns - len(store.by_name)
    if len(events) > max(free, 0):
        warn_once("many", f"the rows have more than max_columns={max_columns} columns: the others are ignored")
        events = events[: max(free, 0)]
    labels = [] if targets is None else [(row, 1, word) for row, word in targets.new_labels(store)]
    began = [name for name in blank if name in found]
    if (events or labels or began) and journal is not None:
        raise NeedsCopy
    for name in began:
        store.by_name[name].form = found[name][1]
    since, widths = {}, {0: store.width}
    for row, what, name in sorted([*events, *labels], key=lambda event: event[:2]):
        if what:
            store.add_label(name)
            widths[row] = store.width
            continue
        kind, form = found[name]
        store.add(name, kind).form = form
        if shuffled and kind == "category" and misspelt(first[name][1]):
            store.read(len(store.sources) - 1)
        store.came.setdefault(name)
        since[name], widths[row] = row, store.width
        if kind == "ignored" and given.get(name) != kind:
            warn_once(f"ignored {name}", f"column {name!r} holds objects, which are not used")
        value = first[name][1][row] if kind == "category" else None
        if isinstance(value, str) and DATE.fullmatch(value.strip()):
            warn_once(
                f"date {name}",
                f"column {name!r} holds dates like {value!r}, where day and month might be mistaken: they are taken as "
                f"words. Write the year first, or give dates (pandas.to_datetime)",
            )
    for at, source in enumerate(store.sources):
        if source.name in votes:
            store.votes[at] = votes[source.name]
    return since, list(widths.items())


def _note_names(store: Store, cells: Cells, max_columns: int, journal: Journal | None) -> None:
    """Note the names of columns: those of the first row, those whose kinds were given, others as they come."""
    first = [*cells.first_names(), *store.by_name] if not store.came else []
    known = store.came | dict.fromkeys(first)
    free = max(0, max_columns - len(known))
    known |= dict.fromkeys([name for name, _ in cells.others(known)][:free])
    if len(known) > len(store.came):
        if journal is not None:
            raise NeedsCopy
        store.came = known


def decide_again(
    store: Store, given: dict[str, str], journal: Journal | None, warn_once: Callable[[str, str], None]
) -> dict[str, str]:
    """After 1, 2, 4, 8, ... rows: decide by the cells so far what the columns hold, unless that is settled.

    Returns a word of each column that was taken for one of words, and turns out to hold numbers or dates.

    Parameters
    ----------
    given : dict of name: kind
        Kinds that the user knows.
    journal : Journal, or None
        None where the store is a copy that may be changed freely.
    """
    odd: dict[str, str] = {}
    if store.t & (store.t - 1):
        return odd
    decide_in_stream(store, given, journal, warn_once)
    for source in store.crowded():
        if journal is not None:
            raise NeedsCopy
        store.show_recent(source)
    votes = {source.name: own for source, own in zip(store.sources, store.votes, strict=True)}
    now = {name: source.kind for name, source in store.by_name.items()}
    found = readings(votes, now, given, frozenset(s.name for s in store.by_name.values() if _repeats(s, votes[s.name])))
    for at in list(store.undecided):
        source = store.sources[at]
        kind, form = found.get(source.name, (source.kind, source.form))
        if journal is not None and (kind, form) != (source.kind, source.form):
            raise NeedsCopy
        if kind != source.kind:
            words = source.table.codes if source.table is not None and kind not in ("text", "ignored") else ()
            odd.update((source.name, word) for word in words if kind_of(word) in ("category", "text"))
            source = store.replace(at, kind)
        elif form != source.form:
            store.rewrite(source, form)
        elif not source.reads and kind == "category" and misspelt(source.table.codes):  # type: ignore[union-attr]
            if journal is not None:
                raise NeedsCopy
            store.read(at)
        source.form = form
    settled = [source for source in store.by_name.values() if votes_cast(votes[source.name]) >= DECIDING_CELLS]
    (journal or store).settle([source for source in settled if not source.settled])
    return odd


def _repeats(source: InputColumn, votes: np.ndarray) -> bool:
    """Whether cells do not vary as texts do: half of them are the same, or four rows have less than one new piece."""
    cells = votes_cast(votes)
    if source.text is not None and source.kind == "text":
        return cells >= MIN_CELLS_REPEATED and 4 * source.text.different < cells
    return source.kind == "category" and 2 * len(source.table.codes) <= cells  # type: ignore[union-attr]
