"""The first rows of a stream, from which bandwidths and the like are estimated: a layer around the learning of rows.

The first ``warm_rows`` rows are kept in the state. After 1, 2, 4, ... rows and at the end of the warm-up, the estimate
is renewed and the kept rows are learned again from the start, so that the model does not depend on how the rows were
cut into calls. Whether columns are scaled is also decided there, before the estimate: see :mod:`.scaling`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...checks import few
from ...core import corrupt, threads
from ...core.ranges import COLUMNS, long_tailed, retake, settle
from ...registry.caller import caller
from ...rows import Rows, dense, host, unpack
from ...state.nested import State
from . import kept
from .first_rows import odd_cells
from .scaling import AUTO, WIDE, column_names, extremes, fills_gaps, no_moments, scales_columns, units_differ

if TYPE_CHECKING:
    from .base import StreamEstimator

WARM_UP = 100  # rows from which a bandwidth is estimated
TINY = 1e-154  # differences whose squares are as small as float64 goes
DENSE_ROWS = 4096  # sparse rows that are made dense at once, where columns are scaled


def first_rows(est: StreamEstimator) -> int:
    """Rows of the warm-up."""
    return max(est._learner.warm_up_rows(), 0 if est._scaling() is False else WARM_UP)


def learn(est: StreamEstimator, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Learn rows whose labels are all known, stopping at the warm-up points to renew the estimates."""
    state = est._state
    if not state["warm_rows"]:
        return np.concatenate([_learn_in_cuts(est, X[run], y[run], own) for run, own in est._believed(y, weight)])
    parts, n = [], X.shape[0]
    for rows in runs(weight, n, lambda: _next_point(state) - state["warm_count"] if state["warm_rows"] else n):
        X_run, y_run = X[rows], y[rows]
        for run, own in est._believed(y_run, None if weight is None else weight[rows]):
            if state["warm_rows"]:
                parts.append(_learn_first(est, host(X_run[run]), y_run[run], own))
            else:
                parts.append(_learn_in_cuts(est, X_run[run], y_run[run], own))
    return np.concatenate(parts)


def _learn_first(est: StreamEstimator, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Rows of the warm-up, up to the next renewal of the estimates."""
    state = est._state
    before = state["warm_count"]
    if before:
        scores = est._learn_public(X, y, weight)
    else:
        scores = np.zeros((X.shape[0], state["n_outputs"]))
        if not est._learner.warm_up_rows():  # nothing is estimated: as without a warm-up
            est._follow(scores, est._encode(state, y), est._final_weights(state, y, weight))
    now = state["warm_count"] = before + kept.add("warm", state, X, y, weight)
    if now == state["warm_rows"]:
        _finish(est)
    elif now > before and now & (now - 1) == 0:
        renew(est)
    return scores


def _learn_in_cuts(est: StreamEstimator, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Rows after the warm-up; sparse rows to be scaled are made dense some at a time."""
    if not (scales_columns(est._state) and sp.issparse(X)):
        return est._learn_public(X, y, weight)
    cuts = threads.cuts(X.shape[0], DENSE_ROWS)
    return np.concatenate(
        [est._learn_public(X[rows], y[rows], None if weight is None else weight[rows]) for rows in cuts]
    )


def standardized(est: StreamEstimator, state: State, X: Rows, weight: np.ndarray | None) -> Rows:
    """Rows scaled by the moments of the columns, which they update."""
    if not scales_columns(state):
        return X
    X = np.array(dense(host(X)), order="C")
    if "x_usual" not in state:
        est._ops.standardize(state, X, weight)
        return X
    for rows in runs(weight, len(X), lambda: corrupt.rows_until_look(int(state["x_count"]))):
        count, part, own = int(state["x_count"]), X[rows], None if weight is None else weight[rows]
        next_look = count + corrupt.rows_until_look(count)
        counted = part if own is None or own.all() else part[own > 0]
        est._ops.remember(counted, count, state["x_usual"], state["x_recent"])
        part[:] = est._ops.cleaned(part, state["x_usual"])
        est._ops.standardize(state, part, own)
        if state["x_count"] == next_look:
            _look(est, state, next_look)
    return X


def _look(est: StreamEstimator, state: State, count: int) -> None:
    """Renew what is usual in the columns; those with a new level are scaled by their new cells."""
    usual, kept = state["x_usual"], state["x_recent"]
    since, codes = count - min(corrupt.LOOK, count // 2), usual.copy()
    scale = np.where(state["x_since"] > 0, [state["x_middle"], state["x_unit"]], np.nan)
    for j in corrupt.look(est._ops, usual, kept, count, since, scale):
        cells, own = kept[:count, j : j + 1], np.ascontiguousarray(usual[:, j : j + 1])
        retake(state, j, est._ops.cleaned(cells[cells[:, 0] < corrupt.NONE], own)[:, 0])
    _warn_about_codes(est, usual, codes)


def settled(est: StreamEstimator, state: State, X: Rows, weight: np.ndarray | None) -> Rows:
    """The first rows, all scaled by their own moments, which stay in use until the columns move."""
    if not scales_columns(state):
        return X
    X = np.array(dense(host(X)), order="C")
    counts = slice(None) if weight is None else weight > 0
    if "x_usual" in state:
        usual, kept = state["x_usual"], state["x_recent"]
        est._ops.remember(X[counts], 0, usual, kept)
        corrupt.look(est._ops, usual, kept, len(X[counts]), 0)
        X = est._ops.cleaned(X, usual)
    est._ops.standardize(state, X.copy(), weight)
    counted = X[counts].astype(np.float64)
    if est._learner.squashes and len(counted):
        deviation = np.sqrt(state["x_m2"] / state["x_count"])
        state["x_tailed"] = long_tailed(counted, deviation).astype(np.float64)
    settle(state)
    return np.asarray(est._ops.scaled(X, state).astype(state["dtype"]))


def begin_scaling(est: StreamEstimator, state: State, X: Rows) -> None:
    """Decide by rows X (n, d) whether to scale, if that is open, and forget the moments so far."""
    on = est._scaling()
    if on is None:
        on = (X.shape[1] <= WIDE or not sp.issparse(X)) and units_differ(X)
    for name in ("x_count", *COLUMNS):
        state.pop(name, None)
    if on:
        state |= no_moments(X.shape[1], fills_gaps(est))


def _finish(est: StreamEstimator) -> None:
    """The last estimate, after which no rows are kept."""
    renew(est)
    warn_about_units(est, unpack("warm_X", est._state))
    if "x_usual" in est._state:
        _warn_about_codes(est, est._state["x_usual"])
    kept.take("warm", est._state)
    est._learner.drop("draws")
    est._state |= {"warm_rows": 0, "warm_count": 0}


def renew(est: StreamEstimator) -> None:
    """Let the learner start over with the kept rows, scaled by their own moments."""
    state = est._state
    X: Any = unpack("warm_X", state)
    y = state["warm_y"]
    weight: Any = est._trusted(X, y, state["warm_weight"])
    state["t"] = 0
    est._forget_rows(state)
    weight = est._final_weights(state, y, weight)
    trusted = weight > 0
    begin_scaling(est, state, X if trusted.all() else X[trusted])
    X = settled(est, state, X, weight)
    learner = est._learner
    learner.start_over(state, X, y, est._encode(state, y), weight, **est._how)
    est._forget(learner)


def warn_about_units(est: StreamEstimator, X: Any) -> None:
    """Warn about columns X (n, d) of different units where one width compares them and nothing scales them."""
    _warn_about_tiny(est, X)
    # decided by the rows, unless these are sparse and wide; or by the user
    done = not sp.issparse(X) if est.standardize == AUTO else "standardize" in est._get_param_names()
    if done or scales_columns(est._state) or not est._learner.one_width():
        return
    X = X[~odd_cells(X)]
    if not units_differ(X):
        return
    other = "leave gamma to the model" if hasattr(est._learner, "free") else "give gamma a number"
    warnings.warn(
        f"{type(est).__name__} compares all columns with one width, but they have different units: "
        f"{extremes(X, getattr(est, 'feature_names_in_', None))}. Scale them beforehand, for example with "
        f"StandardScaler (MaxAbsScaler for sparse rows), or {other}",
        UserWarning,
        stacklevel=caller(),
    )


def _warn_about_codes(est: StreamEstimator, usual: np.ndarray, before: np.ndarray | None = None) -> None:
    """Warn about values that are taken for gaps from now on; ``before`` (7, d) is what was usual."""
    places = [corrupt.CODE, corrupt.OTHER_CODE]
    new = (usual[places] < corrupt.NONE) & (True if before is None else usual[places] != before[places])
    for j in np.flatnonzero(new.any(axis=0)):
        found = few(f"{code:g}" for code in usual[places, j][new[:, j]])
        warnings.warn(
            f"column {column_names(est, [j])}: {found} is far outside all other numbers and has come "
            f"{corrupt.REPEATS} times or more: it is taken for a gap",
            UserWarning,
            stacklevel=caller(),
        )


def _warn_about_tiny(est: StreamEstimator, X: Any) -> None:
    """Warn about columns X (n, d) whose squared differences are 0 in float64, so that they seem to be constant."""
    if not isinstance(X, np.ndarray) or not len(X) or est._at_once:
        return
    spread = np.ptp(X, axis=0)
    tiny = np.flatnonzero((spread > 0) & (spread < TINY))
    if len(tiny):
        warnings.warn(
            f"column {column_names(est, tiny)}: numbers that vary by less than {TINY:g} count as constant, because "
            "their squares are 0. Multiply them by a power of ten",
            UserWarning,
            stacklevel=caller(),
        )


def end(est: StreamEstimator) -> None:
    """There are no more rows (``fit``): estimate from those there are."""
    if est._state["warm_rows"] and est._state["warm_count"]:
        _finish(est)
    est._learner.end_warm_up(est._state)


def _next_point(state: State) -> int:
    """Row count at which the estimate is renewed next: a power of two, or the end of the warm-up."""
    return min(1 << state["warm_count"].bit_length(), state["warm_rows"])


def runs(weight: np.ndarray | None, n: int, wanted: Callable[[], int]) -> Iterator[slice]:
    """Cuts of n rows; each is the shortest that holds as many rows of positive weight as are ``wanted`` by then."""
    start = 0
    while start < n:
        stop = rows_until(weight, start, n, wanted())
        yield slice(start, stop)
        start = stop


def rows_until(weight: np.ndarray | None, start: int, n: int, wanted: int) -> int:
    """End of the shortest run from ``start`` that holds ``wanted`` rows of positive weight."""
    if weight is None:
        return min(n, start + wanted)
    counted = np.cumsum(weight[start:] > 0)
    return min(n, start + int(np.searchsorted(counted, wanted)) + 1)
