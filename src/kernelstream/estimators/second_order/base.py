"""What second-order learners share: a feature map in front of sufficient statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import second_order
from ...checks import fraction
from ...core import threads
from ...rows import Rows
from ...second_order import RowRecursion, Rule
from ...state.change import Change
from ...state.schema import Schema
from .._contract.base import State
from .._contract.state import is_trained
from .._contract.warm_up import runs
from ..feature import MAP, LinearForm, LinearOnFeatures, map_entries

AT_ONCE = 512  # rows whose features are made together, where the window does not matter


class SecondOrder(LinearOnFeatures):
    """``w = A^-1 b`` on explicit features; a rule says what a row does to A and b."""

    _replaced, _by_row = second_order.REPLACED, second_order.BY_ROW

    lam: Any
    forgetting: float = 1.0
    intercept: bool = False

    # ---------------------------------------------------------------- hooks of a family
    @property
    def rule(self) -> Rule:
        """What a row does to A and b."""
        raise NotImplementedError

    def ridges(self) -> np.ndarray:
        """Values of the ridge, each with its own model."""
        return np.array([self.lam], dtype=float)

    def _forecast(self, state: State, F: np.ndarray, S: np.ndarray | None) -> np.ndarray:
        """Scores (n, k) of rows that are not learned, from raw scores F (n, J, k) and uncertainties S (n, heads)."""
        return F[:, 0]

    def _forecast_and_learn(
        self, state: State, F: np.ndarray, S: np.ndarray, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        """The same for rows being learned, before each update."""
        return self._forecast(state, F, S)

    # ---------------------------------------------------------------- the recursion
    def recursion(self, state: State) -> RowRecursion:
        """The engine's recursion on a state."""
        held: Any = self.derived.get("held")
        if held is None or held.state is not state:
            held = self.derived["held"] = self.ops.least_squares(state, self.rule, self.forgetting)
        return held

    def width(self, state: State) -> int:
        """Number of features, the constant among them."""
        return self.mapping(state).n_out + bool(self.intercept)

    def reset(self, state: State) -> None:
        outputs = state["n_outputs"]
        matrices = 1 if self.rule.shared else outputs
        second_order.start(state, self.width(state), outputs, matrices, self.ridges(), self.forgetting)
        self.derived.drop("held")

    def feature_rows(
        self, state: State, X: Rows, cuts: list[slice] | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """``(rows, Z)`` block by block, Z in float64; the constant comes first."""
        return self.ops.feature_rows(self.mapping(state), X, cuts, self.intercept)

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        y = np.ascontiguousarray(targets(state, y))
        scores = np.empty((X.shape[0], state["n_outputs"]))
        n = X.shape[0]
        second_order.announce(state, n)
        for run in runs(weight, n, lambda: self._grow(state, n)):
            recursion = self.recursion(state)
            for rows, Z in self._rows_to_learn(state, X[run], weight is None):
                rows = slice(run.start + rows.start, run.start + rows.stop)
                part = None if weight is None else weight[rows]
                F, S = recursion.learn(Z, y[rows], part)
                scores[rows] = self._forecast_and_learn(state, F, S, y[rows], part)
                state["t"] += len(Z) if part is None else int(np.count_nonzero(part))
        return scores

    def _rows_to_learn(self, state: State, X: Rows, all_count: bool) -> Iterator[tuple[slice, np.ndarray]]:
        """``(rows, Z)``, cut where the window will be full; on one thread Z is made in the window itself."""
        recursion, mapping = self.recursion(state), self.mapping(state)
        cuts = recursion.cuts(X.shape[0])
        stay = all_count and self.rule.shared and mapping.dtype == np.float64 and not self.intercept
        if cuts is None or not (recursion.in_window and stay) or threads.get_num_threads() > 1:
            if recursion.at_once:  # one call may fill several windows
                cuts = threads.cuts(X.shape[0], max(len(state["window"]), AT_ONCE))
            yield from self.feature_rows(state, X, cuts)
            return
        for rows in cuts:
            free = state["n_window"]
            yield rows, mapping(X[rows], self.ops, state["window"][free : free + rows.stop - rows.start])

    def score(self, state: State, X: Rows) -> np.ndarray:
        recursion = self.recursion(state)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, Z in self.feature_rows(state, X):
            scores[rows] = self._forecast(state, *recursion.score(Z, self._needs_uncertainty()))
        return scores

    def weights(self, state: State) -> np.ndarray:
        """Weights of the features, (J, outputs, r)."""
        return self.recursion(state).weights()

    def coef(self, state: State) -> np.ndarray:
        """Weights ``A^-1 b`` of the features, (r,) or (outputs, r); with several lam those of each, (J, …, r)."""
        w = self.weights(state)
        w = w[:, 0] if w.shape[1] == 1 else w
        return w[0] if len(w) == 1 else w

    def linear_form(self, state: State, dtype: Any) -> LinearForm | None:
        if not is_trained(state) or len(self.ridges()) > 1 or self._needs_uncertainty():
            return None
        weights = np.asarray(self.weights(state)[0], np.float64)
        offset = weights[:, 0] if self.intercept else np.zeros(len(weights))
        return self.mapping(state, dtype), weights[:, int(self.intercept) :], offset

    def _needs_uncertainty(self) -> bool:
        """Whether scores depend on how uncertain the model is of a row, so that they are not linear in the features."""
        return False

    # ---------------------------------------------------------------- maps that grow
    def _grow(self, state: State, n: int) -> int:
        """Let the map grow if it is time, at powers of two of the rows learned; rows until then, n if never."""
        if not getattr(self.map, "grows", False):
            return n
        t = state["t"]
        if t and t & (t - 1) == 0 and t > 64:
            self.derived.leave_device()
            grown = self.map.grown(map_entries(state), state["n_features"], t, float(self.ridges()[0]))
            if grown is not None:
                state |= {MAP + key: value for key, value in grown.items()}
                self.derived.drop("mapping")
                second_order.widen(state, self.width(state), self.forgetting)
        return (1 << t.bit_length()) - t

    def schema(self, state: State, trained: bool) -> Schema:
        schema, width = self.map_schema(state, trained)
        return schema | (self._statistics(state, width + bool(self.intercept)) if trained else {})

    def _statistics(self, state: State, r: int) -> Schema:
        """Schema of the statistics of r features."""
        outputs = state["n_outputs"]
        matrices = 1 if self.rule.shared else outputs
        return second_order.schema(state, r, outputs, matrices, len(self.ridges()))

    # ---------------------------------------------------------------- parameters
    def widen(self, state: State, d: int) -> dict[Any, Any] | None:
        entries = map_entries(state)
        if self.map.extends and self.map.width(entries, d) != self.map.width(entries, state["n_features"]):
            raise ValueError(
                f"{self.context.name} on {self.map!r} cannot take more columns once it has learned, as it keeps "
                f"sums of products of all of them: provide all columns from the start"
            )
        return super().widen(state, d)

    def check_parameters(self) -> None:
        ridges = self.ridges()
        if ridges.ndim != 1 or not len(ridges) or not (np.isfinite(ridges).all() and (ridges > 0).all()):
            raise ValueError(f"lam must be > 0, got {self.lam!r}")
        fraction("forgetting", self.forgetting, one=True)


def targets(state: State, y: np.ndarray) -> np.ndarray:
    """Encoded targets (n,) or (n, k) as numbers for every output, (n, k): labels are ±1, one against the rest."""
    if "classes" in state and state["n_outputs"] > 1:
        return np.where(y[:, None] == np.arange(state["n_outputs"]), 1.0, -1.0)
    return y if y.ndim == 2 else y[:, None]


def mix_matrices(state: State, change: Change) -> None:
    """Change of outputs where each has its own matrix: a new one is untrained, the others keep what they learned."""
    fresh, source, sign = change.fresh, change.source, change.sign
    second_order.flush(state, 1.0)
    state["gram"] = np.where(fresh[:, None, None], 0.0, state["gram"][source])
    state["b"] = sign[:, None] * state["b"][source]
    state["yy"] = np.where(fresh, 0.0, state["yy"][source])
    for name in ("window_c", "window_b"):
        state[name] = np.zeros((len(state["window"]), len(change)))
