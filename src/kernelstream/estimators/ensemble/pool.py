"""Members that share work: kernel expansions whose support vectors lie in one pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import budgets
from ...passes.ensemble.python import Hedge
from ...random import Stream, uniforms
from ...rows import Rows
from .._contract.base import State
from ..budget.base import KernelExpansion

# Strategies that need only numbers about their vectors, and nothing between two rows.
REMOVING = (budgets.RemoveRandom, budgets.BOGD, budgets.Forgetron, budgets.RemoveSmallest, budgets.RemoveRedundant)
POOLED = (*REMOVING, budgets.Replace, budgets.Stop, budgets.OSKL, budgets.SPA)
CHANCES = 2048  # random numbers made at once


class ExpansionFamily:
    """Members i with ``f_i(x) = sum_j alpha_ij k_i(s_ij, x)``: one product of rows and vectors serves all kernels.

    Attributes
    ----------
    where : list
        Positions of the members among all.
    """

    def __init__(self, members: list[Any], where: list[int], ops: Any):
        self.where, self.ops = where, ops
        self.members = [members[i] for i in where]
        self.states: list[State] = [member._state for member in self.members]
        first = self.states[0]
        self.kernels = [ops.Pool.kernel(member._learner.kernel(member._state)) for member in self.members]
        self.specs: list[Any] = [_spec(member, ops) for member in self.members]  # not None: see `find`
        self.pool = ops.Pool(
            first["n_features"], first["support"].dtype, any(degree == 0 for degree, *_ in self.kernels)
        )
        self.places = [np.full(len(state["support"]), -1, np.int32) for state in self.states]
        self.chances: list[tuple[np.ndarray, int]] = [(np.zeros(0), 0) for _ in self.states]
        self._fill()
        self._seen = self._position()

    def fits(self) -> bool:
        """Whether the members are as this family left them."""
        return self._seen == self._position()

    def rows(self) -> int:
        """Rows that should be learned together."""
        return self.pool.rows()

    def learn(self, X: Rows, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Learn rows, with weights (m, n) of these members; returns the scores before each update, (m, n, C)."""
        F = np.empty((len(self.states), len(y), self.states[0]["n_outputs"]))
        block, specs = self.pool.block(X, True), self._specs(len(y))
        self._settle(block, specs, self.ops.pool_pass(block, 0, y, weights, specs, F))
        return F

    def learn_drawn(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        chances: np.ndarray,
        able: np.ndarray,
        smoothing: float,
        only_drawn: bool,
        whole: State,
        hedge: Hedge,
    ) -> np.ndarray:
        """Learn rows, all members being in this family; scores of the whole, (n, C).

        Members are drawn where ``chances`` (n, m) are small, and learn if ``able`` (m,) to. With ``only_drawn``
        a row counts for the weights of those drawn alone.
        """
        F = np.empty((len(self.states), len(y), self.states[0]["n_outputs"]))
        block, specs = self.pool.block(X, True), self._specs(len(y))
        joined, scores = self.ops.pool_hedge_pass(
            block, y, weight, chances, able, smoothing, only_drawn, specs, F, whole, hedge
        )
        self._settle(block, specs, joined)
        return scores

    def scores(self, X: Rows) -> np.ndarray:
        """Scores of rows, (m, n, C); nothing is learned."""
        n = X.shape[0]
        F = np.empty((len(self.states), n, self.states[0]["n_outputs"]))
        block = self.pool.block(X, False)
        # a pass over rows of weight 0 changes nothing
        self.ops.pool_pass(block, 0, np.zeros(n), np.zeros((len(F), n)), self._specs(n), F)
        return F

    # ---------------------------------------------------------------- between blocks
    def _specs(self, n: int) -> list[Any]:
        """What the passes over n rows need to know about every member."""
        specs = []
        for i, (member, state) in enumerate(zip(self.members, self.states, strict=True)):
            outputs, capacity = state["alpha"].shape
            if len(self.places[i]) < capacity:
                self.places[i] = np.pad(self.places[i], (0, capacity - len(self.places[i])), constant_values=-1)
            u, first = self._chances(i, state, n) if member._learner.strategy.random else (None, state["t"])
            joining = None
            if member._learner.strategy.grows:
                room = n if member.budget is None else min(n, member.budget - state["n_support"])
                joining = np.empty(room, np.int64), np.empty((room, outputs)), np.empty(outputs), np.empty(room)
            specs.append((state, self.kernels[i], self.specs[i], self.places[i], u, first, joining))
        return specs

    def _chances(self, i: int, state: State, n: int) -> tuple[np.ndarray, int]:
        """Random numbers of member i for n rows at least, and the row at which they start."""
        u, first = self.chances[i]
        if not first <= state["t"] <= first + len(u) - n:
            first = state["t"]
            self.chances[i] = u, first = uniforms(state["seed"], first, max(n, CHANCES), Stream.BUDGET), first
        return u, first

    def _settle(self, block: Any, specs: list[Any], joined: list[int]) -> None:
        """Enter into the states which rows of the block became support vectors."""
        for i, (member, state, q) in enumerate(zip(self.members, self.states, joined, strict=True)):
            if specs[i][-1] is not None:
                rows, coefficients, decay, born = specs[i][-1]
                rows = rows[:q]

                def put(n: int, i: int = i, rows: np.ndarray = rows) -> None:
                    self._put(block, i, n, rows)

                member._learner.join(state, put, coefficients[:q], decay, born[:q])
        for member, changed in zip(self.members, self.pool.settle(block, self.states, self.places), strict=True):
            if changed:
                member._cache.pop("expansion", None)  # it holds the former vectors
        self._seen = self._position()

    def _put(self, block: Any, i: int, n: int, rows: np.ndarray) -> None:
        """Rows of the block have joined member i from slot n on."""
        state, (degree, gamma, c) = self.states[i], self.kernels[i]
        capacity, stop = len(state["support"]), n + len(rows)
        if len(self.places[i]) < capacity:
            self.places[i] = np.pad(self.places[i], (0, capacity - len(self.places[i])), constant_values=-1)
        self.places[i][n:stop] = block.arrays[0] + rows
        state["diag"][n:stop] = (gamma * block.arrays[3][rows] + c) ** degree if degree else 1.0

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


def find(members: list[Any], outputs: int, ops: Any) -> ExpansionFamily | None:
    """The members with ``outputs`` outputs whose kernel values can come from one pool, if there are several."""
    if ops.Pool is None:
        return None
    groups: dict[Any, list[int]] = {}
    for i, member in enumerate(members):
        if _fits(member, outputs, ops):
            groups.setdefault(member._state["support"].dtype, []).append(i)
    largest = max(groups.values(), key=len, default=[])
    return ExpansionFamily(members, largest, ops) if len(largest) > 1 else None


def _fits(member: Any, outputs: int, ops: Any) -> bool:
    if not isinstance(member._learner, KernelExpansion) or type(member._learner.strategy) not in POOLED:
        return False
    state = member._state
    if member._learner.may_grow(state):  # its blocks must end where its arrays are full
        return False
    if state["n_outputs"] != outputs or state["n_features"] > ops.Pool.widest:
        return False
    if outputs == 1 and member._loss_now(state).kind == "multiclass":  # one class so far, encoded differently
        return False
    return ops.Pool.kernel(member._learner.kernel(state)) is not None and _spec(member, ops) is not None


def _spec(member: Any, ops: Any) -> Any:
    """The compiled twins of loss, update and strategy; None where one has none."""
    return ops.spec(member._loss_now(member._state), member._learner.update, member._learner.strategy).core
