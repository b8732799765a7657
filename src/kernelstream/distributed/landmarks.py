"""Landmarks of a Nyström map, chosen among the rows of all partitions as ``Nystroem.fit`` chooses among its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..features import Nystroem, landmarks
from ..kernels.bandwidth import median_rows
from ..kernels.parameters import rules_of
from ..random import Stream, generator, seed_from
from ..rows import concat
from ._client import compute, connect, need
from ._data import Data, Piece, partitions

CHOICES = ("uniform", "leverage")


def fit_map(features: Nystroem, X: Any, *, client: Any = None, **reader: Any) -> Nystroem:
    """A Nyström map whose landmarks are chosen over all partitions.

    Parameters
    ----------
    features : Nystroem
        With ``landmarks`` "uniform" or "leverage"; it is left as it is.
    X : dask array, dask frame, or names of files
        See :func:`partitions`.
    client : distributed.Client, str or None
        See :func:`connect`.
    **reader
        Options of files.

    Returns
    -------
    Nystroem
        The same map with the landmarks, and the bandwidth as a number: the ones that ``features.fit`` would find in all
        rows. Ready for an estimator, or for ``fit`` on any rows.
    """
    with connect(client) as client:
        data = partitions(X, client=client, **reader)
        _, entries = chosen(features, data, client, features.random_state)
    kernel = features.resolved(entries)
    return clone(features).set_params(kernel=kernel, gamma=None, landmarks=entries["landmarks"])


def chosen(features: Nystroem, data: Data, client: Any, random_state: Any) -> tuple[int, dict[str, Any]]:
    """Seed and entries of the map, equal to ``features.prepare(all rows, seed)``."""
    if not isinstance(features.landmarks, str):
        raise ValueError("the map has landmarks already")
    if features.landmarks not in CHOICES:
        raise ValueError(
            f"landmarks={features.landmarks!r} looks at one row after the other: over partitions they are chosen by "
            f"{' or '.join(map(repr, CHOICES))}"
        )
    if features.kernel_needs_data and "scale" in rules_of(features.kernel_object).values():
        raise ValueError("gamma='scale' needs the variance of all rows: give a number, or 'median'")
    seed = seed_from(random_state)
    rows = AllRows(data, client)
    some = rows.delayed(median_rows(rows.n))  # all that the median rule looks at
    known = compute(client, need("dask").delayed(features.kernel_entries, pure=False)(some))
    kernel = features.resolved(known)
    m, rng = features.n_components, generator(seed, Stream.MAP)
    if rows.n <= m:
        picked = np.arange(rows.n)
    elif features.landmarks == "uniform":
        picked = landmarks.uniform(kernel, rows, m, rng)
    else:
        picked = landmarks.leverage_by(rows.n, m, rng, rows.scorer(kernel, m))
    S = rows[picked]
    S = S.toarray() if hasattr(S, "toarray") else S
    given = clone(features).set_params(kernel=kernel, gamma=None, landmarks=S)
    return seed, {**given.prepare(None, seed), **known}


class AllRows:
    """The rows of all partitions by number; only those asked for are fetched.

    Where it is known how many rows each partition has, it need not be counted.
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

    def split(self, rows: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """For every partition with some of the rows: its number, their places in ``rows``, their numbers in it."""
        home = np.searchsorted(self.starts, rows, side="right") - 1
        out = []
        for i in np.unique(home):
            places = np.flatnonzero(home == i)
            out.append((int(i), places, rows[places] - self.starts[i]))
        return out

    def delayed(self, rows: np.ndarray, target: bool = False) -> Any:
        """The rows (or their targets), in the order asked for, as something that becomes an array on a worker."""
        parts = self.split(rows)
        found = self.data.some(_pick, {i: (mine, target) for i, _, mine in parts})
        back = np.argsort(np.concatenate([places for _, places, _ in parts]), kind="stable")
        return need("dask").delayed(_arranged, pure=False)(found, back)

    def __getitem__(self, rows: np.ndarray) -> Any:
        return compute(self.client, self.delayed(np.asarray(rows)))

    def scorer(self, kernel: Any, m: int) -> Any:
        """Leverage scores, each computed where its row is; see :func:`landmarks.leverage_by`."""

        def score(rows: np.ndarray, sample: np.ndarray, weight: np.ndarray) -> np.ndarray:
            S = self.delayed(sample)
            basis = need("dask").delayed(landmarks.basis, pure=False)(kernel, S, weight, m)
            parts = self.split(rows)
            found = self.data.some(_scores, {i: (mine, kernel, basis) for i, _, mine in parts})
            values = compute(self.client, need("dask").delayed(list)(found))
            out = np.empty(len(rows))
            for (_, places, _), part in zip(parts, values):
                out[places] = part
            return out

        return score


def _count(piece: Piece) -> int:
    return sum(piece.blocks(lambda X, y: X.shape[0]))


def _pick(piece: Piece, wanted: np.ndarray, target: bool) -> Any:
    """Rows of a partition by number, (len(wanted), d), in that order; or their targets, (len(wanted),)."""
    order = np.argsort(wanted, kind="stable")
    ascending, parts, at = wanted[order], [], 0

    def take(X: Any, y: Any) -> None:
        nonlocal at
        low, high = np.searchsorted(ascending, [at, at + X.shape[0]])
        if high > low:
            parts.append((y if target else X)[ascending[low:high] - at])
        at += X.shape[0]

    for _ in piece.blocks(take, int(wanted.max()) + 1):
        pass
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return concat(parts)[back]


def _arranged(parts: Sequence[Any], order: np.ndarray) -> Any:
    return concat(list(parts))[order]


def _scores(piece: Piece, wanted: np.ndarray, kernel: Any, basis: landmarks.Basis) -> np.ndarray:
    """Leverage scores of rows of a partition."""
    order = np.argsort(wanted, kind="stable")
    ascending, at = wanted[order], 0
    out = np.empty(len(wanted))

    def take(X: Any, y: Any) -> None:
        nonlocal at
        low, high = np.searchsorted(ascending, [at, at + X.shape[0]])
        if high > low:
            out[order[low:high]] = basis.scores(kernel, X[ascending[low:high] - at])
        at += X.shape[0]

    for _ in piece.blocks(take, int(wanted.max()) + 1):
        pass
    return out
