"""The default learner: members that learn the same scaled rows, and the recursion that combines their forecasts."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import engine as engines
from ...checks import one_of
from ...core import threads
from ...core.overflow import LEARNING
from ...core.targets import Move
from ...passes.ensemble.python import HISTORY
from ...passes.stack.python import mean_weights, move_numbers, start_recent, start_stack, with_batch
from ...registry.caller import caller
from ...rows import Rows, dense, padded
from ...state.change import Change
from ...state.nested import State
from ...state.schema import POSITIVE, Array, Count, Inside, Schema
from .._contract import composite
from .._contract.composite import Composite
from .._contract.deviations import deviation, means
from .._contract.mixed import check_columns
from .._contract.state import is_trained
from .._contract.warm_up import rows_until
from ..metric import SIZES
from . import batch, intervals, level, reasons, renewal, watch
from . import rows as few_rows
from .members import chosen

ROWS_AT_ONCE = 1024  # rows whose forecasts of all members are held at once
COMBINED = 512  # rows that are combined at once; on several threads, members learn the next ones meanwhile
SIDE_BY_SIDE = 256  # rows from which members run on separate threads
STRIDE = 64  # rows between two entries of the history, at first
WIDE = 2000  # columns up to which sparse rows are made dense
BROAD = 1000  # columns from which a warning says that other learners are made for them

# What follows rows and forecasts: modules with `start` and `schema`, whose states are inside that of the stack.
FOLLOWERS: dict[str, Any] = {"intervals": intervals, "reasons": reasons, "watch": watch}


class Stack(Composite):
    """Members and their combination."""

    members: Any
    recent: bool
    standardize: Any
    squashes = True
    _by_row = frozenset({"ring_rows", "ring_targets", "ring_weights"})  # those that are watched

    @property
    def relative_weights(self) -> bool:  # type: ignore[override]
        """Rows that another whole has scaled come with their final weights."""
        return bool(self.standardize)

    def owners(self, state: State) -> list[tuple[Any, State]]:
        found = super().owners(state)
        if state.get("renewal", {}).get("fresh"):
            fresh = renewal.fresh(self, state)
            found += [owner for learner, own in fresh._learner.pairs(fresh._state) for owner in learner.owners(own)]
        return found

    # ---------------------------------------------------------------- members
    def _given(self) -> list[tuple[str, Any]]:
        """Names and prototypes of the members."""
        if isinstance(self.members, str):  # as many columns as the first rows had, also when rows get wider
            return chosen(self.regression, self.parameters["size"], int(self.context.width))
        return [(type(member).__name__, member) for member in self.members]

    def names(self, state: State) -> list[str]:
        """Of what is combined: the members, and a function of a batch."""
        return [name for name, _ in self._given()] + ["batch"] * ("batch" in state)

    def inputs(self, state: State) -> int:
        """How many forecasts are combined."""
        return len(self.examples()) + ("batch" in state)

    def prototypes(self) -> list[Any]:
        return composite.copies(
            [member for _, member in self._given()], engines.of_processor(self.parameters["engine"])
        )

    def start(self, state: State, before: State | None) -> None:
        if state["n_features"] > BROAD and self.standardize:  # said once, by the whole
            name = self.context.name
            warnings.warn(
                f"{name} is made for tables of up to {BROAD:,} columns, and slow with {state['n_features']:,}: "
                f"select or combine columns first (scikit-learn's SelectKBest or PCA), or use "
                f"{name.replace('Kernel', 'Feature')}",
                UserWarning,
                stacklevel=caller(),
            )
        state["first_width"] = state["n_features"]
        super().start(state, before)
        examples = self.examples()
        state["members"] += [
            composite.start(examples[i % len(examples)], i, state)
            for i in range(len(state["members"]), self.count(state))
        ]

    def widen(self, state: State, d: int) -> None:
        """Members that cannot take more columns start over, which is counted."""
        restarts = state["restarts"].copy() if is_trained(state) else None
        for i, (learner, part) in enumerate(self.pairs(state)):
            try:
                learner.widen(part, d)
            except ValueError:
                learner.forget()
                part["n_features"] = d
                if restarts is not None:
                    learner.restart(part)
                    restarts[i] += 1
            part["n_features"] = d
        if restarts is not None:
            state["restarts"] = restarts
            intervals.widen(self, state, d)
            state["reasons"]["X"] = padded(state["reasons"]["X"], d)
            state["watch"]["ring_rows"] = padded(state["watch"]["ring_rows"], d)
            renewal.drop(self, state)

    def check_parameters(self) -> None:
        one_of("size", self.parameters["size"], SIZES)
        check_columns(self.parameters["columns"])
        if isinstance(self.members, str) and self.members == "auto":
            return
        if not isinstance(self.members, (list, tuple)) or not self.members:
            raise ValueError(f"members must be 'auto' or a list of estimators, got {self.members!r}")
        for member in self.members:
            composite.check(member, self.context)
            if issubclass(member._learns, Composite):
                raise ValueError(f"a {type(member).__name__} combines learners itself and cannot be a member")

    # ---------------------------------------------------------------- rows and their weights
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

    # ---------------------------------------------------------------- combinations
    def outputs(self, state: State) -> int:
        """How many combinations there are: one, or one for every target of a regression."""
        return int(state["n_outputs"]) if self.regression else 1

    def columns(self, state: State) -> int:
        """Scores of a member: one, or one for every class."""
        return 1 if self.regression else int(state["n_outputs"])

    def count(self, state: State) -> int:
        return len(self.examples()) * self.outputs(state)

    def combinations(self, state: State) -> list[State]:
        """The entries of each combination."""
        return [state[f"o{o}"] for o in range(self.outputs(state))]

    def weights(self, state: State) -> np.ndarray:
        """Of the members, (N,), averaged over the outputs."""
        return np.mean([mean_weights(part, self.regression) for part in self.combinations(state)], axis=0)

    def errors(self, state: State) -> np.ndarray:
        """Of the members, averaged over the outputs."""
        return np.mean([part["member_errors"] for part in self.combinations(state)], axis=0)

    def one_width(self) -> bool:
        """Not of rows that another whole has scaled: their units are the same."""
        return bool(self.standardize) and super().one_width()

    def reset(self, state: State) -> None:
        self.drop("learners", "shells")
        self.outputs_changed(state)
        state.pop("batch", None)
        for learner, own in self.pairs(state):
            learner.restart(own)
        N, k = len(self.examples()), self.outputs(state)
        state |= {f"o{o}": start_stack(N, self.columns(state), self.regression) for o in range(k)}
        state |= {"history": np.zeros((HISTORY, N), np.float32), "history_stride": STRIDE}
        state |= {"restarts": np.zeros(k * N, np.int64), "recent_on": 0}
        if self.regression:
            state |= {"target_mean": np.zeros(k), "target_unit": np.ones(k)}
        state |= {name: part.start(self, state) for name, part in FOLLOWERS.items()}

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        """Members learn numbers relative to the first ones' mean, in units of a power of two: products are exact."""
        if self.regression:
            state["target_mean"][:] = means(y, weight)
            powers = np.frexp([deviation(column[weight > 0]) for column in y.reshape(len(y), -1).T])[1]
            state["target_unit"][:] = np.ldexp(1.0, np.clip(powers, -1000, 1000))

    def mix_outputs(self, state: State, change: Change) -> None:
        """Members keep their weights; what was known of the last labels is lost. A lone class may change its side."""
        part = state["o0"]
        if len(change) == change.before == 1:
            for name in ("stack_w", "recent_w"):
                part[name][:, -1] *= change.factor[0]  # of the constant
            for name in ("stack_A", "recent_A"):
                part[name][:, -1, :-1] *= change.factor[0]
            part["recent_kept"] *= change.factor[0]
            if change.factor[0] < 0:
                part["label_counts"][1] = part["label_counts"][0] - part["label_counts"][1]
            return
        part |= start_recent(len(change))

    def outputs_changed(self, state: State) -> None:
        self.drop("targets", "rows", "batch")
        renewal.drop(self, state)
        if "watch" in state:
            state["watch"]["first"] = state["t"]  # the targets kept are of other labels

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        batch.class_added(state, place)
        super().class_added(state, place, trained, change)

    def _drawn_in(self, X: Rows) -> np.ndarray:
        """Scaled rows as the members see them; rows that another whole has scaled are such rows already."""
        return self.ops.squashed(dense(X)) if self.standardize else dense(X)

    def start_over(
        self, state: State, X: Rows, y: np.ndarray, target: np.ndarray, weight: np.ndarray, **how: Any
    ) -> None:
        """What is wanted to be known of the rows was noted when they came."""
        super().start_over(state, X, y, target, weight, **(how | {"wanted": None}))

    def learn(
        self, state: State, X: Rows, y: np.ndarray, weight: Any, shuffled: bool = False, wanted: Any = None
    ) -> np.ndarray:
        """The same; ``shuffled`` rows say nothing about the next one, and ``wanted`` collects what was known before."""
        recent = bool(self.recent) and not shuffled
        state["recent_on"] = int(recent)
        X = self._drawn_in(X)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        left: Callable[[], None] | None = None  # what is still to be done with the block before
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
        (recent, wanted), t, n, start = how, state["t"], len(X), 0
        while start < n:
            last = state["history_stride"] * (HISTORY + 1)  # the row whose weights find all places taken
            stop = min(n, (start // COMBINED + 1) * COMBINED)  # the same rows whatever the threads: so are the bits
            if state["t"] + stop - start >= last:
                stop = rows_until(weight, start, stop, last - state["t"])
            self._combine(state, F, y, weight, recent, scores, slice(start, stop))
            start = stop
        errors = renewal.follow(self, state, X, y, weight, scores, t)
        reasons.follow(state["reasons"], X, y, t, weight)
        intervals.follow(self, state, X, scores, errors, y, weight, wanted)

    learn_few, score_few = few_rows.learn, few_rows.score

    def _combine(
        self, state: State, F: np.ndarray, y: np.ndarray, weight: Any, recent: bool, scores: np.ndarray, rows: slice
    ) -> None:
        """Forecasts of the whole; enters weights of the members into the history."""
        own = None if weight is None else weight[rows]
        t, stride = state["t"], state["history_stride"]
        after = t + (rows.stop - rows.start if own is None else int(np.count_nonzero(own)))
        notes = np.empty((self.outputs(state), after // stride - t // stride, F.shape[1]))
        for o, part in enumerate(self.combinations(state)):
            block = np.ascontiguousarray(F[o, :, rows])
            target = of_output(y[rows], o)
            spec = (self.regression, recent)
            found = self.ops.stack_pass(block, target, own, part, spec, (t, stride, notes[o]))
            scores[rows, o : o + found.shape[1]] = found  # all classes, or one of several targets
        state["t"] = after
        self._note_weights(state, t // stride, notes[0] if len(notes) == 1 else notes.mean(axis=0))

    def moved(self, state: State, o: int, move: Move) -> bool:
        if move.factor < 1 and not intervals.off(state["intervals"][f"o{o}"], move):
            return False
        state["target_mean"][o] = move(state["target_mean"][o])
        state["target_unit"][o] *= move.factor
        move_numbers(state[f"o{o}"], move)
        intervals.moved(state["intervals"][f"o{o}"], move)
        reasons.moved(state["reasons"], o, move)
        watch.moved(state["watch"], o, move)
        renewal.drop(self, state)  # what was learned holds at the new level, too
        batch.moved(self, state, o, move)
        return True

    def fade(self, state: State, keep: float) -> bool:
        for learner, own in self.pairs(state):
            learner.fade(own, keep)
            learner.forget()
        for part in self.combinations(state):
            for name in ("stack_A", "stack_b"):
                if name in part:
                    part[name] *= keep
        return True

    def restart(self, state: State) -> bool:
        for i, (learner, own) in enumerate(self.pairs(state)):
            learner.restart(own)
            learner.forget()
            state["restarts"][i] += 1
        return True

    def _note_weights(self, state: State, place: int, weights: np.ndarray) -> None:
        """Enter weights (k, N) into the history from a place on; when it is full, every second entry is dropped."""
        room = HISTORY - place
        state["history"][place : place + len(weights)] = weights[:room]
        if len(weights) > room:  # one more, for which there is no place, and which will not be among those that stay
            state["history"][: HISTORY // 2] = state["history"][1::2]
            state["history_stride"] *= 2

    def forecasts(
        self, state: State, X: np.ndarray, y: np.ndarray | None, weight: Any, left: Callable[[], None] | None = None
    ) -> np.ndarray:
        """Scores of all members, (k, N, n, C), for k outputs; with y they learn the rows, and scores are those before.

        A function of a batch is the last of the N; it never learns.

        ``left`` is other work, independent of the members, which is done at the same time if there are threads.
        """
        members, n, k = self.member_learners(state), X.shape[0], self.outputs(state)
        N = len(members) // k
        F = np.empty((k, self.inputs(state), n, self.columns(state)))
        whole = batch.learner(self, state)  # attached before there are threads
        # seconds of each the last time, to begin with the longest
        took: dict[int, float] = self.cached("took", dict)

        def work(i: int) -> None:
            start = time.perf_counter()
            if i < 0:
                assert left is not None
                left()
            elif i == len(members):
                F[:, -1] = batch.forecasts(self, state, X).reshape(n, k, -1).swapaxes(0, 1)
            elif y is None:
                F[i // N, i % N] = self.member_scores(state, i, X)
            else:
                F[i // N, i % N] = self.member_learns(state, i, X, of_output(y, i // N), weight)
            took[i] = time.perf_counter() - start

        items: Sequence[int] = range(0 if left is None else -1, len(members) + (whole is not None))
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
        scores = few_rows.member_scores(learner, own, X)
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

    def score(self, state: State, X: Rows, following: bool = False) -> np.ndarray:
        return self.combined(state, self._drawn_in(X), following)

    def combined(self, state: State, X: np.ndarray, following: bool = False) -> np.ndarray:
        """Scores of rows as the members see them; with ``following``, each is the next of the stream."""
        if batch.alone(state):
            return batch.scores(self, state, X)
        streams = self.follows(state)
        scores = self.members_score(state, X, streams and following)
        if streams and not following:
            scores += level.shift(self, state)
        return renewal.blended(self, state, X, scores, streams and following)

    def follows(self, state: State) -> bool:
        """Whether the latest targets help to forecast the next one: they do not after ``fit``."""
        return bool(self.recent) and bool(state["recent_on"])

    def until_next_row(self, name: str, state: State, key: Any, find: Callable[[], Any]) -> Any:
        """What follows from the state and a key and takes long to find; it is kept until a row is learned."""
        cache, key = self.derived, (state["t"], key)
        found = cache.get(name)
        if found is None or found[0] != key:
            found = cache[name] = (key, find())
        return found[1]

    def members_score(self, state: State, X: np.ndarray, recent: bool) -> np.ndarray:
        """Scores of the combination for rows as members see them; with ``recent``, each is the next of the stream."""
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in threads.cuts(X.shape[0], ROWS_AT_ONCE):
            F = self.forecasts(state, np.ascontiguousarray(X[rows]), None, None)
            spec = (self.regression, recent)
            for o, part in enumerate(self.combinations(state)):
                found = self.ops.stack_pass(F[o], None, None, part, spec)
                scores[rows, o : o + found.shape[1]] = found
        return scores

    def schema(self, state: State, trained: bool) -> Schema:
        first: Schema = super().schema(state, trained) | {
            "first_width": Count(1, state["n_features"]),
        }
        if not trained:
            return first
        N, k = len(self.examples()), self.outputs(state)
        schema: Schema = first | composite.history_schema(state, self.inputs(state))
        schema |= {"restarts": Array((N * k,), "int64", low=0), "recent_on": Count(0, 1)}
        if self.regression:
            schema |= {"target_mean": Array((k,)), "target_unit": Array((k,), low=POSITIVE)}
        fresh = start_stack(N, self.columns(state), self.regression)
        fresh = with_batch(fresh, 0.5, 0.0, 0) if "batch" in state else fresh
        combination = Inside({name: Array(value.shape) for name, value in fresh.items()})
        schema |= {f"o{o}": combination for o in range(k)}
        schema |= {name: Inside(part.schema(self, state)) for name, part in FOLLOWERS.items()}
        return schema | batch.schema(state) | renewal.schema(self, state)

    def verify(self, state: State) -> None:
        super().verify(state)
        batch.verify(self, state)
        renewal.verify(self, state)


def of_output(y: np.ndarray, o: int) -> np.ndarray:
    """The target of an output, (n,), from y (n,) or (n, k)."""
    return y if y.ndim == 1 else np.ascontiguousarray(y[:, o])
