"""The members of the default learner and their combination: each learns the same rows, and forecasts them before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import engine as engines
from ...checks import one_of
from ...core import threads
from ...core.overflow import LEARNING
from ...registry.caller import warn
from ...rows import dense
from ...state.change import Change
from ...state.nested import State
from .._contract import composite
from .._contract.composite import Composite
from .._contract.context import Context
from .._contract.deviations import deviation, means
from .._contract.mixed import check_columns
from .._contract.state import is_trained
from .._metric_learner import SIZES
from . import rows
from .batch import Batch
from .combination import Combination, of_output
from .members import chosen

ROWS_AT_ONCE = 1024  # rows whose forecasts of all members are held at once
WIDE = 2000  # columns up to which sparse rows are made dense
BROAD = 1000  # columns from which a warning says that other learners are made for them
SIDE_BY_SIDE = 256  # rows from which members run on separate threads


class Team(Composite):
    """Members, a set of them for every target of a regression, and a function of a batch beside them."""

    members: Any
    standardize: Any

    def __init__(self, parameters: dict[str, Any], context: Context):
        super().__init__(parameters, context)
        self.combination = Combination(self.regression, self.ops)

    @property
    def batch(self) -> Batch:
        """What learns a batch, and forecasts with what it has learned."""
        found: Batch = self.derived.cached("batch", lambda: Batch(self.regression, self.parameters, self.ops))
        return found

    def _given(self) -> list[tuple[str, Any]]:
        """Names and prototypes of the members."""
        if isinstance(self.members, str):  # as many columns as the first rows had, also when rows get wider
            return chosen(self.regression, self.parameters["size"], int(self.context.width), self.context.texts)
        return [(type(member).__name__, member) for member in self.members]

    def names(self, state: State) -> list[str]:
        """Of what is combined: the members, and a function of a batch."""
        return [name for name, _ in self._given()] + ["batch"] * ("batch" in state)

    def prototypes(self) -> list[Any]:
        return composite.copies(
            [member for _, member in self._given()], engines.of_processor(self.parameters["engine"])
        )

    def check_parameters(self) -> None:
        one_of("size", self.parameters["size"], SIZES)
        check_columns(self.parameters["columns"])
        if isinstance(self.members, str) and self.members == "auto":
            return
        if not isinstance(self.members, (list, tuple)) or not self.members:
            raise ValueError(f"members must be 'auto' or a list of estimators, got {self.members!r}")
        for member in self.members:
            if isinstance(composite.check(member, self.context), Composite):
                raise ValueError(f"a {type(member).__name__} combines learners itself and cannot be a member")

    def dense(self, X: Any) -> np.ndarray:
        if X.shape[1] > WIDE:
            raise ValueError(
                f"{self.context.name} makes sparse rows dense, and {X.shape[1]} columns are more than {WIDE}: "
                f"hash them first (scikit-learn's FeatureHasher), or use FeatureClassifier, which takes sparse rows"
            )
        return np.ascontiguousarray(dense(X))

    def tags(self, tags: Any) -> Any:
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- states
    def columns(self, state: State) -> int:
        """Scores of a member: one, or one for every class."""
        return 1 if self.regression else int(state["n_outputs"])

    def count(self, state: State) -> int:
        return len(self.examples()) * self.combination.outputs(state)

    def start(self, state: State, before: State | None) -> None:
        if state["n_features"] > BROAD and self.standardize:  # said once, by the whole
            name = self.context.name
            warn(
                f"{name} is made for tables of up to {BROAD:,} columns, and slow with {state['n_features']:,}: "
                f"select or combine columns first (scikit-learn's SelectKBest or PCA), or use "
                f"{name.replace('Kernel', 'Feature')}"
            )
        state["first_width"] = state["n_features"]
        if self.context.texts:
            state["first_texts"] = 1
        super().start(state, before)

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        """Members learn numbers relative to the first ones' mean, in units of a power of two: products are exact."""
        if self.regression:
            state["target_mean"][:] = means(y, weight)
            powers = np.frexp([deviation(column[weight > 0]) for column in y.reshape(len(y), -1).T])[1]
            state["target_unit"][:] = np.ldexp(1.0, np.clip(powers, -1000, 1000))

    def widen(self, state: State, d: int) -> None:
        """Members that cannot take more columns start over, which is counted."""
        trained = is_trained(state)
        restarts = state["restarts"].copy() if trained else np.zeros(len(state["members"]), int)
        for i, (learner, part) in enumerate(self.pairs(state)):
            try:
                learner.widen(part, d)
            except ValueError:
                learner.forget()
                part["n_features"] = d
                if trained:
                    learner.restart(part)
                    restarts[i] += 1
            part["n_features"] = d
        if trained:
            state["restarts"] = restarts

    def restart(self, state: State) -> bool:
        for i, (learner, own) in enumerate(self.pairs(state)):
            learner.restart(own)
            learner.forget()
            state["restarts"][i] += 1
        return True

    def mix_outputs(self, state: State, change: Change) -> None:
        self.combination.mix_outputs(state, change)

    def fade(self, state: State, keep: float) -> bool:
        for learner, own in self.pairs(state):
            learner.fade(own, keep)
            learner.forget()
        for part in self.combination.parts(state):
            for name in ("stack_A", "stack_b"):
                if name in part:
                    part[name] *= keep
        return True

    # ---------------------------------------------------------------- forecasts
    def forecasts(
        self, state: State, X: np.ndarray, y: np.ndarray | None, weight: Any, left: Callable[[], None] | None = None
    ) -> np.ndarray:
        """Scores of all members, (k, N, n, C), for k outputs; with y they learn the rows, and scores are those before.

        A function of a batch is the last of the N; it never learns.

        ``left`` is other work, independent of the members, which is done at the same time if there are threads.
        """
        members, n, k = self.member_learners(state), X.shape[0], self.combination.outputs(state)
        N, last = len(members) // k, "batch" in state
        F = np.empty((k, N + last, n, self.columns(state)))
        if last:
            self.batch.learner(state)  # attached before there are threads
        # seconds of each the last time, to begin with the longest
        took: dict[int, float] = self.derived.cached("took", dict)

        def work(i: int) -> None:
            start = time.perf_counter()
            if i < 0:
                assert left is not None
                left()
            elif i == len(members):
                F[:, -1] = self.batch.forecasts(state, X).reshape(n, k, -1).swapaxes(0, 1)
            elif y is None:
                F[i // N, i % N] = self.member_scores(state, i, X)
            else:
                F[i // N, i % N] = self.member_learns(state, i, X, of_output(y, i // N), weight)
            took[i] = time.perf_counter() - start

        items: Sequence[int] = range(0 if left is None else -1, len(members) + last)
        threaded = self.ops.THREADED and n >= SIDE_BY_SIDE
        if threaded:  # at first: the last ones take longest
            items = sorted(items, key=lambda i: -took.get(i, float(i)))
        threads.each(work, items, threaded)
        return F

    def unit(self, state: State, i: int) -> tuple[float, float]:
        """Mean of the first targets and the power of two above their deviation: the units in which member i learns."""
        o = i // len(self.examples())
        return float(state["target_mean"][o]), float(state["target_unit"][o])

    def _scores(self, state: State, i: int, part: np.ndarray) -> np.ndarray:
        """Scores (n, C) from those of member i; 0 where they are not finite, as before its first row."""
        scores = composite.scores(part, self.columns(state))
        if not np.isfinite(scores).all():
            scores = np.where(np.isfinite(scores), scores, 0.0)
        if not self.regression:
            return scores
        mean, unit = self.unit(state, i)
        return scores * unit + mean

    def member_scores(self, state: State, i: int, X: np.ndarray) -> np.ndarray:
        """Scores (n, C) of a member; where it has a compiled form, their bits do not depend on the other rows."""
        learner, own = self.member_learners(state)[i], state["members"][i]
        scores = rows.member_scores(learner, own, X)
        return self._scores(state, i, learner.score(own, X) if scores is None else scores)

    def member_learns(self, state: State, i: int, X: np.ndarray, y: np.ndarray, weight: Any) -> np.ndarray:
        """Scores of a member before each row; a member that overflows starts over, which is counted."""
        learner, own = self.member_learners(state)[i], state["members"][i]
        if self.regression:
            mean, unit = self.unit(state, i)
            y = (y - mean) / unit
        try:
            part = learner.learn(own, X, composite.codes(learner, state, y), weight)
        except ValueError as error:
            if str(error) != LEARNING and not isinstance(error, np.linalg.LinAlgError):
                raise
            state["restarts"][i] += 1
            learner.forget()
            learner.restart(own)
            part = np.zeros((len(y), own["n_outputs"]))
        return self._scores(state, i, part)

    def members_score(self, state: State, X: np.ndarray, recent: bool) -> np.ndarray:
        """Scores of the combination for rows as members see them; with ``recent``, each is the next of the stream."""
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for part in threads.cuts(X.shape[0], ROWS_AT_ONCE):
            F = self.forecasts(state, np.ascontiguousarray(X[part]), None, None)
            scores[part] = self.combination.score(state, F, recent)
        return scores

    def weights(self, state: State) -> np.ndarray:
        return self.combination.weights(state)
