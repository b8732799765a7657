r"""Kernel ridge on all rows in a learned metric: a member that only ``fit`` can have, and that never learns again.

What ``fit`` says is

.. math:: f(x) = (1 - p)\, s(x) + p\, b\, g(x)

with s the combination of the members that learn, g the function of all n rows (:mod:`..metric`); for labels, it is
probabilities that are mixed. Its share p is 1, unless the members lower the loss on the last rows by more than chance;
no member has learned these rows, and g forecasts each of them by all others. Members learn the rows in their order, and
those that follow a change, or a table that is sorted, are right for the last rows alone: they must also lower the loss
on rows of all times, though they have learned these, or else p is 1.

For the rows that come then, b g is one more input of the combination, and alone a fourth memory of it, with share p,
at most 0.9: both count by what they do from then on (:mod:`...passes.stack.python`).

For numbers, b is 1. For labels, least squares gives q, which is about the probability of a label but may lie beyond 0
and 1; g is the logarithm of :math:`(q + \sqrt{q^2 + 4 e^2})/2` with e = 0.03, or the difference of two such logarithms,
and b makes the loss small on rows that are forecast by the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ...core.targets import Move
from ...passes.metric.python import logarithms
from ...passes.stack.states import with_batch
from ...random import SeedStream, generator
from ...solvers.clock import Clock
from ...state.nested import State
from ...state.schema import POSITIVE, Count, Inside, Number, Schema, anything
from .._contract.composite import inside
from .._contract.context import learner_of
from .._contract.layers import Layers
from .._contract.learner import Learner
from ..metric import MetricClassifier, MetricRegressor, fit_in_time

LEAST_ROWS = 200  # rows: with fewer there is no metric to be learned
MOST_ROWS = 100_000  # rows that are learned at once
SHARES = (0.75, 0.5, 0.25)  # p, where members count
CHANCE = 1.25  # standard errors by which they must lower the loss
MOST_SHARE = 0.9  # p for the rows that come: whoever was right so far may be wrong now

Part = tuple[np.ndarray, np.ndarray, Any]  # rows as members see them, encoded targets, weights or None


def helps(regression: bool, y: np.ndarray) -> bool:
    """Whether ``fit`` of rows with targets y, (n,) or (n, k), learns them all at once."""
    return len(y) >= LEAST_ROWS and (regression or bool((y != y[0]).any()))


def chosen(seed: int, n: int) -> np.ndarray:
    """Sorted numbers of the rows, of n, that are learned at once: all, or some of very many."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(generator(seed, SeedStream.STACK_ROWS).permutation(n)[:MOST_ROWS])


def alone(state: State) -> bool:
    """Whether forecasts do not depend on the members."""
    return "batch" in state and state["batch"]["share"] == 1 and state["t"] <= state["batch"]["rows"]


def _chosen_share(regression: bool, G: np.ndarray, S: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """The p of least loss on rows with targets Y (n, outputs); less than 1 only where that is more than chance."""
    best, share = 1e-12, 1.0  # gains of less are those of rounding
    for p in SHARES:
        gain = _gain(regression, p, G, S, Y)
        mean = float(np.average(gain, weights=weight))
        if mean > best and mean > CHANCE * np.std(gain) / np.sqrt(len(gain)):
            best, share = mean, p
    return share


def _gain(regression: bool, p: float, G: np.ndarray, S: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """By how much (n,) the loss of scores G is larger than that of their mixture with S, which has the share 1 - p."""
    alone = losses(regression, G, Y)
    if regression:
        return alone - losses(regression, p * G + (1 - p) * S, Y)
    # minus the logarithm of a mean of probabilities
    return alone + np.logaddexp(np.log(p) - alone, np.log(1 - p) - losses(regression, S, Y))


class Batch:
    """What learns all rows at once, and its scores as those of the whole; what it has learned is ``state["batch"]``."""

    def __init__(self, regression: bool, parameters: dict[str, Any], ops: Any):
        self.regression, self.parameters, self.ops = regression, parameters, ops
        self._held: dict[str, Any] = {}

    def unfitted(self, state: State) -> Any:
        """An estimator of all rows."""
        made: Any = MetricRegressor if self.regression else MetricClassifier
        size, engine = self.parameters["size"], self.parameters["engine"]
        return made(size=size, engine=engine, random_state=int(state["seed"]))

    def learner(self, state: State) -> Learner:
        """The learner of ``state["batch"]["metric"]``."""
        metric = state["batch"]["metric"]
        if self._held.get("metric") is not metric:
            made = self.unfitted(state)
            made.state_ = metric
            self._held = {"metric": metric, "learner": inside(made)[0]}
        found: Learner = self._held["learner"]
        return found

    def learn(self, state: State, outputs: int, held: Part, others_say: Any, others: Part, clock: Clock) -> Any:
        """Learn all rows at once.

        ``others_say`` are the scores (n, outputs) of the rows held out, of members that had learned the others, and a
        function that tells what they say of any rows now. Returns the rows that were forecast by the others, these
        forecasts, their targets and weights.
        """
        made = self.unfitted(state)
        X, y, weight = (None if part is None else np.concatenate([part, others[i]]) for i, part in enumerate(held))
        F, Y, own, rows_left, first = fit_in_time(made, X, y, weight, len(held[1]), clock)
        k, metric = len(first), made.state_
        G = self._spread(metric, F, state["n_outputs"])
        if not self.regression:
            place = (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)
            Y = metric["classes"][np.minimum(place, len(metric["classes"]) - 1), None]
        S, members = others_say
        share = _chosen_share(self.regression, G[:k], S[first], Y[:k], None if own is None else own[:k])
        if share < 1 and len(G) > k:  # of rows of all times, which they have learned
            gain = _gain(self.regression, share, G[k:], members(rows_left[k:]), Y[k:])
            share = share if float(gain.mean()) > 0 else 1.0
        state["batch"] = {"share": share, "rows": int(state["t"]), "metric": metric}
        errors = np.average(mistakes(self.regression, G, Y), axis=0, weights=own)
        for o in range(outputs):
            part = with_batch(state[f"o{o}"], min(share, MOST_SHARE), float(errors[o]), int(state["t"]))
            state[f"o{o}"] = part
        state["history"] = np.pad(state["history"], ((0, 0), (0, 1)))
        state["recent_on"] = 0  # until a row is learned, none is the next one
        return rows_left, G, Y, own

    def scores(self, state: State, X: np.ndarray) -> np.ndarray:
        """b g (n, outputs) of rows X as members see them; logarithms of probabilities for several classes."""
        metric = state["batch"]["metric"]
        F = self.learner(state).score(metric, X[:, : metric["n_features"]])
        G = self._spread(metric, F, state["n_outputs"])
        return G if self.regression or G.shape[1] == 1 else G - special.logsumexp(G, axis=1, keepdims=True)

    def forecasts(self, state: State, X: np.ndarray) -> np.ndarray:
        """The same, with the bits that they have where they come through the members' units."""
        found = self.scores(state, X)
        if not self.regression:
            return found
        mean, unit = state["target_mean"], state["target_unit"]
        return (found - mean) / unit * unit + mean

    def row_learner(self, state: State) -> Any:
        """The function for rows that go through all members in one call of the compiled core, in the members' units."""
        mean, unit = 0.0, 1.0
        if self.regression:
            mean, unit = float(state["target_mean"][0]), float(state["target_unit"][0])

        def function(X: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray((self.scores(state, X) - mean) / unit)

        shape = state["n_features"], state["n_outputs"]
        return self.ops.row_learner("function", self.learner(state), state["batch"]["metric"], *shape, function)

    def verify(self, state: State) -> None:
        """ValueError for a learner that does not fit the state, whose other entries keep to :func:`schema`."""
        metric, C = state["batch"]["metric"], state["n_outputs"]
        Layers(learner_of(self.unfitted(state), self.ops)).check(metric, True)
        if metric["n_features"] > state["n_features"]:
            raise ValueError(f"the learned metric has {metric['n_features']} columns, more than the model")
        if self.regression:
            ok = metric["n_outputs"] == C
        else:
            ok = set(metric["classes"].tolist()) <= set((-1, 1) if C == 1 else range(C))
        if not ok:
            raise ValueError("the learned metric knows other targets than the model")

    def _spread(self, metric: State, F: np.ndarray, C: int) -> np.ndarray:
        """b g (n, C) of the whole's outputs, from scores of the function: forecasts, log-odds, one for each class."""
        if self.regression:
            return F
        steepness = metric["steepness"]
        if C == 1:
            return steepness * logarithms(F)
        full = np.full((len(F), C), -1.0)  # a class that it has not seen
        full[:, metric["classes"].astype(int)] = np.concatenate([-F, F], axis=1) if F.shape[1] == 1 else F
        return steepness * logarithms(full)


def class_added(state: State, place: int) -> None:
    """Enter a new class, which it does not know, among the codes of those that it knows."""
    if "batch" not in state:
        return
    metric = state["batch"]["metric"]
    codes = np.asarray(metric["classes"])
    if len(state["classes"]) == 3:  # two classes have been -1 and 1
        codes = (codes > 0).astype(codes.dtype)
    state["batch"] = state["batch"] | {"metric": metric | {"classes": codes + (codes >= place)}}


def moved(state: State, o: int, move: Move) -> None:
    """Carry the function over when the target of an output moves."""
    if "batch" not in state:
        return
    metric = state["batch"]["metric"]
    own = {name: metric[name].copy() for name in ("alpha", "offset", "amplitude")}
    own["alpha"][:, o] *= move.factor
    own["offset"][o] = move(own["offset"][o])
    own["amplitude"][o] *= move.factor**2
    state["batch"] = state["batch"] | {"metric": metric | own}


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


def mistakes(regression: bool, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Errors (n, outputs) of scores F (n, C) for targets Y (n, outputs): squared, or 1 where the label is another."""
    if regression:
        return np.square(F - Y)
    said = np.where(F >= 0, 1, -1) if F.shape[1] == 1 else F.argmax(axis=1)[:, None]
    return (said != Y).astype(float)


def losses(regression: bool, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Losses (n,) of scores F (n, C) for targets Y (n, outputs): squared errors, or -log of the label's probability."""
    if regression:
        return np.square(F - Y).sum(axis=1)
    y = Y[:, 0]
    if F.shape[1] == 1:
        return np.logaddexp(0.0, -y * F[:, 0])
    return special.logsumexp(F, axis=1) - F[np.arange(len(y)), y.astype(int)]
