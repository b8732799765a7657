"""A monitor beside an evaluation: rows when they come, losses when their labels do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._metrics import errors


class MonitorFeed:
    """Shows rows and losses to a monitor and collects its marks; their row numbers are those of the stream."""

    def __init__(self, monitor: Any, est: Any, task: str, delay: int) -> None:
        self.monitor, self.est, self.task, self.delay = monitor, est, task, delay
        self.waiting = np.zeros(0)
        self.unknown = 0  # rows at the beginning that have no loss
        self.marks: list[Any] = []

    def add(self, X: Any, y: np.ndarray, predicted: np.ndarray) -> None:
        """Show a block X (n, d) that has been answered, and its last targets, those that there are forecasts of."""
        self.unknown += X.shape[0] - len(y)
        self.waiting = np.concatenate([self.waiting, errors(self.task, y, predicted)])
        due = max(len(self.waiting) - self.delay, 0)
        found = self.monitor.learn(X=X.to_numpy(np.float64) if hasattr(X, "to_numpy") else X)
        late = self.monitor.learn(self.waiting[:due])
        found += [replace(mark, row=mark.row + self.delay + self.unknown) for mark in late]
        self.waiting = self.waiting[due:]
        self.marks += found
        if self.monitor.react is not None:
            for mark in found:
                self.monitor.react(self.est, mark)
