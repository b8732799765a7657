"""Kernel expansions that take their kernel values from one block of products, in the native engine."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...core.threads import get_num_threads
from ...core.workspace import workspace
from ...kernels import Gaussian, Kernel, Polynomial
from ...rows import Rows, dense
from ...state import undo as _undo
from ...state.nested import State
from ..expansion.native import WIDE, squared_norms
from .python import Hedge

ENTRIES = 1 << 18  # products of a block: they stay in the second-level cache until the last learner has read them
FEWEST, MOST = 32, 256  # rows of a block
ALONE = 300_000  # kernel values of a block below which a second thread costs more than it saves


class PoolRows(NamedTuple):
    """Rows and their products with the vectors of the pool; while they are learned, the rows are its last vectors."""

    rows: np.ndarray  # (m, d)
    arrays: tuple[int, np.ndarray, np.ndarray | None, np.ndarray, float]  # size, products, distances, norms, reach


class Pool:
    """The support vectors of several learners, each once. All of it follows from the learners' states."""

    widest = WIDE  # columns of the rows: they are kept dense

    def __init__(self, d: int, dtype: Any, distances: bool):
        self.vectors = np.zeros((256, d), dtype)
        self.columns: np.ndarray | None = None  # (d, capacity), the same vectors for products with sparse rows
        self.norms = np.zeros(256, dtype)
        self.size = 0  # places that are or have been in use
        self.distances = distances  # whether learners need them

    @staticmethod
    def kernel(kernel: Kernel) -> tuple[int, float, float] | None:
        """Degree (0 for the Gaussian), gamma and c of a kernel; None if the pool does not have it."""
        if type(kernel) is Gaussian:
            return 0, float(kernel.gamma), 0.0
        if type(kernel) is Polynomial:
            return int(kernel.degree), float(kernel.gamma), float(kernel.c)
        return None

    def rows(self) -> int:
        """Rows that a block should have."""
        return max(FEWEST, min(MOST, ENTRIES // max(1, self.size)))

    def block(self, X: Rows, enter: bool) -> PoolRows:
        """Products of the rows; with ``enter`` the rows themselves have places ``size``, … until :meth:`settle`."""
        rows = np.ascontiguousarray(dense(X), self.vectors.dtype)
        norms, m = squared_norms(rows), len(rows)
        if enter:
            self._write(np.arange(self.size, self.size + m), rows, norms)
        count = self.size + m if enter else self.size
        if sp.issparse(X):
            if self.columns is None:
                self.columns = np.ascontiguousarray(self.vectors.T)
            products = workspace("pool", (m, len(self.norms)), rows.dtype)
            _core.csr_matmul(X.data.astype(rows.dtype, copy=False), X.indices, X.indptr, self.columns, products)
        else:
            products = workspace("pool", (m, count), rows.dtype)
            np.matmul(rows, self.vectors[:count].T, out=products)
        far = None
        if self.distances:
            far = workspace("pool_distances", products.shape, rows.dtype)
            _core.squared_distances(rows, norms, self.vectors, self.norms, products, far, count)
        reach = float(np.sqrt(self.norms[:count].max(initial=0.0)))
        return PoolRows(rows, (self.size, products, far, norms, reach))

    def settle(self, block: PoolRows, states: list[State], places: list[np.ndarray]) -> list[bool]:
        """After a block has been learned: its rows that became support vectors stay, and enter the states.

        Parameters
        ----------
        places : list of int32 arrays
            Where the support vectors of each learner are, those of the block still at its end. Updated in place.

        Returns
        -------
        list of bool
            Which learners have new vectors.
        """
        before, rows = self.size, len(block.rows)
        own = [index[: state["n_support"]] for index, state in zip(places, states, strict=True)]
        everywhere = np.concatenate(own)
        new = np.flatnonzero(everywhere >= before)
        if not len(new):
            return [False] * len(own)
        used = np.zeros(before + rows, bool)
        used[everywhere] = True
        joined = np.flatnonzero(used[before:])
        free = np.flatnonzero(~used[:before])[: len(joined)]
        self.size += len(joined) - len(free)
        place = np.full(rows, -1, np.int32)  # of the block's rows that stay: where nobody is, or behind the others
        place[joined] = at = np.concatenate([free, np.arange(before, self.size)])
        self._write(at, self.vectors[before + joined], self.norms[before + joined])
        starts = np.cumsum([0, *map(len, own)])
        cuts = np.searchsorted(new, starts).tolist()  # between the new vectors of one learner and the next
        for k, (first, last) in enumerate(pairwise(cuts)):
            if first < last:
                slots = new[first:last] - starts[k]
                _undo.rows(states[k]["support"], slots)
                own[k][slots] = place[own[k][slots] - before]
                states[k]["support"][slots] = self.vectors[own[k][slots]]
        return [first < last for first, last in pairwise(cuts)]

    def enter(self, vectors: np.ndarray) -> np.ndarray:
        """Places for vectors that learners have already, each once, (k,)."""
        at = np.arange(self.size, self.size + len(vectors))
        self._write(at, vectors, squared_norms(vectors))
        self.size += len(vectors)
        return at.astype(np.int32)

    def _write(self, at: np.ndarray, vectors: np.ndarray, norms: np.ndarray) -> None:
        while len(at) and at[-1] >= len(self.norms):
            self.vectors = np.concatenate([self.vectors, np.zeros_like(self.vectors)])
            self.norms = np.concatenate([self.norms, np.zeros_like(self.norms)])
            if self.columns is not None:
                self.columns = np.concatenate([self.columns, np.zeros_like(self.columns)], axis=1)
        self.vectors[at], self.norms[at] = vectors, norms
        if self.columns is not None:
            self.columns[:, at] = vectors.T


def pool_pass(block: PoolRows, y: np.ndarray, weights: np.ndarray | None, specs: list[Any], F: np.ndarray) -> list[int]:
    """Every learner learns the rows of a block; returns how many rows joined each growing set.

    Parameters
    ----------
    y : (n,) float64
    weights : (m, n) or None
        Factors of the gradients, for every learner its own.
    specs : list
        For every learner: state, kernel, compiled specification, places of its support vectors, random numbers and the
        row at which they start, and for a set that only grows, arrays for the rows that join, their coefficients and
        the decay of the others.
    F : (m, n, C)
        Becomes the scores before each update.
    """
    return _core.pool_pass(block.arrays, 0, y, weights, specs, _threads(len(y), specs), F)


def pool_hedge_pass(
    block: PoolRows, y: np.ndarray, weight: np.ndarray | None, chances: np.ndarray, able: np.ndarray, smoothing: float,
    only_drawn: bool, specs: list[Any], F: np.ndarray, state: State, hedge: Hedge,
) -> tuple[list[int], np.ndarray]:  # fmt: skip
    """All learners take the rows of a block in turn; their weights and ``chances`` (n, m) decide which are drawn.

    A learner that is drawn and ``able`` (m,) learns the row; with ``only_drawn`` only those drawn gain or lose weight.
    Returns how many rows joined each growing set, and the scores of the whole, (n, C).
    """
    scores = np.empty(F.shape[1:])
    draws = hedge, (float(smoothing), only_drawn)
    threads = _threads(len(y), specs)
    joined = _core.pool_hedge_pass(state, block.arrays, specs, (y, weight, chances, able), draws, threads, (F, scores))
    return joined, scores


def _threads(rows: int, specs: list[Any]) -> int:
    values = rows * sum(spec[0]["n_support"] for spec in specs)
    return max(1, min(get_num_threads(), len(specs), values // ALONE + 1))
