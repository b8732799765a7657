"""The weights of many learners over the same rows, in the python engine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...state.nested import State

# The specification shares neither vectors nor projections: each learner has its own.
Pool: Any = None
family_pass: Any = None

GRID = 2.0**-40  # sums of votes are rounded to multiples of this, so that a tie stays a tie
NO_VOTE = 1e-300  # smaller scores are no vote: of such denormal numbers rounding decides the sign
HISTORY = 256  # weights that are remembered; when the history is full, every second entry is dropped


class Hedge(NamedTuple):
    """How the scores of m learners become one, and what a row does to their weights.

    Attributes
    ----------
    rate : float
        ``-log(discount)``; 0 leaves the weights alone.
    share : float
        Part of all weight that is spread evenly over the learners after every row (fixed share).
    votes : bool
        Whether learners of labels vote (each for one class, or for none) instead of adding their scores.
    regression : bool
        Real targets: losses are squares, in units of the range of the targets so far.
    """

    rate: float
    share: float
    votes: bool
    regression: bool


def start_hedge(learners: int, hedge: Hedge) -> State:
    """Entries of the state before the first row: equal weights."""
    entries: State = {
        "log_theta": np.zeros(learners),  # up to one constant
        "history": np.zeros((HISTORY, learners), np.float32),  # row j: weights after row (j + 1) * stride
        "history_stride": 1,
    }
    return entries | ({"range": np.zeros(2)} if hedge.regression else {})


def theta(log_theta: np.ndarray) -> np.ndarray:
    """Weights that sum to one, (m,)."""
    w = np.exp(log_theta - log_theta.max())
    return w / w.sum()


def combine(F: np.ndarray, weights: np.ndarray, hedge: Hedge, state: State) -> np.ndarray:
    """Scores of the ensemble from those of its learners, (m, n, C) and (m,) -> (n, C)."""
    if hedge.regression:
        return np.einsum("m,mnc->nc", weights, within(F, state))
    if not hedge.votes:
        return np.einsum("m,mnc->nc", weights, F)
    return np.rint(np.einsum("m,mnc->nc", weights, ballots(F)) / GRID) * GRID


def within(F: np.ndarray, state: State) -> np.ndarray:
    """Forecasts, none of them outside the range of the targets so far."""
    return np.clip(F, *state["range"]) if state["t"] else F


def ballots(F: np.ndarray) -> np.ndarray:
    """Votes of learners with scores (m, n, C).

    The sign of a single score, so that 0 votes for neither class; otherwise 1 for the class with the highest score, and
    nothing where two share it. What differs by no more than ``NO_VOTE`` is the same.
    """
    if F.shape[2] == 1:
        return np.where(np.abs(F) > NO_VOTE, np.sign(F), 0.0)
    top = F.max(axis=2, keepdims=True) - F <= NO_VOTE
    return np.where(top.sum(axis=2, keepdims=True) == 1, top, 0.0)


def losses(F: np.ndarray, y: float, hedge: Hedge, state: State) -> np.ndarray:
    """Losses in [0, 1] of learners with scores (m, C) for one row, (m,).

    Labels: 1 unless the true class is ahead of all others. BlockTargets: the squared error in units of the range of the
    targets, which ``y`` has entered already.
    """
    if hedge.regression:
        low, high = state["range"]
        return ((F[:, 0] - y) / (high - low)) ** 2 if high > low else np.zeros(len(F))
    if F.shape[1] == 1:
        return (y * F[:, 0] <= NO_VOTE).astype(float)
    others = np.delete(F, int(y), axis=1).max(axis=1)
    return (F[:, int(y)] - others <= NO_VOTE).astype(float)


def hedge_pass(
    F: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    state: State,
    hedge: Hedge,
    drawn: np.ndarray | None = None,
) -> np.ndarray:
    r"""Weights of m learners over one block, rows in order; returns the ensemble's scores before each update, (n, C).

    ``theta_i <- theta_i exp(-rate w_t loss_i)``, then ``theta_i <- (1 - share) theta_i + share/m``, in logarithms.
    With ``drawn``, the first step is for the learners drawn for the row (algorithm 18 of the thesis).

    Parameters
    ----------
    F : (m, n, C)
        Scores of the learners, each held before its own update of the row.
    y : (n,) float64
        ±1, class codes or targets.
    weight : (n,) or None
        Factors of the losses; a row of weight 0 is scored and skipped.
    state : dict
        ``log_theta`` (m,), ``t``, ``history``, ``history_stride``, ``range`` (2,) in regression. Updated in place.
    drawn : (n, m) bool or None
        Learners for which each row counts; None means all.
    """
    log_theta = state["log_theta"]
    scores = np.empty(F.shape[1:])
    for i in range(F.shape[1]):
        row = F[:, i : i + 1]
        scores[i] = combine(row, theta(log_theta), hedge, state)[0]
        importance = 1.0 if weight is None else float(weight[i])
        if importance == 0.0:
            continue
        if hedge.regression:
            row = within(row, state)
            low, high = state["range"] if state["t"] else (y[i], y[i])
            state["range"][:] = min(low, y[i]), max(high, y[i])
        state["t"] += 1
        if hedge.rate:
            lost = losses(row[:, 0], y[i], hedge, state)
            log_theta -= hedge.rate * importance * (lost if drawn is None else np.where(drawn[i], lost, 0.0))
            log_theta -= log_theta.max()
            if hedge.share:
                log_theta[:] = np.log((1 - hedge.share) * theta(log_theta) + hedge.share / len(log_theta))
        remember(state)
    return scores


def remember(state: State) -> None:
    """Enter the weights in the history every ``history_stride`` rows."""
    t, history = state["t"], state["history"]
    if t % state["history_stride"]:
        return
    if t // state["history_stride"] > len(history):
        history[: len(history) // 2] = history[1::2].copy()
        state["history_stride"] *= 2
    if t % state["history_stride"] == 0:
        history[t // state["history_stride"] - 1] = theta(state["log_theta"])
