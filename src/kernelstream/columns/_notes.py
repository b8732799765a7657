"""What is worth knowing about the columns of a table: those that never change, and those that number its rows."""

from __future__ import annotations

from ._store import InputColumn, Store

MIN_ROWS_NOTED = 30  # rows before anything is said
MAX_ROWS_PER_WORD = 1.1  # rows for each category, at most, where a column names the rows


def notes(store: Store) -> dict[str, str]:
    """A sentence about each column that is useless in its present form, by name."""
    if store.t < MIN_ROWS_NOTED:
        return {}
    found = {source.name: _note(store, source) for source in store.sources}
    return {name: text for name, text in found.items() if text}


def _note(store: Store, source: InputColumn) -> str:
    if source.number >= 0:
        count, _, m2, low, high, *_ = store.moments[:, source.number].tolist()
        if count == store.t and low == high:
            return "it never changes"
        # the sum of squares of n different whole numbers is least where they follow on each other, as row numbers do
        consecutive = count * (count**2 - 1) / 12
        if high - low == count - 1 and abs(m2 - consecutive) <= 1e-9 * consecutive:
            return "it looks like a row number: a new row has one that was never seen"
    elif source.table is not None and source.table.codes:
        counts = store.counts[list(source.table.codes.values())]
        if len(counts) == 1:
            return "it never changes"
        if len(counts) >= MIN_ROWS_NOTED and counts.mean() <= MAX_ROWS_PER_WORD:
            return "it looks like an identifier: nearly every row has a word of its own"
    return ""
