r"""Corrupt cells and gaps: the layer between rows as they come and the scaling of their columns.

A state keeps some of the last ``RECENT`` rows. After the first rows, and then after 128, 256, 512, 1024, 1536, …, it
takes from them the median m of every column and its *spread*, a deviation that a few odd cells cannot move:

.. math:: s = \max\Bigl(\frac{q_{75} - q_{25}}{1.35}, \; \frac{q_{98} - q_{2}}{4.1}\Bigr)

Both are the deviation of a normal column. (Where the quartiles are equal, the median distance from m of the cells that
differ from it takes the place of the first: 1 in a column of rare ones.) Let [a, b] reach from the least
:math:`m - 20 s` to the largest :math:`m + 20 s` so far. A cell x becomes

.. math:: x \mapsto \begin{cases} m & x \text{ is a gap: NaN, a code, or beyond } a - 1000 s, b + 1000 s \\
          b + s \log(1 + (x - b)/s) & x > b \\ a - s \log(1 + (a - x)/s) & x < a \\ x & \text{otherwise} \end{cases}

A *code* is a value that stands for a gap, such as -9999: it came ``REPEATS`` times, though in no more than ``USUAL`` of
the cells, it is not 0, and it lies far outside all others (:func:`kernelstream.core.ranges.bulk`).

Cells outside of [a, b] count for m and s at the look after the next. If they are most cells of a column since the last
look, the column has a new level: all others are forgotten, and its scale is taken from these cells. So they are if most
cells lie more than 20 units or spreads from the middle by which they are scaled, though within [a, b]: the column has
come back to an old level, as after a fault that was believed.

The compiled twins of :func:`cleaned`, :func:`remember` and :func:`measured` are in cpp/base/corrupt.hpp.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .ranges import FEW, NORMAL_HALF, bulk, outside

RECENT = 2000  # rows that tell what is usual, of which some are kept:
PLACES, CELLS, LEAST_PLACES = 500, 1 << 14, 100  # at most so many rows and cells, and at least so many rows
FIRST_LOOKS, LOOK = (128, 256), 512  # rows before the first looks after the warm-up, and between two looks later
SPREADS, ABSURD = 20.0, 1000.0  # beyond which a cell is drawn in, and that many further on is a gap
TAILS = 0.02  # of the cells, at either end
NORMAL_TAILS = 4.1  # the width of a normal distribution between these, in deviations
REPEATS, USUAL = 3, 0.25
WIDTHS, FLAT_WIDTHS = 20.0, 50.0  # by which a code lies outside all others; where half of these are one number
CANDIDATES = 4  # that are looked at in a column, the farthest first
NONE = 2.0**501  # in place of a number that is not known: all cells are less than 2 ** 500

MEDIAN, SPREAD, LOW, HIGH, CODE, OTHER_CODE, OUTSIDE = range(7)  # rows of what is usual


def nothing_usual(d: int) -> np.ndarray:
    """What is usual in d columns before their first row, (7, d)."""
    usual = np.zeros((7, d))
    usual[[LOW, CODE, OTHER_CODE]], usual[HIGH] = NONE, -NONE
    return usual


def places_of(d: int) -> int:
    """How many rows of d columns are kept."""
    return int(np.clip(CELLS // d, LEAST_PLACES, PLACES))


def is_gap(X: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Which cells of X (m, d) are gaps."""
    return np.isnan(X) | (usual[CODE] == X) | (usual[OTHER_CODE] == X)


def cleaned(X: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Rows X (m, d) with gaps filled and far cells drawn in, as above; a new array of the same type."""
    V = np.where(is_gap(X, usual), usual[MEDIAN], X.astype(np.float64))
    (low, high), spread = usual[[LOW, HIGH]], usual[SPREAD]
    for beyond, end in zip(outside(V, usual), (low, high), strict=True):
        away = np.divide(np.abs(V - end), spread, out=np.zeros(V.shape), where=beyond)
        drawn = np.where(away > ABSURD, usual[MEDIAN], end + np.copysign(spread * np.log1p(away), V - end))
        V = np.where(beyond, drawn, V)
    return V.astype(X.dtype)


def remember(X: np.ndarray, count: int, usual: np.ndarray, recent: np.ndarray) -> None:
    """Keep what is needed of rows X (m, d), after ``count`` others: some of them, and how many cells were outside.

    ``usual`` (7, d) and the rows kept, ``recent`` (places, d), are changed in place.
    """
    below, above = outside(X, usual)
    usual[OUTSIDE] += ((below | above) & ~is_gap(X, usual)).sum(axis=0)
    rows, places = kept_rows(count, count + len(X), len(recent))
    V = X[rows - count]
    recent[places] = np.where(np.isnan(V), NONE, V)  # a place that is taken twice has the later row


def kept_rows(start: int, stop: int, places: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the rows with numbers start, …, stop - 1 are kept, all at first, later every few; and their places."""
    rows, stride = np.arange(start, stop), -(-RECENT // places)
    rows = rows[(rows < places) | (rows % stride == 0)]
    return rows, np.where(rows < places, rows, rows // stride % places)


def rows_until_look(count: int) -> int:
    """How many rows are left until the next look."""
    return next((first for first in FIRST_LOOKS if count < first), LOOK * (count // LOOK + 1)) - count


def look(ops: Any, usual: np.ndarray, recent: np.ndarray, count: int, since: int, scale: Any = None) -> np.ndarray:
    """Take what is usual from the rows kept, of ``count``; those from number ``since`` on came after the last look.

    ``ops`` is the engine, ``scale`` (2, d) the middle and the unit by which columns are scaled; NaN where these move.
    Returns the columns (k,) that have a new level, or cells for the first time; of these only new cells are kept.
    """
    kept = recent[:count]
    older = np.ones(len(kept), bool)
    older[kept_rows(since, count, len(recent))[1]] = False
    shifted = usual[OUTSIDE] > (count - since) / 2
    if shifted.any():
        kept[(older[:, None] | ~np.logical_or(*outside(kept, usual))) & shifted] = NONE
    if scale is not None:  # NaN is far from nothing
        far = (kept < NONE) & ~is_gap(kept, usual)
        new = far & ~older[:, None]
        far &= np.abs(kept - scale[0]) > SPREADS * np.maximum(scale[1], usual[SPREAD])
        back = ~shifted & ((new & far).sum(axis=0) > np.maximum(new.sum(axis=0) / 2, FEW))
        kept[~(new & far) & back] = NONE
        shifted |= back
    _drop_codes(usual, kept)
    n, median, spread, odd = ops.measured(kept, usual)
    for j in np.flatnonzero(odd):
        _find_codes(usual[:, j], kept[:, j])
    again = np.flatnonzero((odd > 0) | ((usual[OUTSIDE] > 0) & ~shifted))
    if len(again):
        V, own = kept[:, again], np.ascontiguousarray(usual[:, again])
        late = np.logical_or(*outside(V, own)) & ~(older[:, None] | shifted[again])
        n[again], median[again], spread[again], _ = ops.measured(np.where(late, NONE, V), own)
    known, first = n > 0, usual[LOW] > usual[HIGH]
    usual[MEDIAN, known] = median[known]
    usual[LOW, known] = np.minimum(usual[LOW], median - SPREADS * spread)[known]
    usual[HIGH, known] = np.maximum(usual[HIGH], median + SPREADS * spread)[known]
    usual[SPREAD] = np.where(spread > 0, spread, usual[SPREAD])
    usual[OUTSIDE] = 0.0
    return np.flatnonzero((shifted | first) & known)


def measured(kept: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """How many cells of each column of the rows kept (n, d) are known, median and spread, and if one may be a code.

    (4, d). The spread is 0 where less than FEW cells are known, or differ from a median that half of them are. A code
    is one of ``REPEATS`` equal cells, far from the median.
    """
    found = np.zeros((4, kept.shape[1]))
    for j, column in enumerate(kept.T):
        v = np.sort(column[(column < NONE) & ~is_gap(column, usual[:, j])])
        n = len(v)
        if n < FEW:
            found[:2, j] = n, v[(n - 1) // 2] if n else 0.0
            continue
        median, cut = v[(n - 1) // 2], math.ceil(TAILS * n)
        spread, tails = (v[n - 1 - n // 4] - v[n // 4]) / NORMAL_HALF, (v[n - 1 - cut] - v[cut]) / NORMAL_TAILS
        near = SPREADS * spread
        if spread == 0:
            away = np.sort(np.abs(v - median)[v != median])
            spread, near = (away[len(away) // 2], FLAT_WIDTHS * away[0]) if len(away) >= FEW else (0.0, np.inf)
        _, times = np.unique(v[np.abs(v - median) > near], return_counts=True)
        found[:, j] = n, median, max(spread, tails), (times >= REPEATS).any()
    return found


def _find_codes(usual: np.ndarray, values: np.ndarray) -> None:
    """Enter the codes among the values (n,) of a column into what is usual in it, (7,)."""
    values = values[(values < NONE) & ~is_gap(values, usual)]
    values = np.sort(values)
    found, times = np.unique(values, return_counts=True)
    found = found[(times >= REPEATS) & (times <= USUAL * len(values)) & (found != 0)]
    for code in found[np.argsort(-np.abs(found - values[len(values) // 2]), kind="stable")][:CANDIDATES]:
        others = values[values != code]
        low, high = bulk(others)
        flat = others[len(others) // 4] == others[len(others) - 1 - len(others) // 4]
        reach = (FLAT_WIDTHS if flat else WIDTHS) * (high - low)
        free = [row for row in (CODE, OTHER_CODE) if usual[row] == NONE]
        if free and low < high and not low - reach <= code <= high + reach:
            usual[free[0]] = code


def _drop_codes(usual: np.ndarray, kept: np.ndarray) -> None:
    """Forget codes that have become usual: twice as frequent as a new one may be, or no longer outside."""
    for row in (CODE, OTHER_CODE):
        for j in np.flatnonzero(usual[row] < NONE):
            code, values = usual[row, j], kept[:, j]
            times, n = np.count_nonzero(values == code), np.count_nonzero(values < NONE)
            if times > 2 * USUAL * n or (usual[SPREAD, j] > 0 and usual[LOW, j] <= code <= usual[HIGH, j]):
                usual[row, j] = NONE
