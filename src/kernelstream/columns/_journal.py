"""Undo of a call of an encoder: the entries it changed, and the names it added."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._store import InputColumn, Store


class NeedsCopy(Exception):
    """A call will change more than entries, so it must work on a copy of the store."""


class Journal:
    """What one call changes in a store, so that it can be undone."""

    def __init__(self, store: Store):
        self.store = store
        self.names: list[tuple[InputColumn, Any, int, int, list[int]]] = []
        self.wrong: list[tuple[InputColumn, int, int]] = []
        self.saved: Any = None

    def enter(self, source: InputColumn, name: Any, for_good: bool) -> int:
        """A code for a new name; noted first, so that it can be undone wherever entering it ends."""
        store, table = self.store, source.table
        self.names.append((source, name, table.own, store.size, store.free[-1:]))  # type: ignore[union-attr]
        return store.enter(source, name, for_good)

    def count_wrong(self, source: InputColumn) -> None:
        """Remember the count of wrong cells before it changes."""
        self.wrong.append((source, source.wrong, source.first_wrong))

    def save(self, codes: np.ndarray) -> None:
        """Remember the entries that a pass over these codes changes."""
        store, touched = self.store, codes[0] if len(codes) == 1 else np.unique(codes)
        if not len(store.counts):
            touched = touched[:0]
        # -1, of no category, is the last entry: it goes back to what it was, too
        entries = (touched, store.counts.take(touched), store.sums.take(touched, axis=0))
        self.saved = (store.t, store.moments.copy(), store.target.copy(), entries)

    def undo(self) -> None:
        """The store as it was."""
        store = self.store
        if self.saved is not None:
            store.t, store.moments, store.target, (touched, counts, sums) = self.saved
            store.counts[touched], store.sums[touched] = counts, sums
        for source, name, own, size, last in reversed(self.names):
            table: Any = source.table
            table.codes.pop(name, None)
            table.own, store.size = own, size
            if store.free[-1:] != last:
                store.free += last
        for source, wrong, first in reversed(self.wrong):
            source.wrong, source.first_wrong = wrong, first
        self.names, self.wrong, self.saved = [], [], None
