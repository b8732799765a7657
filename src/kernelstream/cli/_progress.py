"""A progress bar for streams whose number of rows is not known, but whose size is."""

from __future__ import annotations

from typing import Any

from ..evaluate._progress import Progress


class StreamProgress(Progress):
    """Rows, rows/s, the running error and the time left, estimated from the share of the source that has been read."""

    def __init__(self, wish: Any, stream: Any, label: str, metric: str):
        super().__init__(wish, stream.n_rows, label, metric)
        self.stream = stream
        self.offset = 0  # rows of an earlier run, which took no time in this one

    def _draw(self, rows: int, value: float) -> None:
        fraction = self.stream.fraction
        if self.stream.n_rows is None and fraction:
            self.bar.update(self.task, total=max(rows, rows / fraction))
        super()._draw(rows, value)


def wish(args: Any) -> bool | None:
    """Whether a bar is wanted: by default where standard error is a terminal."""
    return False if args.quiet else None
