"""Columns by the moments of the rows so far: a layer around a learner.

Whether columns are scaled is told by the parameter ``standardize`` or, where that is "auto", by the first rows, see
:mod:`.scaling`. What is far outside the usual range of a column counts, and is passed on, as a gap or as its bound.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...checks import few
from ...core import corrupt, threads
from ...core.ranges import COLUMNS, long_tailed, retake, settle
from ...registry.caller import warn
from ...rows import Rows, dense, host, padded
from ...state.nested import State
from ...state.schema import Array, Number, Schema, length
from .glitches import odd_cells
from .learner import Learner, solves
from .scaling import AUTO, WIDE, column_names, extremes, no_moments, scales_columns, units_differ, wanted_scaling
from .state import scaled_rows
from .warm_up import WARM_UP, runs

DENSE_ROWS = 4096  # sparse rows that are made dense at once, where columns are scaled
TINY = 1e-154  # differences whose squares are as small as float64 goes


class Scaled:
    """A learner of rows whose columns are scaled, if they are.

    Parameters
    ----------
    inner : Learner or Linked
    learner : Learner
        The innermost one.
    guards : bool
        Whether gaps are filled, and corrupt cells drawn in, before columns are scaled.
    names : array or None
        Of the columns, for messages.
    """

    def __init__(self, inner: Any, learner: Learner, guards: bool, names: Any):
        self.inner: Any = inner
        self.learner, self.ops, self.guards, self.names = learner, learner.ops, guards, names

    @cached_property
    def wanted(self) -> bool | None:
        """Whether columns are to be scaled; None where the first rows decide."""
        return wanted_scaling(self.learner)

    # ---------------------------------------------------------------- a state
    def first_rows(self) -> int:
        """How many rows are kept before the learner and the scales are settled."""
        learner = self.learner
        return 0 if solves(learner) else max(learner.warm_up_rows(), 0 if self.wanted is False else WARM_UP)

    def start(self, state: State) -> None:
        """Add the entries for rows of width ``n_features``, where these are scaled whatever they are."""
        if self.wanted:
            state |= no_moments(state["n_features"], self.guards)

    def decide(self, state: State, X: Rows) -> None:
        """Decide by rows X (n, d) whether to scale, if that is open, and forget the moments so far."""
        on = self.wanted
        if on is None:
            on = (X.shape[1] <= WIDE or not sp.issparse(X)) and units_differ(X)
        for name in ("x_count", *COLUMNS):
            state.pop(name, None)
        if on:
            state |= no_moments(X.shape[1], self.guards)

    def schema(self, state: State) -> Schema:
        if not (scales_columns(state) if self.wanted is None else self.wanted):
            return {}
        d = state["n_features"]
        schema: Schema = {name: Array((d,)) for name in COLUMNS}
        counts: Schema = {name: Array((d,), low=0.0) for name in ("x_m2", "x_doubt", "x_since", "x_unit")}
        if self.guards:
            places = min(max(length(state, "x_recent"), 1), corrupt.PLACES)
            schema |= {
                "x_usual": Array((7, d), low=-corrupt.NONE, high=corrupt.NONE),
                "x_recent": Array((places, d), low=-corrupt.NONE, high=corrupt.NONE),
            }
        return schema | counts | {"x_tailed": Array((d,), low=0.0, high=1.0), "x_count": Number(0.0)}

    # ---------------------------------------------------------------- rows
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, **how: Any) -> np.ndarray:
        """Scale rows by the moments of the columns, which they update, and learn them; sparse ones some at a time."""
        if not scales_columns(state):
            return self.inner.learn(state, X, y, weight, **how)
        if not sp.issparse(X) or X.shape[0] <= DENSE_ROWS:
            return self.inner.learn(state, self.followed(state, X, weight), y, weight, **how)
        return np.concatenate([self.learn(state, X[rows], y[rows], None if weight is None else weight[rows], **how)
                               for rows in threads.cuts(X.shape[0], DENSE_ROWS)])  # fmt: skip

    def score(self, state: State, X: Rows, **how: Any) -> np.ndarray:
        if not scales_columns(state):
            return self.inner.score(state, X, **how)
        if not sp.issparse(X):
            return self.inner.score(state, scaled_rows(self.ops, X, state), **how)
        cuts = threads.cuts(X.shape[0], DENSE_ROWS)
        return np.concatenate([self.inner.score(state, scaled_rows(self.ops, X[rows], state), **how) for rows in cuts])

    def start_over(self, state: State, X: Rows, weight: np.ndarray) -> Rows:
        """Decide by the first rows whether to scale; returns them scaled by their own moments."""
        trusted = weight > 0
        self.decide(state, X if trusted.all() else X[trusted])
        return self.settled(state, X, weight)

    def followed(self, state: State, X: Rows, weight: np.ndarray | None) -> np.ndarray:
        """Rows scaled by the moments of the columns, which they update."""
        X = np.array(dense(host(X)), order="C")
        if "x_usual" not in state:
            self.ops.standardize(state, X, weight)
            return X
        for rows in runs(weight, len(X), lambda: corrupt.rows_until_look(int(state["x_count"]))):
            count, part, own = int(state["x_count"]), X[rows], None if weight is None else weight[rows]
            next_look = count + corrupt.rows_until_look(count)
            counted = part if own is None or own.all() else part[own > 0]
            self.ops.remember(counted, count, state["x_usual"], state["x_recent"])
            part[:] = self.ops.cleaned(part, state["x_usual"])
            self.ops.standardize(state, part, own)
            if state["x_count"] == next_look:
                self._look(state, next_look)
        return X

    def _look(self, state: State, count: int) -> None:
        """Renew what is usual in the columns; those with a new level are scaled by their new cells."""
        usual, recent = state["x_usual"], state["x_recent"]
        since, codes = count - min(corrupt.LOOK, count // 2), usual.copy()
        scale = np.where(state["x_since"] > 0, [state["x_middle"], state["x_unit"]], np.nan)
        for j in corrupt.look(self.ops, usual, recent, count, since, scale):
            cells, own = recent[:count, j : j + 1], np.ascontiguousarray(usual[:, j : j + 1])
            retake(state, j, self.ops.cleaned(cells[cells[:, 0] < corrupt.NONE], own)[:, 0])
        self._warn_about_codes(usual, codes)

    def settled(self, state: State, X: Rows, weight: np.ndarray | None) -> Rows:
        """The first rows, all scaled by their own moments, which stay in use until the columns move."""
        if not scales_columns(state):
            return X
        X = np.array(dense(host(X)), order="C")
        counts = slice(None) if weight is None else weight > 0
        if "x_usual" in state:
            usual, recent = state["x_usual"], state["x_recent"]
            self.ops.remember(X[counts], 0, usual, recent)
            corrupt.look(self.ops, usual, recent, len(X[counts]), 0)
            X = self.ops.cleaned(X, usual)
        self.ops.standardize(state, X.copy(), weight)
        counted = X[counts].astype(np.float64)
        if self.learner.squashes and len(counted):
            deviation = np.sqrt(state["x_m2"] / state["x_count"])
            state["x_tailed"] = long_tailed(counted, deviation).astype(np.float64)
        settle(state)
        return np.asarray(self.ops.scaled(X, state).astype(state["dtype"]))

    # ---------------------------------------------------------------- warnings
    def warn(self, state: State, X: Rows) -> None:
        """Warn about the columns of the first rows X (n, d): too small, of different units, or with codes for gaps."""
        self._warn_about_tiny(X)
        self._warn_about_units(state, X)
        if "x_usual" in state:
            self._warn_about_codes(state["x_usual"])

    def _warn_about_units(self, state: State, X: Any) -> None:
        """Where one width compares the columns, they have different units, and nothing scales them."""
        # decided by the rows, unless these are sparse and wide; or by the user
        learner, given = self.learner, self.learner.parameters["standardize"]
        done = not sp.issparse(X) if given == AUTO else learner.context.asks("standardize")
        if done or scales_columns(state) or not learner.one_width():
            return
        X = X[~odd_cells(X)]
        if not units_differ(X):
            return
        other = "leave gamma to the model" if hasattr(learner, "free") else "give gamma a number"
        warn(
            f"{learner.context.name} compares all columns with one width, but they have different units: "
            f"{extremes(X, self.names)}. Scale them beforehand, for example with "
            f"StandardScaler (MaxAbsScaler for sparse rows), or {other}"
        )

    def _warn_about_codes(self, usual: np.ndarray, before: np.ndarray | None = None) -> None:
        """About values that are taken for gaps from now on; ``before`` (7, d) is what was usual."""
        places = [corrupt.CODE, corrupt.OTHER_CODE]
        new = (usual[places] < corrupt.NONE) & (True if before is None else usual[places] != before[places])
        for j in np.flatnonzero(new.any(axis=0)):
            found = few(f"{code:g}" for code in usual[places, j][new[:, j]])
            warn(
                f"column {column_names(self.names, [j])}: {found} is far outside all other numbers and has come "
                f"{corrupt.REPEATS} times or more: it is taken for a gap"
            )

    def _warn_about_tiny(self, X: Any) -> None:
        """About columns X (n, d) whose squared differences are 0 in float64, so that they seem to be constant."""
        if not isinstance(X, np.ndarray) or not len(X) or solves(self.learner):
            return
        spread = np.ptp(X, axis=0)
        tiny = np.flatnonzero((spread > 0) & (spread < TINY))
        if len(tiny):
            warn(
                f"column {column_names(self.names, tiny)}: numbers that vary by less than {TINY:g} count as constant, "
                "because their squares are 0. Multiply them by a power of ten"
            )


def widen(state: State, d: int) -> None:
    """Pad the moments of the columns for rows of width d."""
    for name in COLUMNS:
        if name in state:
            state[name] = padded(state[name], d)  # as of a column of zeros
    if "x_usual" in state:
        new = corrupt.nothing_usual(d - state["x_usual"].shape[1])
        new[[corrupt.LOW, corrupt.HIGH]] = 0.0
        state["x_usual"] = np.concatenate([state["x_usual"], new], axis=1)
        state["x_recent"] = padded(state["x_recent"], d)
