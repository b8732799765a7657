"""What rows are compared on: frequencies, projections and grids, drawn from the seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...passes.cells.python import GOLDEN
from ...random import SeedStream, generator
from ...rows import padded

FREQUENCIES = 64  # of the Fourier features,
WIDEST, NARROWEST = -1.0, 2.0  # times the median distance, as powers of two: no single width suits all rows
PROJECTIONS, COLUMNS_EACH = 50, 2.0  # random directions; columns of each, on average
TOGETHER, COLUMNS_TOGETHER = 50, 4  # grids over several columns; of how many
WIDTH, WIDTHS = 0.1, 2.0  # of cells over one column or projection, and over several: in deviations, and on average
EDGE = 0.618  # of a cell over one column: no value is on an edge because it is a round number


class Drawn(NamedTuple):
    """``frequencies`` (d, D) of width 1, ``projections`` (d, K), and the grids, as in :class:`Tables`."""

    frequencies: np.ndarray
    projections: np.ndarray
    columns: np.ndarray
    offset: np.ndarray
    density: np.ndarray
    salt: np.ndarray
    ends: np.ndarray


def draw(seed: int, drawn: int, d: int) -> Drawn:
    """What is drawn for so many columns, for rows of width d: later columns have grids of their own, and no more."""
    rng = generator(seed, SeedStream.NOVELTY_GRIDS)
    P = rng.normal(size=(drawn, PROJECTIONS)) * (rng.random((drawn, PROJECTIONS)) < COLUMNS_EACH / drawn)
    P[rng.integers(0, drawn, PROJECTIONS), np.arange(PROJECTIONS)] += ~P.any(axis=0)
    W = rng.normal(size=(drawn, FREQUENCIES)) * 2.0 ** np.linspace(WIDEST, NARROWEST, FREQUENCIES)
    k, single, R = min(drawn, COLUMNS_TOGETHER), d + PROJECTIONS, d + PROJECTIONS + TOGETHER
    columns = np.full((R, COLUMNS_TOGETHER), -1, np.int32)
    columns[:single, 0] = np.arange(single)
    columns[single:, :k] = np.argsort(rng.random((TOGETHER, drawn)), axis=1)[:, :k]
    width, edge = np.full((2, R, COLUMNS_TOGETHER), WIDTH)
    width[single:, :k] = WIDTHS * rng.gamma(2.0, 0.5, (TOGETHER, k)) + 1e-3
    edge[:] = EDGE
    edge[single:, :k] = rng.random((TOGETHER, k))
    edge[d:single] = rng.random((PROJECTIONS, 1))
    salt = np.uint64(rng.integers(1 << 62)) + np.r_[1 << 40 : (1 << 40) + d, : R - d].astype(np.uint64)
    W, P = (np.ascontiguousarray(padded(own.T, d).T) for own in (W, P))
    return Drawn(W, P, columns, edge * width, 1 / width, salt * GOLDEN, np.array([d, single, R], np.int32))
