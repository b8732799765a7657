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
    """The time that is left for steps, of which the last solves a system of many rows.

    The time of a system grows with the cube of its rows; from ``products`` rows on, with the square.
    """

    limit: float = float("inf")  # seconds in all
    report: Callable[[int, str], None] = lambda steps, remark: None

    def __post_init__(self) -> None:
        self.started, self.steps, self.cubed = time.monotonic(), 0, 0.0

    def left(self) -> float:
        """Seconds."""
        return self.started + self.limit - time.monotonic()

    def late(self, n: int = 0, products: float = float("inf")) -> bool:
        """Whether only time for the last step would be left after a system of n rows."""
        return self.left() - self.cubed * n**2 * min(n, products) < (1 - SEARCH) * self.limit

    def step(self, remark: str) -> None:
        """A step was made."""
        self.steps += 1
        self.report(self.steps, remark)

    def measured(self, n: int, seconds: float, products: float = float("inf")) -> None:
        """A system of n rows, alone on all threads, took so long."""
        self.cubed = seconds / (n**2 * min(n, products))

    def rows(self, n: int, systems: int, most: int, products: float = float("inf")) -> int:
        """How many of n rows there is time for: all, in this many systems, or one system of at most ``most`` rows."""
        left = SPARE * max(self.left(), 0.0)
        if self.cubed * systems * (n / systems) ** 2 * min(n / systems, products) <= left:
            return n
        units = left / self.cubed
        return min(n, most, max(LEAST_ROWS, int(max(units ** (1 / 3), (units / products) ** 0.5))))
