"""What a call changes in the store of an encoder, so that it can be undone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._store import OF_ALL, OF_CODES, InputColumn, Store
from ._texts import TextColumn


class NeedsCopy(Exception):
    """A call will change more than entries, so it must work on a copy of the store."""


class Journal:
    """What one call changes in a store, so that it can be undone."""

    def __init__(self, store: Store):
        self.store = store
        self.names: list[tuple[InputColumn, Any, int, int, list[int]]] = []
        self.wrong: list[tuple[InputColumn, int, int]] = []
        self.saved: Any = None
        self.settled: list[InputColumn] = []
        self.texts: list[tuple[TextColumn, Any]] = []

    def enter(self, source: InputColumn, name: Any, for_good: bool) -> int:
        """A code for a new name; noted first, so that it can be undone wherever entering it ends."""
        store, table = self.store, source.table
        self.names.append((source, name, table.own, store.size, store.free[-1:]))  # type: ignore[union-attr]
        return store.enter(source, name, for_good)

    def count_wrong(self, source: InputColumn) -> None:
        """Remember the count of wrong cells before it changes."""
        self.wrong.append((source, source.wrong, source.first_wrong))

    def settle(self, sources: list[InputColumn]) -> None:
        """Columns that keep their kind from now on; noted, so that it can be undone."""
        self.settled += sources
        self.store.settle(sources)

    def save(self, codes: np.ndarray) -> None:
        """Remember the entries that a pass over these codes changes."""
        store, touched = self.store, codes[0] if len(codes) == 1 else np.unique(codes)
        if not len(store.counts):
            touched = touched[:0]
        # -1, of no category, is the last entry: it goes back to what it was, too
        entries = (touched, *(getattr(store, name).take(touched, axis=0) for name in OF_CODES))
        self.saved = (store.t, *(getattr(store, name).copy() for name in OF_ALL), entries)

    def take_back(self, nothing_learned: bool) -> None:
        self.undo()

    def save_text(self, column: TextColumn, touched: np.ndarray) -> None:
        """Remember the entries of a column of texts that a pass over these pieces changes."""
        self.texts.append((column, column.part(touched)))

    def undo(self) -> None:
        """The store as it was."""
        store = self.store
        for column, saved in reversed(self.texts):
            column.put_back(saved)
        if self.saved is not None:
            store.t, *whole, (touched, *entries) = self.saved
            for name, before in zip(OF_ALL, whole, strict=True):
                setattr(store, name, before)
            for name, before in zip(OF_CODES, entries, strict=True):
                getattr(store, name)[touched] = before
        for source, name, own, size, last in reversed(self.names):
            table: Any = source.table
            table.codes.pop(name, None)
            table.own, store.size = own, size
            if store.free[-1:] != last:
                store.free += last
        for source, wrong, first in reversed(self.wrong):
            source.wrong, source.first_wrong = wrong, first
        for source in self.settled:
            source.settled = False
        if self.settled:
            store.find_columns()
        self.names, self.wrong, self.saved, self.settled, self.texts = [], [], None, [], []
