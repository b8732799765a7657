"""The first rows of a stream, from which bandwidths and the like are estimated, and the scaling of all rows.

The first ``warm_rows`` rows are kept in the state. The estimate is renewed, and the kept rows are learned again from
the start, after 1, 2, 4, ... rows and at the end of the warm-up, so that the model does not depend on how the rows were
cut into calls. Whether columns are scaled is decided there too, before the estimate: see :mod:`.scaling`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import threads
from ...core.ranges import COLUMNS
from ...registry.caller import caller
from ...rows import Rows, concat, dense, drop, host, pack, unpack
from .first_rows import odd_cells
from .hooks import Hooks, State
from .scaling import AUTO, WIDE, extremes, no_moments, scales_columns, units_differ

WARM_UP = 100  # rows from which a bandwidth is estimated
DENSE_ROWS = 4096  # sparse rows that are made dense at once, where columns are scaled


class WarmUp(Hooks):
    """Learns rows, and estimates from the first of them."""

    _state: State
    _renewing: bool = False  # whether the first rows are learned again

    def _scaling(self) -> bool | None:
        """Whether columns are scaled; None where the first rows decide."""
        return self._auto_scaling() if isinstance(self.standardize, str) else bool(self.standardize)

    def _first_rows(self) -> int:
        """Rows of the warm-up."""
        return max(self._warm_up_rows(), WARM_UP if self._scaling() is None else 0)

    def _learn_with_warm_up(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn rows whose labels are all known, stopping at the warm-up points to renew the estimates."""
        state = self._state
        if not state["warm_rows"]:
            return self._learn_in_cuts(X, y, self._set_aside(y, weight))
        parts = []
        start, n = 0, X.shape[0]
        while start < n:
            if not state["warm_rows"]:
                ws = self._set_aside(y[start:], None if weight is None else weight[start:])
                parts.append(self._learn_in_cuts(X[start:], y[start:], ws))
                break
            before = state["warm_count"]
            stop = rows_until(weight, start, n, _next_point(state) - before)
            Xs, ys = host(X[start:stop]), y[start:stop]
            ws = self._set_aside(ys, None if weight is None else weight[start:stop])
            if before == 0:
                parts.append(np.zeros((stop - start, state["n_outputs"])))
                if not self._warm_up_rows():  # nothing is estimated: as without a warm-up
                    self._follow(parts[0], self._encode(state, ys), self._final_weights(state, ys, ws))
            else:
                parts.append(self._learn_scaled(Xs, ys, ws))
            kept = self._keep(Xs, ys, ws)
            if kept == state["warm_rows"]:
                self._renew()
                self._tell_units(unpack("warm_X", state))
                self._drop_kept()
            elif kept > before and kept & (kept - 1) == 0:
                self._renew()
            start = stop
        return np.concatenate(parts)

    def _learn_in_cuts(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Rows after the warm-up; sparse ones that are made dense, some at a time."""
        if not (scales_columns(self._state) and sp.issparse(X)):
            return self._learn_scaled(X, y, weight)
        cuts = threads.cuts(X.shape[0], DENSE_ROWS)
        return np.concatenate(
            [self._learn_scaled(X[rows], y[rows], None if weight is None else weight[rows]) for rows in cuts]
        )

    def _learn_scaled(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Standardise and learn rows; y is the public target."""
        weight = self._final_weights(self._state, y, weight)
        return self._learn_encoded(X, self._encode(self._state, y), weight)

    def _final_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of rows as the family takes them."""
        weight = self._row_weights(state, y, weight)
        return self._learner.weighed(state, weight, len(y)) if self._composed else weight

    def _learn_encoded(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        raise NotImplementedError

    def _standardized(self: Any, state: State, X: Rows, weight: np.ndarray | None) -> Rows:
        """Rows scaled by the running moments, which they update."""
        if not scales_columns(state):
            return X
        X = np.array(dense(host(X)), order="C")
        self._ops.standardize(state, X, weight)
        return X

    def _begin_scaling(self, state: State, X: Rows) -> None:
        """Decide on scaling by rows X (n, d), where that is open, and forget the moments so far."""
        on = self._scaling()
        if on is None:
            on = (X.shape[1] <= WIDE or not sp.issparse(X)) and units_differ(X)
        for name in ("x_count", *COLUMNS):
            state.pop(name, None)
        if on:
            state |= no_moments(X.shape[1])

    def _keep(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> int:
        """Add rows of positive weight to the kept ones; returns how many there are now, 0 if none was added."""
        state = self._state
        if weight is None:
            weight = np.ones(len(y))
        counted = weight > 0
        if not counted.any():
            return 0
        X, y, weight = X[counted], y[counted], weight[counted]
        kept = unpack("warm_X", state)
        if kept is not None:
            X = concat([kept, X])
            y = np.concatenate([state["warm_y"], y])
            weight = np.concatenate([state["warm_weight"], weight])
        drop("warm_X", state)
        state |= pack("warm_X", X) | {"warm_y": np.array(y), "warm_weight": np.array(weight), "warm_count": len(y)}
        return len(y)

    def _renew(self: Any) -> None:
        """Estimate from the kept rows, then learn them again from the start."""
        state = self._state
        X: Any = unpack("warm_X", state)
        y = state["warm_y"]
        weight: Any = self._trusted(X, y, state["warm_weight"])
        state["t"] = 0
        self._forget_rows(state)
        weight = self._final_weights(state, y, weight)
        trusted = weight > 0
        self._begin_scaling(state, X if trusted.all() else X[trusted])
        X = self._standardized(state, X, weight)
        self._estimate(state, X if trusted.all() else X[trusted])
        self._forget()
        self._reset(state)
        self._renewing = True
        try:
            self._learn(state, X, self._encode(state, y), weight)
        finally:
            del self._renewing

    def _tell_units(self: Any, X: Any) -> None:
        """Warn about columns X (n, d) of different units where one width compares them and nothing scales them."""
        # decided by the rows, unless these are sparse and wide; or by the user
        done = not sp.issparse(X) if self.standardize == AUTO else "standardize" in self._get_param_names()
        if done or scales_columns(self._state) or not self._one_width():
            return
        X = X[~odd_cells(X)]
        if not units_differ(X):
            return
        other = "leave gamma to the model" if hasattr(self, "_free") else "give gamma a number"
        warnings.warn(
            f"{type(self).__name__} compares all columns with one width, but they have different units: "
            f"{extremes(X, getattr(self, 'feature_names_in_', None))}. Scale them beforehand, for example with "
            f"StandardScaler (MaxAbsScaler for sparse rows), or {other}",
            UserWarning,
            stacklevel=caller(),
        )

    def _trusted(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights of the kept rows, 0 for those with a glitch."""
        return np.where(odd_cells(X), 0.0, weight)

    def _forget_rows(self, state: State) -> None:
        """Undo what :meth:`_final_weights` counted."""
        if self._composed:
            self._learner.forget_rows(state)

    def _drop_kept(self) -> None:
        drop("warm_X", self._state)
        for name in ("warm_y", "warm_weight"):
            self._state.pop(name, None)
        self._state |= {"warm_rows": 0, "warm_count": 0}

    def _end_warm_up(self) -> None:
        """The data have ended (``fit``): estimate from what there is."""
        state = self._state
        if state["warm_rows"] and state["warm_count"]:
            self._renew()
            self._tell_units(unpack("warm_X", state))
            self._drop_kept()
        if self._composed:
            self._learner.end_warm_up()


def _next_point(state: State) -> int:
    """Row count at which the estimate is renewed next: a power of two, or the end of the warm-up."""
    point = 1
    while point <= state["warm_count"]:
        point *= 2
    return min(point, state["warm_rows"])


def rows_until(weight: np.ndarray | None, start: int, n: int, wanted: int) -> int:
    """End of the shortest run from ``start`` that holds ``wanted`` rows of positive weight."""
    if weight is None:
        return min(n, start + wanted)
    counted = np.cumsum(weight[start:] > 0)
    return min(n, start + int(np.searchsorted(counted, wanted)) + 1)
