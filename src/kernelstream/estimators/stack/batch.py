r"""Kernel ridge on all rows in a learned metric, beside the members of the stream: only ``fit`` can have it.

.. math:: f_t(x) = (1 - \lambda_t) s(x) + \lambda_t b\, g(x), \quad \lambda_t = p\, n / t

s is the combination of the members, g the function of all n rows (:mod:`..metric`). Its share p is 1, unless the
members lower the loss on held-out rows by more than chance; no member has learned these rows, and g forecasts each of
them by all others. Later rows are learned by the members alone, and after t > n rows in all the share of g has fallen,
because what it knows grows old.

For numbers, b is 1. For labels, least squares gives q, which is about the probability of a label but may lie beyond 0
and 1; g is the logarithm of :math:`(q + \sqrt{q^2 + 4 e^2})/2` with e = 0.03, or the difference of two such logarithms,
and b makes the loss small on rows that are forecast by the others. Like s, f is normalised for several classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ...passes.metric.python import logarithms
from ...random import Stream, generator
from ...solvers.clock import Clock
from ...state.nested import State
from ...state.schema import POSITIVE, Count, Inside, Number, Schema, anything
from ..metric import MetricClassifier, MetricRegressor
from . import intervals

LEAST_ROWS = 200  # rows: with fewer there is no metric to be learned
MOST_ROWS = 100_000  # rows that are learned at once
SHARES = (0.75, 0.5, 0.25)  # p, where members count
CHANCE = 1.25  # standard errors by which they must lower the loss

Part = tuple[np.ndarray, np.ndarray, Any]  # rows as members see them, encoded targets, weights or None


def helps(est: Any, y: Any) -> bool:
    """Whether ``fit`` of rows with targets y learns them all at once."""
    rows = np.asarray(y).shape  # y has not been checked yet
    return isinstance(est.members, str) and bool(rows) and rows[0] >= LEAST_ROWS


def chosen(seed: int, n: int) -> np.ndarray:
    """Sorted numbers of the rows, of n, that are learned at once: all, or some of very many."""
    return np.arange(n) if n <= MOST_ROWS else np.sort(generator(seed, Stream.STACK_ROWS).permutation(n)[:MOST_ROWS])


def learn(est: Any, held: Part, others: Part, clock: Clock) -> None:
    """Learn all rows at once, some of which are held out from members."""
    state, learner = est._state, _make(est)
    learner.__dict__.update(_clock=clock, _apart=len(held[1]))
    X, y, weight = joined(held, others)
    learner.fit(X, y, sample_weight=weight)
    F, Y, own, rows_left, k = learner.__dict__.pop("_left")
    G = _spread(est, learner, F, state["n_outputs"])
    if not est._learner.regression:
        place = (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)
        Y = np.asarray(learner.classes_)[np.minimum(place, len(learner.classes_) - 1), None]
    share = 1.0
    if k:
        S = est._learner.members_score(state, rows_left[:k], False)
        share = _chosen_share(est._learner.regression, G[:k], S, Y[:k], None if own is None else own[:k])
    state["batch"] = {"share": share, "rows": int(state["t"]), "metric": learner.state_}
    est._cache.pop("batch", None)
    # Intervals, too, are based on the rows that were forecast by the others: with g alone, since there are few rows
    # that the members have not learned.
    intervals.fit(est._learner, state, rows_left, G, Y, own)


def joined(first: Part, second: Part) -> Part:
    """Rows after others."""
    X, y = (np.concatenate(both) for both in zip(first[:2], second[:2], strict=True))
    return X, y, None if first[2] is None else np.concatenate([first[2], second[2]])


def _chosen_share(regression: bool, G: np.ndarray, S: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """The p of least loss on rows with targets Y (n, outputs); less than 1 only where that is more than chance."""
    best, share = 0.0, 1.0
    for p in SHARES:
        gain = losses(regression, G, Y) - losses(regression, p * G + (1 - p) * S, Y)
        mean = float(np.average(gain, weights=weight))
        if mean > best and mean > CHANCE * np.std(gain) / np.sqrt(len(gain)):
            best, share = mean, p
    return share


def alone(state: State) -> bool:
    """Whether forecasts do not depend on the members."""
    return "batch" in state and state["batch"]["share"] == 1 and state["t"] <= state["batch"]["rows"]


def _share(state: State, t: Any) -> Any:
    """The share lambda after t rows."""
    part = state["batch"]
    return part["share"] * part["rows"] / np.maximum(t, part["rows"])


def blended(est: Any, state: State, X: np.ndarray, S: Any, t: int, learned: Any = False) -> np.ndarray:
    """Scores (m, C) of rows as members see them, from those S (m, C) of the members, or 0 if these do not count.

    ``t`` rows were learned before the first of them. ``learned`` is False if these rows are only to be scored, or else
    their weights, or None; a row of weight 0 does not count.
    """
    age: Any = t
    if learned is not False:
        counted = np.ones(len(X), int) if learned is None else (np.asarray(learned) > 0).astype(int)
        age = (t + np.cumsum(counted) - counted)[:, None]
    learner = est._cached("batch", lambda: _attached(est, state))
    scores = learner._learner.score(learner._state, X[:, : learner.n_features_in_])
    G = _spread(est, learner, scores, state["n_outputs"])
    share = _share(state, age)
    F = share * G + (1.0 - share) * S
    return F if est._learner.regression or F.shape[1] == 1 else F - special.logsumexp(F, axis=1, keepdims=True)


def schema(state: State) -> Schema:
    """The entries, of which :func:`verify` looks at the learner's own."""
    if "batch" not in state:
        return {}
    t, found = max(state["t"], 1), state["batch"] if isinstance(state["batch"], dict) else {}
    metric = found.get("metric")
    own: Schema = {
        "share": Number(POSITIVE, 1.0),
        "rows": Count(1, t),
        "metric": Inside(anything(metric if isinstance(metric, dict) else ())),
    }
    return {"batch": Inside(own)}


def verify(est: Any, state: State) -> None:
    """ValueError for a learner that does not fit the state, whose other entries keep to :func:`schema`."""
    if "batch" not in state:
        return
    learner, C = _attached(est, state), state["n_outputs"]
    learner._check_state(True)
    if learner.n_features_in_ > state["n_features"]:
        raise ValueError(f"the learned metric has {learner.n_features_in_} columns, more than the model")
    if est._learner.regression:
        ok = learner._state["n_outputs"] == C
    else:
        ok = set(np.asarray(learner.classes_).tolist()) <= set((-1, 1) if C == 1 else range(C))
    if not ok:
        raise ValueError("the learned metric knows other targets than the model")


def _make(est: Any) -> Any:
    made = MetricRegressor if est._learner.regression else MetricClassifier
    return made(size=est.size, engine=est.engine, random_state=int(est._state["seed"]))


def _attached(est: Any, state: State) -> Any:
    """The learner of a state."""
    learner = _make(est)
    learner._turns = est._turns
    learner.state_ = state["batch"]["metric"]
    return learner


def _spread(est: Any, learner: Any, F: np.ndarray, C: int) -> np.ndarray:
    """b g (n, C) of the whole's outputs, from scores of the learner: forecasts, log-odds, one for each class."""
    if est._learner.regression:
        return F
    steepness = learner._state["steepness"]
    if C == 1:
        return steepness * logarithms(F)
    full = np.full((len(F), C), -1.0)  # a class that it has not seen
    full[:, np.asarray(learner.classes_, int)] = np.concatenate([-F, F], axis=1) if F.shape[1] == 1 else F
    return steepness * logarithms(full)


def losses(regression: bool, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Losses (n,) of scores F (n, C) for targets Y (n, outputs): squared errors, or -log of the label's probability."""
    if regression:
        return np.square(F - Y).sum(axis=1)
    y = Y[:, 0]
    if F.shape[1] == 1:
        return np.logaddexp(0.0, -y * F[:, 0])
    return special.logsumexp(F, axis=1) - F[np.arange(len(y)), y.astype(int)]


def mean_loss(regression: bool, F: np.ndarray, y: np.ndarray, weight: Any) -> float:
    """The mean of :func:`losses` for one target, y (n,)."""
    return float(np.average(losses(regression, F[:, :1] if regression else F, y[:, None]), weights=weight))
