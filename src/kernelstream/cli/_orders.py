"""Rows of a stream in memory, in orders other than that of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..streams._base import joined
from ._base import Around, inner


class Held:
    """All rows of a stream.

    Parameters
    ----------
    stream : stream
        It is read to its end; what it says of columns and blocks holds for the orders too.
    """

    def __init__(self, stream: Any):
        self.stream = stream
        self.X, self.y = joined(list(stream))  # type: ignore[misc]
        orders = getattr(inner(stream), "orders", None)
        self.given = orders if orders is not None and orders.shape[1] == len(self.y) else np.empty((0, 0), np.int64)

    def order(self, number: int) -> np.ndarray:
        """A permutation of the rows: one of the file's own where it has that many, otherwise one drawn from a seed."""
        if number < len(self.given):
            return self.given[number]
        return np.random.default_rng(number).permutation(len(self.y))

    def rows(self, numbers: np.ndarray) -> InOrder:
        """A stream of some rows, by their numbers."""
        return InOrder(self, numbers)


class InOrder(Around):
    """Blocks of held rows; all else is as in the stream that they came from."""

    def __init__(self, held: Held, numbers: np.ndarray):
        super().__init__(held.stream)
        self.held, self.numbers, self.n_rows = held, numbers, len(numbers)

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        for start in range(0, self.n_rows, self.block):
            some = self.numbers[start : start + self.block]
            yield self.held.X.part(some) if hasattr(self.held.X, "part") else self.held.X[some], self.held.y[some]
