r"""Which columns matter to the default learner, and which of them moved a prediction.

.. math:: r_j = E\left[\left(\frac{f(x + h e_j) - f(x - h e_j)}{2h}\right)^2\right]

over recent rows, columns in standard deviations: the diagonal of the average gradient outer product, by differences
with a step of h = 1/4, because some members are step functions. Learning only keeps a row now and then; the
differences are computed on request.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.targets import Move
from ...named import Named, named
from ...rows import dense
from ...state.nested import State
from ...state.schema import Array, Schema
from ...state.turns import in_turn
from ...trust.contributions import Explanation, in_turns
from ...trust.recent import differences, places, some_of, taken
from .._contract.base import Shell, checked_rows
from .._contract.composite import fitted
from .._contract.state import scaled_rows

if TYPE_CHECKING:
    from .base import Stack

STEP = 0.25  # of the differences, in deviations


def start(stack: Stack, state: State) -> State:
    """No rows yet, nor targets, where these are numbers."""
    kept = places(state["first_width"])
    found = {"X": np.zeros((kept, state["n_features"]), state["dtype"])}
    return found | ({"y": np.zeros((kept, stack.outputs(state)))} if stack.regression else {})


def schema(stack: Stack, state: State) -> Schema:
    """What the entries may be."""
    kept = places(state["first_width"])
    found: Schema = {"X": Array((kept, state["n_features"]), state["dtype"])}
    return found | ({"y": Array((kept, stack.outputs(state)))} if stack.regression else {})


def follow(reasons: State, X: np.ndarray, y: np.ndarray, t: int, weight: np.ndarray | None) -> None:
    """Keep some of the rows X (n, d), as the members see them, and their targets; t rows were learned before."""
    kept = reasons["X"]
    m = len(kept)
    counted = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
    some, at = taken(t, len(counted), m)
    kept[at] = X[counted[some]]  # a place that is taken twice has the later row: numpy writes in order
    if "y" in reasons:
        reasons["y"][at] = y.reshape(len(y), -1)[counted[some]]


def moved(reasons: State, o: int, move: Move) -> None:
    """Carry over the targets kept of an output."""
    reasons["y"][:, o] = move(reasons["y"][:, o])


@in_turn
def relevance(est: Shell[Stack]) -> Named:
    """How much each column matters now: shares of the mean squared gradient at recent rows, which sum to one.

    One number for each column of the input, (d,), in the order of ``feature_names_in_``.
    """
    state = fitted(est)
    kept = state["reasons"]["X"]
    rows = some_of(np.array(kept[: min(state["t"], len(kept))], np.float64))
    found = (differences(functools.partial(_answers_to, est), rows, 1.0, STEP) ** 2).sum(axis=1).mean(axis=0)
    found[state["x_m2"] == 0] = 0.0  # a column that never varied moves nothing
    groups, n = _sources(est)
    found = np.bincount(groups, found, n)
    return named(found / found.sum() if found.any() else found, est)


@in_turn
def explain(est: Shell[Stack], X: Any, baseline: Any = None) -> Explanation:
    """How much each column moved the predictions for some rows, by swapping columns with a baseline in random orders.

    Parameters
    ----------
    X : (n, d) array, or mixed rows
    baseline : (d,) array, or one mixed row, optional
        The row to compare with; by default the mean of all rows so far.

    Returns
    -------
    :class:`~kernelstream.trust.Explanation`
        Contributions (n, d), which sum to the difference between ``score`` and ``base``: predictions, or scores of
        the predicted class (log-odds of ``classes_[1]`` for two), as of rows in a table.
    """
    state = fitted(est)
    rows = np.asarray(checked_rows(est, X))
    base: Any = np.asarray(state["x_mean"], rows.dtype)[None]
    if baseline is not None:
        base = baseline if isinstance(baseline, (dict, list)) or hasattr(baseline, "columns") else [baseline]
        base = np.asarray(checked_rows(est, base))
    if len(base) != 1:
        raise ValueError(f"baseline must be one row, got {len(base)}")
    seen, start = (est._ops.squashed(dense(scaled_rows(est._ops, part, state))) for part in (rows, base))
    said = _answers_to(est, np.concatenate([seen, start]))[:-1]
    at_base = _answers_to(est, np.repeat(start, 2, axis=0))[0]
    which = said.argmax(axis=1) if said.shape[1] > 1 and not est._learner.regression else np.zeros(len(rows), np.intp)
    groups, _ = _sources(est)
    parts = in_turns(functools.partial(_answers_to, est), np.asarray(seen), np.asarray(start[0]), which, groups)
    return Explanation(named(parts, est), said[np.arange(len(rows)), which], at_base[which], np.array(base[0]))


def _answers_to(est: Shell[Stack], X: np.ndarray) -> np.ndarray:
    """Scores (n, outputs) of rows as the members see them, more than one of them: a table."""
    rows = np.ascontiguousarray(X, np.dtype(est._state["dtype"]))
    return est._learner.combined(est._state, rows)


def _sources(est: Shell[Stack]) -> tuple[np.ndarray, int]:
    """For each column that members see, the input column it comes from, (d,), and how many input columns there are."""
    d = est._state["n_features"]
    if est._encoder is None:
        return np.arange(d), d
    groups = est._encoder._sources_of_width()
    return np.pad(groups, (0, d - len(groups)), mode="edge"), est._encoder.n_features_in_
