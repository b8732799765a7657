"""How many rows tell what must be estimated, and cuts of rows at places that their number decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

WARM_UP = 100  # rows from which a bandwidth is estimated


def runs(weight: np.ndarray | None, n: int, wanted: Callable[[], int]) -> Iterator[slice]:
    """Cuts of n rows; each is the shortest that holds as many rows of positive weight as are ``wanted`` by then."""
    start = 0
    while start < n:
        stop = rows_until(weight, start, n, wanted())
        yield slice(start, stop)
        start = stop


def rows_until(weight: np.ndarray | None, start: int, n: int, wanted: int) -> int:
    """End of the shortest run from ``start`` that holds ``wanted`` rows of positive weight."""
    if weight is None:
        return min(n, start + wanted)
    counted = np.cumsum(weight[start:] > 0)
    return min(n, start + int(np.searchsorted(counted, wanted)) + 1)
