"""Members that share work: Fourier features made of the same random numbers, and support sets with one pool of vectors.

Sharing is up to the compiled engine; the python engine lets every member learn on its own.
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeVar

import numpy as np

from ... import budgets
from ...features import RandomFourier, sampling
from ...kernels import Gaussian
from ...passes.ensemble.python import Hedge
from ...random import SeedStream, uniforms
from ...rows import Rows
from ...state.nested import State
from .._contract.composite import codes
from ..budget.base import KernelExpansion
from ..feature import MAP, LinearOnFeatures, map_entries
from . import capacity
from .parts import StochasticUpdates, chances

# Strategies that need only numbers about their vectors, and nothing between two rows.
REMOVING = (budgets.RemoveRandom, budgets.BOGD, budgets.Forgetron, budgets.RemoveSmallest, budgets.RemoveRedundant)
POOLED = (*REMOVING, budgets.Replace, budgets.Stop, budgets.OSKL, budgets.SPA)
CHANCES = 2048  # random numbers made at once

Family = TypeVar("Family", "FourierFamily", "ExpansionFamily")


def find(kind: type[Family], learners: list[Any], whole: State, ops: Any) -> Family | None:
    """The largest set of members with as many outputs as the whole that can share work so; None without two."""
    states, outputs = whole["members"], whole["n_outputs"]
    groups: dict[Any, list[int]] = {}
    for i, (learner, state) in enumerate(zip(learners, states, strict=True)):
        key = kind.key(learner, state, ops) if state["n_outputs"] == outputs else None
        if key is not None:
            groups.setdefault(key, []).append(i)
    largest = max(groups.values(), key=len, default=[])
    return kind(learners, states, largest, ops) if len(largest) > 1 else None


class FourierFamily:
    """Members i with features ``[cos(s_i P), sin(s_i P)]``, P the projections on one set of frequencies.

    Attributes
    ----------
    W : (d, D)
        The frequencies of the Gaussian kernel with sigma = 1.
    stretch : (k,)
        s_i = 1/sigma_i, ascending: the angles of one member are often twice those of the one before.
    where : (k,)
        Positions of the members among all.
    """

    def __init__(self, learners: list[Any], states: list[State], where: list[int], ops: Any):
        stretch = np.array([math.sqrt(2.0 * _fourier_kernel(learners[i], states[i]).gamma) for i in where])
        order = np.argsort(stretch, kind="stable")
        self.where = [where[i] for i in order]
        features, state = [learners[i].map for i in self.where], states[self.where[0]]
        self.members = [
            (states[i], learners[i].spec(states[i]).core, s)
            for i, s in zip(self.where, stretch[order].tolist(), strict=True)
        ]
        self.ops, self.first = ops, learners[self.where[0]]
        D = max(each.n_components for each in features)
        self.W = sampling.frequencies(
            Gaussian(0.5), state[MAP + "seed"], state["n_features"], D, features[0].sampling, state["dtype"]
        )

    @staticmethod
    def key(learner: Any, state: State, ops: Any) -> Any:
        """What members of a family have in common: their maps differ in the width of a Gaussian only."""
        if ops.family_pass is None or type(learner) is not LinearOnFeatures:
            return None
        features = learner.map
        if not isinstance(features, RandomFourier) or type(_fourier_kernel(learner, state)) is not Gaussian:
            return None
        if learner.spec(state).core is None:
            return None
        # independent frequencies do not depend on how many there are; the others do
        D = None if features.sampling == "iid" else features.n_components
        return state[MAP + "seed"], features.sampling, D, learner.loss(state).kind

    def project(self, X: Rows, buffer: str) -> np.ndarray:
        """Projections of the rows, (n, D), in a buffer that the next call with the same name uses again."""
        D = self.W.shape[1]
        return self.ops.matmul(X, self.W, self.ops.workspace(buffer, (X.shape[0], D), self.W.dtype))

    def learn(
        self, state: State, P: np.ndarray, y: np.ndarray | None, weights: np.ndarray | None, F: np.ndarray
    ) -> None:
        """Learn rows with projections P (n, D), encoded targets of the whole and weights (m, n) of all members.

        Writes the scores before each update into these members' part of F; without y nothing is learned.
        """
        own = None if weights is None else weights[self.where]
        if y is None:  # a pass over rows of weight 0 changes nothing
            y, own = np.zeros(len(P)), np.zeros((len(self.where), len(P)))
        else:
            y = codes(self.first, state, y)
        F[self.where] = self.ops.family_pass(P, y, own, self.members)


class ExpansionFamily:
    """Members i with ``f_i(x) = sum_j alpha_ij k_i(s_ij, x)``: one product of rows and vectors serves all kernels.

    Attributes
    ----------
    where : list
        Positions of the members among all.
    """

    def __init__(self, learners: list[Any], states: list[State], where: list[int], ops: Any):
        self.where, self.ops = where, ops
        self.of_all = learners  # where budgets change, others take their places
        self.states: list[State] = [states[i] for i in where]
        first, pairs = self.states[0], list(zip(self.learners, self.states, strict=True))
        self.kernels = [ops.Pool.kernel(learner.kernel(state)) for learner, state in pairs]
        self.specs: list[Any] = [learner.spec(state).core for learner, state in pairs]  # not None: see `key`
        self.pool = ops.Pool(
            first["n_features"], first["support"].dtype, any(degree == 0 for degree, *_ in self.kernels)
        )
        self.places = [np.full(len(state["support"]), -1, np.int32) for state in self.states]
        self.chances: list[tuple[np.ndarray, int]] = [(np.zeros(0), 0) for _ in self.states]
        self._fill()
        self._seen = self._position()

    @staticmethod
    def key(learner: Any, state: State, ops: Any) -> Any:
        """The type of the vectors of a member whose kernel values can come from a pool."""
        if ops.Pool is None or not isinstance(learner, KernelExpansion) or type(learner.strategy) not in POOLED:
            return None
        if learner.may_grow(state) or state["n_features"] > ops.Pool.widest:  # blocks must end where arrays are full
            return None
        if state["n_outputs"] == 1 and learner.loss(state).kind == "multiclass":  # one class: encoded differently
            return None
        if ops.Pool.kernel(learner.kernel(state)) is None or learner.spec(state).core is None:
            return None
        return state["support"].dtype

    @property
    def learners(self) -> list[Any]:
        """Those of the members as they are now."""
        return [self.of_all[i] for i in self.where]

    def fits(self) -> bool:
        """Whether the members are as this family left them."""
        return self._seen == self._position()

    def learn(self, X: Rows, y: np.ndarray | None, weights: np.ndarray | None, F: np.ndarray) -> None:
        """Learn rows with weights (m, n) of all members; writes the scores before each update into their part of F.

        Without y nothing is learned.
        """
        start, n, learns = 0, X.shape[0], y is not None
        own = None if weights is None else weights[self.where]
        if y is None:  # a pass over rows of weight 0 changes nothing
            y, own = np.zeros(n), np.zeros((len(self.where), n))
        elif own is not None and F.shape[2] > 1:  # the code of a row that nobody learns may be invalid
            y = np.where(own.any(axis=0), y, 0.0)
        while start < n:
            rows = slice(start, min(n, start + self.pool.rows()))
            start, length = rows.stop, rows.stop - rows.start
            block, specs = self.pool.block(X if length == n else X[rows], learns), self._specs(length)
            part = None if own is None else np.ascontiguousarray(own[:, rows])
            scores = np.empty((len(self.where), length, F.shape[2]))
            joined = self.ops.pool_pass(block, y[rows], part, specs, scores)
            F[self.where, rows] = scores
            if learns:
                self._settle(block, specs, joined)

    def learn_drawn(
        self, X: Rows, y: np.ndarray, weight: np.ndarray | None, draws: StochasticUpdates, whole: State, hedge: Hedge
    ) -> np.ndarray:
        """Learn rows, all members being in this family: rows, weights and choices in one pass.

        Returns scores of the whole, (n, C). Members learn the rows for which they are drawn, if there is room.
        """
        m, n, outputs = len(self.states), len(y), whole["n_outputs"]
        able = np.ones(m, bool)
        if capacity.needs_room(whole, weight):
            able[:] = [capacity.has_room(whole, self.of_all, i) for i in range(m)]
        if weight is not None and outputs > 1:
            y = np.where(weight > 0, y, 0.0)  # a row of weight 0 may have an invalid code
        u, only_drawn = chances(whole["seed"], whole["t"], weight, n, m), draws.counted == "drawn"
        block, specs, F = self.pool.block(X, True), self._specs(n), np.empty((m, n, outputs))
        joined, scores = self.ops.pool_hedge_pass(
            block, y, weight, u, able, draws.smoothing, only_drawn, specs, F, whole, hedge
        )
        self._settle(block, specs, joined)
        return scores

    # ---------------------------------------------------------------- between blocks
    def _specs(self, n: int) -> list[Any]:
        """What the passes over n rows need to know about every member."""
        specs = []
        for i, (learner, state) in enumerate(zip(self.learners, self.states, strict=True)):
            outputs = state["n_outputs"]
            self._lengthen_places(i)
            u, first = self._chances(i, state, n) if learner.strategy.random else (None, state["t"])
            joining = None
            if learner.strategy.grows:
                room = n if learner.budget is None else min(n, learner.budget - state["n_support"])
                joining = np.empty(room, np.int64), np.empty((room, outputs)), np.empty(outputs), np.empty(room)
            specs.append((state, self.kernels[i], self.specs[i], self.places[i], u, first, joining))
        return specs

    def _chances(self, i: int, state: State, n: int) -> tuple[np.ndarray, int]:
        """Random numbers of member i for n rows at least, and the row at which they start."""
        u, first = self.chances[i]
        if not first <= state["t"] <= first + len(u) - n:
            first = state["t"]
            self.chances[i] = u, first = uniforms(state["seed"], first, max(n, CHANCES), SeedStream.BUDGET), first
        return u, first

    def _settle(self, block: Any, specs: list[Any], joined: list[int]) -> None:
        """Enter into the states which rows of the block became support vectors."""
        for i, (learner, state, q) in enumerate(zip(self.learners, self.states, joined, strict=True)):
            if specs[i][-1] is not None:
                rows, coefficients, decay, born = specs[i][-1]
                put = functools.partial(self._put, block, i, rows[:q])
                learner.join(state, put, coefficients[:q], decay, born[:q])
        for learner, changed in zip(self.learners, self.pool.settle(block, self.states, self.places), strict=True):
            if changed:
                learner.derived.drop("expansion")  # it holds the former vectors
        self._seen = self._position()

    def _put(self, block: Any, i: int, rows: np.ndarray, n: int) -> None:
        """Rows of the block have joined member i from slot n on."""
        state, (degree, gamma, c), stop = self.states[i], self.kernels[i], n + len(rows)
        self._lengthen_places(i)
        self.places[i][n:stop] = block.arrays[0] + rows
        state["diag"][n:stop] = (gamma * block.arrays[3][rows] + c) ** degree if degree else 1.0

    def _lengthen_places(self, i: int) -> None:
        """As many places as the arrays of member i have now."""
        more = len(self.states[i]["support"]) - len(self.places[i])
        if more > 0:
            self.places[i] = np.pad(self.places[i], (0, more), constant_values=-1)

    def _position(self) -> list[tuple[int, int]]:
        return [(state["t"], state["n_support"]) for state in self.states]

    def _fill(self) -> None:
        """Add the vectors that the members have already, each once."""
        known: dict[bytes, int] = {}
        for own, state in zip(self.places, self.states, strict=True):
            new = []
            for j, vector in enumerate(state["support"][: state["n_support"]]):
                name = vector.tobytes()
                if name not in known:
                    known[name] = len(known)
                    new.append(j)
                own[j] = known[name]
            self.pool.enter(state["support"][new])


def _fourier_kernel(learner: Any, state: State) -> Any:
    return learner.map.resolved(map_entries(state))
