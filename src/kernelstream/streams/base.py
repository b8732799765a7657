"""Base of all readers: blocks of rows in one pass, from any position."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..checks import one_of, whole
from ..rows import concat, padded

logger = logging.getLogger("kernelstream.streams")

BLOCK_ROWS = 1024
POLICIES = ("raise", "skip", "log")

Block = tuple[Any, Any]  # rows (n, d), dense or CSR, and targets (n,) or None
Position = dict[str, Any]


class BadRowError(ValueError):
    """A row that cannot be read.

    Attributes
    ----------
    file : str
    line : int
        Line (of a text) or row (of a table), counted from 1.
    reason : str
    """

    def __init__(self, file: str, line: int, reason: str, unit: str = "line"):
        super().__init__(f"{file}, {unit} {line}: {reason}")
        self.file, self.line, self.reason, self.unit = file, line, reason, unit

    def __reduce__(self) -> Any:
        return type(self), (self.file, self.line, self.reason, self.unit)


class Stream:
    """Rows of a source, block by block, in one pass and bounded memory; iterate over it to get pairs (X, y).

    Blocks have ``block`` rows, the last one fewer, however the source stores them: reading again, or going on from a
    ``position``, cuts the rows at the same places.

    Attributes
    ----------
    name : str
        Where the rows come from, for messages.
    rows : int
        Rows given so far.
    skipped : int
        Rows left out so far because they could not be read (``on_error`` "skip" or "log").
    n_rows : int or None
        Rows in all, where that is known.
    n_features : int or None
        Width of the rows; it may grow where the source does not state it.
    feature_names : list of str or None
    """

    unit = "line"
    mixed = False  # whether it gives cells as they are, not numbers
    limit: int | None = None  # rows to end after
    eager = False  # whether rows of a pipe are given as they come, instead of waiting for a whole block
    n_rows: int | None = None
    n_features: int | None = None
    feature_names: list[str] | None = None

    def __init__(self, name: str, block: int = BLOCK_ROWS, on_error: str = "raise"):
        whole("block", block)
        one_of("on_error", on_error, POLICIES)
        self.name, self.block, self.on_error = name, int(block), on_error
        self.rows = self.skipped = 0
        self._peeked: tuple[Block, Position] | None = None  # a block that was read ahead, and the position before it

    # ---------------------------------------------------------------- for readers
    def _next(self, n: int) -> Block | None:
        """The next n rows, fewer only at the end; None when there are none left."""
        raise NotImplementedError

    def _where(self) -> Position:
        """What :meth:`_seek` needs, as plain numbers and strings."""
        raise NotImplementedError

    def _seek(self, position: Position) -> None:
        raise NotImplementedError

    def _bad(self, line: int, reason: str) -> None:
        """Handle a row that cannot be read, as ``on_error`` says."""
        if self.on_error == "raise":
            raise BadRowError(self.name, line, reason, self.unit)
        self.skipped += 1
        if self.on_error == "log":
            logger.warning("%s, %s %d: %s", self.name, self.unit, line, reason)

    # ---------------------------------------------------------------- for users
    def read(self, most: int | None = None) -> Block | None:
        """The next block (X, y), of at most ``most`` rows where that is given, or None at the end."""
        if self._peeked is not None:
            block, self._peeked = self._peeked[0], None
            return block
        n = self.block if most is None else min(most, self.block)
        n = n if self.limit is None else min(n, self.limit - self.rows)
        found = self._next(n) if n > 0 else None
        if found is not None:
            self.rows += found[0].shape[0]
        return found

    def peek(self) -> Block | None:
        """The block that the next call of :meth:`read` gives."""
        if self._peeked is None:
            before, block = self.position, self.read()
            self._peeked = None if block is None else (block, before)
        return None if self._peeked is None else self._peeked[0]

    def __iter__(self) -> Iterator[Block]:
        while (block := self.read()) is not None:
            yield block

    @property
    def position(self) -> Position:
        """Where the next block starts: a small dict of numbers and strings that :meth:`seek` takes, now or later."""
        if self._peeked is not None:
            return self._peeked[1]
        return {"rows": self.rows, "skipped": self.skipped, **self._where()}

    def seek(self, position: Position) -> None:
        """Go to a position of this stream, or of another one over the same source."""
        self._seek(position)
        self._peeked = None
        self.rows, self.skipped = position["rows"], position["skipped"]

    def verify(self, position: Position) -> None:
        """Raise ValueError if the source is known to have changed before a position."""

    @property
    def fraction(self) -> float | None:
        """Share of the source that has been read, if its size is known."""
        return None if self.n_rows is None else min(1.0, (self.rows + self.skipped) / max(self.n_rows, 1))

    def close(self) -> None:
        """Close the files; a stream is also a context manager."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.rows} rows read>"


def joined(parts: list[Block]) -> Block | None:
    """The rows of several blocks as one, sparse ones as wide as the widest; None where there are none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    first = parts[0][0]
    if hasattr(first, "join"):  # cells
        X = first.join([X for X, _ in parts])
    else:
        width = max(X.shape[1] for X, _ in parts)
        X = concat([padded(X, width) for X, _ in parts])
    return X, None if parts[0][1] is None else np.concatenate([y for _, y in parts])


def check_dtype(dtype: Any) -> np.dtype:
    """float32 or float64."""
    found = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    return found
