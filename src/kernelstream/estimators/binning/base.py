"""Random binning features solved on all rows at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...checks import positive, whole
from ...core import grids as _grids
from ...core.cell_matrix import MOST_CELLS, CellMatrix
from ...core.threads import cuts
from ...features.binning import most_threads
from ...kernels.bandwidth import MEDIAN_ROWS
from ...kernels.parameters import KernelParameters
from ...progress import SolverBar
from ...random import SeedStream, generator
from ...registry.caller import warn_unsolved
from ...rows import Rows, column_ranges, divided
from ...solvers import ConjugateGradient, CoordinateDescent, NewtonCG, best_constant
from ...solvers.search import Sample
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check, length
from .._contract.base import State
from .._contract.batch import Solved
from .fit import carry_over, largest_penalty, make_features, solve, without_zeros
from .search import Search

_SCORED = 32_768  # rows scored at once


class Binning(Solved):
    """Weights of the cells of all rows, which a solver finds."""

    solved_by = tuple(cls.name for cls in (ConjugateGradient, NewtonCG, CoordinateDescent))
    n_components: int
    lam: float | None
    warm_start: bool

    @cached_property
    def given(self) -> KernelParameters:
        """The kernel, and the bandwidth of one given by name."""
        return KernelParameters(self.parameters["kernel"], self.parameters["gamma"])

    @property
    def free(self) -> bool:
        """Whether the model chooses the bandwidth, and then also the widths of the columns."""
        return isinstance(self.given.kernel, str) and self.given.gamma is None

    @property
    def sparse(self) -> bool:
        """Whether the penalty is the L1 norm, so that most weights are 0."""
        return isinstance(self.solver, CoordinateDescent)

    def kernel(self, state: State) -> Any:
        """The kernel with its bandwidth."""
        return self.given.resolved({"gamma": state.get("gamma")})

    def grids(self, state: State) -> _grids.Grids:
        """The grids, made again from the seed."""

        def draw() -> _grids.Grids:
            d, dtype = state["n_features"], np.dtype(state["dtype"])
            return _grids.draw(self.kernel(state), state["seed"], d, self.n_components, dtype, state.get("width"))

        return self.derived.cached("grids", draw)

    def one_width(self) -> bool:
        return not self.free and self.given.takes_width

    def check_parameters(self) -> None:
        whole("n_components", self.n_components)
        kernel = self.given.kernel_object
        if not hasattr(kernel, "pitches"):
            _grids.draw(kernel, 0, 1, 1, np.float64)  # raises for kernels that have no grids
        self.check_solver()
        if self.lam is not None:
            positive("lam", self.lam)

    # ---------------------------------------------------------------- scores
    def score(self, state: State, X: Rows) -> np.ndarray:
        parts = [self._cell_matrix(state, X[rows]).dot(state["w"]) for rows in cuts(X.shape[0], _SCORED)]
        return np.concatenate(parts) + state["offset"]

    def _cell_matrix(self, state: State, X: Rows) -> CellMatrix:
        """Rows in their cells."""
        ops, grids, threads = self.ops.binning, self.grids(state), most_threads()
        table = self.derived.cached("table", lambda: ops.cell_table(state["cells"], state["starts"]))
        return CellMatrix(ops.find_cells(X, grids, table, threads), state["starts"], ops, threads, missing=True)

    def coef(self, state: State) -> Any:
        """Weights (outputs, columns); sparse for solver "cd", whose columns are the cells with a weight."""
        W = state["w"].T
        return sp.csr_matrix(W) if self.sparse else W

    def gamma(self, state: State) -> float:
        """The bandwidth in use (of columns divided by their range, if it was left to the model)."""
        return float(state["gamma"]) if "gamma" in state else float(self.given.kernel_object.gamma)

    def schema(self, state: State, trained: bool) -> Schema:
        """Cells that have a weight: those of grid r have the columns starts[r], …, starts[r + 1] - 1."""
        if not trained:
            return {}
        D, outputs = length(state, "cells"), state["n_outputs"]
        schema: Schema = {"starts": Array((self.n_components + 1,), "int64", low=0, high=D, rising=True)}
        check({"starts": state.get("starts")}, schema)
        starts = state["starts"]
        if starts[0] != 0 or starts[-1] != D or (np.diff(starts) > MOST_CELLS).any():
            raise ValueError(f"state_['starts'] must lead from 0 to {D} by at most {MOST_CELLS} at a time")
        history = (length(state, "history"),)
        grids: Schema = self.given.kernel_schema() if self.given.kernel_needs_data else {}
        if self.free:
            grids = grids | {"width": Array((state["n_features"],), low=POSITIVE)}
        return (
            schema
            | grids
            | {"cells": Array((D,), "uint64"), "w": Array((D, outputs), state["dtype"]), "offset": Array((outputs,))}
            | {"n_columns": Count(), "n_iter": Count(), "history": Array(history, free=True)}
            | {"lam": Number(0.0), "searched_lam": Number(0.0, optional=True)}
        )

    # ---------------------------------------------------------------- fit
    def start(self, state: State, before: State | None) -> None:
        if self.warm_start and before and "cells" in before and before["n_features"] == state["n_features"]:
            state |= {name: before[name] for name in ("seed", "gamma", "width", "searched_lam") if name in before}
            state["before"] = {name: before[name] for name in ("cells", "starts", "w")}  # until there are new weights

    def found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        found: dict[str, Any] = {"lam": state["lam"] * share}
        return found | ({"gamma": float(state["gamma"])} if "gamma" in state else {}), state.get("width")

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        solver, loss, ops = self.solver, self.context.loss_for(2), self.ops
        old = state.pop("before", None)
        outputs = Y.shape[1]
        offset = state["offset"] = best_constant(Y, weight, loss)
        if "gamma" not in state:
            self.choose_bandwidth(state, X, Y, weight)
        lam = self.lam if self.lam is not None else state.get("searched_lam")
        relative = self.sparse and self.lam is None
        if lam is None:
            search = Search(self, state, Sample(X, Y, weight))
            lam = state["searched_lam"] = search.penalty(self.kernel(state), relative)
        features = make_features(X, self.grids(state), ops, most_threads())
        if relative:
            lam = max(lam * largest_penalty(features, Y, weight, loss, offset), 1e-12)
        start = None
        if old is not None and old["w"].shape[1] == outputs:
            start = carry_over(old, features.keys, features.Z.starts).astype(state["dtype"])
        label = f"{self.context.name}, {features.Z.shape[1]:,} columns"
        with SolverBar(label) as report:
            given = {"start": start, "offset": offset, "dtype": state["dtype"], "seed": state["seed"], "report": report}
            found = solve(features, solver, Y, loss, float(lam), ops, weight, **given)
        if not found.converged:
            warn_unsolved(
                f"{type(solver).__name__} did not reach tol={solver.tol:g} in {solver.max_iter} iterations; "
                f"raise max_iter, tol or lam"
            )
        keys, starts, W = features.keys, features.Z.starts, found.W.astype(state["dtype"], copy=False)
        state |= {"n_columns": len(keys), "lam": float(lam), "n_iter": found.n_iter, "history": np.array(found.history)}
        if self.sparse:
            keys, starts, W = without_zeros(keys, starts, W)
        state |= {"cells": keys, "starts": starts, "w": np.ascontiguousarray(W)}

    def choose_bandwidth(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        """Enter a bandwidth, found on rows X."""
        if self.free:
            state["width"] = column_ranges(X)
            some = X[np.sort(generator(state["seed"], SeedStream.GRID_ROWS).permutation(X.shape[0])[:MEDIAN_ROWS])]
            median = self.given.kernel_entries(divided(some, state["width"]))["gamma"]
            state["gamma"] = Search(self, state, Sample(X, Y, weight)).bandwidth(median)
        elif self.given.kernel_needs_data:
            state |= self.given.kernel_entries(X)
