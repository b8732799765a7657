"""Requests of the last minutes, for the page."""

from __future__ import annotations

import time
from collections import deque

SECONDS_KEPT = 300  # that are remembered


class Recent:
    """How many answers there were in each of the last seconds, and how long they took."""

    def __init__(self) -> None:
        self.seconds: deque[list[float]] = deque(maxlen=SECONDS_KEPT)  # second, answers, sum and largest of their times

    def add(self, taken: float) -> None:
        """Count an answer."""
        now = int(time.time())
        if not self.seconds or self.seconds[-1][0] != now:
            self.seconds.append([now, 0, 0.0, 0.0])
        last = self.seconds[-1]
        last[1] += 1
        last[2] += taken
        last[3] = max(last[3], taken)

    def picture(self) -> list[list[float]]:
        """``[second, answers a second, mean seconds, largest]`` in order; seconds without an answer are left out."""
        return [[at, n, total / n, most] for at, n, total, most in list(self.seconds)]
