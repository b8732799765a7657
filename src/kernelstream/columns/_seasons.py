r"""Seasons: the target at a time of the day, the week and the year, by ridge regression on the rows before.

    s(x) = c' h(x),    c the part of (H'H + R)^-1 H'y that belongs to h

with ``h`` sine and cosine of one and of two turns, and ``H`` of the rows so far with two more columns, 1 and the time:
so a trend is not taken for a season, and none is carried on. R is 1 for each part of h, and 0 for the two columns. The
coefficients are found again after every eighth more rows; a cycle of which the dates span less than ``TURNS`` has none.
In deviations of the target.

``store.seasons`` has ``SIZE`` rows for each column of dates: H'H, H'y of each mean, and the coefficients of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .dates import CYCLES, DAY, WEEK, YEAR, twice

SIZE = 2 + 2 * len(CYCLES)
TURNS = np.array([2 * DAY, 2 * WEEK, 1.5 * YEAR])  # of day, week, year: half of the years twice
FIRST_ROWS, SOME_ROWS = 32, 10  # rows before the first coefficients, and for each of them


def next_solved(t: int) -> int:
    """The next number of rows, after t, at which coefficients are found."""
    step = 1 << max(t.bit_length() - 4, 0)
    return FIRST_ROWS if t < FIRST_ROWS else (t // step + 1) * step


def runs(t: int, n: int) -> Iterator[slice]:
    """The n rows after t, up to each row after which coefficients are found."""
    start = 0
    while start < n:
        stop = min(n, next_solved(t + start) - t)
        yield slice(start, stop)
        start = stop


def regressors(store: Any, source: Any, x: np.ndarray, cycles: np.ndarray) -> np.ndarray:
    """The columns of H for times (n,) and their cycles (n, 6); zeros where there is no time."""
    H, origin = np.empty((len(x), SIZE)), store.spans[source.dated, 0]
    if not _own(store, source)[0, 0] > 0:  # the first known time
        origin = next((time for time in x.tolist() if time == time), 0.0)
    H[:, 0], H[:, 1] = 1.0, np.clip((x - origin) / YEAR, -1000.0, 1000.0)
    H[:, 2 : 2 + len(CYCLES)], H[:, 2 + len(CYCLES) :] = cycles, twice(cycles)
    H[np.isnan(x)] = 0.0
    return H


def show(store: Any, source: Any, H: np.ndarray, X: np.ndarray) -> None:
    """Write s(x) into the columns of the source in X."""
    coefficients, season = _own(store, source)[:, SIZE + store.means :], 0.0
    for j in np.flatnonzero(coefficients.any(axis=1)):  # a matrix product rounds one row in another way than many
        season = season + H[:, j, None] * coefficients[j]
    X[:, source.seasons] = season


def learn(store: Any, source: Any, x: np.ndarray, H: np.ndarray, Y: np.ndarray, weight: Any) -> None:
    """Add rows to the sums, one after the other, so that it does not matter how they were cut into calls."""
    known = H[:, 0] > 0
    if not known.any():
        return
    spans, sums = store.spans[source.dated], _own(store, source)[:, : SIZE + store.means]
    if not sums[0, 0] > 0:
        spans[:] = x[known][0]
    spans[1], spans[2] = min(spans[1], x[known].min()), max(spans[2], x[known].max())
    Z = np.concatenate([H, Y], axis=1)[known]
    W = H[known] if weight is None else H[known] * weight[known, None]
    for start in range(0, len(Z), 1024):
        terms = W[start : start + 1024, :, None] * Z[start : start + 1024, None, :]
        if len(terms) == 1:
            sums += terms[0]
        else:
            sums[:] = np.add.accumulate(np.concatenate([sums[None], terms]))[-1]


def solve(store: Any, source: Any) -> None:
    """Find the coefficients anew."""
    own, spans = _own(store, source), store.spans[source.dated]
    turns = np.flatnonzero(spans[2] - spans[1] >= TURNS)
    second = 2 + len(CYCLES) + turns
    used = np.concatenate([[0, 1], 2 + 2 * turns, 3 + 2 * turns, second, len(TURNS) + second])
    coefficients = own[:, SIZE + store.means :]
    coefficients[:] = 0.0
    if len(used) == 2 or own[0, 0] < SOME_ROWS * len(used):
        return
    A, (weight, _, m2) = own[np.ix_(used, used)] + np.diag([0.0, 0.0, *np.ones(len(used) - 2)]), store.target
    for t, (total, squares) in enumerate(zip(weight, m2, strict=True)):  # how one is rounded does not depend on others
        if squares > 0:
            found = np.linalg.lstsq(A, own[used, SIZE + t], rcond=None)[0]
            coefficients[used[2:], t] = found[2:] / math.sqrt(squares / total)


def _own(store: Any, source: Any) -> np.ndarray:
    own: np.ndarray = store.seasons[SIZE * source.dated : SIZE * (source.dated + 1)]
    return own
