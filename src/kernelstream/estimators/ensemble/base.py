"""Many kernels: members whose weights follow their mistakes, and which of them learn a row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...checks import one_of
from ...core import threads
from ...features import RandomFourier
from ...kernels import Gaussian
from ...passes.ensemble.python import Hedge
from ...registry.parameters import named_part
from ...rows import Rows
from ...state.change import Change
from ...state.nested import State
from ...state.schema import POSITIVE, Array, Count, Number, Schema
from .._contract import composite
from .._contract.composite import Composite
from .._contract.deviations import STANDARD, UNIT, deviation, in_units
from .._contract.learner import Learner
from .._contract.warm_up import WARM_UP, runs
from ..feature import FeatureClassifier, FeatureRegressor
from . import capacity as _capacity
from .families import ExpansionFamily, FourierFamily, find
from .parts import chances, drawn

VOTES = ("sign", "score")
CAPACITIES = ("fixed", "shared", "weights")
ROWS_AT_ONCE = 1024  # rows whose scores of all learners are held at once
SIDE_BY_SIDE = 32  # rows from which learners that share nothing run on separate threads
DRAWN_AHEAD = 64  # rows for which the random choices are made together
CAPACITY_PERIOD = 1000  # rows after which capacity may move
FIRST_ROOM = 16  # support vectors for which a learner has room at first if the budget is shared


WIDTHS = tuple(2.0**k for k in range(-6, 7))  # sigma of the Gaussians of the default pool


def gaussian_maps() -> list[RandomFourier]:
    """Fourier features, 100 frequencies each, of the Gaussians of the default pool, sigma = 2^-6 … 2^6."""
    return [RandomFourier(Gaussian(0.5 / sigma**2), 100) for sigma in WIDTHS]


class Ensemble(Composite):
    """Members with weights of Hedge."""

    relative_weights = True
    learners: Any
    combination: Any
    updates: Any
    capacity: str
    vote: str = "score"  # whether votes are added ("sign"), or the scores themselves

    # ---------------------------------------------------------------- components
    def hedge(self) -> Hedge:
        """How weights follow losses."""
        rate = share = 0.0
        if self.combination != "uniform":
            weights = named_part(self.context.kind, "combination", self.combination)
            usual = 0.61 if self.regression else 0.99
            rate = -math.log(usual if isinstance(weights.discount, str) else weights.discount)
            share = float(weights.share)
        return Hedge(rate, share, self.vote == "sign", self.regression)

    def one_width(self) -> bool:
        return self.learners is None or super().one_width()  # our list of widths is for columns with values around 1

    def prototypes(self) -> list[Any]:
        """Unfitted copies of the learners."""
        kind: Any = FeatureRegressor if self.regression else FeatureClassifier
        given = [kind(features) for features in gaussian_maps()] if self.learners is None else list(self.learners)
        return composite.copies(given, self.parameters["engine"])

    def sized(self, state: State, i: int, learner: Learner) -> Learner:
        return _capacity.sized(learner, int(state["capacity"][i])) if "capacity" in state else learner

    # ---------------------------------------------------------------- hooks
    def _scales_target(self) -> bool:
        """Whether a member needs targets in units of their deviation; then all members learn these."""
        given = self.learners or () if self.regression else ()
        return any(getattr(learner, "center", None) == STANDARD for learner in given)

    def warm_up_rows(self) -> int:
        rows = super().warm_up_rows()
        return max(rows, WARM_UP) if self._scales_target() else rows

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        if self._scales_target():
            state[UNIT] = deviation(y)

    def weights(self, state: State) -> np.ndarray:
        return self.ops.theta(state["log_theta"])

    def outputs_changed(self, state: State) -> None:
        self.derived.drop("family", "expansions")  # which learners share work has changed

    def mix_outputs(self, state: State, change: Change) -> None:
        """Members' weights stay."""

    def reset(self, state: State) -> None:
        self.outputs_changed(state)
        self.derived.drop("learners")
        if self.capacity != "fixed":
            sizes = _capacity.budgets_of(self.examples())
            if self.capacity == "shared":
                state["capacity_total"] = sum(sizes)
                sizes = [FIRST_ROOM] * len(sizes)
            state["capacity"] = np.array(sizes, np.int64)
        for learner, own in self.pairs(state):
            learner.restart(own)
        state |= self.ops.start_hedge(len(state["members"]), self.hedge())
        if self._scales_target():
            state.setdefault(UNIT, 1.0)

    @in_units
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if self.capacity != "weights":
            return self._learn_rows(state, X, y, weight)
        parts = []
        for rows in runs(weight, X.shape[0], lambda: CAPACITY_PERIOD - state["t"] % CAPACITY_PERIOD):
            before = state["t"]
            parts.append(self._learn_rows(state, X[rows], y[rows], None if weight is None else weight[rows]))
            if state["t"] > before and state["t"] % CAPACITY_PERIOD == 0:
                theta, budgets = self.weights(state), _capacity.budgets_of(self.examples())
                if _capacity.follow(state, self.member_learners(state), theta, sum(budgets)):
                    self.outputs_changed(state)
        return np.concatenate(parts)

    def _learn_rows(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, P in self._blocks(state, X):
            start = rows.start
            while start < rows.stop:
                run = slice(start, start + _capacity.run_length(state, rows.stop - start))
                part = None if P is None else P[start - rows.start :]
                found = self._learn_run(state, X, run, y[run], None if weight is None else weight[run], part)
                scores[start : start + len(found)] = found
                start += len(found)
        return scores

    def _learn_run(
        self, state: State, X: Rows, rows: slice, y: np.ndarray, weight: np.ndarray | None, P: np.ndarray | None
    ) -> np.ndarray:
        """Scores (k, C) of the first k of some ``rows``, which are learned; y, weight and P are theirs."""
        hedge, expansions = self.derived.cached("hedge", self.hedge), self._expansions(state)
        draws = None  # how the learners of a row are drawn; all learn every row
        m, which, own = len(state["members"]), None, None
        if self.updates != "deterministic":
            draws = self.derived.cached("updates", lambda: named_part(self.context.kind, "updates", self.updates))
            if expansions is not None and len(expansions.where) == m and not _capacity.scarce(state):
                rows = slice(rows.start, min(rows.stop, rows.start + expansions.pool.rows()))
                n = rows.stop - rows.start
                own = None if weight is None else weight[:n]
                return expansions.learn_drawn(X[rows], y[:n], own, draws, state, hedge)
            n = min(len(y), DRAWN_AHEAD if self.ops.BLOCK > 1 else 1)
            ahead = None if weight is None else weight[:n]
            u = chances(state["seed"], state["t"], ahead, n, m)
            which = drawn(state["log_theta"], u, ahead, draws.smoothing, hedge)
            y, weight = y[: len(which)], None if weight is None else weight[: len(which)]
            own = np.ascontiguousarray(which.T * (1.0 if weight is None else weight))
        elif weight is not None:
            own = np.tile(weight, (m, 1))
        rows = slice(rows.start, rows.start + len(y))
        F = self._member_scores(state, X, rows, None if P is None else P[: len(y)], y, own)
        counted = which if draws is not None and draws.counted == "drawn" else None
        return self.ops.hedge_pass(F, y, weight, state, hedge, counted)

    def score(self, state: State, X: Rows) -> np.ndarray:
        ops, hedge = self.ops, self.hedge()
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, P in self._blocks(state, X):
            F = self._member_scores(state, X, rows, P)
            scores[rows] = ops.combine(F, ops.theta(state["log_theta"]), hedge, state)
        return scores * state.get(UNIT, 1.0)

    # ---------------------------------------------------------------- rows and members
    def _family(self, state: State) -> FourierFamily | None:
        """The learners that share a product of rows and frequencies."""
        return self.derived.cached("family", lambda: find(FourierFamily, self.member_learners(state), state, self.ops))

    def _expansions(self, state: State) -> ExpansionFamily | None:
        """The learners that share a pool of support vectors."""
        found = self.derived.cached(
            "expansions", lambda: find(ExpansionFamily, self.member_learners(state), state, self.ops)
        )
        if found is not None and not found.fits():  # a learner was trained on its own in between
            self.derived.drop("expansions")
            return self._expansions(state)
        return found

    def _blocks(self, state: State, X: Rows) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Blocks of rows and the projections that learners share; the next ones are made while a block is learned."""
        family = self._family(state)
        cuts = threads.cuts(X.shape[0], ROWS_AT_ONCE if self.ops.BLOCK > 1 else 1)
        if family is None:
            return ((rows, None) for rows in cuts)
        if len(cuts) == 1:
            return iter([(cuts[0], family.project(X, "family"))])
        # one buffer is consumed, the others are filled
        return threads.prefetch(
            lambda rows: family.project(X[rows], f"family{rows.start // ROWS_AT_ONCE % threads.BUFFERS}"),
            cuts,
            self.ops.THREADED,
        )

    def _member_scores(
        self,
        state: State,
        X: Rows,
        rows: slice,
        P: np.ndarray | None,
        y: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Scores of all learners for some rows, (m, n, C).

        With y (n,) they learn the rows, each those to which ``weights`` (m, n) give it more than 0; the scores are then
        those before each update.
        """
        n, outputs = rows.stop - rows.start, state["n_outputs"]
        F = np.empty((len(state["members"]), n, outputs))
        alone = y is None and not state["log_theta"].flags.writeable  # mapped files are read-only, passes write
        family = None if alone else self._family(state)
        if family is not None and P is not None:
            family.learn(state, P, y, weights, F)
        grows = y is not None and _capacity.needs_room(state, weights)
        turns = y is not None and _capacity.scarce(state)
        expansions = None if turns or alone else self._expansions(state)
        apart = (() if family is None else family.where, () if expansions is None else expansions.where)
        others = [i for i in range(len(F)) if i not in apart[0] and i not in apart[1]]
        block = X if n == X.shape[0] or len(others) == 0 == len(apart[1]) else X[rows]
        learners = self.member_learners(state)
        if expansions is not None:
            if grows and weights is not None:
                for i in expansions.where:
                    if not _capacity.has_room(state, learners, i):
                        weights[i] = 0.0
            expansions.learn(block, y, weights, F)

        def work(i: int) -> None:
            member = state["members"][i]
            if y is None:
                part = learners[i].score(member, block)
            else:
                own = None if weights is None else weights[i]
                if grows and not _capacity.has_room(
                    state, learners, i
                ):  # which may change the budget, and so the learner
                    own = np.zeros(n)
                part = learners[i].learn(member, block, composite.codes(learners[i], state, y), own)
            F[i] = composite.scores(part, outputs)

        threads.each(work, others, self.ops.THREADED and n >= SIDE_BY_SIDE)
        return F

    # ---------------------------------------------------------------- checks
    def check_parameters(self) -> None:
        learners = self.learners
        if learners is not None:
            if not isinstance(learners, (list, tuple)) or not learners:
                raise ValueError(f"learners must be a list of estimators or None, got {learners!r}")
            for learner in learners:
                composite.check(learner, self.context)
        one_of("vote", self.vote, VOTES)
        plain = {"combination": "uniform", "updates": "deterministic"}
        for name, other in plain.items():
            value = self.parameters[name]
            if value == other:
                continue
            try:
                named_part(self.context.kind, name, value).check()
            except ValueError as error:
                raise ValueError(str(error).replace("must be ", f"must be {other!r} or ", 1)) from None
        one_of("capacity", self.capacity, CAPACITIES)
        if self.combination == "uniform" and (self.updates != "deterministic" or self.capacity == "weights"):
            raise ValueError(
                "combination='uniform' keeps all weights equal, but updates='stochastic' and capacity='weights' need "
                "weights that change: use combination='hedge'"
            )
        _capacity.check(self.capacity, self.updates, self.examples)

    def schema(self, state: State, trained: bool) -> Schema:
        first: Schema = super().schema(state, trained)
        if not trained:
            return first
        if self._scales_target():
            first[UNIT] = Number(POSITIVE)
        m = len(state["members"])
        schema: Schema = first | {"log_theta": Array((m,))} | composite.history_schema(state, m)
        if self.regression:
            schema["range"] = Array((2,), rising=True)
        if self.capacity != "fixed":
            least = max(map(_capacity.least, self.examples()))
            schema["capacity"] = Array((m,), "int64", low=least)
        if self.capacity == "shared":
            schema["capacity_total"] = Count()
        return schema
