"""Rows that were predicted with ids, until their targets come; in memory only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from .answers import UnknownId


class Waiting:
    """The last ``most`` rows by their ids; several threads may use it."""

    def __init__(self, most: int):
        self.most = most
        self._rows: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, ids: Sequence[Any], rows: Any) -> None:
        """Keep rows; the oldest are dropped when there are too many."""
        with self._lock:
            for i, name in enumerate(ids):
                self._rows.pop(name, None)
                self._rows[name] = rows[i : i + 1]
            while len(self._rows) > self.most:
                self._rows.popitem(last=False)

    def recall(self, ids: Sequence[Any], learned: Container[Any], width: int) -> Any:
        """The rows of ids; those of ``learned`` ids, which will be left out, are replaced by any other."""
        with self._lock:
            missing = [name for name in ids if name not in self._rows and name not in learned]
            if missing:
                raise UnknownId(missing)
            found: list[Any] = [self._rows.get(name) for name in ids]
        some = next((row for row in found if row is not None), None)
        if some is None:
            return np.zeros((len(ids), width))
        found = [some if row is None else row for row in found]
        return [row[0] for row in found] if isinstance(some, list) else np.concatenate(found)

    def forget(self, ids: Sequence[Any]) -> None:
        """Drop rows that have been learned."""
        with self._lock:
            for name in ids:
                self._rows.pop(name, None)
