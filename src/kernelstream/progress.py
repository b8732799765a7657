"""Progress bars on stderr for work that takes a while, and sizes in readable units."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import Any, Self

PATIENCE_SECONDS = 1.5  # seconds that work may take before a bar appears


def size_text(n: float) -> str:
    """A number of bytes in a readable unit.

    >>> size_text(4096)
    '4.1 kB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            break
        n /= 1000
    return f"{n:.0f} {unit}" if n >= 100 or unit == "B" else f"{n:.1f} {unit}"


class Bar:
    """How much is done, a remark, and the time left. A context manager that closes it.

    Parameters
    ----------
    wish : bool or None
        None: on a terminal, once the work has taken a while. True: at once. False: never.
    label : str
    unit : str
        What is counted.
    patience : float, optional
        Seconds before it appears on a terminal.
    """

    def __init__(self, wish: bool | None, label: str, unit: str = "rows", patience: float | None = None) -> None:
        self.label, self.unit = label, unit
        self.draws = sys.stderr.isatty() if wish is None else wish
        self.started = time.perf_counter()
        self.opens = self.started + (0.0 if wish else PATIENCE_SECONDS if patience is None else patience)
        self.bar: Any = None
        self.task: Any = None

    def update(self, done: int, remark: str = "", total: float | None = None) -> None:
        """Show the state after ``done`` of the work, ``total`` in all where that is known (an estimate is a float)."""
        if not self.draws or time.perf_counter() < self.opens:
            return
        if self.bar is None:
            self._open()
        of = f" of {total:,}" if isinstance(total, int) else ""
        self.bar.update(self.task, completed=done, total=total, count=f"{done:,}{of} {self.unit}", remark=remark)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self.bar is not None:
            self.bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[remark]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task(self.label, total=None, count="", remark="")
        self.bar.start()


class RowsBar(Bar):
    """Rows, rows/s and a running metric."""

    def __init__(self, wish: bool | None, label: str, metric: str) -> None:
        super().__init__(wish, label)
        self.metric = metric

    def rows(self, n: int, value: float, total: float | None = None, earlier: int = 0) -> None:
        """Show the state after n rows; ``earlier`` rows were not part of this run. A value of NaN means unknown."""
        speed = (n - earlier) / max(time.perf_counter() - self.started, 1e-9)
        metric = "" if math.isnan(value) else f", {self.metric} {value:.4g}"
        self.update(n, f"{speed:,.0f} rows/s{metric}", total)


class SolverBar(Bar):
    """Iterations of a solver and how far it is from its tolerance: called as ``report(iteration, value)``."""

    def __init__(self, label: str) -> None:
        super().__init__(None, label, "iterations")

    def __call__(self, iteration: int, value: float) -> None:
        self.update(iteration, f"residual {value:.1e}, {time.perf_counter() - self.started:.0f} s")
