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


def passes_over(
    seed: int, X: Rows, weight: np.ndarray | None, shuffle: bool, passes: int, listened: bool
) -> tuple[int, Iterator[list[Any]]]:
    """Passes over rows, each a list of parts: slices or indices, in the order in which to learn them.

    Before them, how many parts there are in all. Rows of weight 0 are left out; of the others only the size counts. No
    more than a part is copied at a time; parts are smaller where callbacks are ``listened`` to.
    """
    n = X.shape[0]
    rows = np.arange(n) if weight is None else np.flatnonzero(weight)
    in_place = not shuffle and len(rows) == n
    entries = X.nnz / n if sp.issparse(X) else X.shape[1]
    size = n if in_place else max(LEAST_PART, int(BYTES // (8 * max(entries, 1))))
    if listened:
        size = min(size, max(LEAST_PART, -(-len(rows) // REPORTS)))
    cuts = threads.cuts(len(rows), size)

    def parts(i: int) -> list[Any]:
        order = generator(seed, SeedStream.FIT_ORDER, i).permutation(rows) if shuffle else rows
        return cuts if in_place else [order[cut] for cut in cuts]

    return passes * len(cuts), map(parts, range(passes))
