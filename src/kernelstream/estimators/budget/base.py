"""What the learners in the kernel expansion share: the support set, its budget, the pass over blocks of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ... import budgets, updates
from ...budgets import Budget
from ...budgets.projection import some_basis
from ...core import threads
from ...core.overflow import require_finite
from ...features import Mapping
from ...passes.spec import Told
from ...random import SeedStream, uniforms
from ...rows import Rows
from ...state.change import Change
from ...state.schema import POSITIVE, Array, Count, Number, Schema, anything, check, foreign, length
from ...updates import NormAdaGrad, Update
from .._contract.base import State
from .._contract.deviations import STANDARD, UNIT, check_center, deviation, in_units
from .._contract.kernel import WithKernel
from .._contract.shown import shown
from .._contract.state import blank, centres, scales
from .._contract.warm_up import WARM_UP

SMALLEST = 64  # vectors for which an unbounded support set has room at first
FIRST_ROOM = 1024  # vectors for which one with a budget has room at first: there may be Gram matrices of that size

MATRICES = ("budget_gram", "budget_basis", "budget_factor", "budget_z")
COPIED = 1 << 20  # bytes up to which such a matrix is copied before a call; a larger one is recomputed after an undo

# Entries with a place for every vector, and the axes along which.
SLOTS = {
    "support": (0,),
    "alpha": (1,),
    "diag": (0,),
    "born": (0,),
    "budget_gram": (0, 1),
    "budget_basis": (0, 1),
    "budget_factor": (0, 1),
    "budget_scores": (1,),
    "budget_z": (0,),
}


class KernelExpansion(WithKernel):
    """A support set within its budget, and the pass over blocks of rows."""

    prefix = "kernel_"
    _by_row = frozenset({"support"})
    auto_strategy: type[Budget] = budgets.Replace  # where there is a budget
    budget: int | None = None

    relative_weights = True

    def writes(self, state: State) -> tuple[frozenset[str], frozenset[str]]:
        """Matrices that follow from the support vectors are made again, where a copy costs more than learning a row."""
        merged = isinstance(self.strategy, budgets.Merge)  # kernel values of merged vectors have other errors
        names = () if merged else MATRICES
        large = frozenset(name for name in names if name in state and state[name].nbytes > COPIED)
        return large, self._by_row

    def put_back(self, state: State, remake: bool) -> None:
        super().put_back(state, remake)
        n, names = state.get("n_support", 0), self.writes(state)[0]
        if not (remake and names):
            return
        S = state["support"][:n]
        gram = np.asarray(self.kernel(state).pairwise(S, S), np.float64)
        made: dict[str, np.ndarray] = {"budget_gram": gram}
        if "budget_basis" in names:
            made["budget_basis"] = some_basis(gram)
        if "budget_factor" in names:
            made["budget_factor"] = np.linalg.cholesky(gram)
        if "budget_z" in names:
            made["budget_z"] = self._features(state, S)
        for name in names:
            value = made[name]
            state[name] = np.zeros_like(state[name])
            state[name][:n, : value.shape[1]] = value

    # ---------------------------------------------------------------- parts
    @cached_property
    def strategy(self) -> Budget:
        """What happens when the set is full."""
        given = self.parameters.get("strategy", "auto")
        if isinstance(given, str) and given == "auto":
            found: Budget = budgets.Stop() if self.budget is None else self.auto_strategy()
        else:
            found = budgets.get(given)
        return found.sized(self.budget)

    @cached_property
    def update(self) -> Update:
        """The coefficients with which a row joins."""
        given = self.parameters.get("update", "auto")
        return NormAdaGrad() if given == "auto" else updates.get(given)

    def expansion(self, state: State) -> Any:
        return self.derived.cached("expansion", lambda: self.ops.Expansion(self.kernel(state), state))

    def _features(self, state: State, X: Rows) -> np.ndarray:
        """Random features of rows, for the strategies that use them."""

        def build() -> Mapping:
            strategy: Any = self.strategy
            return strategy.mapping(self.kernel(state), state["n_features"], state["alpha"].dtype, state["seed"])

        return self.derived.cached("mapping", build)(X, self.ops)

    def check_parameters(self) -> None:
        if "center" in self.parameters:
            check_center(self.parameters["center"])
        update, loss = self.update, self.context.loss_for(2)
        if update.diagonal or isinstance(update, updates.Averaged):
            raise ValueError(
                f"{self.context.name} keeps a kernel expansion and needs an update of the form (decay, tau), "
                f"such as OGD, Perceptron or NormAdaGrad; {type(update).__name__} works on explicit features only"
            )
        update.check(loss)
        self.strategy.check(self.budget, self.given.kernel_object, loss, update)

    # ---------------------------------------------------------------- rows
    @property
    def _in_deviations(self) -> bool:
        """Whether targets are divided by their deviation."""
        return self.parameters.get("center") == STANDARD

    def warm_up_rows(self) -> int:
        rows = super().warm_up_rows()
        return max(rows, WARM_UP) if self._in_deviations else rows

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        super().start_targets(state, y, weight)
        if self._in_deviations:
            state[UNIT] = deviation(y)
            state["center"][1] /= state[UNIT]

    def reset(self, state: State) -> None:
        strategy, outputs = self.strategy, state["n_outputs"]
        capacity = SMALLEST if self.budget is None else min(self.budget, FIRST_ROOM)
        dtype = "float64" if strategy.precise else state["dtype"]
        state |= blank(self.support_schema(state, capacity, dtype))
        state |= {"scale": np.ones(outputs), "n_support": 0, "memory": self.update.memory(outputs)}
        if getattr(strategy, "average", False):
            state["born"] = np.zeros(capacity)
        if self.budget is None:
            state["warned"] = 0
        if self._in_deviations:  # that of a member stays 1: the whole divides the targets
            state.setdefault(UNIT, 1.0)
        state |= strategy.begin(state, capacity, self.kernel(state)) | blank(centres(self))
        self.derived.drop("expansion")

    @in_units
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X = X.astype(state["support"].dtype, copy=False)
        expansion, strategy = self.expansion(state), self.strategy
        n, first = X.shape[0], state["t"]
        chances = uniforms(state["seed"], first, n, SeedStream.BUDGET) if strategy.random else None
        scores = np.empty((n, state["n_outputs"]))
        for rows in self._cuts(state, n, expansion):
            block = expansion.cut(X, rows)
            part = None if weight is None else weight[rows]
            u = None if chances is None else chances[state["t"] - first :][: rows.stop - rows.start]
            targets = Told(y[rows], part, u)
            if strategy.grows:
                scores[rows] = self._grow(state, expansion, block, targets)
            else:
                Z = self._features(state, X[rows]) if "budget_w" in state else None
                scores[rows] = self.ops.budget_pass(expansion, block, Z, targets, state, self.spec(state))
        return scores

    def _cuts(self, state: State, n: int, expansion: Any) -> Iterator[slice]:
        """Blocks of n rows, cut off where the arrays might be full; then they are made longer, up to the budget."""
        start = 0
        while start < n:
            self._lengthen(state)  # the budget may have been raised
            size = expansion.block
            if self.may_grow(state):
                size = min(size, state["alpha"].shape[1] - state["n_support"])
            rows = slice(start, min(n, start + size))
            yield rows
            self._lengthen(state)
            start = rows.stop

    def may_grow(self, state: State) -> bool:
        """Whether the arrays are shorter than the budget allows; sets that only grow look after themselves."""
        return not self.strategy.grows and self.budget is not None and state["alpha"].shape[1] < self.budget

    def _lengthen(self, state: State) -> None:
        if self.may_grow(state) and state["n_support"] == state["alpha"].shape[1]:
            self._make_room(state, state["n_support"] + 1)

    # ---------------------------------------------------------------- support sets that only grow
    def _grow(self, state: State, expansion: Any, X: Rows, targets: Told) -> np.ndarray:
        n, t, (y, weight, _) = state["n_support"], state["t"], targets
        alpha = state["alpha"][:, :n]
        M = None
        if "born" in state:
            F = expansion.scores(X, state, np.concatenate([alpha, alpha * state["born"][:n].astype(alpha.dtype)]))
            F, M = np.split(F, 2, axis=1)
            F, M = F * state["scale"], M * state["scale"]
        else:
            F = expansion.scores(X, state, alpha) * state["scale"]
        room = len(y) if self.budget is None else self.budget - n
        G, spec = expansion.among(X), self.spec(state)
        _, joined, coefficients, decay = self.ops.expansion_pass(F, G, targets, spec, state, room, M, stop=False)
        counted = np.ones(len(y), bool) if weight is None else weight > 0
        state["t"] += int(np.count_nonzero(counted))
        born = t + np.cumsum(counted)[joined]
        self.join(state, lambda start: expansion.put(X, joined, state, start), coefficients, decay, born)
        return F

    def join(
        self, state: State, put: Callable[[int], None], coefficients: np.ndarray, decay: np.ndarray, born: np.ndarray
    ) -> None:
        """Rows join the set with coefficients (q, C); ``put(n)`` writes their vectors from slot n on.

        The others shrink by decay (C,); born (q,) says when each row came.
        """
        shrink(state, decay)
        if not len(coefficients):
            return
        n = state["n_support"]
        new = n + len(coefficients)
        self._make_room(state, new)
        put(n)
        require_finite(state["diag"][n:new])
        state["alpha"][:, n:new] = coefficients.T / state["scale"][:, None]
        if "born" in state:
            state["born"][n:new] = born
        state["n_support"] = new
        self._warn(state, self.strategy)

    def _make_room(self, state: State, n: int) -> None:
        """Double the support arrays until n vectors fit, up to the budget."""
        held = capacity = state["alpha"].shape[1]
        while capacity < n:
            capacity *= 2
        if self.budget is not None:
            capacity = min(capacity, self.budget)
        if capacity == held:
            return
        for name, axes in SLOTS.items():
            if name in state:
                wider = [(0, capacity - held if axis in axes else 0) for axis in range(state[name].ndim)]
                state[name] = np.pad(state[name], wider)

    def _warn(self, state: State, strategy: Any) -> None:
        if self.budget is None and strategy.warn_at is not None and state["n_support"] > strategy.warn_at:
            if not state["warned"]:
                warnings.warn(
                    f"the support set of {self.context.name} has passed {strategy.warn_at} vectors and keeps "
                    f"growing, so that rows take longer and longer. Give a budget, or raise warn_at of the strategy.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            state["warned"] = 1

    # ---------------------------------------------------------------- scoring
    def coefficients(self, state: State) -> np.ndarray:
        """Coefficients in the decision function, (n_outputs, n_support)."""
        n = state.get("n_support", 0)
        if n == 0:
            return np.zeros((state["n_outputs"], 0))
        alpha = state["alpha"][:, :n] * state["scale"][:, None].astype(state["alpha"].dtype)
        if "born" in state:
            alpha = alpha * (1.0 - state["born"][:n] / max(state["t"], 1)).astype(alpha.dtype)
        return alpha

    def score(self, state: State, X: Rows) -> np.ndarray:
        X = X.astype(state["support"].dtype, copy=False)
        expansion, alpha = self.expansion(state), self.coefficients(state)
        scores = np.empty((X.shape[0], len(alpha)))
        for rows in threads.cuts(X.shape[0], 512):
            part = expansion.cut(X, rows)
            scores[rows] = expansion.scores(part, state, alpha)
            if "budget_w" in state:
                scores[rows] += (self._features(state, X[rows]) @ state["budget_w"].T) * state["scale"]
        if "center" in state:
            scores += state["center"][1]
        return scores * state[UNIT] if UNIT in state else scores

    def schema(self, state: State, trained: bool) -> Schema:
        schema = self.kernel_schema(state, trained)
        if not trained:
            return schema
        if self._in_deviations:
            schema |= {UNIT: Number(POSITIVE)}
        strategy = self.strategy
        capacity = self._capacity(state)
        dtype = "float64" if strategy.precise else state["dtype"]
        schema |= self.support_schema(state, capacity, dtype)
        schema["memory"] = Array(self.update.memory(state["n_outputs"]).shape)
        if getattr(strategy, "average", False):
            schema["born"] = Array((capacity,), low=0.0)
        if self.budget is None:
            schema["warned"] = Count(0, 1)
        if foreign(strategy):
            schema |= anything(name for name in state if name.startswith("budget_"))
        check({name: state[name] for name in schema if name in state}, schema)  # the code below relies on these
        return schema | strategy.schema(state, capacity, self.kernel(state)) | centres(self)

    def _capacity(self, state: State) -> int:
        """Support vectors for which there is room now, within the budget."""
        room = max(1, length(state, "alpha", -1))
        if self.budget is not None and room > self.budget:
            raise ValueError(f"the state has room for {room} support vectors, the budget is {self.budget}")
        return room

    def support_schema(self, state: State, capacity: int, dtype: str) -> Schema:
        """The support vectors and their coefficients."""
        return {
            "support": Array((capacity, state["n_features"]), dtype),
            "alpha": Array((state["n_outputs"], capacity), dtype),
            "scale": scales(state),
            "diag": Array((capacity,), dtype, low=0.0),
            "n_support": Count(0, capacity),
        }

    def mix_outputs(self, state: State, change: Change) -> None:
        for name in ("alpha", "budget_scores", "budget_w"):
            if name in state:
                state[name] = change.rows(state[name], state["scale"])
        state["scale"] = np.ones(len(change))
        state["memory"] = self.update.carry(state["memory"], change)


# -------------------------------------------------------------------- what the estimators say of the support set
@shown
def support_vectors(learner: KernelExpansion, state: State) -> np.ndarray:
    """Support vectors, (n_support, d)."""
    return state["support"][: state.get("n_support", 0)].copy()


@shown
def n_support(learner: KernelExpansion, state: State) -> int:
    """Number of support vectors."""
    return int(state.get("n_support", 0))


dual_coef = shown(KernelExpansion.coefficients)


def shrink(state: State, decay: np.ndarray) -> None:
    """Multiply the function by decay (C,); folded into the coefficients before it leaves a safe range."""
    state["scale"] *= decay
    for c, s in enumerate(state["scale"]):
        if not 1e-6 < s < 1e6:
            state["alpha"][c] *= s
            state["scale"][c] = 1.0
