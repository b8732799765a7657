"""Base of all budget strategies, what they see of a row and of the support set, and their registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..checks import whole
from ..kernels import Kernel
from ..losses import Loss
from ..registry.names import Catalogue
from ..registry.parameters import WithParameters
from ..rows import Rows, dense
from ..state import undo as _undo
from ..state.nested import State
from ..state.schema import Array, Schema
from ..updates import Update

NOTHING = 1e-300  # k(x, x) up to which a row counts as 0
NOVELTY = 1e-10  # a row whose residual k(x, x) - k'K^-1 k is below this share of k(x, x) lies in the span of the others


@dataclass(slots=True)
class Row:
    """The row being learned, as a strategy sees it: numbers only."""

    i: int  # position in its block
    k: np.ndarray  # (n,) kernel values with the support vectors
    k_xx: float
    f: np.ndarray  # (C,) score before the update, after the decay
    tau: np.ndarray  # (C,) coefficients the update gives the row; all zero if it does not act
    u: float  # its uniform random number
    kind: str  # kind of the loss: binary, multiclass or regression
    value: float  # loss
    gradient: np.ndarray  # (C,) derivative of the loss


class SupportSet:
    """The support vectors while a block is learned: f = sum_j scale alpha_j k(s_j, .), slots 0 to n - 1 in use.

    Attributes
    ----------
    K : (m, capacity)
        Kernel values of the block's rows with the slots; a slot that changes gets its new column for the later rows.
    G : (m, m)
        Kernel values of the block's rows with each other.
    alpha : (C, capacity)
        Coefficients, up to one factor ``scale`` (C,) per output, which makes a decay cheap.
    diag : (capacity,)
        k(s_j, s_j).
    Z : (m, P) or None
        Random features of the block's rows, for strategies that use them.
    state : dict
        The model's state; entries named ``budget_...`` belong to the strategy.
    """

    def __init__(self, state: State, kernel: Kernel, X: Rows, K: np.ndarray, G: np.ndarray, Z: np.ndarray | None):
        self.state, self.kernel, self.X, self.K, self.G, self.Z = state, kernel, X, K, G, Z
        self.alpha, self.scale = state["alpha"], state["scale"]
        self.support, self.diag = state["support"], state["diag"]
        self.capacity = self.alpha.shape[1]

    def scores(self, i: int) -> np.ndarray:
        """f of row i, (C,)."""
        f = self.alpha[:, : self.n] @ self.K[i, : self.n]
        if self.Z is not None:
            f = f + self.state["budget_w"] @ self.Z[i]
        return f.astype(float) * self.scale

    @property
    def n(self) -> int:
        return self.state["n_support"]

    @property
    def full(self) -> bool:
        return self.n == self.capacity

    @property
    def coefficients(self) -> np.ndarray:
        """(C, n) coefficients with their factor."""
        return self.alpha[:, : self.n] * self.scale[:, None]

    def shrink(self, factor: Any) -> None:
        """Multiply f by a number, or each output by its own; a factor outside a safe range is folded into alpha."""
        self.scale *= factor
        for c, s in enumerate(self.scale):
            if not 1e-6 < s < 1e6:
                for name in ("alpha", "budget_scores", "budget_w"):
                    if name in self.state:
                        self.state[name][c] *= s
                self.scale[c] = 1.0

    def add(self, delta: np.ndarray) -> None:
        """Add delta (C, n) to the coefficients."""
        self.alpha[:, : self.n] += delta / self.scale[:, None]

    def place(self, slot: int, row: Row, coefficient: np.ndarray) -> None:
        """The row becomes support vector ``slot``, replacing what was there, with the coefficient (C,)."""
        if slot == self.n:
            self.state["n_support"] += 1
        _undo.rows(self.support, slice(slot, slot + 1))
        self.support[slot] = dense(self.X[row.i : row.i + 1])[0]
        self.alpha[:, slot] = coefficient / self.scale
        self.diag[slot] = row.k_xx
        self.K[row.i + 1 :, slot] = self.G[row.i, row.i + 1 :]
        if "budget_gram" in self.state:
            self.enter(slot, row.k, row.k_xx)

    def enter(self, slot: int, k: np.ndarray, k_xx: float) -> None:
        """Write row and column ``slot`` of the Gram matrix: k (n,) with the other vectors, k_xx with itself."""
        gram = self.state["budget_gram"]
        gram[slot, : len(k)] = gram[: len(k), slot] = k
        gram[slot, slot] = k_xx


class Budget(WithParameters):
    """Base of all strategies: immutable parameters and one method, ``absorb``.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of loss the strategy can serve.
    least : int
        Smallest budget it makes sense for.
    n_memory : int
        Numbers it remembers between rows.
    turns : bool
        Whether vectors leave in turn: the last number that it remembers is then the slot of the oldest.
    gram : bool
        Whether it keeps the Gram matrix of the support vectors.
    random : bool
        Whether it needs a random number per row.
    grows : bool
        True when a support vector never leaves and never changes: the budget is a limit only, and may be None.
    restless : bool
        Whether it must also see rows on which the update does nothing.
    precise : bool
        Whether it solves with Gram matrices, which needs float64 even for float32 rows.
    """

    name: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ("binary", "multiclass", "regression")
    least: ClassVar[int] = 1
    n_memory: ClassVar[int] = 0
    turns: ClassVar[bool] = False
    gram: ClassVar[bool] = False
    random: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    restless: ClassVar[bool] = False
    precise: ClassVar[bool] = False

    def check(self, budget: int | None, kernel: Kernel, loss: Loss, update: Update) -> None:
        """Raise ValueError for parameters out of range or parts that do not go together."""
        own = type(self).__name__
        if budget is None:
            if not self.grows:
                raise ValueError(
                    f"{own} needs a budget: give an integer, or a strategy that may grow (stop, spa, oskl)"
                )
        elif whole("budget", budget, optional=True) < self.least:
            raise ValueError(f"{own} needs a budget of at least {self.least}, got {budget}")
        if loss.kind not in self.kinds:
            raise ValueError(f"{own} is defined for {' and '.join(self.kinds)} losses only, not for {loss.name!r}")

    def begin(self, state: State, capacity: int, kernel: Kernel) -> State:
        """The entries that the strategy keeps in the state, for an empty support set: zeros."""
        schema: dict[str, Any] = self.schema(state, capacity, kernel)
        return {name: np.zeros(entry.shape, entry.dtype) for name, entry in schema.items()}

    def sized(self, budget: int | None) -> Budget:
        """The strategy for a support set of at most ``budget`` vectors; itself, unless it depends on the number.

        The arrays of a state start small, so their length says nothing about the budget until the support set is full.
        """
        return self

    def schema(self, state: State, capacity: int, kernel: Kernel) -> Schema:
        """Shapes and ranges of the arrays that the strategy keeps; the other entries of the state have been checked."""
        entries: Schema = {"budget_memory": Array((self.n_memory,), low=0.0)}
        if self.turns:
            turn = np.ravel(state.get("budget_memory", 0.0))[-1:]
            if not ((turn >= 0) & (turn < capacity) & (turn == np.floor(turn))).all():
                raise ValueError(f"state_['budget_memory'] says that slot {turn} of {capacity} is the oldest")
            entries["budget_memory"] = Array((self.n_memory,))
        if self.gram:
            entries["budget_gram"] = Array((capacity, capacity), str(state["alpha"].dtype))
        return entries

    def absorb(self, S: SupportSet, row: Row) -> None:
        """Take the row with its coefficients ``row.tau`` into the support set, within the budget."""
        raise NotImplementedError

    def native(self) -> tuple[str, list[float]] | None:
        """Name and parameters of the compiled twin, which has the strategy's own name; None where there is none."""
        return self.name, []


CATALOGUE = Catalogue("strategy", Budget)
register, names, get = CATALOGUE.register, CATALOGUE.names, CATALOGUE.get
