"""What readers share: their copy of the model, and the rows they asked about, until the targets come.

Predictions by the copy never wait for learning, and never see half a call.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from kernelstream.copies import copied

from .answers import UnknownId, View
from .champions import Champions

EXTRA_METHODS = ("predict_proba", "predict_interval", "predict_set")
COPY_SHARE = 10  # copies take at most one part in COPY_SHARE of the writer's time
PACE_SECONDS = 5.0  # over which the rows a second are counted


class Readers:
    """Renews the copy, at most once in ``swap`` seconds; all but :attr:`view` is for the writer.

    Parameters
    ----------
    champions : Champions
    swap : float
    """

    def __init__(self, champions: Champions, swap: float):
        self.champions, self.swap, self.stale = champions, swap, False
        self.example: Any = None  # a row that was learned
        self._pace: deque[tuple[float, int]] = deque(maxlen=1000)  # times, and how many rows had been learned by then
        self._due = 0.0
        self.publish()

    def publish(self) -> None:
        """Make a new copy; MemoryError leaves the one there is."""
        started, champions = time.monotonic(), self.champions
        try:
            self.view = _view(copied(champions.champion.model, self.example), champions)
            self.stale = False
        finally:
            ended = time.monotonic()
            self._due = ended + max(self.swap, COPY_SHARE * (ended - started))
        champions.clock.tick(champions.total)
        if not self._pace or started - self._pace[-1][0] > 0.1:
            self._pace.append((started, champions.total))

    def due(self) -> float | None:
        """Seconds until a new copy may be made; None where there is nothing new."""
        return self._due - time.monotonic() if self.stale else None

    def rows_per_second(self) -> float:
        """Rows learned per second in the recent past."""
        now, total = time.monotonic(), self.champions.total
        then = next(((at, rows) for at, rows in list(self._pace) if at >= now - PACE_SECONDS), None)
        return 0.0 if then is None or now - then[0] < 0.05 else (total - then[1]) / (now - then[0])


def _view(model: Any, champions: Champions) -> View:
    columns = getattr(model, "feature_names_in_", champions.columns)
    names = None if columns is None else tuple(map(str, columns))
    extras = tuple(name for name in EXTRA_METHODS if hasattr(model, name))
    return View(model, champions.version, champions.total, names, champions.champion.scores.task, extras)


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
