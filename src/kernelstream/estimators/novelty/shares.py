"""What follows from some rows: scales of columns, rows that repeat each other, shares of rows with less surprise."""

from __future__ import annotations

import numpy as np

from ...core.ranges import NORMAL_HALF
from ...passes.novelty.python import BEND, NODES, STEP

SAME = 0.002  # share of pairs of usual rows that are nearer than rows that repeat each other


def scale_of(X: np.ndarray) -> np.ndarray:
    """Median and robust deviation of the columns, (2, d); without a spread of the middle half, the deviation."""
    gaps = np.isnan(X)
    if gaps.any():
        X = np.where(gaps, np.nanmedian(np.where(gaps.all(axis=0), 0.0, X), axis=0), X)
    low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    unit, deviation = (high - low) / NORMAL_HALF, X.std(axis=0)
    constant = np.where(middle != 0, np.abs(middle) / 100, 1.0)
    return np.stack([middle, np.where(unit > 0, unit, np.where(deviation > 0, deviation, constant))])


def repeats(U: np.ndarray, unusual: np.ndarray, near: float) -> np.ndarray:
    """How many unusual rows before it an unusual one repeats, (n,): those within a squared distance."""
    found = np.zeros(len(U))
    found[unusual] = np.tril(squares(U[unusual]) <= near, -1).sum(axis=1)
    return found


def nearness(U: np.ndarray) -> float:
    """The squared distance that all but ``SAME`` of the pairs of rows (n, d) exceed."""
    pairs = squares(U)[np.tril_indices(len(U), -1)]
    return float(np.partition(pairs, int(SAME * len(pairs)))[int(SAME * len(pairs))])


def squares(U: np.ndarray) -> np.ndarray:
    """Squared distances of rows (n, d) from each other, (n, n), to the digits that a comparison needs."""
    norms = np.square(U).sum(axis=1)
    return np.maximum(norms[:, None] + norms - 2.0 * (U @ U.T), 0.0)


def binned(V: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights (n,) of surprises V (n, 5) at the nodes, (5, NODES): those of each between the two next to it."""
    place = np.clip(V.T, 0.0, STEP * (NODES - 1)) / STEP
    k = np.minimum(place.astype(np.int64), NODES - 2)
    rest, at = place - k, k + NODES * np.arange(len(k))[:, None]
    found = np.bincount(at.ravel(), ((1 - rest) * weight).ravel(), len(k) * NODES)
    found += np.bincount(at.ravel() + 1, (rest * weight).ravel(), len(k) * NODES)
    return found.reshape(-1, NODES)


def cumulated(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of less surprise at the nodes, (5, NODES); where tails begin and their mean length, (5, 2)."""
    total, nodes = counts.sum(axis=1), STEP * np.arange(NODES)
    if not total[0]:
        return np.full(counts.shape, 0.5), np.tile([STEP * NODES, 1.0], (len(counts), 1))
    shares = (np.cumsum(counts, axis=1) - counts / 2) / total[:, None]
    start = np.array([np.interp(BEND, own, nodes) for own in shares])
    beyond = np.maximum(nodes - start[:, None], 0.0)
    mean = (counts * beyond).sum(axis=1) / np.maximum((counts * (beyond > 0)).sum(axis=1), 1e-300)
    return shares, np.stack([start, np.maximum(mean, STEP)], axis=1)
