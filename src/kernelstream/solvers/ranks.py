"""Ranks of the values of columns: how many rows have less, by straight lines between few knots."""

from __future__ import annotations

import numpy as np

KNOTS = 256  # of a column, at most
ALIKE = 0.99  # correlation of a column with its ranks from which these add nothing


def rank_knots(X: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which columns of X (n, d) have ranks, (k,), and the places and heights of their knots, (k, KNOTS) each.

    A rank is the share of rows with less plus half the share of rows with as much, minus its mean, over its deviation.
    """
    a = np.ones(len(X)) if weight is None else weight / weight.mean()
    columns, places, heights = [], [], []
    for j, x in enumerate(X.T.astype(np.float64)):
        values, group = np.unique(x, return_inverse=True)
        if len(values) < 3:
            continue
        own = np.bincount(group, weights=a)
        ranks = (np.cumsum(own) - own / 2) / own.sum()
        deviation = np.sqrt(np.average(np.square(ranks - 0.5), weights=own))
        middle, spread = np.average(values, weights=own), np.sqrt(np.cov(values, aweights=own, ddof=0))
        if not np.average((values - middle) * (ranks - 0.5), weights=own) < ALIKE * spread * deviation:
            continue
        if len(values) > KNOTS:
            some = np.unique(np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], KNOTS)))
            values, ranks = values[some], ranks[some]
        more = (0, KNOTS - len(values))
        columns.append(j)
        places.append(np.pad(values, more, "edge"))
        heights.append(np.pad((ranks - 0.5) / deviation, more, "edge"))
    shape = (len(columns), KNOTS)
    return (
        np.array(columns, np.int64),
        np.array(places, np.float32).reshape(shape),
        np.array(heights, np.float32).reshape(shape),
    )
