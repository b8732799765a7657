"""Learning on explicit features as an object, on the processor: rows, through the map, to the recursion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import threads
from ...features import Mapping
from ...features.raw import RawMapping
from ...losses import Loss
from ...rows import Rows, host
from ...state import undo as _undo
from ...state.nested import State
from ...updates import Update
from .python import ALL

WIDE = 64  # columns from which sparse rows that are the features themselves are learned as they are
LARGE = 65536  # columns from which what a call may have to take back is copied by its entries


class FeaturePass:
    """``f(x) = w'z(x)``: the state of a model, its feature map and what a row does to it.

    Parameters
    ----------
    ops : engine
        Of the processor.
    mapping : Mapping
    loss : Loss
    update : Update
    state : dict
        As in :func:`.python.linear_pass`; learning changes it.
    """

    def __init__(self, ops: Any, mapping: Mapping, loss: Loss, update: Update, state: State):
        self.ops, self.mapping, self.state = ops, mapping, state
        self.spec = ops.spec(loss, update)
        self.outputs = len(state["w"])
        self.wide = isinstance(mapping, RawMapping) and mapping.n_out >= WIDE

    def learn(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, C) float64."""
        ops, mapping, state, spec, n = self.ops, self.mapping, self.state, self.spec, X.shape[0]
        X = host(X)
        if self.wide:
            few = sp.issparse(X) and 2 * X.nnz < mapping.n_out  # else a copy of all is quicker
            self._announce((ALL, X.indices) if few else ALL)
            if sp.issparse(X):
                return ops.linear_pass(X.astype(mapping.dtype, copy=False), y, weight, state, spec, mapping.unit)
        if n == 1:  # a small new array is quicker than looking up the kept one
            return ops.linear_pass(mapping(X, ops), y, weight, state, spec, mapping.unit)
        if n <= ops.BLOCK:
            Z = mapping(X, ops, ops.workspace("Z", (n, mapping.n_out), mapping.dtype))
            return ops.linear_pass(Z, y, weight, state, spec, mapping.unit)
        scores = np.empty((n, self.outputs))
        for rows, Z in feature_blocks(mapping, X, ops):
            part = None if weight is None else weight[rows]
            scores[rows] = ops.linear_pass(Z, y[rows], part, state, spec, mapping.unit)
        return scores

    def score(self, X: Rows) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        ops, mapping, weights = self.ops, self.mapping, self._weights()
        X = host(X)
        if self.wide and sp.issparse(X):
            return self._scaled(_sparse_product(X, weights))
        if X.shape[0] == 1:
            return self._scaled((mapping(X, ops) @ weights.T).astype(np.float64))
        scores = np.empty((X.shape[0], len(weights)))
        for rows, Z in feature_blocks(mapping, X, ops):
            scores[rows] = Z @ weights.T
        return self._scaled(scores)

    def _announce(self, index: Any) -> None:
        """Some weights are about to change: see :mod:`kernelstream.state.undo`."""
        for name in ("w", "G"):
            if name in self.state:
                _undo.rows(self.state[name], index)

    def _weights(self) -> np.ndarray:
        """The weights that answer, (C, P)."""
        return self.state["w_mean" if "w_mean" in self.state else "w"]

    def _scaled(self, scores: np.ndarray) -> np.ndarray:
        """Products with these weights (n, C) as scores, in float64."""
        scores = scores.astype(np.float64, copy=False)
        if "w_mean" not in self.state:
            scores *= self.state["scale"]
        return scores + self.state["center"][1] if "center" in self.state else scores

    def sync(self) -> None:
        """Bring the state up to date: here it always is."""


def _sparse_product(X: Any, W: np.ndarray) -> np.ndarray:
    """X W' of CSR rows with weights W (C, P), from the columns that the rows have."""
    if X.nnz < X.shape[1]:
        used, places = np.unique(X.indices, return_inverse=True)
        X, W = sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(used))), W[:, used]
    return X @ np.ascontiguousarray(W.T)


def feature_blocks(
    mapping: Mapping, X: Rows, ops: Any, cuts: list[slice] | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """``(rows, Z)`` block by block, in buffers used again; the next block is made while this one is consumed."""
    cuts = threads.cuts(X.shape[0], ops.BLOCK) if cuts is None else cuts
    buffer = {rows.start: f"Z{i % threads.BUFFERS}" for i, rows in enumerate(cuts)}  # one is consumed, others are made

    def make(rows: slice) -> np.ndarray:
        shape = (rows.stop - rows.start, mapping.n_out)
        return mapping(X[rows], ops, ops.workspace(buffer[rows.start], shape, mapping.dtype))

    return threads.prefetch(make, cuts, ops.THREADED and worth_sharing(mapping, X))


def worth_sharing(mapping: Mapping, X: Rows) -> bool:
    """Whether a call has work enough for two threads."""
    entries = X.nnz if sp.issparse(X) else X.size
    return X.shape[0] * mapping.work(entries / max(1, X.shape[0])) >= threads.WORTH


def exact_rows(
    ops: Any, mapping: Mapping, X: Rows, cuts: list[slice] | None, intercept: bool
) -> Iterator[tuple[slice, np.ndarray]]:
    """``(rows, Z)`` block by block, Z in float64; with ``intercept`` a constant comes first."""
    for rows, Z in feature_blocks(mapping, X, ops, cuts):
        if intercept:
            Z = np.concatenate([np.ones((len(Z), 1)), Z], axis=1)
        yield rows, np.ascontiguousarray(Z, dtype=np.float64)


def map_times(ops: Any, mapping: Mapping, X: Rows, weights: np.ndarray) -> np.ndarray:
    """``Z A`` of features Z, weights A (P, C), (n, C) float64, block by block."""
    X = host(X)
    scores = np.empty((X.shape[0], weights.shape[1]))
    for rows in threads.cuts(X.shape[0], ops.BLOCK):
        scores[rows] = mapping(X[rows], ops) @ weights
    return scores


def on_features(ops: Any, learner: type[FeaturePass]) -> tuple[Callable[..., Any], ...]:
    """The functions of an engine that begin with a feature map: ``feature_pass``, ``feature_rows``, ``map_times``."""
    return functools.partial(learner, ops), functools.partial(exact_rows, ops), functools.partial(map_times, ops)
