"""What the one learner's classifier and regressor share: members, scaling, the combination, `fit`."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import threads
from ...core.overflow import LEARNING
from ...passes.ensemble.python import HISTORY
from ...passes.stack.python import NAMES, mean_weights, start_stack
from ...rows import Rows, dense
from ...state.schema import Array, Count, Schema
from ...state.turns import in_turn
from .._contract.base import State
from .._contract.composite import CompositeEstimator
from .._contract.mixed import MixedRows
from .._contract.state import pad_columns
from ..ensemble import members as _members
from . import batch, level, watch, weights
from .fit import StackFit
from .members import SIZES
from .reasons import Reasons, keep_rows, places
from .rows import RowByRow
from .sure import Sure
from .watch import Watched

ROWS = 1024  # rows whose forecasts of all members are held at once
COMBINED = 512  # rows that are combined at once; on several threads, members learn the next ones meanwhile
SIDE_BY_SIDE = 256  # rows from which members run on threads of their own
STRIDE = 64  # rows between two entries of the history, at first
WIDE = 2000  # columns up to which sparse rows are made dense
BROAD = 1000  # columns from which a warning says that other learners are made for them


class StackEstimator(RowByRow, Sure, Watched, Reasons, MixedRows, StackFit, CompositeEstimator):
    """Members that learn the same scaled rows, and the recursion that combines their forecasts."""

    members: Any
    size: str
    recent: bool
    standardize = True

    _regression = False

    # ---------------------------------------------------------------- what it says of itself
    @property
    @in_turn
    def learners_(self) -> list[Any]:
        """The members, fitted; they go on learning with the whole."""
        self._fitted()
        return self._learners

    @property
    @in_turn
    def weights_(self) -> np.ndarray:
        """Weights of the members in the forecast now, (m,): of log-odds for labels, of forecasts for numbers."""
        return self._weights(self._fitted())

    @property
    @in_turn
    def weights_history_(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers (k,) and the weights after each of those rows, (k, m); evenly spaced, at most 256 of them."""
        state = self._fitted()
        k = state["t"] // state["history_stride"]
        return state["history_stride"] * np.arange(1, k + 1), state["history"][:k].astype(float)

    @property
    @in_turn
    def members_(self) -> list[dict[str, Any]]:
        """A small table: each member's name, weight, error so far and over about the last 1,000 rows, restarts, rows.

        Errors are shares of mistakes for labels and roots of mean squared errors for numbers, of the member alone.
        Rows are those that it has learned, as often as ``fit`` went over them.
        """
        state, names = self._fitted(), self._names()
        errors, rows = self._errors(state), max(state["t"], 1)
        table = []
        for i, (name, weight) in enumerate(zip(names, self._weights(state), strict=True)):
            whole, lately = errors[0, i] / rows, errors[1, i] / max(errors[2, i], 1e-300)
            if self._regression:
                whole, lately = whole**0.5, lately**0.5
            table.append(
                {"name": name, "weight": float(weight), "error": float(whole), "error_lately": float(lately)}
                | {"restarts": int(state["restarts"].reshape(-1, len(names))[:, i].sum())}
                | {"rows": int(self._states[i]["t"])}
            )
        return table

    def _fitted(self) -> State:
        state = self.__dict__.get("_state")
        if state is None or "history" not in state:
            raise AttributeError(f"{type(self).__name__} has no weights before it has learned a row")
        return state

    def _weights(self, state: State) -> np.ndarray:
        """Of the members, averaged over the outputs."""
        return np.mean([mean_weights(part, self._regression) for part in self._combinations(state)], axis=0)

    def _errors(self, state: State) -> np.ndarray:
        return np.mean([part["member_errors"] for part in self._combinations(state)], axis=0)

    def _names(self) -> list[str]:
        if isinstance(self.members, str):
            return [name for name, _ in self._auto()]
        return [type(member).__name__ for member in self.members]

    # ---------------------------------------------------------------- members
    def _auto(self) -> list[tuple[str, Any]]:
        """Names and prototypes of the members where none are given."""
        raise NotImplementedError

    def _prototypes(self) -> list[Any]:
        given = [member for _, member in self._auto()] if isinstance(self.members, str) else list(self.members)
        return _members.copies(given, self.engine)

    def _width(self) -> int:
        """Columns of the first rows: members are chosen by it, and stay when rows get wider."""
        state = self.__dict__.get("_state")
        return int(self.__dict__["n_features_in_"] if state is None else state["first_width"])

    def _begin(self, state: State) -> None:
        state["first_width"] = state["n_features"]
        self._forget_examples()
        super()._begin(state)

    def _widen(self, state: State, d: int) -> None:
        """Members that cannot take more columns begin anew, and are counted."""
        own, states = _members.split(state)
        trained = not own["warm_rows"] or own["warm_count"] > 0
        restarts = own["restarts"].copy() if trained else None
        for i, (member, part) in enumerate(zip(self._learners, states, strict=True)):
            try:
                member._widen(part, d)
            except ValueError:
                member._cache = {}
                part["n_features"] = d
                if restarts is not None:
                    part["t"] = 0
                    member._reset(part)
                    restarts[i] += 1
        if restarts is not None:
            own["restarts"] = restarts
        for name in ("reason_X", "watch_X"):
            if name in own:
                own[name] = pad_columns(own[name], d)
        state |= _members.flatten(own, states)

    def _check_parameters(self) -> None:
        self._forget_examples()
        if self.size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, got {self.size!r}")
        self._check_columns()
        if not isinstance(self.recent, (bool, np.bool_)):
            raise ValueError(f"recent must be True or False, got {self.recent!r}")
        if isinstance(self.members, str):
            if self.members != "auto":
                raise ValueError(f"members must be 'auto' or a list of estimators, got {self.members!r}")
            return
        if not isinstance(self.members, (list, tuple)) or not self.members:
            raise ValueError(f"members must be 'auto' or a list of estimators, got {self.members!r}")
        for member in self.members:
            _members.check(member, self)
            if isinstance(member, CompositeEstimator):
                raise ValueError(f"a {type(member).__name__} is made of learners itself and cannot be a member")

    # ---------------------------------------------------------------- rows
    def _check_X(self, X: Any, reset: bool, least: int = 1) -> Rows:
        if sp.issparse(X):
            return self._densified(super(), X, reset, least)
        X = super()._check_X(X, reset, least)
        if reset and X.shape[1] > BROAD:
            name, other = type(self).__name__, type(self).__name__.replace("Kernel", "Feature")
            warnings.warn(
                f"{name} is made for tables of up to {BROAD:,} columns and takes long over {X.shape[1]:,}: choose or "
                f"combine columns first (scikit-learn's SelectKBest or PCA), or use {other}",
                UserWarning,
                stacklevel=2,
            )
        return X

    def _densified(self, parent: Any, X: Any, reset: bool, least: int) -> np.ndarray:
        """Sparse rows, checked like others and made dense."""
        self.standardize = False  # which only says here that sparse rows are welcome
        try:
            X = parent._check_X(X, reset, least)
        finally:
            del self.standardize
        if X.shape[1] > WIDE:
            raise ValueError(
                f"{type(self).__name__} makes sparse rows dense, and {X.shape[1]} columns are more than {WIDE}: hash "
                f"them first (scikit-learn's FeatureHasher), or use FeatureClassifier, which takes them as they are"
            )
        return np.ascontiguousarray(dense(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    # ---------------------------------------------------------------- weights
    def _weighs(self) -> bool:
        return super()._weighs() or weights.SUMS in self._state

    def _row_weights(
        self, state: State, y: np.ndarray, weight: np.ndarray | None, again: bool = False
    ) -> np.ndarray | None:
        """Weights next to their mean: that of the rows up to each, or, of rows learned ``again``, the last one."""
        weight = super()._row_weights(state, y, weight)
        if again:
            return weights.over_mean(state, weight, len(y))
        found = weights.relative(state, weight, len(y))
        if weights.SUMS in state:  # from now on rows without weights are weighed too
            self._cache.pop("hot", None)
        return found

    def _forget_rows(self, state: State) -> None:
        super()._forget_rows(state)
        state.pop(weights.SUMS, None)

    # ---------------------------------------------------------------- hooks
    def _outputs(self, state: State) -> int:
        """How many combinations there are: one, or one for every target of a regression."""
        return 1

    def _combinations(self, state: State) -> list[State]:
        """The entries of each combination; the arrays are the state's own."""
        names = NAMES[self._regression]
        return [{name: state[f"o{o}_{name}"] for name in names} for o in range(self._outputs(state))]

    def _reset(self, state: State) -> None:
        self._cache.pop("learners", None)
        self._outputs_changed()
        for member in self._learners:
            member._state["t"] = 0
            member._reset(member._state)
        N, k = len(self._examples()), self._outputs(state)
        for o in range(k):
            fresh = start_stack(N, 1 if self._regression else state["n_outputs"], self._regression)
            state |= {f"o{o}_{name}": value for name, value in fresh.items()}
        state |= {"history": np.zeros((HISTORY, N), np.float32), "history_stride": STRIDE}
        state |= {"restarts": np.zeros(k * N, np.int64), "recent_on": 0}
        for name in [name for name in state if "_interval_" in name or name.startswith(("reason_", "watch_"))]:
            del state[name]
        state |= self._fresh_trackers(k) | watch.start(state)
        kept = places(state["first_width"])
        state["reason_X"] = np.zeros((kept, state["n_features"]), state["dtype"])
        if self._regression:
            state["reason_y"] = np.zeros((kept, k))

    def _outputs_changed(self) -> None:
        for name in ("targets", "rows", "batch"):
            self._cache.pop(name, None)
        batch.drop(self._state)

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        recent = bool(self.recent) and not self.__dict__.get("_fitting")
        state["recent_on"] = int(recent)
        X = self._ops.squashed(dense(X))
        scores = np.empty((X.shape[0], state["n_outputs"]))
        left: Callable[[], None] | None = None  # what is still to be done with the block before
        step = COMBINED if self._ops.THREADED and threads.second() else ROWS
        for rows in threads.cuts(X.shape[0], step):
            own = None if weight is None else weight[rows]
            F = self._forecasts(state, X[rows], y[rows], own, left)
            left = functools.partial(self._learn_block, state, X[rows], y[rows], own, recent, F, scores[rows])
        if left is not None:
            left()
        return scores

    def _learn_block(
        self, state: State, X: np.ndarray, y: np.ndarray, weight: Any, recent: bool, F: np.ndarray, scores: np.ndarray
    ) -> None:
        """Scores (n, C) of a block from F (m, n, C) of its members, which are done with it; and what follows."""
        t, n, start = state["t"], len(X), 0
        while start < n:
            last = state["history_stride"] * (HISTORY + 1)  # the row whose weights find all places taken
            stop = min(n, (start // COMBINED + 1) * COMBINED)  # the same rows whatever the threads: so are the bits
            if state["t"] + stop - start >= last:
                numbers = state["t"] + np.cumsum(np.ones(stop - start) if weight is None else weight[start:stop] > 0)
                stop = min(stop, start + int(np.searchsorted(numbers, last)) + 1)
            self._combine(state, F, y, weight, recent, scores, slice(start, stop))
            start = stop
        if batch.present(state):
            scores[:] = batch.blended(self, state, X, scores, t, weight)
        keep_rows(state, X, y, t, weight)
        if self._outputs(state) == 1:
            errors = self._follow_errors(state, 0, scores, y, weight)
        else:
            targets = np.ascontiguousarray(y.T)
            columns = enumerate(np.ascontiguousarray(scores.T)[:, :, None])
            errors = np.mean([self._follow_errors(state, o, f, targets[o], weight) for o, f in columns], axis=0)
        watch.follow(self, state, X, errors, t, weight)

    def _combine(
        self, state: State, F: np.ndarray, y: np.ndarray, weight: Any, recent: bool, scores: np.ndarray, rows: slice
    ) -> None:
        """Forecasts of the whole, and the weights of the members that belong into the history."""
        own = None if weight is None else weight[rows]
        N, t, stride = len(self._examples()), state["t"], state["history_stride"]
        after = t + (rows.stop - rows.start if own is None else int(np.count_nonzero(own)))
        notes = np.empty((self._outputs(state), after // stride - t // stride, N))
        for o, part in enumerate(self._combinations(state)):
            block = np.ascontiguousarray(F[o * N : (o + 1) * N, rows])
            target = y[rows] if y.ndim == 1 else np.ascontiguousarray(y[rows, o])
            spec = (self._regression, recent)
            found = self._ops.stack_pass(block, target, own, part, spec, (t, stride, notes[o]))
            if self._outputs(state) == 1:
                scores[rows] = found
            else:
                scores[rows, o] = found[:, 0]
        state["t"] = after
        self._note_weights(state, t // stride, notes[0] if len(notes) == 1 else notes.mean(axis=0))

    def _fade(self, state: State, keep: float) -> bool:
        for member in self._learners:
            member._fade(member._state, keep)
            member._forget()
        for part in self._combinations(state):
            for name in ("stack_A", "stack_b"):
                if name in part:
                    part[name] *= keep
        return True

    def _anew(self, state: State) -> bool:
        for i, member in enumerate(self._learners):
            member._anew(member._state)
            member._forget()
            state["restarts"][i] += 1
        return True

    def _note_weights(self, state: State, place: int, weights: np.ndarray) -> None:
        """Enter weights (k, N) into the history, from a place on; where all are taken, every second one stays."""
        room = HISTORY - place
        state["history"][place : place + len(weights)] = weights[:room]
        if len(weights) > room:  # one more, for which there is no place, and which will not be among those that stay
            state["history"][: HISTORY // 2] = state["history"][1::2]
            state["history_stride"] *= 2

    def _forecasts(
        self, state: State, X: np.ndarray, y: np.ndarray | None, weight: Any, left: Callable[[], None] | None = None
    ) -> np.ndarray:
        """Scores of all members, (m, n, C); with y they learn the rows, and the scores are those before each.

        ``left`` is work besides, which members have no part in: it is done meanwhile where there are threads.
        """
        members, n = self._learners, X.shape[0]
        C = 1 if self._regression else state["n_outputs"]
        N = len(self._examples())
        F = np.empty((len(members), n, C))
        took: dict[int, float] = self._cache.setdefault(
            "took", {}
        )  # seconds of each the last time, to begin with the longest

        def work(i: int) -> None:
            start = time.perf_counter()
            if i < 0:
                assert left is not None
                left()
            elif y is None:
                F[i] = _members.scores(members[i]._score(members[i]._state, X), C)
            else:
                target = y if y.ndim == 1 else np.ascontiguousarray(y[:, i // N])
                F[i] = self._member_learns(state, i, members[i], X, target, weight, C)
            took[i] = time.perf_counter() - start

        items = range(0 if left is None else -1, len(members))
        if self._ops.THREADED and n >= SIDE_BY_SIDE:
            threads.each(
                work, sorted(items, key=lambda i: -took.get(i, float(i)))
            )  # at first: the last ones take longest
        else:
            for i in items:
                work(i)
        if not np.isfinite(F).all():
            F[~np.isfinite(F)] = 0.0
        return F

    def _member_learns(
        self, state: State, i: int, member: Any, X: np.ndarray, y: np.ndarray, weight: Any, C: int
    ) -> np.ndarray:
        """Scores of a member before each row; one that leaves the range of floats begins anew, and is counted."""
        try:
            part = member._learn(member._state, X, _members.target(member, state, y), weight)
        except ValueError as error:
            if str(error) != LEARNING and not isinstance(error, np.linalg.LinAlgError):
                raise
            state["restarts"][i] += 1
            member._state["t"] = 0
            member._cache = {}
            member._reset(member._state)
            part = np.zeros((len(y), member._state["n_outputs"]))
        return _members.scores(part, C)

    def _score(self, state: State, X: Rows) -> np.ndarray:
        return self._combined(state, self._ops.squashed(dense(X)))

    def _combined(self, state: State, X: np.ndarray) -> np.ndarray:
        """Scores of rows as the members see them."""
        # a row asked alone is the next of the stream; of a table that is not known
        streams = bool(self.recent) and bool(state["recent_on"])
        scores = self._members_score(state, X, streams and X.shape[0] == 1)
        if streams and X.shape[0] > 1 and not self._regression:
            scores += level.shift(self, state)
        return batch.blended(self, state, X, scores, state["t"]) if batch.present(state) else scores

    def _members_score(self, state: State, X: np.ndarray, recent: bool) -> np.ndarray:
        """Scores of the members' combination for rows as they see them; ``recent`` says what the first one follows."""
        scores = np.empty((X.shape[0], state["n_outputs"]))
        N = len(self._examples())
        for rows in threads.cuts(X.shape[0], ROWS):
            F = self._forecasts(state, np.ascontiguousarray(X[rows]), None, None)
            spec = (self._regression, recent)
            for o, part in enumerate(self._combinations(state)):
                found = self._ops.stack_pass(np.ascontiguousarray(F[o * N : (o + 1) * N]), None, None, part, spec)
                if self._outputs(state) == 1:
                    scores[rows] = found
                else:
                    scores[rows, o] = found[:, 0]
        return scores

    def _schema(self, state: State, trained: bool) -> Schema:
        first: Schema = {"first_width": Count(1, state["n_features"])}
        if not trained:
            return first
        N, k = len(self._examples()), self._outputs(state)
        if len(self._states) != N * k:
            raise ValueError(f"the state holds {len(self._states)} learners, the parameters {N * k}")
        stride = state.get("history_stride")
        if not isinstance(stride, int) or stride < 1 or state["t"] // stride > HISTORY:
            raise ValueError(f"the weights after every {stride!r} of {state['t']} rows do not fit {HISTORY} places")
        outputs = 1 if self._regression else state["n_outputs"]
        schema: Schema = first | {"history": Array((HISTORY, N), "float32"), "history_stride": Count(1)}
        schema |= {"restarts": Array((N * k,), "int64", low=0), "recent_on": Count(0, 1)}
        for o in range(k):
            for name, value in start_stack(N, outputs, self._regression).items():
                schema[f"o{o}_{name}"] = Array(value.shape)
        kept = places(state["first_width"])
        schema["reason_X"] = Array((kept, state["n_features"]), state["dtype"])
        if self._regression:
            schema["reason_y"] = Array((kept, k))
        return schema | self._interval_schema(state) | watch.schema(state) | batch.schema(state) | weights.schema(state)

    def _check_state(self, trained: bool | None = None) -> None:
        super()._check_state(trained)
        batch.verify(self, self._state)
