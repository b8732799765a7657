"""Rows of cells encoded and learned: what an encoder does, in functions of its parameters and of what it has learned.

``rules`` are the parameters (:class:`~kernelstream.columns.Columns`), ``store`` is what was learned so far, and
``warn_once`` takes what a warning is about, in a word, and its sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..random import SeedStream, generator
from ..rows import padded
from ..streams.cells import Cells
from ._counting import decide_in_table
from ._growing import Widths, decide_again, grow
from ._journal import Journal, NeedsCopy
from ._known import check_known, some
from ._parse import Parsed, parse, parse_row
from ._pass import LATE, twins
from ._seasons import learn as learn_season
from ._seasons import next_solved, regressors, runs
from ._seasons import show as show_season
from ._seasons import solve as solve_season
from ._store import MEAN, RECENT, ROWS, SCORE, TIMED, Store
from ._targets import Targets, one_target
from ._texts import run as run_texts
from .kinds import votes_of

WarnOnce = Callable[[str, str], None]


class CellRows(NamedTuple):
    """Rows: their cells, and their targets and weights if they have any."""

    cells: Cells
    targets: Targets | None
    weight: np.ndarray | None


def learn_stream(
    rules: Any, store: Store, batch: CellRows, journal: Journal | None, warn_once: WarnOnce
) -> tuple[np.ndarray, Widths]:
    """Encode and learn rows in order, up to each row after which kinds are decided again.

    Those of weight 0 are encoded only. Returns all rows with the columns there are at the end, and how many of these
    there are from which rows on.
    """
    (cells, targets, weight), parts, widths, odd, start = batch, list[np.ndarray](), Widths(), dict[str, Any](), 0
    while start < cells.n or not parts:
        learned, stop = weight is None or bool((weight[start : start + 1] > 0).all()), cells.n
        if weight is not None:
            stop = start + int(np.argmin(np.append((weight[start:] > 0) == learned, False)))
        if learned:
            stop = min(stop, start + (1 << store.t.bit_length()) - store.t)  # the next power of two
            if targets is not None:  # texts have more scores from the row on in which a label appears
                new = targets.part(np.arange(start, stop)).new_labels(store)
                stop = min([stop, *(start + row for row, _ in new if row > 0)])
        if journal is not None and stop - start < cells.n:
            raise NeedsCopy
        widths.append((start, store.width))
        if learned:
            some = None if targets is None else targets.part(np.arange(start, stop))
            run = CellRows(cells[start:stop], some, None if weight is None else weight[start:stop])
            part, wider = _pass(rules, store, run, journal, odd, warn_once, start)
            parts.append(part)
            odd |= decide_again(store, rules.kinds or {}, journal, warn_once)
            widths += [(start + row, width) for row, width in wider]
            widths.append((stop, store.width))
        else:
            parts.append(encode(rules, store, cells[start:stop]))
        start = stop
    _say_odd(store, odd, warn_once)
    parts = [padded(X, store.width) for X in parts]
    return parts[0] if len(parts) == 1 else np.concatenate(parts), widths


def learn_table(rules: Any, store: Store, batch: CellRows, warn_once: WarnOnce) -> np.ndarray:
    """Learn and encode a table: means by the rows before in a random order, the rest by all rows."""
    (cells, targets, weight), odd = batch, dict[str, Any]()
    learned, counted = batch, np.arange(cells.n)
    if weight is not None:
        counted = np.flatnonzero(weight)
        learned = CellRows(cells.part(counted), None if targets is None else targets.part(counted), weight[counted])
    one_by_one, _ = _pass(rules, store, learned, None, odd, warn_once, shuffled=True)
    _say_odd(store, odd, warn_once)
    store.moments[LATE, [source.number for source in store.sources if source.role == TIMED]] = 1.0  # not of now
    X = encode(rules, store, cells)
    coded = {at for at, source in enumerate(store.sources) if not source.retired}
    means = [c for c, (at, part, _) in enumerate(store.layout) if part in (MEAN, RECENT, ROWS, SCORE) and at in coded]
    X[counted[:, None], means] = one_by_one[:, means]
    return X


def _pass(
    rules: Any, store: Store, batch: CellRows, journal: Journal | None, odd: dict[str, Any], warn_once: WarnOnce,
    before: int = 0, shuffled: bool = False,
) -> tuple[np.ndarray, Widths]:  # fmt: skip
    """Encode and learn rows of positive weight; ``shuffled`` are those of a table, where nothing comes later.

    ``odd`` gets a cell of each column that has some of no use; ``before`` are rows of the call before these.
    """
    cells, targets, weight = batch
    since, widths = grow(store, cells, targets, rules.kinds or {}, int(rules.max_columns), shuffled, journal, warn_once)
    since = {} if shuffled else since
    X = np.zeros((cells.n, store.width))
    Y = None if targets is None else targets.matrix(store)
    start, window = 0, cells.n
    while start < cells.n:
        end = min(cells.n, start + window)
        found = parse(store, cells, start, end, since, int(rules.max_categories), rules.strict, journal, before)
        stop = start + len(found.codes)
        window = max(64, 2 * len(found.codes))  # looking further ahead is wasted where tables are always full
        if journal is not None:
            journal.save(found.codes)
        for row, source, value in found.wrong:
            if row < stop:
                odd.setdefault(source.name, value)
        if shuffled and not start:
            decide_in_table(store, found.numbers, found.codes, rules.kinds or {}, warn_once)
        for source in store.crowded(found.codes) if shuffled else ():
            store.show_recent(source)
        X, here = padded(X, store.width), slice(start, stop)
        order = generator(0, SeedStream.ENCODER_ORDER, start).permutation(stop - start) if shuffled else None
        y, w = (None if values is None else values[here] for values in (Y, weight))
        _run(rules, store, found, X[here], y, w, order=order, journal=journal)
        store.t += stop - start
        for source in found.retired:
            store.retire(source)
        if found.full is not None:
            store.forget(found.full)
        start = stop
    for at in store.undecided if not shuffled else ():  # a table has voted
        name = store.sources[at].name
        store.votes[at] += votes_of(cells.get(name), cells.hints.get(name))
    return X, widths


def _run(
    rules: Any, store: Store, found: Parsed, X: np.ndarray, Y: np.ndarray | None, weight: np.ndarray | None,
    learn: bool = True, order: np.ndarray | None = None, journal: Journal | None = None,
) -> None:  # fmt: skip
    """Encode rows into X, and learn them, in their order or another."""
    columns_pass, _ = twins(rules.engine)
    block: dict[str, Any] = {"numbers": found.numbers, "codes": found.codes, "Y": Y, "weight": weight}
    dates = [(source, found.numbers[:, source.number], parts) for source, parts in found.cycles]
    for source, _, parts in dates:
        X[:, source.slots : source.slots + parts.shape[1]] = parts
    seasons = learn and Y is not None and bool(dates)
    for here in runs(store.t, len(X)) if seasons and order is None else [slice(0, len(X))]:
        part, out = block, X
        if order is not None or len(X) > here.stop - here.start:
            rows = here if order is None else order
            part, out = {name: None if values is None else values[rows] for name, values in block.items()}, X[rows]
        part["since"] = np.maximum(found.since - here.start, 0) if here.start else found.since
        columns_pass(vars(store), part, rules.shrink, rules.scale, learn, out)
        if order is not None:
            X[order] = out
        for source, x, parts in dates:
            H = regressors(store, source, x[here], parts[here])
            show_season(store, source, H, X[here])
            if seasons:
                learn_season(store, source, x[here], H, Y[here], None if weight is None else weight[here])  # type: ignore[index]
                if order is not None or store.t + here.stop == next_solved(store.t + here.start):
                    solve_season(store, source)
    for source, first, texts in found.texts:
        if source.kind == "text":
            X[first:, source.gap] = [text == "" for text in texts]
        if source.text is None:
            continue
        rows = np.arange(first, len(X)) if order is None else order[order >= first]
        y, w = (None if values is None or not learn else values[rows] for values in (Y, weight))
        texts = [texts[i - first] for i in rows]
        X[rows[:, None], source.scores] = run_texts(source.text, texts, rules.engine, y, w, journal)
    if store.idle:
        X[:, store.silent] = 0.0


# -------------------------------------------------------------------- one dictionary at a time
def learn_row(rules: Any, store: Store, row: dict[Any, Any], y: Any, journal: Journal) -> np.ndarray | None:
    """What :func:`learn_stream` does, for a dictionary with nothing new or unusual in it; None for any other.

    The journal has what changes, and nothing where there is no result.
    """
    _, reader = twins(rules.engine)
    if reader is None or (y is None) == bool(store.task):
        return None
    Y = None
    if y is not None:
        Y = one_target(store, y)
        if Y is None:
            return None
    found = parse_row(store, row, reader, int(rules.max_categories), False, journal)
    if found is None:
        return None
    journal.save(found.codes)
    X = np.zeros((1, len(store.layout)))
    _run(rules, store, found, X, Y, None, journal=journal)
    for at in store.undecided:
        store.votes[at] += votes_of([row.get(store.sources[at].name)])
    store.t += 1
    if not store.t & (store.t - 1):
        try:
            decide_again(store, rules.kinds or {}, journal, rules._warn_once)
        except NeedsCopy:
            journal.undo()
            return None
    return X


def encode_row(rules: Any, store: Store, row: dict[Any, Any], ignore_unknown: bool) -> np.ndarray | None:
    """What :func:`encode` does, for a dictionary with nothing unusual in it; None for any other."""
    _, reader = twins(rules.engine)
    if reader is None or store.by_name.keys().isdisjoint(row):
        return None
    journal = Journal(store)
    found = parse_row(store, row, reader, None, ignore_unknown, journal)
    if found is None:
        return None
    X = np.zeros((1, store.width))
    _run(rules, store, found, X, None, None, learn=False)
    journal.undo()
    return X


# -------------------------------------------------------------------- encoding only
def encode(rules: Any, store: Store, cells: Cells, warn_once: WarnOnce | None = None) -> np.ndarray:
    """Encode rows as if each came next; the store is not changed. Where asked to, warn about unusable cells."""
    X = np.zeros((cells.n, store.width))
    if not cells.n:
        return X
    journal = Journal(store)
    try:
        found = parse(store, cells, 0, cells.n, {}, None, rules.strict, journal)
        if warn_once is not None:
            _say_odd(store, {source.name: value for _, source, value in reversed(found.wrong)}, warn_once)
        _run(rules, store, found, X, None, None, learn=False)
    finally:
        journal.undo()
    return X


def compare(store: Store, cells: Cells, warn_once: WarnOnce) -> None:
    """Warn once about columns that are absent or unknown; ValueError if none is known."""
    unknown = [name for name in check_known(store, cells) if name not in store.came]
    if unknown:
        known = list(store.by_name)
        warn_once("unknown", f"columns that were never learned are ignored: {some(unknown, known)}")
    if type(cells) is Cells and cells.n:
        absent = [s.name for s in store.by_name.values() if s.kind != "ignored" and cells.get(s.name) is None]
        if absent:
            warn_once(
                "absent",
                f"columns that the model knows are not in the rows, and are taken as missing: {some(absent)}",
            )


def _say_odd(store: Store, odd: dict[str, Any], warn_once: WarnOnce) -> None:
    """Warn once about cells of columns that are of no use there."""
    for name, value in odd.items():
        kind = store.by_name[name].kind.replace("integer", "number")
        if kind != "ignored" and (kind != "category" or not isinstance(value, str)):
            said = f"column {name!r} holds cells that are not a {kind}, like {str(value)[:40]!r}"
            warn_once(f"wrong {name}", f"{said}: they are taken as missing")
