"""Work with a time limit that reports its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SEARCH = 0.5  # part of the time for all steps but the last
SPARE = 0.8  # of the time that is left, what the last step may take by the estimate
LEAST_ROWS = 500  # rows that the last system has in any case


@dataclass
class Clock:
    """The time that is left for steps, of which the last solves a system of many rows."""

    limit: float = float("inf")  # seconds in all
    report: Callable[[int, str], None] = lambda steps, remark: None

    def __post_init__(self) -> None:
        self.started, self.steps, self.cubed = time.monotonic(), 0, 0.0

    def left(self) -> float:
        """Seconds."""
        return self.started + self.limit - time.monotonic()

    def late(self, n: int = 0) -> bool:
        """Whether only time for the last step would be left after a system of n rows."""
        return self.left() - self.cubed * n**3 < (1 - SEARCH) * self.limit

    def step(self, remark: str) -> None:
        """A step was made."""
        self.steps += 1
        self.report(self.steps, remark)

    def measured(self, n: int, seconds: float) -> None:
        """A system of n rows, alone on all threads, took so long."""
        self.cubed = seconds / n**3

    def rows(self, n: int, systems: int, most: int) -> int:
        """How many of n rows there is time for: all, in this many systems, or one system of at most ``most`` rows."""
        left = SPARE * max(self.left(), 0.0)
        if self.cubed * systems * (n / systems) ** 3 <= left:
            return n
        return min(n, most, max(LEAST_ROWS, int((left / self.cubed) ** (1 / 3))))
