"""A progress bar on stderr, for runs long enough to want one."""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE = 1.5  # seconds a run may take before a bar appears
_PAUSE = 0.1  # seconds between two drawings


class Progress:
    """Rows, rows/s, the running metric and the time left.

    Parameters
    ----------
    wish : None, bool or callable
        None: on a terminal, once the run has taken a while. True: at once. False: never. A callable is called with
        (rows so far, rows in all or None, running metric) instead of drawing.
    total : int or None
    label, metric : str
    """

    def __init__(self, wish: Any, total: int | None, label: str, metric: str) -> None:
        self.call = wish if callable(wish) else None
        self.total, self.label, self.metric = total, label, metric
        self.started = time.perf_counter()
        self.next = self.started if wish is True else self.started + PATIENCE
        self.draws = self.call is None and (wish is True or (wish is None and sys.stderr.isatty()))
        self.bar: Any = None
        self.task: Any = None

    def update(self, rows: int, value: float) -> None:
        """Show the state after so many rows."""
        if self.call is not None:
            self.call(rows, self.total, value)
        if not self.draws or time.perf_counter() < self.next:
            return
        if self.bar is None:
            self._open()
        self._draw(rows, value)
        self.next = time.perf_counter() + _PAUSE

    def close(self, rows: int, value: float) -> None:
        """Draw the end, if anything was drawn."""
        if self.bar is not None:
            self._draw(rows, value)
            self.bar.stop()

    def _draw(self, rows: int, value: float) -> None:
        speed = rows / max(time.perf_counter() - self.started, 1e-9)
        self.bar.update(self.task, completed=rows, speed=f"{speed:,.0f} rows/s", value=f"{self.metric} {value:.4g}")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,.0f} rows"),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[value]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task(self.label, total=self.total, speed="", value="")
        self.bar.start()
