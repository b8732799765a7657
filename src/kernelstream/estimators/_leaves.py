"""Many rows cut into leaves, each with its own system."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..state.schema import Array, Schema, length

LEAST_SHARE = 1 / 8  # of the rows on the smaller side of a cut; if many are equal there may be no cut
NOWHERE = float(np.finfo(np.float64).max)  # the threshold of a cut with all rows on its left


def cut(Z: np.ndarray, depth: int, enough: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Cuts of rows Z (n, d) near medians, each across the direction in which its rows differ most.

    Returns entries of a state, the cuts by levels of a full tree, and the rows of each leaf in their order. Up to
    ``enough`` rows stay together, as do equal rows: all of them go to the left.
    """
    parts = [np.arange(len(Z))]
    directions, thresholds = [], []
    for _ in range(depth):
        halves = []
        for rows in parts:
            direction, threshold, along = np.zeros(Z.shape[1]), NOWHERE, np.zeros(len(rows))
            if len(rows) > enough:
                own = Z[rows].astype(np.float64)
                about = own - own.mean(axis=0)
                direction = np.linalg.eigh(about.T @ about)[1][:, -1]
                along = np.einsum("ij,j->i", own, direction)
                threshold = _middle(np.sort(along))
            directions.append(direction)
            thresholds.append(threshold)
            halves += [rows[along <= threshold], rows[along > threshold]]
        parts = halves
    cuts = np.array(directions).reshape(-1, Z.shape[1])
    return {"directions": cuts, "thresholds": np.array(thresholds, np.float64)}, parts


def starts(parts: list[np.ndarray]) -> np.ndarray:
    """Where each leaf begins among the rows of all of them, and where the last one ends."""
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)


def _middle(values: np.ndarray) -> float:
    """Between two of the sorted values (n,), as near to the median as ties allow."""
    edges = np.flatnonzero(np.diff(values) > 0) + 1
    if len(edges):
        left = edges[np.abs(edges - len(values) / 2).argmin()]
        if min(left, len(values) - left) >= LEAST_SHARE * len(values):
            return float((values[left - 1] + values[left]) / 2)
    return NOWHERE


def schema(state: dict[str, Any], d: int, n: int) -> Schema:
    """The entries of :func:`cut`, and where each leaf begins among at most n centres."""
    starts, cuts = length(state, "leaves"), length(state, "thresholds")
    if starts != cuts + 2 or (cuts + 1) & cuts:
        raise ValueError(f"{cuts} cuts do not make {starts - 1} leaves")
    return {
        "directions": Array((cuts, d)),
        "thresholds": Array((cuts,)),
        "leaves": Array((starts,), "int64", low=0, high=n, rising=True),
    }
