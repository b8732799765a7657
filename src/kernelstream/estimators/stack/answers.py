"""What the default estimators say besides forecasts: of members, of columns, of changes, and how sure they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import threads
from ...monitor import Mark
from ...named import Named, named
from ...rows import Rows
from ...state.turns import in_turn
from ...trust.contributions import Explanation, in_turns
from .._contract.base import Shell, checked_rows
from .._contract.calls import bound
from .._contract.composite import fitted, inside
from . import reasons, watch
from .base import Stack
from .intervals import FEWEST_KEPT

AT_ONCE = 4096  # rows whose quantiles are computed at once


@in_turn
def members(est: Shell[Stack]) -> list[dict[str, Any]]:
    """A small table: name, weight, error so far and over about the last 1,000 rows, restarts and rows of each member.

    Errors are those of the member alone: the share of mistakes for labels, the root mean squared error for numbers.
    After ``fit`` the last line is the function learned from all rows at once, "batch"; its errors on those rows are
    estimated, on some of them, each forecast by all others.
    Rows that ``fit`` went over several times are counted each time.
    """
    state, stack = fitted(est), inside(est)[0]
    names, errors, rows = (
        stack.names(state),
        np.mean([part["member_errors"] for part in stack.combination.parts(state)], axis=0),
        max(state["t"], 1),
    )
    N = len(stack.examples())
    restarts, table = state["restarts"].reshape(-1, N).sum(axis=0), []
    for i, (name, weight) in enumerate(zip(names, stack.weights(state), strict=True)):
        whole, lately = errors[0, i] / rows, errors[1, i] / max(errors[2, i], 1e-300)
        if stack.regression:
            whole, lately = whole**0.5, lately**0.5
        table.append(
            {"name": name, "weight": float(weight), "error": float(whole), "error_lately": float(lately)}
            | {"restarts": int(restarts[i]) if i < N else 0}
            | {"rows": int(state["members"][i]["t"] if i < N else state["batch"]["rows"])}
        )
    return table


@in_turn
def changes(est: Shell[Stack]) -> list[Mark]:
    """The last hundred changes found, oldest first: of the errors, or of the rows themselves."""
    found = fitted(est)["watch"]["marks"].tolist()
    names = watch.NAMES
    return [Mark(row, since, "inputs" if names[d] == "kernel" else "loss", names[d]) for row, since, d in found]


# -------------------------------------------------------------------- columns
@in_turn
def relevance(est: Shell[Stack]) -> Named:
    """How much each column matters now: shares of the mean squared gradient at recent rows, which sum to one.

    One number for each column of the input, (d,), in the order of ``feature_names_in_``.
    """
    state = fitted(est)
    found = reasons.relevance(state["reasons"], state["t"], _answers(est))
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
    state, (stack, _), answers = fitted(est), inside(est), _answers(est)
    rows = np.asarray(checked_rows(est, X))
    base: Any = np.asarray(state["x_mean"], rows.dtype)[None]
    if baseline is not None:
        base = baseline if isinstance(baseline, (dict, list)) or hasattr(baseline, "columns") else [baseline]
        base = np.asarray(checked_rows(est, base))
    if len(base) != 1:
        raise ValueError(f"baseline must be one row, got {len(base)}")
    seen, start = stack.seen(state, rows), stack.seen(state, base)
    said = answers(np.concatenate([seen, start]))[:-1]
    at_base = answers(np.repeat(start, 2, axis=0))[0]
    which = said.argmax(axis=1) if said.shape[1] > 1 and not stack.regression else np.zeros(len(rows), np.intp)
    groups, _ = _sources(est)
    parts = in_turns(answers, seen, start[0], which, groups)
    return Explanation(named(parts, est), said[np.arange(len(rows)), which], at_base[which], np.array(base[0]))


def _answers(est: Shell[Stack]) -> Callable[[np.ndarray], np.ndarray]:
    """A function that scores rows as the members see them, more than one of them: a table; (n, outputs)."""
    stack, state = inside(est)
    return lambda X: stack.combined(state, np.ascontiguousarray(X, np.dtype(state["dtype"])))


def _sources(est: Shell[Stack]) -> tuple[np.ndarray, int]:
    """For each column that members see, the input column it comes from, (d,), and how many input columns there are."""
    layers, state = bound(est)
    d, encoder = state["n_features"], layers.encoder
    if encoder is None:
        return np.arange(d), d
    groups = encoder._sources_of_width()
    return np.pad(groups, (0, d - len(groups)), mode="edge"), encoder.n_features_in_


# -------------------------------------------------------------------- how sure it is
def quantiles(est: Shell[Stack], X: Rows, scores: np.ndarray, asked: np.ndarray, following: bool) -> np.ndarray:
    """Quantiles (n, outputs, k) of the targets of rows X with forecasts (n, outputs).

    With ``following``, each row is the next of the stream; for rows of any time see :meth:`.intervals.Tracked.ways`.
    """
    stack, state = inside(est)
    if "intervals" not in state:
        return np.where(asked == 0.5, scores[:, :, None], np.copysign(np.inf, asked - 0.5))
    trackers = [stack.tracked.tracker(state["intervals"][f"o{o}"]) for o in range(scores.shape[1])]
    found, median = np.empty((*scores.shape, len(asked))), np.empty(scores.shape)
    for rows in threads.cuts(len(scores), AT_ONCE):
        seen = stack.seen(state, X[rows])
        for o, tracker in enumerate(trackers):
            part = tracker.quantiles(scores[rows, o], np.append(asked, 0.5), seen, following)
            found[rows, o], median[rows, o] = part[:, :-1], part[:, -1]
    if not following:
        find = functools.partial(_ways, stack, state, asked)
        ways = stack.until_next_row("ways", state, tuple(asked), find)
        found = median[:, :, None] + ways * (found - median[:, :, None])
    order = np.argsort(asked)
    found[:, :, order] = np.sort(found, axis=2)
    return found


def _ways(stack: Stack, state: Any, asked: np.ndarray) -> np.ndarray:
    """How far quantiles lie from the median for rows of any time, (outputs, k), by the rows kept."""
    kept = state["reasons"]
    m = min(state["t"], len(kept["y"]))
    if m < FEWEST_KEPT:
        return np.ones((stack.combination.outputs(state), len(asked)))
    rows = kept["X"][:m]
    return stack.tracked.ways(state["intervals"], rows, kept["y"][:m], stack.combined(state, rows), asked)
