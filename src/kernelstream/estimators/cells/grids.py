"""Grids over few columns with edges at quantiles: drawing them, and measuring which are of use.

A column's values are coded by ``LEVELS`` quantiles of a sample of rows. A grid takes one to ``COLUMNS`` columns, cuts
each at some of its levels, and has at most a given number of cells. Grids are data, so all functions are pure.
"""

from __future__ import annotations

import functools

import numpy as np

from ...state.nested import State

LEVELS = 63  # edges between 64 codes of a column
COLUMNS = 6  # of a grid, at most
FLOOR = 0.2  # share of the columns' weights that does not depend on their use


def levels_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct quantiles of each column of rows (m, d), above its least value: (d, LEVELS), and how many (d,)."""
    m, d = rows.shape
    ordered = np.sort(np.ascontiguousarray(rows.T), axis=1).T  # columns one after the other in memory
    places = np.minimum(m - 1, np.arange(1, LEVELS + 1) * m // (LEVELS + 1))
    found = ordered[places].T
    new = found > np.concatenate([ordered[:1].T, found[:, :-1]], axis=1)
    levels, count = np.zeros((d, LEVELS)), new.sum(axis=1).astype(np.int32)
    for j in range(d):
        levels[j, : count[j]] = found[j, new[j]]
    return levels, count


def draw(
    rng: np.random.Generator, n: int, levels: np.ndarray, count: np.ndarray, weights: np.ndarray, cells: int
) -> State:
    """n random grids of at most ``cells`` cells; columns are drawn with the given weights, (d,).

    Returns
    -------
    dict
        ``columns`` (n, COLUMNS) int32; ``edges`` (n, COLUMNS, LEVELS) ascending, of which the first ``n_edges``
        (n, COLUMNS) count.
    """
    d = len(count)
    k = np.minimum(d, 1 + (rng.random(n) * COLUMNS).astype(int))
    keys = rng.exponential(size=(n, d)) / np.maximum(weights, 1e-12)  # the smallest keys are a draw without replacement
    order = np.argsort(keys, axis=1)[:, :COLUMNS]
    sizes, picks = rng.random((n, COLUMNS)), rng.random((n, COLUMNS, LEVELS))
    places = (picks[:, : order.shape[1]] * count[order][:, :, None]).astype(int)
    columns, n_edges = np.zeros((n, COLUMNS), np.int32), np.zeros((n, COLUMNS), np.int32)
    edges = np.zeros((n, COLUMNS, LEVELS))
    roots = _roots(cells)
    budget, used = np.full(n, cells), np.zeros(n, int)
    for i in range(order.shape[1]):  # column after column, for all grids at once
        j = order[:, i]
        left = np.maximum(k - i, 1)
        most = np.maximum(2, np.minimum(count[j] + 1, roots[budget, left]))
        open_ = (i < k) & (budget >= 2)
        budget[open_ & (count[j] > 0) & (most > budget)] = 0  # no column fits any more
        r = np.flatnonzero(open_ & (count[j] > 0) & (most <= budget))  # the others of count 0 are constants so far
        bins = 2 + (sizes[r, i] * (most[r] - 1)).astype(int)
        g, which = np.nonzero(np.arange(LEVELS) < bins[:, None] - 1)
        cut = np.zeros((len(r), LEVELS), bool)
        cut[g, places[r[g], i, which]] = True  # each level once
        g, level = np.nonzero(cut)
        size = cut.sum(axis=1)
        rank = np.arange(len(g)) - np.repeat(np.cumsum(size) - size, size)
        columns[r, used[r]], n_edges[r, used[r]] = j[r], size
        edges[r[g], used[r[g]], rank] = levels[j[r[g]], level]
        budget[r] //= size + 1
        used[r] += 1
    return {"columns": columns, "edges": edges, "n_edges": n_edges}


@functools.cache
def _roots(cells: int) -> np.ndarray:
    """``int(b ** (1 / k))`` for budgets b = 0, …, cells and k = 1, …, COLUMNS, (cells + 1, COLUMNS + 1)."""
    return np.array([[b, *(int(b ** (1.0 / k)) for k in range(1, COLUMNS + 1))] for b in range(cells + 1)])


def by_column(columns: np.ndarray, n_edges: np.ndarray, value: np.ndarray, d: int) -> np.ndarray:
    """What columns add to the values (R,) of grids, (d,), at least 0: least squares, with a little ridge."""
    B = np.zeros((len(columns), d))
    for r in range(len(columns)):
        B[r, columns[r, n_edges[r] > 0]] = 1.0
    # (B'B + I)^-1 B' = B' (BB' + I)^-1: the smaller of the two
    found = (
        np.linalg.solve(B.T @ B + np.eye(d), B.T @ value)
        if d <= len(B)
        else B.T @ np.linalg.solve(B @ B.T + np.eye(len(B)), value)
    )
    return np.maximum(found, 0.0)


def column_weights(columns: np.ndarray, n_edges: np.ndarray, use: np.ndarray, d: int) -> np.ndarray:
    """Weights (d,) with which columns are drawn: squares of what each adds to the use of its grids, and a floor."""
    rel = by_column(columns, n_edges, np.maximum(use, 0.0), d) ** 2
    total = rel.sum()
    return (1 - FLOOR) * rel / total * d + FLOOR if total > 0 else np.ones(d)
