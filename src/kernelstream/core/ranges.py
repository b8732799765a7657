r"""Numbers far outside the range of all before them: glitches, such as a -9999 that stands for "missing".

The rule uses no mean and no deviation, which a glitch would spoil. It keeps the least and the largest number so far:

* after the first ``FEW`` numbers, one that lies more than ``FAR`` times the width of the range outside of it is *far*;
* a far number raises the doubt by 1, any other lowers it by ``FORGIVEN``, down to 0;
* far numbers are glitches until the doubt has reached ``ENOUGH``; then they are believed, and the range grows.

So a single outlier does nothing, and a new level is believed with its 13th row. Comparisons and exact sums only: the
same in every engine. Targets are treated likewise, see :mod:`.targets`.

The compiled twins are in cpp/base/ranges.hpp.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FEW = 8  # numbers that make a range
FAR = 5.0  # widths
ENOUGH = 12.0
FORGIVEN = 1 / 64
SQUARES = 1e100  # numbers up to which squares and their sums are finite


def lies_outside(x: Any, low: Any, high: Any, widths: Any) -> Any:
    """Whether x lies more than some widths of the range [low, high] outside of it; elementwise."""
    width = np.subtract(high, low)
    outside = np.maximum(np.subtract(low, x), np.subtract(x, high))
    return (outside > widths * width) & (width > 0)


def is_far(x: Any, count: Any, low: Any, high: Any) -> Any:
    """Whether x lies far outside the range [low, high] of ``count`` numbers; elementwise."""
    return (np.asarray(count) >= FEW) & lies_outside(x, low, high, FAR)


def outside(X: Any, usual: np.ndarray) -> tuple[Any, Any]:
    """Which cells of X, (m, d) or (d,), are below and which above what is usual, (7, d); see :mod:`.corrupt`."""
    _, spread, low, high, *_ = usual
    return (spread > 0) & (low > X), (spread > 0) & (high < X)


LOOK = 128  # rows after which columns are looked at, and again whenever their number has doubled
SHIFT, STRETCH = 0.25, 1.5  # deviations and factor by which mean and deviation of a column that stays may differ
SPAN = 1.5  # deviations by which the range of n rows may exceed log2(n); it is wider where a column hardly ever varies
NARROW = 0.5  # of the deviation of a normal column with the same middle half: below it, tails are long,
TAILS_STRETCH = 8.0  # and this takes the place of STRETCH
NORMAL_HALF = 1.349  # width of the middle half of a normal distribution, in deviations

#: What a state keeps of every column, for scaling: moments, range and doubt of all rows so far; by which rows are
#: scaled where that stays the same; and whether it has long tails, which is asked only where far values are drawn in
#: afterwards. ``x_since`` is the number of rows that these moments are of, 0 where they move.
COLUMNS = ("x_mean", "x_m2", "x_low", "x_high", "x_doubt", "x_since", "x_middle", "x_unit", "x_tailed")


def standardize(state: dict[str, Any], X: np.ndarray, weight: np.ndarray | None) -> None:
    r"""Scale rows in place, each as :func:`scaled` does by what is known before it, which it then joins.

    Welford: ``n += 1; delta = x - mean; mean += delta/n; m2 += delta (x - mean)``. In the moments a glitch counts as
    the end of the range that is next to it. Rows of weight 0 are scaled but not counted. X (m, d), weight (m,) or None;
    of the state, ``x_count`` and the ``COLUMNS``, (d,) float64, are updated.
    """
    mean, m2, low, high, doubt, *_ = (state[name] for name in COLUMNS)
    usual = state.get("x_usual")  # of rows that :mod:`.corrupt` has cleaned
    for i, x in enumerate(X):
        v, count = x.astype(np.float64), state["x_count"]
        X[i] = scaled(v, state)
        if weight is not None and not weight[i] > 0:
            continue
        if count == 0:
            low[:] = high[:] = v
        far = is_far(v, count, low, high) if usual is None else np.logical_or(*outside(v, usual))
        glitch = far & (usual is not None or doubt < ENOUGH)
        v = np.where(glitch, np.where(v < low, low, high), v)
        doubt[:] = np.where(glitch, doubt + 1, np.where(far, 0.0, np.maximum(doubt - FORGIVEN, 0.0)))
        np.minimum(low, v, out=low)
        np.maximum(high, v, out=high)
        count += 1
        delta = v - mean
        mean += delta / count
        m2 += delta * (v - mean)
        state["x_count"] = count
        if count >= LOOK and count == 2 ** round(math.log2(count)):
            _look(state)


def _look(state: dict[str, Any]) -> None:
    r"""Which columns stay where they are, since the last look or since their scale was taken.

    Rows that a learner remembers, or has added up, were scaled by what was known at their time. So a scale that stays
    the same is worth more than one that is a little better, and :math:`|\bar x - m| \le` ``SHIFT``
    :math:`\max(s, u)` with :math:`s/u` within a factor of ``STRETCH`` is the same. The deviation of a column with long
    tails is that of a few rows and changes with each of them: its factor is ``TAILS_STRETCH``. A column that moves (a
    date, a counter) is scaled by all rows so far: there is no other way to compare a row with those to come.
    """
    mean, m2, _, _, _, since, middle, unit, tailed = (state[name] for name in COLUMNS)
    deviation, stretch = np.sqrt(m2 / state["x_count"]), np.where(tailed, TAILS_STRETCH, STRETCH)
    moves = np.abs(mean - middle) > SHIFT * np.maximum(unit, deviation)
    moves |= (deviation > stretch * unit) | (unit > stretch * deviation)
    settle(state, moves | (since == 0))
    since[moves] = 0.0


def settle(state: dict[str, Any], which: Any = True) -> None:
    """Scale some columns (d,) by the moments of the rows so far from now on, if these say enough of them."""
    mean, m2, low, high, _, since, middle, unit, tailed = (state[name] for name in COLUMNS)
    count = max(state["x_count"], 1.0)
    deviation = np.sqrt(m2 / count)
    known = (deviation > 0) & ((high - low <= (math.log2(count) + SPAN) * deviation) | (tailed > 0))
    middle[:], unit[:] = np.where(which, mean, middle), np.where(which, deviation, unit)
    since[:] = np.where(which, np.where(known, state["x_count"], 0.0), since)


def retake(state: dict[str, Any], column: int, cells: np.ndarray) -> None:
    """Take the scale of a column that has a new level from its new cells (m,); the same unit where it is about that."""
    deviation, unit = cells.std(), state["x_unit"][column]
    if unit / STRETCH <= deviation <= unit * STRETCH or deviation == 0:
        deviation = unit
    found = {
        "x_mean": cells.mean(),
        "x_m2": deviation**2 * state["x_count"],
        "x_low": cells.min(),
        "x_high": cells.max(),
    }
    for name, value in found.items():
        state[name][column] = value
    settle(state, np.arange(len(state["x_mean"])) == column)


def hold(state: dict[str, Any]) -> None:
    """Scale columns that move by the moments of the rows so far, until they are looked at: for a function of rows."""
    mean, m2, _, _, _, since, middle, unit, _ = (state[name] for name in COLUMNS)
    deviation = np.sqrt(m2 / max(state["x_count"], 1.0))
    moves = (since == 0) & (deviation > 0)
    middle[moves], unit[moves], since[moves] = mean[moves], deviation[moves], state["x_count"]


def long_tailed(X: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Which columns of X (n, d) have long tails: their middle half varies, but little next to their deviation (d,)."""
    low, high = np.quantile(X, (0.25, 0.75), axis=0)
    normal = (high - low) / NORMAL_HALF  # the deviation of a normal column with the same middle half
    return (normal > 0) & (normal < NARROW * deviation)


def scale_of(state: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and deviation by which columns are scaled, and of how many rows they are, (d,): inf where they stay."""
    mean, m2, _, _, _, since, middle, unit, _ = (state[name] for name in COLUMNS)
    stays, count = since > 0, state["x_count"]
    deviation = np.sqrt(m2 / max(count, 1.0))
    return np.where(stays, middle, mean), np.where(stays, unit, deviation), np.where(stays, np.inf, count)


def scaled(X: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    r"""Rows X (m, d) or (d,) by mean and deviation of n rows (:func:`scale_of`), each as if it were one of them.

    With :math:`u = (x - \bar x)/s`, by mean and deviation of the n rows, the deviations of x from the mean of all n + 1
    are :math:`u / \sqrt{1 + (1 + u^2)/n}`: never more than :math:`\sqrt n` (Samuelson), however small the deviation of
    the first rows, and just that where these have not varied. Later, u itself for large n, and 0 in a column that has
    not varied in ``FEW`` rows: nothing was learned of it, and a row should not be far from all others because of it.
    What is far counts as the end of the range. Where the scale stays the same, n is infinite: u is linear in x.
    """
    X, count, low, high = np.asarray(X, np.float64), state["x_count"], state["x_low"], state["x_high"]
    far = is_far(X, count, low, high) & ("x_usual" not in state)
    if far.any():
        X = np.where(far, np.where(low > X, low, high), X)
    mean, deviation, n = scale_of(state)
    with np.errstate(over="ignore", divide="ignore"):
        u = np.divide(X - mean, deviation, out=np.zeros(np.shape(X)), where=deviation > 0)
        u = np.clip(u, -SQUARES, SQUARES)
        z = u / np.sqrt(1.0 + (1.0 + u * u) / n)
    return z if count >= FEW else np.where(deviation > 0, z, np.sign(X - mean) * np.sqrt(count))


def slopes(X: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    r"""Derivatives of :func:`scaled` by u, the deviations of X (m, d) from the mean.

    :math:`(1 - z^2/n)^{3/2} / \sqrt{1 + 1/n}` for the scaled number z.
    """
    z, n = scaled(X, state), np.maximum(scale_of(state)[2], 1.0)
    return np.maximum(1 - z * z / n, 0.0) ** 1.5 / np.sqrt(1 + 1 / n)


def bulk(values: np.ndarray, far: float = FAR) -> tuple[float, float]:
    """The range of some numbers (n,) without those far outside that of the others.

    It starts with the middle half of them and grows as long as there is a number within ``far`` times its width.
    """
    v = np.sort(values)
    first, last = len(v) // 4, len(v) - 1 - len(v) // 4
    if len(v) < FEW or v[first] == v[last]:
        return float(v[0]), float(v[-1])
    while True:
        width = v[last] - v[first]
        low = int(np.searchsorted(v, v[first] - far * width))
        high = int(np.searchsorted(v, v[last] + far * width, side="right")) - 1
        if (low, high) == (first, last):
            return float(v[low]), float(v[high])
        first, last = low, high
