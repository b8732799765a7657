"""Grids over few columns with edges at quantiles: drawing them, and measuring which are of use.

A column's values are coded by ``LEVELS`` quantiles of a sample of rows. A grid takes one to ``COLUMNS`` columns, cuts
each at some of its levels, and has at most a given number of cells. Grids are data, so all functions are pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LEVELS = 63  # edges between 64 codes of a column
COLUMNS = 6  # of a grid, at most
FLOOR = 0.2  # share of the columns' weights that does not depend on their use

State = dict[str, Any]


def levels_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct quantiles of each column of rows (m, d), above its least value: (d, LEVELS), and how many (d,)."""
    m, d = rows.shape
    ordered = np.sort(rows, axis=0)
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
    k = np.minimum(d, 1 + (rng.random(n) * COLUMNS).astype(int)).tolist()
    keys = rng.exponential(size=(n, d)) / np.maximum(weights, 1e-12)  # the smallest keys are a draw without replacement
    order = np.argsort(keys, axis=1)[:, :COLUMNS]
    sizes, picks = rng.random((n, COLUMNS)), rng.random((n, COLUMNS, LEVELS))
    places = (picks[:, : order.shape[1]] * count[order][:, :, None]).astype(int)
    columns, n_edges = np.zeros((n, COLUMNS), np.int32), np.zeros((n, COLUMNS), np.int32)
    edges = np.zeros((n, COLUMNS, LEVELS))
    room = count.tolist()
    for r, (chosen, size) in enumerate(zip(order.tolist(), sizes.tolist(), strict=True)):
        budget, used = cells, 0
        for i, j in enumerate(chosen[: k[r]]):
            if not room[j]:
                continue  # a constant so far
            most = max(2, min(room[j] + 1, int(budget ** (1.0 / (k[r] - i)))))
            if most > budget:
                break
            bins = 2 + int(size[i] * (most - 1))
            at = sorted(set(places[r, i, : bins - 1].tolist()))
            columns[r, used], n_edges[r, used] = j, len(at)
            edges[r, used, : len(at)] = levels[j].take(at)
            budget //= len(at) + 1
            used += 1
            if budget < 2:
                break
    return {"columns": columns, "edges": edges, "n_edges": n_edges}


def by_column(columns: np.ndarray, n_edges: np.ndarray, value: np.ndarray, d: int) -> np.ndarray:
    """What columns add to the values (R,) of grids, (d,), at least 0: least squares, with a little ridge."""
    B = np.zeros((len(columns), d))
    for r in range(len(columns)):
        B[r, columns[r, n_edges[r] > 0]] = 1.0
    return np.maximum(np.linalg.solve(B.T @ B + np.eye(d), B.T @ value), 0.0)


def column_weights(columns: np.ndarray, n_edges: np.ndarray, use: np.ndarray, d: int) -> np.ndarray:
    """Weights (d,) with which columns are drawn: squares of what each adds to the use of its grids, and a floor."""
    rel = by_column(columns, n_edges, np.maximum(use, 0.0), d) ** 2
    total = rel.sum()
    return (1 - FLOOR) * rel / total * d + FLOOR if total > 0 else np.ones(d)
