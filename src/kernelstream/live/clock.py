"""When rows were learned: the count of rows at a bounded number of times."""

from __future__ import annotations

import time
from typing import Any

MAX_TIMES = 400  # when there are more, every other one is dropped


class Clock:
    """Times (seconds since 1970) and how many rows had been learned by then.

    The log holds no times: rows that a restart learns again count as learned at the restart.
    """

    def __init__(self) -> None:
        self.every = 1.0  # least number of seconds between two times
        self.times: list[tuple[float, int]] = []

    def tick(self, rows: int) -> None:
        """Note that ``rows`` rows have been learned by now."""
        now = time.time()
        if self.times and (self.times[-1][1] == rows or now - self.times[-1][0] < self.every):
            return
        self.times.append((now, rows))
        if len(self.times) > MAX_TIMES:
            self.every, self.times = 2 * self.every, self.times[::2]

    def to_notes(self) -> dict[str, Any]:
        """Everything, for a snapshot."""
        return {"every": self.every, "times": [list(point) for point in self.times]}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> Clock:
        """What :meth:`to_notes` gave."""
        made = cls()
        made.every, made.times = notes["every"], [(at, rows) for at, rows in notes["times"]]
        return made
