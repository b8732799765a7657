r"""How unusual rows are: surprises of four members, each turned into the share of recent rows that surprised it less.

With u the columns in robust deviations (:func:`scaled`), z(u) random Fourier features and c_g(u) the cells of grids,

.. math:: s_1 = \log z'(Z'Z/n + \lambda)^{-1} z, \qquad s_m = -\frac1{|G_m|} \sum_{g \in G_m} \log p(c_g)

is the leverage of a row in feature space, and the mean surprise of grids over single columns, over random projections
and over a few columns together (m = 2, 3, 4). The fifth surprise is that of all, ``-log(1 - mean_m share_m(s_m))``,
and its share is the score. No row depends on others of the same call. The compiled twin is cpp/passes/novelty.hpp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.arrays import fourier
from ...core.ranges import SQUARES
from ..cells.python import by_hashing

MEMBERS = 4
REACH = 2.0236  # robust deviations, three quartile deviations, beyond which a value counts by its logarithm
UNSEEN, UNSEEN_CELLS = 0.5, 10  # rows in a cell before there was one, as in so many cells
STEP, NODES = 1 / 64, 1025  # of the surprises whose distribution is kept: from 0 to 16
BEND = 0.9  # share from which on the tail is exponential


class Tables(NamedTuple):
    """What rows are compared with: D frequencies, R grids over d columns and K projections.

    ``scale`` (2, d): middle and unit of the columns. ``projections`` (d, K). Of the grids, ``columns`` (R, k), -1 for
    none, ``offset`` and ``density`` (R, k), ``salt`` (R,); ``ends`` (3,): where those of a member end. ``counts``
    (2^bits,): rows in the cells, of ``mass`` rows. ``frequencies`` (d, D). ``factor`` (2D, 2D), upper triangular:
    ``z'(Z'Z/n + lam)^-1 z`` is the squared length of z' factor. ``shares`` (5, NODES): of rows with less surprise.
    ``tails`` (5, 2): where the tails begin, and their mean length.
    """

    scale: np.ndarray
    projections: np.ndarray
    columns: np.ndarray
    offset: np.ndarray
    density: np.ndarray
    salt: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    mass: float
    frequencies: np.ndarray
    factor: np.ndarray
    shares: np.ndarray
    tails: np.ndarray


def scaled(X: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Columns in robust deviations, (n, d): gaps are 0, and far values count by their logarithm."""
    with np.errstate(over="ignore"):
        U = np.clip((X - scale[0]) / scale[1], -SQUARES, SQUARES)
    U[np.isnan(U)] = 0.0
    far = np.abs(U)
    return np.where(far > REACH, np.copysign(REACH + np.log1p(np.maximum(far - REACH, 0.0)), U), U)


def cells(U: np.ndarray, tables: Tables) -> np.ndarray:
    """Cells (n, R) of scaled rows: grids cut columns and projections."""
    bits = len(tables.counts).bit_length() - 1
    V = np.concatenate([U, U @ tables.projections], axis=1)
    return by_hashing(V, tables.columns, tables.offset, tables.density, tables.salt, bits)


def share(v: np.ndarray, shares: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """The share of rows with less than a surprise v (n,), interpolated; exponential beyond the bend."""
    place = np.clip(v, 0.0, STEP * (NODES - 1)) / STEP
    k = np.minimum(place.astype(np.int64), NODES - 2)
    inside = shares[k] + (place - k) * (shares[k + 1] - shares[k])
    start, mean = tail
    beyond = 1.0 - (1.0 - BEND) * np.exp(-np.maximum(v - start, 0.0) / mean)
    return np.where(v > start, beyond, inside)


def surprises(X: np.ndarray, tables: Tables) -> np.ndarray:
    """The surprises of four members and of all, and the score, (n, 6), of rows X (n, d) float64."""
    out = np.empty((len(X), MEMBERS + 2))
    ends = tables.ends.tolist()
    for x, found in zip(X[:, None], out[:, None], strict=True):
        U = scaled(x, tables.scale)
        found[:, 0] = np.log(np.square(fourier(U, tables.frequencies) @ tables.factor).sum(axis=1))
        p = (tables.counts[cells(U, tables)] + UNSEEN) / (tables.mass + UNSEEN * UNSEEN_CELLS)
        for m, (start, end) in enumerate(zip([0, *ends], ends, strict=False), 1):
            found[:, m] = -np.log(p[:, start:end]).mean(axis=1)
        each = [share(found[:, m], tables.shares[m], tables.tails[m]) for m in range(MEMBERS)]
        found[:, MEMBERS] = -np.log(np.maximum(1.0 - sum(each) / MEMBERS, np.exp(-STEP * (NODES - 1))))
        found[:, MEMBERS + 1] = share(found[:, MEMBERS], tables.shares[MEMBERS], tables.tails[MEMBERS])
    return out


def join(X: np.ndarray, weight: np.ndarray, tables: Tables, counts: np.ndarray) -> np.ndarray:
    """Count rows X (n, d) with their weights (n,) in the cells, in place; returns their features, (n, 2D)."""
    U = scaled(X, tables.scale)
    index = cells(U, tables)
    np.add.at(counts, index, weight[:, None])
    return fourier(U, tables.frequencies)
