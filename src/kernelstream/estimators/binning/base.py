"""What the learners on random binning features share: everything but the target."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ... import solvers
from ..._checks import positive, whole
from ..._progress import SolverBar
from ...core import grids as _grids
from ...core.cell_matrix import MOST_CELLS, CellMatrix
from ...core.threads import cuts
from ...features import RandomBinning
from ...features.binning import columns_per_grid, most_threads
from ...kernels.bandwidth import MEDIAN_ROWS
from ...losses import Loss
from ...random import generator
from ...rows import Rows, host
from ...solvers import ConjugateGradient, CoordinateDescent, NewtonCG, Online, Solver
from ...state import undo as _undo
from ...state.change import Change
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check, length
from ...state.turns import in_turn
from ...updates import unwrap
from .._contract.base import WARM_UP, State, StreamEstimator
from .._contract.batch import CALLER, counted
from .._contract.state import scales
from ..feature import mix_outputs
from .fit import best_constant, carry_over, largest_penalty, make_features, solve, without_zeros
from .search import Search

_BLOCK = 256  # rows of the online pass
_SCORED = 32_768  # rows scored at once
# A row moves R weights; AdaGrad's automatic step, which asks for a number of weights, is then 14/sqrt(6 R),
# 5.7/sqrt(R): 4 to 8 do best on ijcnn1, covtype, letter, cadata, casp and a9a with 32 and with 128 grids.
_LIKE_DENSE = 6
# Of 0.5 to 16 times the median rule 4 is best or next to it on those sets, cod-rna and mnist (all but a9a, where it
# costs 0.8 points); on covtype and letter it halves the mistakes of the rule itself, or nearly.
_NARROWER = 4.0

#: Solvers that find the constant score themselves, which rows in cells never seen are left with.
SOLVERS = (ConjugateGradient, NewtonCG, CoordinateDescent, Online)


def is_online(est: Any) -> bool:
    return isinstance(solvers.get(est.solver), Online)


class BinningEstimator(StreamEstimator):
    """What the classifier and the regressor share: everything but the target."""

    kernel: Any
    gamma: Any
    n_components: int
    lam: float | None
    solver: Any
    loss: Any
    warm_start: bool

    def _check_X(self, X: Any, reset: bool, least: int = 1) -> Rows:
        return host(super()._check_X(X, reset, least))  # cells are numbered here

    # ---------------------------------------------------------------- components
    @property
    def _solver(self) -> Solver:
        return self._cached("solver", lambda: solvers.get(self.solver))

    @property
    def _online(self) -> bool:
        return isinstance(self._solver, Online)

    @property
    def _at_once(self) -> bool:  # type: ignore[override]
        return not self._online

    @property
    def _update(self) -> Any:
        return self._cached("update", lambda: self._solver.rule)  # type: ignore[attr-defined]

    @property
    def _map(self) -> RandomBinning:
        return self._cached("map", lambda: RandomBinning(self.kernel, self.n_components, self.gamma))

    @property
    def _by_row(self) -> frozenset[str]:  # type: ignore[override]
        diagonal = self._online and unwrap(self._update)[0].diagonal
        return frozenset({"w", "G"}) if diagonal else frozenset()

    @property
    def _free(self) -> bool:
        """Whether the bandwidth is left to us, and with it the widths of the columns."""
        return isinstance(self.kernel, str) and self.gamma is None

    @property
    def _threads(self) -> int:
        return most_threads()

    @property
    def _columns(self) -> int:
        """Hashed columns per grid of the online solver."""
        return columns_per_grid(self._solver.n_columns, self.n_components)  # type: ignore[attr-defined]

    def _kernel(self, state: State) -> Any:
        return self._map.resolved({"gamma": state.get("gamma")})

    def _grids(self, state: State) -> _grids.Grids:
        def draw() -> _grids.Grids:
            d, dtype = state["n_features"], np.dtype(state["dtype"])
            return _grids.draw(self._kernel(state), state["seed"], d, self.n_components, dtype, state.get("width"))

        return self._cached("grids", draw)

    def _solver_loss(self) -> Loss:
        """The loss that the batch solver minimises for every output."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        whole("n_components", self.n_components)
        solver = self._solver
        solver.check()
        if not isinstance(solver, SOLVERS):
            names = ", ".join(repr(cls.name) for cls in SOLVERS)
            raise ValueError(f"random binning is solved by {names}; got {solver!r}, which is for fixed features")
        if self.lam is not None:
            positive("lam", self.lam)
        if self._online:
            columns_per_grid(solver.n_columns, self.n_components)  # type: ignore[attr-defined]
            if self.lam is not None:
                raise ValueError("solver='online' has no penalty of its own: give lam to the update, as OGD(lam=...)")
            if self.warm_start:
                raise ValueError("solver='online' goes on with partial_fit: leave warm_start at False")
        kernel = self._map.kernel_object
        if not hasattr(kernel, "pitches"):
            _grids.draw(kernel, 0, 1, 1, np.float64)  # says which kernels there are

    # ---------------------------------------------------------------- hooks of the online solver
    def _warm_up_rows(self) -> int:
        return WARM_UP if self._map.needs_data else 0

    def _estimate(self, state: State, X: Rows) -> None:
        """Bandwidth by its rule, after the columns are divided by their range where both are left to us."""
        state.pop("width", None)
        if self._free:
            state["width"] = _ranges(X)
            X = _divided(X, state["width"])
        state |= self._map.kernel_entries(X)
        if self._free:
            state["gamma"] *= _NARROWER

    def _reset(self, state: State) -> None:
        outputs = state["n_outputs"]
        weights = np.zeros((self._columns * self.n_components, outputs), state["dtype"])
        update, _ = unwrap(self._update)
        memory = update.memory(outputs, _LIKE_DENSE * self.n_components)
        state |= {"w": weights, "scale": np.ones(outputs), "memory": memory}
        if update.diagonal:
            state["G"] = weights.copy()

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        ops, grids, width = self._ops, self._grids(state), self._columns
        first = self._cached("first", lambda: width * np.arange(self.n_components)[:, None])  # column of each grid
        spec = self._cached(("spec", state["n_outputs"]), lambda: ops.spec(self._loss_now(state), self._update))
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in cuts(X.shape[0], _BLOCK):
            cells = ops.binning.bucket_cells(X[rows], grids, width, self._threads)
            if "G" in state:  # a row touches few weights, unless all shrink together
                touched = (cells + first).ravel()
                _undo.rows(state["w"], touched)
                _undo.rows(state["G"], touched)
            part = None if weight is None else weight[rows]
            scores[rows] = ops.binning.cell_pass(cells, width, y[rows], part, state, spec)
        return scores

    def _mix_outputs(self, state: State, change: Change) -> None:
        names = [name for name in ("w", "G") if name in state]
        for name in names:
            state[name] = state[name].T
        mix_outputs(state, change, unwrap(self._update)[0])
        for name in names:
            state[name] = np.ascontiguousarray(state[name].T)

    # ---------------------------------------------------------------- scores
    def _score(self, state: State, X: Rows) -> np.ndarray:
        if self._online:
            W = state["w"] * state["scale"].astype(state["w"].dtype)
            offset = state["center"][1] if "center" in state else 0.0
        else:
            W, offset = state["w"], state["offset"]
        return np.concatenate([self._cell_matrix(state, X[rows]).dot(W) for rows in cuts(X.shape[0], _SCORED)]) + offset

    def _cell_matrix(self, state: State, X: Rows) -> CellMatrix:
        ops, grids, threads = self._ops.binning, self._grids(state), self._threads
        if self._online:
            width = self._columns
            starts = width * np.arange(self.n_components + 1, dtype=np.int64)
            return CellMatrix(ops.bucket_cells(X, grids, width, threads), starts, ops, threads)
        table = self._cached("table", lambda: ops.cell_table(state["cells"], state["starts"]))
        return CellMatrix(ops.find_cells(X, grids, table, threads), state["starts"], ops, threads, missing=True)

    def _schema(self, state: State, trained: bool) -> Schema:
        schema = self._grid_schema(state, trained)
        if not trained:
            return schema
        outputs, dtype = state["n_outputs"], state["dtype"]
        if not self._online:
            return schema | self._batch_schema(state)
        update, _ = unwrap(self._update)
        weights = (self._columns * self.n_components, outputs)
        return (
            schema
            | {"w": Array(weights, dtype), "scale": scales(state), "memory": Array(update.memory(outputs).shape)}
            | {"G": Array(weights, dtype, low=0.0, optional=not update.diagonal)}
        )

    def _grid_schema(self, state: State, trained: bool) -> Schema:
        """What decides the grids besides the seed."""
        if not (trained and self._map.needs_data):
            return {}
        width: Schema = {"width": Array((state["n_features"],), low=POSITIVE)} if self._free else {}
        return width | self._map.kernel_schema()

    def _batch_schema(self, state: State) -> Schema:
        """Cells that have a weight: those of grid r have the columns starts[r], …, starts[r + 1] - 1."""
        D, outputs = length(state, "cells"), state["n_outputs"]
        schema: Schema = {"starts": Array((self.n_components + 1,), "int64", low=0, high=D, rising=True)}
        check({"starts": state.get("starts")}, schema)
        starts = state["starts"]
        if starts[0] != 0 or starts[-1] != D or (np.diff(starts) > MOST_CELLS).any():
            raise ValueError(f"state_['starts'] must lead from 0 to {D} by at most {MOST_CELLS} at a time")
        history = (length(state, "history"),)
        return (
            schema
            | {"cells": Array((D,), "uint64"), "w": Array((D, outputs), state["dtype"]), "offset": Array((outputs,))}
            | {"n_columns": Count(), "n_iter": Count(), "history": Array(history, free=True)}
            | {"lam": Number(0.0), "searched_lam": Number(0.0, optional=True)}
        )

    # ---------------------------------------------------------------- batch solvers
    def _start(self, X: Rows, declared: Any) -> None:
        old = self.__dict__.get("_state")
        super()._start(X, declared)
        if self.warm_start and old is not None and "cells" in old and old["n_features"] == X.shape[1]:
            kept = {name: old[name] for name in ("seed", "gamma", "width", "searched_lam") if name in old}
            self._state |= kept
            self._cache["old"] = old

    @staticmethod
    def _error(F: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
        """What the search makes small, for scores F and targets Y (n, C)."""
        raise NotImplementedError

    def _run(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if self._online:
            return super()._run(X, y, weight)
        X, y, weight = counted(X, y, weight)
        self._solve(self._state, X, *self._batch_target(self._state, y, weight), self._cache.pop("old", None))
        self._link_from(X, y, weight)
        return np.empty(0)

    def _solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None, old: State | None) -> None:
        solver, loss, ops = self._solver, self._solver_loss(), self._ops
        outputs = Y.shape[1]
        offset = state["offset"] = best_constant(Y, weight, loss)
        if "gamma" not in state:
            self._choose_bandwidth(state, X, Y, weight)
        lam = self.lam if self.lam is not None else state.get("searched_lam")
        relative = solver.name == "cd" and self.lam is None
        if lam is None:
            search = self._search(state, X, Y, weight)
            lam = state["searched_lam"] = search.penalty(state.get("gamma"), self._kernel(state), relative)
        features = make_features(X, self._grids(state), ops, self._threads)
        if relative:
            lam = max(lam * largest_penalty(features, Y, weight, loss, offset), 1e-12)
        start = None
        if old is not None and old["w"].shape[1] == outputs:
            start = carry_over(old, features.keys, features.Z.starts).astype(state["dtype"])
        label = f"{type(self).__name__}, {features.Z.shape[1]:,} columns"
        with SolverBar(label) as report:
            found = solve(
                features, Y, weight, loss, float(lam), solver, offset, start, state["dtype"], ops, state["seed"], report
            )
        if not found.converged:
            warnings.warn(
                f"{type(solver).__name__} did not reach tol={solver.tol:g} in {solver.max_iter} iterations; "
                f"raise max_iter, tol or lam",
                ConvergenceWarning,
                stacklevel=CALLER,
            )
        keys, starts, W = features.keys, features.Z.starts, found.W.astype(state["dtype"], copy=False)
        state |= {"n_columns": len(keys), "lam": float(lam), "n_iter": found.n_iter, "history": np.array(found.history)}
        if solver.name == "cd":
            keys, starts, W = without_zeros(keys, starts, W)
        state |= {"cells": keys, "starts": starts, "w": np.ascontiguousarray(W), "t": X.shape[0]}

    def _search(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> Search:
        fixed = (self._solver_loss(), self._solver, self._error, np.dtype(state["dtype"]), state["seed"], self._ops)
        return Search(X, Y, weight, self._kernel_of, state.get("width"), *fixed, self._threads)

    def _kernel_of(self, gamma: float) -> Any:
        return self._map.resolved({"gamma": gamma})

    def _choose_bandwidth(
        self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None, width: np.ndarray | None = None
    ) -> None:
        """Enter a bandwidth, found on rows X; ``width`` is that of the columns where X are only some of the rows."""
        if self._free:
            state["width"] = _ranges(X) if width is None else width
            some = X[np.sort(generator(state["seed"], 4).permutation(X.shape[0])[:MEDIAN_ROWS])]
            median = self._map.kernel_entries(_divided(some, state["width"]))["gamma"]
            state["gamma"] = self._search(state, X, Y, weight).bandwidth(median)
        elif self._map.needs_data:
            state |= self._map.kernel_entries(X)

    # ---------------------------------------------------------------- what was found
    @property
    @in_turn
    def coef_(self) -> Any:
        """Weights (outputs, columns); sparse for solver "cd", whose columns are the cells with a weight."""
        W = self.state_["w"].T if not self._online else (self.state_["w"] * self.state_["scale"]).T
        return sp.csr_matrix(W) if self._solver.name == "cd" else W

    @property
    def gamma_(self) -> float:
        """The bandwidth in use (of columns divided by their range, if it was left to the model)."""
        state = self.state_
        return float(state["gamma"]) if "gamma" in state else float(self._map.kernel_object.gamma)

    @property
    def lam_(self) -> float:
        """The penalty in use."""
        if "lam" not in self.state_:
            raise AttributeError("the online solver has no penalty of its own")
        return self.state_["lam"]

    @property
    def history_(self) -> np.ndarray:
        """Course of a batch solver: relative residuals ("cg") or objectives ("newton-cg", "cd"), one per iteration."""
        if "history" not in self.state_:
            raise AttributeError("the online solver keeps no history: learn returns the scores before each update")
        return self.state_["history"]

    @property
    def n_iter_(self) -> int:
        """Iterations of a batch solver."""
        if "n_iter" not in self.state_:
            raise AttributeError("the online solver has no iterations")
        return self.state_["n_iter"]


def _ranges(X: Rows) -> np.ndarray:
    """Width of every column, (d,); 1 for a column that does not vary."""
    if sp.issparse(X):
        low, high = (np.asarray(bound.todense()).ravel() for bound in (X.min(axis=0), X.max(axis=0)))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    width = high.astype(np.float64) - low
    return np.where(width > 0, width, 1.0)


def _divided(X: Rows, width: np.ndarray) -> Rows:
    return sp.csr_array(X.multiply(1 / width)) if sp.issparse(X) else X / width.astype(X.dtype)
