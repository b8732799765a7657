"""The default learner: members that learn the same scaled rows, a combination of their forecasts, and what follows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import engine as engines
from ...core import corrupt, threads
from ...core.targets import Move
from ...passes.stack.states import move_numbers
from ...rows import Rows, dense, padded
from ...solvers.clock import Clock
from ...state import undo
from ...state.change import Change
from ...state.nested import State
from ...state.schema import POSITIVE, Array, Count, Inside, Schema
from .._contract.composite import Pair
from .._contract.context import Context
from .._contract.state import is_trained, scaled_rows
from . import batch, intervals, level, reasons, renewal, watch
from . import rows as few_rows
from .combination import COMBINED
from .intervals import Tracked
from .renewal import Renewal
from .team import ROWS_AT_ONCE, Team

KEPT_ROWS = ("reasons", "X"), ("watch", "ring_rows")  # entries of rows as members see them, and
KEPT_TARGETS = ("reasons", "y"), ("watch", "ring_targets")  # of their targets


class Stack(Team):
    """Members learn, the combination learns, the followers are told."""

    recent: bool
    standardize: Any
    squashes, on_device = True, False
    _by_row = frozenset({"ring_rows", "ring_targets", "ring_weights"})  # those that are watched

    def __init__(self, parameters: dict[str, Any], context: Context):
        super().__init__(parameters, context)
        self.relative_weights = bool(self.standardize)  # rows that another whole has scaled have their final weights
        self.tracked = Tracked(self.regression, engines.of_processor(parameters["engine"]), self.ops)

    @property
    def renewal(self) -> Renewal:
        """Members that begin anew."""
        found: Renewal = self.derived.cached(
            "renewal", lambda: Renewal(self.parameters, self.context, self.tracked.errors)
        )
        return found

    def owners(self, state: State) -> list[Pair]:
        return [*super().owners(state), *self.renewal.owners(state)]

    # ---------------------------------------------------------------- a state
    def one_width(self) -> bool:
        """Not of rows that another whole has scaled: their units are the same."""
        return bool(self.standardize) and super().one_width()

    def reset(self, state: State) -> None:
        self.derived.drop("learners")
        self.outputs_changed(state)
        state.pop("batch", None)
        for learner, own in self.pairs(state):
            learner.restart(own)
        N, k = len(self.examples()), self.combination.outputs(state)
        state |= self.combination.start(N, self.columns(state), k)
        state |= {"restarts": np.zeros(k * N, np.int64), "recent_on": 0}
        if self.regression:
            state |= {"target_mean": np.zeros(k), "target_unit": np.ones(k)}
        state["intervals"] = self.tracked.start(state["n_features"], k)
        state["reasons"] = reasons.start(state, k if self.regression else 0)
        state["watch"] = watch.start(state, k)

    def schema(self, state: State, trained: bool) -> Schema:
        schema: Schema = super().schema(state, trained) | {"first_width": Count(1, state["n_features"])}
        schema |= {"first_texts": Count(1, 1)} if self.context.texts else {}
        if not trained:
            return schema
        N, k = len(self.examples()), self.combination.outputs(state)
        schema |= {"restarts": Array((N * k,), "int64", low=0), "recent_on": Count(0, 1)}
        if self.regression:
            schema |= {"target_mean": Array((k,)), "target_unit": Array((k,), low=POSITIVE)}
        schema |= self.combination.schema(state, N, self.columns(state))
        schema |= {
            "intervals": Inside(self.tracked.schema(state["n_features"], k)),
            "reasons": Inside(reasons.schema(state, k if self.regression else 0)),
            "watch": Inside(watch.schema(state, k)),
        }
        return schema | batch.schema(state) | renewal.schema(state)

    def verify(self, state: State) -> None:
        super().verify(state)
        if "batch" in state:
            self.batch.verify(state)
        self.renewal.verify(state)

    # ---------------------------------------------------------------- changes
    def widen(self, state: State, d: int) -> None:
        super().widen(state, d)
        if is_trained(state):
            self.tracked.widen(state["intervals"], d)
            for part, name in KEPT_ROWS:
                state[part][name] = padded(state[part][name], d)
            self.renewal.drop(state)

    def outputs_changed(self, state: State) -> None:
        self.derived.drop("rows", "batch")
        self.renewal.drop(state)
        if "watch" in state:
            state["watch"]["first"] = state["t"]  # the targets kept are of other labels

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        batch.class_added(state, place)
        super().class_added(state, place, trained, change)

    def moved(self, state: State, o: int, move: Move) -> bool:
        usual = state["intervals"][f"o{o}"]["size"][1]
        if move.factor < 1 and not usual > intervals.OFF * move.deviation:
            return False
        state["target_mean"][o] = move(state["target_mean"][o])
        state["target_unit"][o] *= move.factor
        move_numbers(state[f"o{o}"], move)
        intervals.moved(state["intervals"][f"o{o}"], move)
        for part, name in KEPT_TARGETS:
            undo.rows(state[part][name], slice(None))
            state[part][name][:, o] = move(state[part][name][:, o])
        self.renewal.drop(state)  # what was learned holds at the new level, too
        batch.moved(state, o, move)
        self.derived.drop("batch", "rows")
        return True

    # ---------------------------------------------------------------- rows
    def seen(self, state: State, X: Rows) -> np.ndarray:
        """Rows in the units of the user as the members see them."""
        return np.ascontiguousarray(self.ops.squashed(dense(scaled_rows(self.ops, X, state))))

    def _drawn_in(self, X: Rows) -> np.ndarray:
        """Scaled rows as the members see them; rows that another whole has scaled are such rows already."""
        return self.ops.squashed(dense(X)) if self.standardize else dense(X)

    # ---------------------------------------------------------------- learning
    def learn(
        self, state: State, X: Rows, y: np.ndarray, weight: Any, shuffled: bool = False, wanted: Any = None
    ) -> np.ndarray:
        """The same; ``shuffled`` rows say nothing about the next one, and ``wanted`` collects what was known before."""
        recent = bool(self.recent) and not shuffled
        state["recent_on"] = int(recent)
        X = self._drawn_in(X)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        left: Callable[[], None] | None = None  # what is still to be done with the block before
        # on several threads, members learn the next rows meanwhile
        step = COMBINED if X.shape[0] > COMBINED and self.ops.THREADED and threads.second() else ROWS_AT_ONCE
        for rows in threads.cuts(X.shape[0], step):
            own = None if weight is None else weight[rows]
            if left is not None and "renewal" in state:  # these may not be the members for long
                left()
                left = None
            F = self.forecasts(state, X[rows], y[rows], own, left)
            left = functools.partial(self._learn_block, state, X[rows], y[rows], own, (recent, wanted), F, scores[rows])
        if left is not None:
            left()
        return scores

    def _learn_block(
        self, state: State, X: np.ndarray, y: np.ndarray, weight: Any, how: Any, F: np.ndarray, scores: np.ndarray
    ) -> None:
        """Scores (n, outputs) of a block from F (k, N, n, C) of the members, which have learned it; followers learn."""
        (recent, wanted), t = how, state["t"]
        self.combination.learn(state, F, y, weight, recent, scores)
        errors, renewed = self.renewal.follow(state, X, y, weight, scores, t)
        if renewed:
            self.derived.drop("rows", "batch", "learners")
        reasons.follow(state["reasons"], X, y, t, weight)
        self.tracked.follow(state["intervals"], X, scores, errors, y, weight, wanted)

    def learn_batch(self, state: State, held: Any, S: np.ndarray, others: Any, clock: Clock) -> None:
        """Learn all rows at once; S (n, outputs) are scores of those held out, of members that learned the others."""
        members = functools.partial(self.members_score, state, recent=False)
        X, G, Y, weight = self.batch.learn(state, self.combination.outputs(state), held, (S, members), others, clock)
        self.derived.drop("rows")
        # Intervals, too, are based on the rows that were forecast by the others: with g alone, since there are few rows
        # that the members have not learned.
        state["intervals"] = self.tracked.start(state["n_features"], self.combination.outputs(state))
        self.tracked.start_from(state["intervals"], X, G, Y, weight)

    # ---------------------------------------------------------------- few rows
    def learn_few(self, state: State, X: Any, y: np.ndarray) -> np.ndarray | None:
        """Scores (n, outputs) of rows before each is learned; None if they need the long path."""
        n = X.shape[0]
        if n > few_rows.AT_ONCE or n >= watch.ROWS_A_LOOK - state["t"] % watch.ROWS_A_LOOK:  # which can undo a look
            return None
        if "renewal" in state:
            return None
        if "x_usual" in state and n >= corrupt.rows_until_look(int(state["x_count"])):  # where usual cells are learned
            return None
        bound = self.bound(state)
        return None if bound is None else bound.learn(X, y, bool(self.recent))

    def score_few(self, state: State, X: Any, following: bool) -> np.ndarray | None:
        """Scores (n, outputs) of few rows, or None; with ``following``, each is the next of the stream."""
        if batch.alone(state) or "renewal" in state or X.shape[0] > few_rows.AT_ONCE:
            return None
        streams = self.follows(state)
        bound = self.bound(state)
        scores = None if bound is None else bound.score(X, streams and following)
        if scores is not None and streams and not following:
            scores += self.level(state)
        return scores

    def bound(self, state: State) -> Any:
        """The compiled whole, ready for a call; None if a member has no compiled form, or none yet."""
        if "rows" in self.derived:
            held = self.derived["rows"]
            if held is None or held.ready():
                return held
        if not self.standardize or self.combination.outputs(state) != 1:
            return None
        levels, function = self.tracked.levels, self.batch.row_learner
        held = few_rows.bind(self.pairs(state), state, function, self.ops, levels, self.regression)
        if held is NotImplemented:
            return None
        self.derived["rows"] = held
        return held if held is None or held.ready() else None

    # ---------------------------------------------------------------- answers
    def score(self, state: State, X: Rows, following: bool = False) -> np.ndarray:
        return self.combined(state, self._drawn_in(X), following)

    def combined(self, state: State, X: np.ndarray, following: bool = False) -> np.ndarray:
        """Scores of rows as the members see them; with ``following``, each is the next of the stream."""
        if batch.alone(state):
            return self.batch.scores(state, X)
        streams = self.follows(state)
        scores = self.members_score(state, X, streams and following)
        if streams and not following:
            scores += self.level(state)
        return self.renewal.blended(state, X, scores, streams and following)

    def follows(self, state: State) -> bool:
        """Whether the latest targets help to forecast the next one: they do not after ``fit``."""
        return bool(self.recent) and bool(state["recent_on"])

    def level(self, state: State) -> float:
        """What is added to the scores of rows; it follows from the state alone, and is kept until a row is learned."""

        def find() -> float:
            weighed = self.parameters.get("class_weight") is not None
            known = None if self.regression or weighed else level.known(state)
            return level.towards(self.members_score(state, known[0], False)[:, 0], *known[1:]) if known else 0.0

        return float(self.until_next_row("level", state, None, find))

    def until_next_row(self, name: str, state: State, key: Any, find: Callable[[], Any]) -> Any:
        """What follows from the state and a key and takes long to find; it is kept until a row is learned."""
        cache, key = self.derived, (state["t"], key)
        found = cache.get(name)
        if found is None or found[0] != key:
            found = cache[name] = (key, find())
        return found[1]
