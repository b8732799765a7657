"""Landmarks of a Nyström map, chosen among the rows of all partitions as ``Nystroem.fit`` chooses among its rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from ..features import Nystroem, landmarks
from ..kernels.bandwidth import median_rows
from ..kernels.parameters import rules_of
from ..random import Stream, generator, seed_from
from ..rows import concat
from ._client import compute, need
from ._data import Data, Piece


def chosen(features: Nystroem, data: Data, client: Any, random_state: Any) -> tuple[int, dict[str, Any]]:
    """Seed and entries of the map, equal to ``features.prepare(all rows, seed)``."""
    if features.landmarks != "uniform":
        raise ValueError(
            f"landmarks={features.landmarks!r} compares all rows with each other: over partitions they are drawn, "
            f"landmarks='uniform', or given as rows"
        )
    if features.kernel_needs_data and "scale" in rules_of(features.kernel_object).values():
        raise ValueError("gamma='scale' needs the variance of all rows: give a number, or 'median'")
    seed = seed_from(random_state)
    rows = AllRows(data, client)
    some = rows.delayed(median_rows(rows.n))  # all that the median rule looks at
    known = compute(client, need("dask").delayed(features.kernel_entries, pure=False)(some))
    kernel = features.resolved(known)
    m, rng = features.n_components, generator(seed, Stream.MAP)
    picked = np.arange(rows.n) if rows.n <= m else landmarks.uniform(kernel, rows, m, rng)
    S = rows[picked]
    S = S.toarray() if hasattr(S, "toarray") else S
    given = clone(features).set_params(kernel=kernel, gamma=None, landmarks=S)
    return seed, {**given.prepare(None, seed), **known}


class AllRows:
    """The rows of all partitions by number; only those asked for are fetched.

    ``counts`` are the rows of each partition, counted here if they are not given.
    """

    def __init__(self, data: Data, client: Any, counts: list[int] | None = None):
        self.data, self.client = data, client
        data.keep()
        if counts is None:
            counts = compute(client, need("dask").delayed(list)(data.map(_count)))
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.n = int(self.starts[-1])
        if not self.n:
            raise ValueError("there are no rows")
        self.shape = (self.n, None)

    def some(self, most: int, seed: int) -> np.ndarray:
        """Numbers of at most ``most`` rows, sorted: drawn from all partitions, if there are more."""
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(generator(seed, Stream.REMOTE_ROWS).choice(self.n, most, replace=False))

    def delayed(self, rows: np.ndarray, target: bool = False) -> Any:
        """The rows (or their targets), in the order asked for, as something that becomes an array on a worker."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        cuts = pairwise(np.searchsorted(ascending, self.starts).tolist())
        calls = {i: (ascending[a:b] - self.starts[i], target) for i, (a, b) in enumerate(cuts) if a < b}
        return need("dask").delayed(_arranged, pure=False)(self.data.some(_pick, calls), np.argsort(order))

    def __getitem__(self, rows: np.ndarray) -> Any:
        return compute(self.client, self.delayed(np.asarray(rows)))


def _count(piece: Piece) -> int:
    return sum(piece.blocks(lambda X, y: X.shape[0]))


def _pick(piece: Piece, wanted: np.ndarray, target: bool) -> Any:
    """Rows of a partition by their numbers, which ascend, (len(wanted), d); or their targets, (len(wanted),)."""
    parts, at = [], 0

    def take(X: Any, y: Any) -> None:
        nonlocal at
        low, high = np.searchsorted(wanted, [at, at + X.shape[0]])
        if high > low:
            parts.append((y if target else X)[wanted[low:high] - at])
        at += X.shape[0]

    for _ in piece.blocks(take, int(wanted[-1]) + 1):
        pass
    return concat(parts)


def _arranged(parts: Sequence[Any], order: np.ndarray) -> Any:
    return concat(list(parts))[order]
