r"""Rows encoded one after the other, each with what the rows before it have taught.

Numbers, by running moments that include the row itself (Welford 1962), glitches as in
:mod:`kernelstream.core.ranges`::

    n' = n + 1;  m' = m + (x - m)/n';  s' = s + (x - m)(x - m');   out = (x - m')/sqrt(s'/n')

A time is given as how long ago it was, ``out = (x - h')/sqrt(s'/n')`` with h' the latest so far: rows that come in the
order of time are all of now, 0. Their scale does not move under them, and what they teach holds for old rows as well:
while no row has been late, an old row is encoded as one of now too, since nothing is known of another time. For the
same reason sine and cosine of the year are 0 until the dates seen reach over a year: before, they only rise or fall.
Numbers that grow with the rows are times without cycles.

A missing number is 0, the running mean (or now), and its indicator 1. Categories, by the targets of the rows before,
with ``a`` imaginary rows of the mean of all (Micci-Barreca 2001)::

    p = (sum of y over rows of the category + a ybar) / (their number + a);   out = (p - ybar)/deviation of y

and in up to three columns of their own (a 1, or three signs divided by the root of three). Columns of many categories
also show the mean r of about the last ``LASTING`` rows of a category, shrunk as a normal model of the variances within
and between categories would have it (empirical Bayes), and how many rows it is of::

    q = ybar + n/(n + v/b) (r - ybar);   out = (q - ybar)/deviation of y, log(1 + n)    with n = min(number, LASTING)

For labels q and ybar are shares, and the difference is that of their log-odds. v is the mean of (y - r)^2 n/(n + 1)
over rows of known categories, and v + b that of (y - ybar)^2 over the first row of each; until there are ``SOME`` of
both, v/b is a. Then the row is learned.

Without ``scale`` the numbers are as they came, missing ones the running mean, and p is given as it is.

This is the readable twin of cpp/passes/columns.hpp; arrays are changed in place.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import engine as engines
from ..core.ranges import ENOUGH, FORGIVEN, is_far
from .dates import YEAR

SOME = 10  # rows that tell a variance
LASTING = 256.0  # rows of a category in its recent mean
MOST_SHRUNK = 1000.0  # rows: the largest v/b
RARE = 1e-3  # shares are between this and 1 minus this
COUNT, MEAN, M2, LOW, HIGH, DOUBT, LATE = range(7)  # rows of ``moments``


def columns_pass(
    state: dict[str, Any], block: dict[str, Any], shrink: float, scale: bool, learn: bool, out: np.ndarray
) -> None:
    """Encode n rows into ``out`` and, if asked to, learn them; a row of weight 0 is encoded only.

    Parameters
    ----------
    state : dict
        task : {"", "number", "label"}
        moments : (7, M) float64
            Count, mean, sum of squared differences, least, largest, doubt, rows below the largest before them.
        number_at : (3, M) int32
            Columns of the value, of its indicator (-1 for none) and of the sine of the year (-1: not a
            time, -2: a time without a year).
        counts, sums, recent : (capacity,), (capacity, T), (capacity, T) float64
            Weight of the rows of a category, their weighted targets, and the recent mean, in columns that show it.
        within, between : (2 K, T) float64
            The sums of squares that v and v + b are means of, each above the weight of their rows.
        place, amount : (capacity, 3) int32, float64
            Columns in which a category shows, -1 for none, and what it adds there.
        mean_at : (K, T) int32
            Columns of the means.
        recent_at : (K, T + 1) int32
            Columns of the recent means and of the rows; -1 where they do not show.
        target : (3, T) float64
            Weight of all rows, their mean target, and its sum of squared differences.
    block : dict
        numbers : (n, M) float64
            NaN where missing.
        since : (M,) int64
            Rows before this one do not have the number yet: their columns stay 0.
        codes : (n, K) int32
            Rows of ``counts``, ``sums``, ``place`` and ``amount``; -1 where there is nothing.
        Y : (n, T) float64, or None
        weight : (n,) float64, or None
    out : (n, width) float64, zeros but for the cycles of dates
    """
    numbers, since, codes, Y, weight = (block[name] for name in ("numbers", "since", "codes", "Y", "weight"))
    moments, number_at, counts, sums = (state[name] for name in ("moments", "number_at", "counts", "sums"))
    place, amount, mean_at, target = (state[name] for name in ("place", "amount", "mean_at", "target"))
    recent, recent_at, within, between = (state[name] for name in ("recent", "recent_at", "within", "between"))
    for i in range(len(out)):
        w = 1.0 if weight is None else weight[i]
        counted = learn and w > 0
        for j in range(numbers.shape[1]):
            if i >= since[j]:
                _number(numbers[i, j], moments[:, j], number_at[:, j], out[i], scale, counted)
        there = [k for k in range(codes.shape[1]) if codes[i, k] >= 0]
        for k in there:
            c = codes[i, k]
            for t in range(sums.shape[1]):
                out[i, mean_at[k, t]] = _mean(counts[c], sums[c, t], target[:, t], shrink, scale)
            for s in range(3):
                if place[c, s] >= 0:
                    out[i, place[c, s]] += amount[c, s]
            if recent_at[k, -1] < 0:
                continue
            n = min(counts[c], LASTING)
            for t in range(sums.shape[1]):
                a = _shrinkage(within[2 * k : 2 * k + 2, t], between[2 * k : 2 * k + 2, t], shrink)
                out[i, recent_at[k, t]] = _recent_mean(
                    n, recent[c, t], target[:, t], a, scale, state["task"] == "label"
                )
                if counted and Y is not None:
                    seen = n > 0
                    if seen or target[0, t] > 0:
                        squares, delta = (within, Y[i, t] - recent[c, t]) if seen else (between, Y[i, t] - target[1, t])
                        squares[2 * k, t] += w * (delta * delta) * (n / (n + w) if seen else 1.0)
                        squares[2 * k + 1, t] += w
                    recent[c, t] += w / max(w, min(counts[c] + w, LASTING)) * (Y[i, t] - recent[c, t])
            out[i, recent_at[k, -1]] = math.log1p(n)
        if not counted:
            continue
        for k in there:
            counts[codes[i, k]] += w
            if Y is not None:
                sums[codes[i, k]] += w * Y[i]
        if Y is not None:
            target[0] += w
            delta = Y[i] - target[1]
            target[1] += w * delta / target[0]
            target[2] += w * delta * (Y[i] - target[1])


def _mean(count: float, total: float, target: np.ndarray, shrink: float, scale: bool) -> float:
    weight, prior, m2 = target
    if weight <= 0:
        return 0.0
    p = (total + shrink * prior) / (count + shrink)
    if count == weight:  # a category of all rows has their mean: what rounding leaves would be scaled up by a learner
        p = prior
    if not scale:
        return p
    return (p - prior) / math.sqrt(m2 / weight) if m2 > 0 else 0.0


def _shrinkage(within: np.ndarray, between: np.ndarray, shrink: float) -> float:
    """Rows that weigh as much as the mean of all: v/b, where both variances are known."""
    if within[1] < SOME or between[1] < SOME:
        return shrink
    v = within[0] / within[1]
    b = between[0] / between[1] - v
    return v / b if v < MOST_SHRUNK * b else MOST_SHRUNK


def _recent_mean(n: float, mean: float, target: np.ndarray, a: float, scale: bool, labels: bool) -> float:
    weight, prior, m2 = target
    if weight <= 0:
        return 0.0
    difference = n / (n + a) * (mean - prior) if n > 0 else 0.0
    if labels:
        return _log_odds(prior + difference) - (_log_odds(prior) if scale else 0.0)
    if not scale:
        return prior + difference
    return difference / math.sqrt(m2 / weight) if m2 > 0 else 0.0


def _log_odds(share: float) -> float:
    p = min(max(share, RARE), 1.0 - RARE)
    return math.log(p / (1.0 - p))


def _number(x: float, moments: np.ndarray, at: np.ndarray, row: np.ndarray, scale: bool, counted: bool) -> None:
    count, mean, m2, low, high, doubt, late = moments
    if math.isnan(x):
        if at[1] >= 0:
            row[at[1]] = 1.0
        if not scale:
            row[at[0]] = mean
        return
    far = bool(is_far(x, count, low, high))
    glitch = far and doubt < ENOUGH
    v = (low if x < low else high) if glitch else x
    delta = v - mean
    centre = mean + delta / (count + 1)
    spread = m2 + delta * (v - centre)
    earliest, latest = (min(low, v), max(high, v)) if count > 0 else (v, v)
    time = at[2] != -1
    if at[2] >= 0 and latest - earliest < YEAR:
        row[at[2] : at[2] + 2] = 0.0
    if not scale:
        row[at[0]] = x
    elif spread > 0 and not (time and late == 0):
        row[at[0]] = (v - (latest if time else centre)) / math.sqrt(spread / (count + 1))
    if counted:
        doubt = doubt + 1 if glitch else 0.0 if far else max(doubt - FORGIVEN, 0.0)
        moments[:] = count + 1, centre, spread, earliest, latest, doubt, late + (v < latest)


@functools.cache
def twins(engine: str) -> tuple[Any, Any]:
    """The pass over the rows, and the reader of one dictionary, or None: then a dictionary is a block of one row."""
    if engine == "python" or not engines.has_native():
        return columns_pass, None
    from .. import _core

    return _core.columns_pass, _core.columns_row
