r"""Learning on cells of random grids: over few columns with edges at quantiles, or over many columns, hashed.

The kernel of the first kind is an ANOVA kernel on ranks. With grids over the column sets S drawn with probability p(S),

.. math:: k(x, x') = \sum_S p(S) \prod_{j \in S} P(\text{no edge between } x_j \text{ and } x'_j)

which depends on how many quantiles lie between two values and not on their units: columns may have any scale. The
second kind is random binning [1]_ with cells in one table.

References
----------
.. [1] Rahimi, Recht: Random features for large-scale kernel machines, NIPS 2007.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...checks import fraction, one_of, whole
from ...core.threads import cuts
from ...passes.cells.python import KEPT
from ...random import SeedStream, generator, uniforms
from ...rows import Rows, dense
from ...state import undo as _undo
from ...state.change import Change
from ...state.schema import Array, Count, Schema
from ...updates import check_auto
from .._contract.base import State
from .._contract.deviations import deviation
from .._contract.learner import Learner
from .._contract.state import blank
from .._contract.warm_up import WARM_UP, runs
from .grids import COLUMNS, LEVELS, by_column, column_weights, draw, levels_of

GRIDS = ("columns", "hashed")
CELLS = 256  # of a grid over few columns
BITS = 18  # of the numbers of hashed cells
SAMPLE = 2000  # rows kept, of the last 8 times as many
FIRST_REVIEW = 64  # rows before the first grids; then there is a review whenever the rows have doubled,
FAR_APART = 8  # powers of two between the first target and the deviation, for another unit
REVIEW_PERIOD = 16384  # and later after every REVIEW_PERIOD rows
ROWS_TOGETHER = 1024  # rows whose cells are found before they are learned,
SCORED_TOGETHER = 4096  # or scored
UNIFORMS_AHEAD = 1024  # random numbers made at once
REDRAWN = 0.25  # share of the grids that a review replaces
CANDIDATES = 8  # for each of them


class CellTables(Learner):
    """Tables of cells."""

    _replaced = frozenset({"levels", "n_levels", "columns", "edges", "n_edges", "column_weights", "places"})
    _by_row = frozenset({"tables", "sample_rows", "sample_down"})
    relative_weights = True

    n_grids: int
    grids: str
    eta: Any
    forgetting: float

    # ---------------------------------------------------------------- parameters
    def _rate(self) -> float:
        if self.eta != "auto":
            return float(self.eta)
        if self.forgetting < 1:
            return 0.5 if self.regression else 1.5
        if self.regression:
            return 0.2 if self.grids == "columns" else 0.25
        return 0.7

    def check_parameters(self) -> None:
        whole("n_grids", self.n_grids)
        one_of("grids", self.grids, GRIDS)
        check_auto(self.eta)
        fraction("forgetting", self.forgetting, zero=False, one=True)

    @property
    def auto_scaling(self) -> bool:  # type: ignore[override]
        return self.grids == "hashed"  # their widths are in deviations; the others do not know units

    # ---------------------------------------------------------------- hooks
    def warm_up_rows(self) -> int:
        return WARM_UP if self.regression else 0  # for the unit of the target, and without wild ones

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        """The unit is about the deviation where the first target is far from 0, or wild."""
        if not self.regression:
            return
        trusted = y[weight > 0]
        first, unit = (math.frexp(v)[1] for v in (float(trusted[0]), deviation(trusted)))
        if abs(first - unit) > FAR_APART:
            state["unit"] = unit or 1  # 0 means that it is not known

    def start(self, state: State, before: State | None) -> None:
        state["grid_width"] = state["n_features"]

    def reset(self, state: State) -> None:
        state |= blank(self._arrays(state, 0)) | {"places": np.arange(state["n_outputs"], dtype=np.int32), "unit": 0}
        if self.grids == "columns":
            state["column_weights"] = np.ones(state["n_features"])
        self.derived.drop("maps")

    def _arrays(self, state: State, drawn: int) -> Schema:
        """What is kept, with so many grids over few columns."""
        outputs, d, R = state["n_outputs"], state["n_features"], self.n_grids
        hashed, C = self.grids == "hashed", room(outputs)
        cells = 1 << BITS if hashed else R * CELLS
        schema: Schema = {"bias": Array((2, outputs)), "places": Array((outputs,), "int32", low=0, high=outputs - 1)}
        schema |= {"target": Array((3,)), "tables": Array((cells, 2, C), "float32")}
        if hashed:
            return schema | {"use": Array((R,))}
        schema |= {"sample_rows": Array((SAMPLE, d)), "sample_down": Array((SAMPLE, min(outputs, KEPT)))}
        schema |= {"levels": Array((d, LEVELS)), "n_levels": Array((d,), "int32", low=0, high=LEVELS)}
        schema |= {"columns": Array((drawn, COLUMNS), "int32", low=0, high=d - 1), "use": Array((drawn,))}
        schema |= {"edges": Array((drawn, COLUMNS, LEVELS)), "n_edges": Array((drawn, COLUMNS), "int32")}
        return schema | {"column_weights": Array((d,), low=0.0)}

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X = np.ascontiguousarray(dense(X), np.float64)
        y = self._in_units(state, y, weight)
        if state["n_outputs"] > 1:
            y = state["places"][y.astype(np.intp)].astype(np.float64)
        spec = (self.regression, self._rate(), float(self.forgetting))
        if self.grids == "hashed":
            scores, _ = self._block(state, X, y, weight, spec)
            state["t"] += len(y) if weight is None else int(np.count_nonzero(weight))
            return self._of_outputs(state, scores)
        parts = []
        for rows in runs(weight, len(X), lambda: _next_review(state["t"]) - state["t"]):
            own, due = None if weight is None else weight[rows], _next_review(state["t"])
            scores, down = self._block(state, X[rows], y[rows], own, spec)
            self._sample(state, X[rows], down, own)
            parts.append(scores)
            if state["t"] == due:  # not again for rows of weight 0
                self._review(state)
        return self._of_outputs(state, np.concatenate(parts) if len(parts) != 1 else parts[0])

    @staticmethod
    def _of_outputs(state: State, scores: np.ndarray) -> np.ndarray:
        """Scores (n, outputs) in the units of the target, from those of the tables' columns."""
        if state["n_outputs"] > 1:
            return scores[:, state["places"]]
        return np.ldexp(scores, state["unit"]) if state["unit"] else scores

    def _in_units(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The target in units of 2^unit, about the size of the first one that is not 0, for tables in float32."""
        if not self.regression:
            return y
        if not state["unit"] and not state["target"][1:].any():
            nonzero = y != 0 if weight is None else (y != 0) & (weight > 0)
            if nonzero.any():
                state["unit"] = math.frexp(float(y[nonzero.argmax()]))[1]
        return np.ldexp(y, -state["unit"]) if state["unit"] else y

    def _block(self, state: State, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, spec: Any) -> Any:
        tables, parts = state["tables"], []
        few = 2 * len(X) * len(state["use"]) < len(tables)  # cells change
        if not few:
            _undo.rows(tables, slice(None))
        for rows in cuts(max(1, len(X)), ROWS_TOGETHER):
            index = self._index(state, X[rows])
            if few:
                _undo.rows(tables, index.ravel())
            own = None if weight is None else weight[rows]
            parts.append(self.ops.cells_pass(index, y[rows], own, state, spec))
        return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in cuts(X.shape[0], SCORED_TOGETHER):
            part = np.ascontiguousarray(dense(X[rows]), np.float64)
            found = self.ops.cells_score(self._index(state, part), state, self.regression)
            scores[rows] = self._of_outputs(state, found)
        return scores

    def row_learner(self, state: State) -> Any:
        spec = (self.regression, self._rate(), float(self.forgetting))
        make = self.ops.row_learner
        if self.grids == "hashed":
            grids = self.derived.cached("hashed", lambda: self._hashed(state))
            return make("hashed_cells", self, state, spec, (*grids, BITS))
        if not len(state["columns"]):
            return NotImplemented
        drawn = (state["seed"], int(SeedStream.CELLS_PLACES), 8 * SAMPLE)
        reviews = (FIRST_REVIEW, REVIEW_PERIOD)
        return make("column_cells", self, state, spec, self._maps(state), CELLS, drawn, reviews)

    def _maps(self, state: State) -> np.ndarray:
        names = ("columns", "edges", "n_edges", "levels", "n_levels")
        return self.derived.cached("maps", lambda: self.ops.grid_maps(*(state[name] for name in names)))

    def _index(self, state: State, X: np.ndarray) -> np.ndarray:
        """Cells of rows, (n, R) int32."""
        if self.grids == "hashed":
            return self.ops.by_hashing(X, *self.derived.cached("hashed", lambda: self._hashed(state)), BITS)
        grids = (state[name] for name in ("levels", "n_levels", "columns"))
        return self.ops.by_levels(X, *grids, self._maps(state), CELLS)

    def _hashed(self, state: State) -> tuple[np.ndarray, ...]:
        """Columns, offsets, densities and salts of the hashed grids, made again from the seed."""
        rng, R, d = generator(state["seed"], SeedStream.CELLS_GRIDS), self.n_grids, int(state["grid_width"])
        K = min(d, 16)
        k = np.full(R, d) if d <= 16 else 8 + (rng.random(R) * 9).astype(int)
        columns = np.argsort(rng.random((R, d)), axis=1)[:, :K].astype(np.int32)
        columns[np.arange(K) >= k[:, None]] = -1
        width = np.sqrt(k)[:, None] * rng.gamma(2.0, 0.5, (R, K)) + 1e-3
        offset = rng.random((R, K)) * width
        return columns, offset, 1.0 / width, rng.integers(0, 1 << 63, R, np.uint64)

    def relevance(self, state: State) -> np.ndarray:
        """How much the forecasts vary with each column, (d,), 1 on average: the variance of grids' parts of them."""
        if not len(state.get("columns", ())):
            raise AttributeError(f"{self.context.name} has relevance_ with grids='columns' only, and after some rows")
        rows = np.ascontiguousarray(state["sample_rows"][: min(state["t"], SAMPLE)])
        parts = state["tables"][self._index(state, rows), 0].astype(float)  # (n, R, C)
        found = by_column(state["columns"], state["n_edges"], parts.var(axis=0).sum(axis=1), state["n_features"])
        return found / found.mean() if found.any() else np.ones(len(found))

    # ---------------------------------------------------------------- grids that follow the rows
    def _sample(self, state: State, X: np.ndarray, down: np.ndarray, weight: np.ndarray | None) -> None:
        """Keep some of the rows, each in a random place, where later ones overwrite earlier ones."""
        if weight is not None:
            X, down = X[weight > 0], down[weight > 0]
        numbers = state["t"] + np.arange(len(X))
        state["t"] += len(X)
        place = numbers.copy()
        if state["t"] > SAMPLE:
            u = self._uniforms(state["seed"], int(numbers[0]) if len(X) else 0, len(X))
            drawn = (u * np.minimum(numbers + 1, 8 * SAMPLE)).astype(np.int64)
            place = np.where(numbers < SAMPLE, numbers, drawn)
            kept = place < SAMPLE
            X, down, place = X[kept], down[kept], place[kept]
        _undo.rows(state["sample_rows"], place)
        _undo.rows(state["sample_down"], place)
        state["sample_rows"][place] = X
        state["sample_down"][place] = down

    def _uniforms(self, seed: int, start: int, n: int) -> np.ndarray:
        """Uniform numbers start, …, start + n - 1 for the places, made in advance for calls of few rows."""
        if n > UNIFORMS_AHEAD // 4:
            return uniforms(seed, start, n, SeedStream.CELLS_PLACES)
        first, made = self.derived.get("uniforms", (0, np.zeros(0)))
        if not first <= start <= start + n <= first + len(made):
            first, made = start, uniforms(seed, start, UNIFORMS_AHEAD, SeedStream.CELLS_PLACES)
            self.derived["uniforms"] = (first, made)
        return made[start - first : start - first + n]

    def _review(self, state: State) -> None:
        """Review the grids: renew the levels, and draw the first grids, or new ones for those of least use."""
        m, d = min(state["t"], SAMPLE), state["n_features"]
        rng = generator(state["seed"], SeedStream.CELLS_GRIDS, state["t"])
        levels, count = levels_of(state["sample_rows"][:m])
        state["levels"], state["n_levels"] = levels, count
        if not len(state["columns"]):
            state |= draw(rng, self.n_grids, levels, count, state["column_weights"], CELLS)
            state["use"] = np.zeros(self.n_grids)
        else:
            use = state["use"]
            state["column_weights"] = column_weights(state["columns"], state["n_edges"], use, d)
            self._redraw(state, np.argsort(use, kind="stable")[: int(REDRAWN * self.n_grids)], rng, m)
            use[:] = 0.0
        self.derived.drop("maps")

    def _redraw(self, state: State, worst: np.ndarray, rng: np.random.Generator, m: int) -> None:
        """Replace grids by the best of several candidates each: those whose cells explain most of the sample."""
        if not len(worst):
            return
        levels, count = state["levels"], state["n_levels"]
        new = draw(rng, len(worst) * CANDIDATES, levels, count, state["column_weights"], CELLS)
        maps = self.ops.grid_maps(new["columns"], new["edges"], new["n_edges"], levels, count)
        rows = np.ascontiguousarray(state["sample_rows"][:m])
        index = self.ops.by_levels(rows, levels, count, new["columns"], maps, CELLS)
        gains = self.ops.cells_gains(index, np.ascontiguousarray(state["sample_down"][:m]), CELLS)
        best = gains.reshape(len(worst), CANDIDATES).argmax(axis=1) + np.arange(len(worst)) * CANDIDATES
        for name, value in new.items():
            state[name] = state[name].copy()
            state[name][worst] = value[best]
        for r in worst:
            cells = slice(int(r) * CELLS, (int(r) + 1) * CELLS)
            _undo.rows(state["tables"], cells)
            state["tables"][cells] = 0.0

    # ---------------------------------------------------------------- other outputs, other columns
    def mix_outputs(self, state: State, change: Change) -> None:
        """Columns of the tables are in the order in which the outputs appeared, with some in reserve.

        A new output takes the next column, whatever its place among the others, and the tables need not be rebuilt.
        """
        bias, tables, C, before = state["bias"], state["tables"], len(change), change.before
        columns = room(max(C, change.coming))
        if before == 1 or columns > tables.shape[2]:
            state["tables"] = np.zeros((*tables.shape[:2], columns), np.float32)
        if before == 1:  # of two labels, or of a lone one
            factors, state["places"] = np.stack([change.factor, ~change.fresh]), np.arange(C, dtype=np.int32)
            state["bias"], state["tables"][:, :, :C] = factors * bias, factors.astype(np.float32) * tables
        else:
            state["places"] = state["places"][change.source]
            state["places"][change.fresh] = np.arange(before, C)
            state["bias"] = np.concatenate([bias, np.zeros((2, C - before))], axis=1)
            if state["tables"] is not tables:
                state["tables"][:, :, :before] = tables[:, :, :before]
        if "sample_down" in state and C <= KEPT:
            state["sample_down"] = np.zeros((SAMPLE, C))

    def widen(self, state: State, d: int) -> None:
        if self.grids == "hashed" or "sample_rows" not in state:
            return  # hashed grids stay on the columns they were drawn for, others have not been drawn yet
        more = d - state["n_features"]
        for name, axis in (("sample_rows", 1), ("levels", 0), ("n_levels", 0)):
            pad = [(0, more if i == axis else 0) for i in range(state[name].ndim)]
            state[name] = np.pad(state[name], pad)
        state["column_weights"] = np.append(state["column_weights"], np.ones(more))

    def schema(self, state: State, trained: bool) -> Schema:
        schema: Schema = {"grid_width": Count(1, state["n_features"])}
        if not trained:
            return schema
        drawn = self.n_grids if state["t"] >= FIRST_REVIEW else 0
        schema |= self._arrays(state, drawn) | {"unit": Count(-1100, 1100)}
        if self.grids == "hashed":
            return schema
        edges: Any = state.get("n_edges")
        fits = isinstance(edges, np.ndarray) and edges.shape == (drawn, COLUMNS) and edges.dtype == np.int32
        if not fits or (edges < 0).any() or (edges > LEVELS).any():
            raise ValueError("state_['n_edges'] does not fit the grids")
        if len(edges) and (np.prod(edges.astype(float) + 1, axis=1) > CELLS).any():
            raise ValueError(f"a grid of the state has more than {CELLS} cells")
        return schema


def room(outputs: int) -> int:
    """Columns of the tables for so many outputs: the next of 1, 2, 3, 4, 6, 8, 12, 16, ….

    >>> [room(n) for n in (1, 2, 3, 5, 9, 1000)]
    [1, 2, 3, 6, 12, 1024]
    """
    columns = 1 << (outputs - 1).bit_length()
    return 3 * columns // 4 if outputs <= 3 * columns // 4 else columns


def _next_review(t: int) -> int:
    """The next row count above t at which the grids are reviewed."""
    return (t // REVIEW_PERIOD + 1) * REVIEW_PERIOD if t >= REVIEW_PERIOD else max(FIRST_REVIEW, 1 << t.bit_length())
