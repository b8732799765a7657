"""The copy of the model that readers see: predictions never wait for learning, and never see half a call."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from kernelstream.copies import copied

from .answers import View
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
