r"""Members that begin anew where the world has changed, beside those that learned the past; the better ones stay.

Where the watch finds that the errors have risen since row s, or that numbers are forecast worse than one number would
do, new members and a new combination learn the rows kept from s on, and all later ones; new ones that are spoilt as
well begin again. As long as both go on, the forecast is a mixture of theirs: of probabilities of labels, with shares
that follow their losses l, or of numbers, by their recent squared errors e,

.. math:: w_i \propto \left(0.98\, w_i + 0.01\right) e^{-l_i}, \qquad
          w_i \propto \left(\sum_t 0.998^{-t} e_{it}^2\right)^{-4}

The new ones take the place of the old where, after ``LEAST`` rows, their recent loss is less than ``CLEARLY`` of that
of the old, or after ``MOST`` rows less than ``LESS`` of it; else they are dropped then. So a false alarm costs time and
hardly any accuracy, and after a change the model is soon what it would be if it had begun there. The idea is that of
background learners [1]_, with one for the whole.

References
----------
.. [1] Gomes et al.: Adaptive random forests for evolving data stream classification, Machine Learning 106 (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import engine as engines
from ...passes.stack.states import shares
from ...random import SeedStream, generator
from ...state.nested import State
from ...state.schema import Array, Count, Inside, Schema, Whole
from .._contract.composite import inside
from .._contract.context import Context
from . import watch
from .batch import losses

SHARE = 0.02  # of the forecast that is spread evenly
FEWEST_MISTAKES = 6.0  # in the last look: with fewer, a few rare labels in a row are no change
LEAST, MOST = 512, 2048  # rows after which the new members may take over, and have to or are dropped
CLEARLY, LESS = 0.5, 0.8  # of the loss of the old ones, from LEAST rows on and after MOST
FADE = 0.998  # of the losses
POWER = 4  # of their sums, by which forecasts of numbers are mixed: a worse one must not cost much
ROWS_BEFORE = 10  # usual errors that both sets of members begin with
LEAST_PROBABILITY, TINY = 1e-6, 1e-300


def schema(state: State) -> Schema:
    """The entry, which exists as long as there are two sets of members."""
    if "renewal" not in state:
        return {}
    own: Schema = {
        "logs": Array((2,)),
        "sums": Array((2,), low=0.0),
        "rows": Count(0, MOST),
        "begun": Count(0, state["t"]),
        "fresh": Whole(),
    }
    return {"renewal": Inside(own)}


class Renewal:
    """The model of the new members, whose state is in ``state["renewal"]``, and what becomes of it.

    Parameters
    ----------
    parameters, context
        Those of the whole, which the model resembles.
    errors : callable (scores (n, outputs), y) -> (n,)
        The errors that are watched.
    """

    def __init__(self, parameters: dict[str, Any], context: Context, errors: Callable[..., np.ndarray]):
        self.parameters, self.context, self.errors = parameters, context, errors
        self.regression = context.regression
        self.share = 0.0 if self.regression else SHARE
        self._made: Any = None  # the model, and the state that it has
        self._own: Any = None

    def fresh(self, state: State) -> Any:
        """The model of the new members, attached to its state.

        It is like the whole, of rows as its members see them: scaled by the whole, and of no change of its own. Its
        turns are its own: it also learns on a thread beside the members.
        """
        if self._made is None:
            kind: Any = self.context.kind
            made = clone(kind(**{name: self.parameters[name] for name in kind._get_param_names()}))
            numbers = generator(state["seed"], SeedStream.MEMBER_SEEDS, state["renewal"]["begun"])
            made.engine = engines.of_processor(self.parameters["engine"])
            made.random_state = int(numbers.integers(1 << 62))
            made.columns, made.standardize, made.texts = "auto", False, self.context.texts
            self._made = made
        own = state["renewal"]["fresh"]
        if own and self._own is not own:
            self._made.state_ = self._own = own
        return self._made

    def owners(self, state: State) -> list[tuple[Any, State]]:
        """Learners of new members, and the states they learn into."""
        if not state.get("renewal", {}).get("fresh"):
            return []
        fresh, own = inside(self.fresh(state))
        return [owner for learner, held in fresh.pairs(own) for owner in learner.owners(held)]

    def verify(self, state: State) -> None:
        """ValueError for new members that are no whole model, or do not fit the others."""
        if "renewal" not in state:
            return
        try:
            self.fresh(state).check_state()
        except (ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"the members that begin anew: {error}") from None
        own = state["renewal"]["fresh"]
        same = ("n_features", "n_outputs", "dtype", "first_width")
        if any(own.get(name) != state[name] for name in same) or "renewal" in own:
            raise ValueError("the members that begin anew do not fit the others")

    def drop(self, state: State) -> None:
        """End what was begun."""
        state.pop("renewal", None)
        self._made = self._own = None

    def begin(self, state: State, since: int, t: int) -> None:
        """Let new members learn the rows kept from a row on, of t in all."""
        self.drop(state)
        errors = state["watch"]["errors"]
        if not self.regression and (len(state["classes"]) < 2 or float(errors.sum()) < FEWEST_MISTAKES):
            return
        sums = np.zeros(2)
        if self.regression:
            sums += TINY + ROWS_BEFORE * np.median(errors) ** 2 / np.mean(state["target_unit"] ** 2)
        state["renewal"] = {"logs": np.zeros(2), "sums": sums, "rows": 0, "begun": t, "fresh": {}}
        self._learn(state, *watch.kept(state["watch"], since, t))

    def _learn(self, state: State, X: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
        """Forecasts (n, n_outputs) of the new members before each row, which they learn."""
        made, outputs = self.fresh(state), state["n_outputs"]
        given: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
        if not self.regression:
            classes = state["classes"]
            y = classes[(y > 0).astype(int) if outputs == 1 else y.astype(int)]
            given["classes"] = classes
        scores = made.learn(X, y, **given)
        state["renewal"]["fresh"] = self._own = inside(made)[1]
        return np.asarray(scores.reshape(len(X), outputs))

    def follow(
        self, state: State, X: np.ndarray, y: np.ndarray, weight: Any, scores: np.ndarray, t: int
    ) -> tuple[np.ndarray, bool]:
        """Watch the errors (n,) of forecasts (n, n_outputs) of rows X, y; where members begin anew they change these.

        ``scores`` are the forecasts of the members that learned the past, before each row; t rows were learned before.
        The rows have been learned by these members, and are learned by new ones. Returns the errors, and whether the
        new ones have taken the places of the others.
        """
        n, start, won = len(X), 0, False
        if not self.regression and scores.shape[1] > 1:  # a row of weight 0 may have an unknown label
            y = np.minimum(y, scores.shape[1] - 1.0)
        old: np.ndarray = scores
        new: np.ndarray | None = None
        if "renewal" in state:
            old, new = scores.copy(), self._learn(state, X, y, weight)
        errors = np.empty(n)
        while start < n:
            stop, counted = watch.next_look(t, start, n, weight)
            rows = slice(start, stop)
            own = None if weight is None else weight[rows]
            if new is not None:
                scores[rows] = self._mixed(state, old[rows], new[rows], y[rows], own)
            errors[rows] = self.errors(scores[rows], y[rows])
            about = state["seed"], self.regression
            since = watch.follow(state["watch"], about, X[rows], y[rows], errors[rows], t, own)
            t, start = t + counted, stop
            better = decided(state["renewal"]) if "renewal" in state and t % watch.ROWS_A_LOOK == 0 else None
            if better is not None:
                if better and new is not None:
                    take_over(state, self._own)
                    old, won = new, True  # of the rows left
                scores[start:] = old[start:]
                self.drop(state)
                new = None
            if since is not None and self._may_begin(state, t):
                old = old if "renewal" in state else scores.copy()
                self.begin(state, since, t)
                if "renewal" in state:
                    new = np.empty_like(scores)
                    if start < n:
                        left = None if weight is None else weight[start:]
                        new[start:] = self._learn(state, X[start:], y[start:], left)
        return errors, won

    def _may_begin(self, state: State, t: int) -> bool:
        """Whether there are no new members, or those that there are have been spoilt as well; t rows in all."""
        if "renewal" not in state or not self.parameters["standardize"]:
            return bool(self.parameters["standardize"])
        old_enough = state["renewal"]["rows"] >= watch.LAST
        return old_enough and self.regression and watch.lost(state["watch"], t)

    def _mixed(self, state: State, A: np.ndarray, B: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
        """Mixtures (n, C) of the forecasts of old and new members; what both have earned by the rows is entered."""
        part, F = state["renewal"], np.empty_like(A)
        both = np.stack([A, B])
        if self.regression:  # mean squared errors, in first targets' units, or -log P(label): (2, n)
            apart = (both - y.reshape(len(y), -1)) / state["target_unit"]
            lost = np.minimum(np.square(apart).mean(axis=2), 1e300)
        else:
            lost = np.minimum([losses(False, own, y[:, None]) for own in both], -np.log(LEAST_PROBABILITY))
        for i in range(len(y)):
            w = shares(part["logs"], self.share)  # of the old and the new members in the forecast now
            F[i] = mixed(self.regression, both[:, i], w)
            if weight is not None and not weight[i] > 0:
                continue
            part["sums"][:] = FADE * part["sums"] + lost[:, i]
            part["logs"][:] = -POWER * np.log(part["sums"]) if self.regression else np.log(w) - lost[:, i]
            part["rows"] += 1
        return F

    def blended(self, state: State, X: np.ndarray, scores: np.ndarray, following: bool) -> np.ndarray:
        """Scores (n, C) of rows as members see them, from those of the old members."""
        if "renewal" not in state:
            return scores
        made = self.fresh(state)
        plain, next_ = ("predict", "forecast") if self.regression else ("decision_function", "forecast_scores")
        new = getattr(made, next_ if following else plain)(X)
        return mixed(
            self.regression, np.stack([scores, new.reshape(scores.shape)]), shares(state["renewal"]["logs"], self.share)
        )


def mixed(regression: bool, F: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The mixture (…, C) of forecasts F (2, …, C) with shares w (2,): of numbers, or of probabilities of labels."""
    if regression:
        return w[0] * F[0] + w[1] * F[1]
    a, b = np.log(w)
    if F.shape[-1] == 1:
        yes, no = (np.logaddexp(a - np.logaddexp(0, -s * F[0]), b - np.logaddexp(0, -s * F[1])) for s in (1, -1))
        return yes - no
    logs = F - np.logaddexp.reduce(F, axis=-1, keepdims=True)
    return np.logaddexp(a + logs[0], b + logs[1])


def decided(part: State) -> bool | None:
    """Whether the new members have won; None as long as it is open."""
    if part["rows"] >= MOST:
        return bool(part["sums"][1] < LESS * part["sums"][0])
    return True if part["rows"] >= LEAST and part["sums"][1] < CLEARLY * part["sums"][0] else None


def take_over(state: State, own: State) -> None:
    """The new members and their combination take the place of the old ones."""
    state.pop("batch", None)
    state["members"] = own["members"]
    for name in own:
        if name in ("target_mean", "target_unit") or (name[0] == "o" and name[1:].isdecimal()):
            state[name] = own[name]
    state["history"] = np.ascontiguousarray(state["history"][:, : own["history"].shape[1]])
    state["restarts"] = state["restarts"] + own["restarts"] + 1
