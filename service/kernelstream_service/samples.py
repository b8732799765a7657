"""The past of a learner: its first and its last rows, to see how a column has changed, and when rows were learned."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

SAMPLE_ROWS, MAX_SAMPLE_CELLS = 200, 20_000  # of each of the two samples
MAX_TIMES = 400  # at which rows were learned; when there are more, every other one is dropped
COLUMN_BINS = 12  # of a column of numbers
MAX_SHOWN_WORDS = 8  # of a column of words that are shown one by one


class Samples:
    """The first rows and the last ones."""

    def __init__(self) -> None:
        self.first: list[Any] = []
        self.last: deque[Any] = deque(maxlen=SAMPLE_ROWS)

    def add(self, X: Any) -> None:
        """Record rows that were learned: an array, or a list of dictionaries."""
        if sp.issparse(X) or len(X) == 0:
            return
        most = max(1, min(SAMPLE_ROWS, MAX_SAMPLE_CELLS // max(1, len(X[0]))))
        if len(self.first) < most:
            self.first += _plain(X[: most - len(self.first)])
        if self.last.maxlen != most:
            self.last = deque(self.last, most)
        self.last.extend(_plain(X[-most:]))

    def columns(self) -> list[Any]:
        """Names, or places, of the columns."""
        row = self.last[-1] if self.last else []
        return list(row) if isinstance(row, dict) else list(range(len(row)))

    def compare(self, column: Any) -> dict[str, Any]:
        """How often the values of a column occurred in the first and the last rows.

        Returns
        -------
        dict
            ``kind`` "number", with ``edges`` of the bins, or "word", with ``values``; ``then`` and ``now``, the part of
            the rows in each; ``missing``, the parts without a value; and ``rows``, the sizes of both samples.
        """
        samples = [_cells(rows, column) for rows in (self.first, self.last)]
        about: dict[str, Any] = {"rows": [len(cells) for cells in samples]}
        about["missing"] = [sum(cell is None for cell in cells) / max(1, len(cells)) for cells in samples]
        known = [[cell for cell in cells if cell is not None] for cells in samples]
        both = known[0] + known[1]
        if all(isinstance(cell, (int, float)) for cell in both):
            edges = np.histogram_bin_edges(np.array(both, float), COLUMN_BINS) if both else np.array([0.0, 1.0])
            counts = [np.histogram(np.array(cells, float), edges)[0] for cells in known]
            about |= {"kind": "number", "edges": edges.tolist()}
        else:
            values = [value for value, _ in Counter(map(str, both)).most_common(MAX_SHOWN_WORDS)]
            words = [Counter(map(str, cells)) for cells in known]
            counts = [np.array([count[value] for value in values], float) for count in words]
            about |= {"kind": "word", "values": [value[:40] for value in values]}
        shares = [(count / max(1, len(cells))).tolist() for count, cells in zip(counts, samples)]
        return about | {"then": shares[0], "now": shares[1]}

    def to_notes(self) -> dict[str, Any]:
        """Both, for a snapshot."""
        return {"first": _noted(self.first), "last": _noted(list(self.last))}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> Samples:
        """What :meth:`to_notes` gave."""
        made = cls()
        made.first, made.last = _plain(notes["first"]), deque(_plain(notes["last"]), SAMPLE_ROWS)
        return made


class Clock:
    """Times (seconds since 1970) and how many rows had been learned by then.

    The log holds no times: rows that a restart learns again count as learned at the restart.
    """

    def __init__(self) -> None:
        self.every = 1.0  # least number of seconds between two times
        self.times: list[tuple[float, int]] = []

    def tick(self, rows: int) -> None:
        """Record that ``rows`` rows have been learned by now."""
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


def _plain(rows: Any) -> list[Any]:
    return rows.tolist() if isinstance(rows, np.ndarray) else list(rows)


def _noted(rows: list[Any]) -> Any:
    """Rows of numbers as an array, which a file holds in fewer bytes."""
    return np.array(rows, float) if rows and isinstance(rows[0], list) else rows


def _cells(rows: Sequence[Any], column: Any) -> list[Any]:
    """The cells of a column; None where there is no value."""
    if isinstance(column, str):
        found = [row.get(column) if isinstance(row, dict) else None for row in rows]
    else:
        found = [row[column] if isinstance(row, list) and column < len(row) else None for row in rows]
    return [None if cell == "" or cell != cell else cell for cell in found]
