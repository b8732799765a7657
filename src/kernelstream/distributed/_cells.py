"""Random binning over partitions: what the rows have in common, their cells pinned on the workers, one numbering."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .. import engine as engines
from ..core.cell_matrix import CellMatrix
from ..estimators._contract.base import Shell
from ..estimators.binning.base import Binning
from ..estimators.binning.fit import best_constant, make_features
from ..estimators.binning.search import MORE_ROWS, Search
from ..random import Stream, generator
from ..rows import bounds, concat, width_between
from ._client import check_memory, compute, need, slots
from ._data import Data, Kept, Piece, nbytes, tree
from ._start import begin
from .landmarks import AllRows


@dataclass
class Summary:
    """What one pass over rows finds."""

    n: int
    low: np.ndarray  # (d,), least value of each column
    high: np.ndarray  # (d,), largest
    labels: np.ndarray  # of a classifier, sorted
    counts: np.ndarray  # of the labels
    total: float  # of a regressor's targets

    def __add__(self, other: Summary) -> Summary:
        labels = np.union1d(self.labels, other.labels)
        counts = np.zeros(len(labels))
        for part in (self, other):
            counts[np.searchsorted(labels, part.labels)] += part.counts
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Summary(self.n + other.n, low, high, labels, counts, self.total + other.total)


def _summary(piece: Piece, est: Any) -> Summary | None:
    """The summary of a partition, whose rows are checked on the way."""

    def look(X: Any, y: Any) -> Summary:
        X, y, _ = est._admit(X, y, None, None, fresh=False)
        labels, counts = np.unique(y, return_counts=True) if is_classifier(est) else (np.empty(0), np.empty(0))
        return Summary(
            X.shape[0], *bounds(X), labels, counts.astype(float), 0.0 if is_classifier(est) else float(y.sum())
        )

    return functools.reduce(_joined, piece.blocks(look), None)


def _joined(a: Summary | None, b: Summary | None) -> Summary | None:
    """The summary of both; None stands for no rows."""
    return b if a is None else a if b is None else a + b


def _rows_of(part: Summary | None) -> int:
    return 0 if part is None else part.n


def surveyed(est: Any, data: Data, client: Any) -> tuple[Summary, AllRows]:
    """What all rows have in common, and the rows by number; partitions without rows are left out."""
    delayed = need("dask").delayed
    parts = data.map(_summary, est)
    counts = [delayed(_rows_of, pure=False)(part) for part in parts]
    found, counts = compute(client, delayed(tuple)([tree(parts, _joined), counts]))
    if found is None:
        raise ValueError("there are no rows")
    return found, AllRows(data.with_rows(counts), client, [count for count in counts if count])


@dataclass
class Targets:
    """What the batch solvers make of a target: rows of a small table for labels, the numbers themselves otherwise."""

    classes: np.ndarray | None
    table: np.ndarray | None  # (classes, C)
    factor: np.ndarray | None  # (classes,), weights of rows

    def __call__(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets (n, C) and weights of rows."""
        if self.classes is None or self.table is None:
            return np.asarray(y, np.float64)[:, None], None
        codes = np.searchsorted(self.classes, y)
        return self.table[codes], None if self.factor is None else self.factor[codes]


def targets(est: Any, found: Summary) -> tuple[Targets, np.ndarray]:
    """The targets, and the score of rows without features (C,); enters the classes in the state."""
    state, loss = est._state, est._learner.context.loss_for(2)
    if not is_classifier(est):
        return Targets(None, None, None), best_constant(np.array([[found.total / found.n]]), None, loss)
    table, weight = est._batch_target(state, found.labels, found.counts)
    state["class_counts"] = found.counts
    assert weight is not None
    factor = None if est.class_weight is None else weight / found.counts
    return Targets(found.labels, table, factor), best_constant(table, weight, loss)


@dataclass
class CellRows:
    """Rows in their cells, with the columns numbered for themselves."""

    cells: np.ndarray  # (R, n) int32
    keys: np.ndarray  # (D,) uint64
    starts: np.ndarray  # (R + 1,)
    Y: np.ndarray  # (n, C)
    weight: np.ndarray | None
    where: np.ndarray | None = None  # (D,): the numbers of the columns among those of all blocks
    columns: int = 0  # in all

    def __sizeof__(self) -> int:
        return nbytes(self.cells, self.keys, self.starts, self.Y, self.weight, self.where)

    def matrix(self, engine: str) -> CellMatrix:
        """The features of the rows, one thread: the others work on other blocks."""
        return CellMatrix(self.cells, self.starts, engines.get(engine).binning, 1)


def block(pieces: list[Piece], est: Shell[Binning], wanted: Targets) -> CellRows:
    """The rows of some partitions in their cells."""
    rows, ys = [], []
    for piece in pieces:
        for X, y in piece.blocks(lambda X, y: est._admit(X, y, None, None, fresh=False)[:2]):
            rows.append(X)
            ys.append(y)
    X = concat(rows)
    rows.clear()
    features = make_features(X, est._learner.grids(est._state), est._ops, 1)
    Y, weight = wanted(np.concatenate(ys))
    if features.order is not None:
        Y, weight = Y[features.order], None if weight is None else weight[features.order]
    return CellRows(features.Z.cells, features.keys, features.Z.starts, np.ascontiguousarray(Y), weight)


Names = tuple[np.ndarray, np.ndarray]  # keys (D,), ascending in each grid, and starts (R + 1,)


def names(part: CellRows) -> Names:
    """The cells of a block."""
    grids = [np.sort(part.keys[a:b]) for a, b in zip(part.starts, part.starts[1:])]
    return np.concatenate(grids), part.starts


def union(a: Names, b: Names) -> Names:
    """The cells of both, grid by grid."""
    grids = [np.union1d(a[0][i:j], b[0][k:m]) for i, j, k, m in zip(a[1], a[1][1:], b[1], b[1][1:])]
    return np.concatenate(grids), np.concatenate([[0], np.cumsum([len(keys) for keys in grids])]).astype(np.int64)


def placed(part: CellRows, all_cells: Names) -> CellRows:
    """The block with the numbers of its columns among all; its arrays are shared."""
    keys, starts = all_cells
    where = np.concatenate(
        [
            starts[r] + np.searchsorted(keys[starts[r] : starts[r + 1]], part.keys[part.starts[r] : part.starts[r + 1]])
            for r in range(len(starts) - 1)
        ]
    )
    return CellRows(part.cells, part.keys, part.starts, part.Y, part.weight, where, len(keys))


@dataclass
class Pinned:
    """The rows on the workers, ready for solvers.

    Attributes
    ----------
    est : estimator
        With the state so far: seed, bandwidth, penalty, classes.
    kept : Kept
        The blocks of rows, CellRows.
    keys, starts : Names
    offset : (C,)
    n : int
    """

    est: Shell[Binning]
    kept: Kept
    keys: np.ndarray
    starts: np.ndarray
    offset: np.ndarray
    n: int


def pin(est: Shell[Binning], data: Data, client: Any, classes: Any) -> Pinned:
    """Choose what is automatic, put all rows in their cells, and number the cells alike on all workers."""
    start = begin(est, data, client, classes)
    found, rows = surveyed(start, data, client)
    state, d = start._state, start._state["n_features"]
    wanted, offset = targets(start, found)
    state["offset"] = offset
    _settle(start, rows, client, found, wanted)
    share = -(-found.n // slots(client))
    # cells of all rows; rows and their cells while one of the blocks is made
    check_memory(client, share * (16 * d + 8 * est._learner.n_components), "its share of rows")
    kept, (keys, starts) = rows.data.kept(client, block, names, union, placed, start, wanted)
    return Pinned(start, kept, keys, starts, offset, found.n)


def _settle(est: Shell[Binning], rows: AllRows, client: Any, found: Summary, wanted: Targets) -> None:
    """Search for bandwidth and penalty, where they are not given, on a sample of all rows."""
    state = est._state
    if est._learner.free:
        state["width"] = width_between(found.low, found.high)
    elif est._learner.given.kernel_needs_data:
        raise ValueError(
            f"gamma={est._learner.given.gamma!r} follows all rows: give a number, or None for a search on a sample"
        )
    if est._learner.free or est._learner.lam is None:
        sample = np.sort(generator(state["seed"], Stream.GRID_ROWS).permutation(found.n)[:MORE_ROWS])
        work = need("dask").delayed(_searched, pure=False)
        X, y = rows.delayed(sample), rows.delayed(sample, target=True)
        state |= compute(client, work(est, X, y, wanted))


def _searched(est: Shell[Binning], X: Any, y: Any, wanted: Targets) -> dict[str, Any]:
    state, learner = dict(est._state), est._learner
    Y, weight = wanted(y)
    if learner.free:
        width = state["width"]
        learner.choose_bandwidth(state, X, Y, weight, width)
    if est._learner.lam is None:
        search = Search(learner, state, X, Y, weight)
        state["searched_lam"] = search.penalty(learner.kernel(state), learner.sparse)
    return {name: state[name] for name in ("gamma", "searched_lam") if name in state}
