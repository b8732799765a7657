"""Batch learning on random binning features: cells, order of the rows, warm starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import grids as _grids
from ...core.cell_matrix import CellMatrix
from ...losses import Loss
from ...rows import Rows
from ...solvers import Problem, Solution, Solver

SCATTERED = 20_000  # with more rows their order matters: the vectors of a grid no longer fit in the nearest cache
_LEVELS = (16, 8, 4, 2, 1)  # cells within cells
_TOGETHER = 150_000_000  # weights of the outputs solved for at once


@dataclass
class Features:
    """Rows in their cells: the matrix, the names of the cells, and the order in which the rows were taken."""

    Z: CellMatrix
    keys: np.ndarray  # (D,) uint64
    order: np.ndarray | None


def make_features(X: Rows, grids: _grids.Grids, ops: Any, threads: int) -> Features:
    """Cells of all rows. Many rows are first sorted so that neighbours share cells: the products of the solvers then
    find in the cache what the last rows left there.
    """
    order = None
    if X.shape[0] >= SCATTERED:
        order = ops.binning.order_of_cells(ops.binning.cell_hashes(X, _grids.coarsened(grids, _LEVELS), threads))
        X = X[order]
    cells, keys, starts = ops.binning.number_cells(X, grids, threads)
    return Features(CellMatrix(cells, starts, ops.binning, threads), keys, order)


def solve(
    features: Features, solver: Solver, Y: np.ndarray, loss: Loss, lam: float, ops: Any, weight: Any, **more: Any
) -> Solution:
    """Weights (D, C) for targets Y (n, C) and weights, both in the original order of the rows.

    ``more`` are the other fields of the :class:`Problem`.
    """
    Z, order = features.Z, features.order
    if order is not None:
        Y, weight = Y[order], None if weight is None else weight[order]
    problem = Problem(Z, Y, loss, lam, ops, weight, threads=Z.threads, **more)
    size = max(1, _TOGETHER // max(1, Z.shape[1]))
    parts = [solver.solve(problem.outputs(slice(c, c + size))) for c in range(0, Y.shape[1], size)]
    return Solution.joined(parts, max((part.history for part in parts), key=len))


def largest_penalty(
    features: Features, Y: np.ndarray, weight: np.ndarray | None, loss: Loss, offset: np.ndarray
) -> float:
    """The L1 penalty above which all weights are zero."""
    slopes = loss.gradient(Y, np.tile(offset, (len(Y), 1)))
    if weight is not None:
        slopes = slopes * weight[:, None]
    if features.order is not None:
        slopes = slopes[features.order]
    return float(np.abs(features.Z.tdot(np.ascontiguousarray(slopes))).max())


def carry_over(old: dict[str, Any], keys: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Weights of an earlier model for the cells that are known now, (D, C); 0 for the others."""
    before, old_starts = old["w"], old["starts"]
    W = np.zeros((len(keys), before.shape[1]), before.dtype)
    for r in range(min(len(starts), len(old_starts)) - 1):
        mine, theirs = slice(starts[r], starts[r + 1]), slice(old_starts[r], old_starts[r + 1])
        _, here, there = np.intersect1d(keys[mine], old["cells"][theirs], assume_unique=True, return_indices=True)
        W[starts[r] + here] = before[old_starts[r] + there]
    # the entries of Z are 1/sqrt(R): with another number of grids the same scores need other weights
    return W * W.dtype.type(np.sqrt((len(starts) - 1) / (len(old_starts) - 1)))


def without_zeros(keys: np.ndarray, starts: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells that have a weight, where each grid's begin, and the weights."""
    kept = np.asarray(W.any(axis=1))
    counts = np.add.reduceat(np.append(kept, False), starts[:-1]) if len(kept) else np.zeros(len(starts) - 1)
    counts = np.where(np.diff(starts) > 0, counts, 0)
    return keys[kept], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), W[kept]
