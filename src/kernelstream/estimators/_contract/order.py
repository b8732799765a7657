"""The order in which ``fit`` takes its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...checks import flag, whole
from ...core import threads
from ...random import SeedStream, generator
from ...rows import Rows

BYTES = 1 << 25  # rows are shuffled in parts of about this size
LEAST_PART = 1000  # rows of a part, at least
REPORTS = 100  # most parts of a pass when callbacks are registered


def check_order(name: str, at_once: bool, shuffle: Any, passes: Any) -> None:
    """ValueError for invalid arguments of ``fit``."""
    flag("shuffle", shuffle)
    whole("passes", passes)
    if at_once and passes != 1:
        raise ValueError(f"{name} learns all rows at once: passes must be 1, got {passes}")


def counted(X: Rows, y: np.ndarray, weight: np.ndarray | None) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """The rows of positive weight."""
    if weight is None:
        return X, y, weight
    some = weight > 0
    if some.all():
        return X, y, weight
    return X[some], y[some], weight[some]


class Order:
    """Passes over rows, each a list of parts: slices or indices, in the order in which to learn them.

    Rows of weight 0 are left out. No more than a part is copied at a time.

    Parameters
    ----------
    seed : int
        Of the random orders.
    X : (n, d)
        Rows, of which only the size counts.
    weight : (n,) or None
    shuffle : bool
    passes : int
    listened : bool
        Whether callbacks are registered.
    """

    def __init__(self, seed: int, X: Rows, weight: np.ndarray | None, shuffle: bool, passes: int, listened: bool):
        n = X.shape[0]
        self.seed, self.shuffle, self.passes = seed, shuffle, passes
        self.rows = np.arange(n) if weight is None else np.flatnonzero(weight)
        self.in_place = not shuffle and len(self.rows) == n
        entries = X.nnz / n if sp.issparse(X) else X.shape[1]
        size = n if self.in_place else max(LEAST_PART, int(BYTES // (8 * max(entries, 1))))
        self.size = min(size, max(LEAST_PART, -(-len(self.rows) // REPORTS))) if listened else size

    @property
    def n_parts(self) -> int:
        """Of all passes."""
        return self.passes * -(-len(self.rows) // self.size)

    def __iter__(self) -> Iterator[list[Any]]:
        n = len(self.rows)
        cuts = threads.cuts(n, self.size)
        for i in range(self.passes):
            rows = generator(self.seed, SeedStream.FIT_ORDER, i).permutation(self.rows) if self.shuffle else self.rows
            yield cuts if self.in_place else [rows[cut] for cut in cuts]
