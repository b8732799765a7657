"""A progress line on stderr, for solves long enough to want one."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 1.5  # seconds before it appears
_PAUSE = 0.1  # seconds between two drawings


class Progress:
    """Iterations of a solver and how far it is from its tolerance; only on a terminal.

    Used as a context, whose value is the ``report`` of a problem: ``report(iteration, value)``.
    """

    def __init__(self, label: str):
        self.label = label
        self.started = time.perf_counter()
        self.draws = sys.stderr.isatty()
        self.next = self.started + PATIENCE
        self.status: Any = None

    def __enter__(self) -> Progress:
        return self

    def __call__(self, iteration: int, value: float) -> None:
        now = time.perf_counter()
        if not self.draws or now < self.next:
            return
        if self.status is None:
            from rich.console import Console

            self.status = Console(stderr=True).status("")
            self.status.start()
        self.status.update(f"{self.label}: iteration {iteration}, residual {value:.1e}, {now - self.started:.0f} s")
        self.next = now + _PAUSE

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is not None:
            self.status.stop()
