r"""Rows that wait, and what the next ones are compared with."""

from __future__ import annotations

import math

import numpy as np

from ... import kernels
from ...checks import fraction, whole
from ...core.ranges import SQUARES
from ...core.triangular import inverse_factor
from ...passes.novelty.python import MEMBERS, NODES, Tables, cells, scaled
from ...rows import Rows, dense, padded
from ...state import undo as _undo
from ...state.schema import POSITIVE, Array, Count, Number, Schema
from .._contract.base import State
from .._contract.learner import Learner
from .._contract.mixed import check_columns
from .._contract.state import blank
from .._contract.warm_up import WARM_UP, runs
from .grids import FREQUENCIES, PROJECTIONS, Drawn, draw
from .shares import binned, cumulated, nearness, repeats, scale_of

LAM = 0.01
BITS = 17  # of the number of a cell
WAIT = 256  # rows that wait, at most, until they are learned together
RECENT = 500  # rows about which a share is of
USUAL = 0.1  # share of the most unusual rows, which count for less
PAIRED = 100  # usual rows that tell how near rows are that repeat each other
MOVED = 2.0  # deviations by which a column leaves its scale


class Surprise(Learner):
    """Rows wait; every now and then those that wait join what the next ones are compared with."""

    _replaced = frozenset({"scale", "lengths", "counts", "gram", "shares"})
    _by_row = frozenset({"waiting", "waiting_weight", "waiting_surprise"})
    squashes = relative_weights = True
    auto_scaling = False  # by medians and quartiles, here

    memory: int

    def check_parameters(self) -> None:
        whole("memory", self.memory)
        fraction("contamination", self.parameters["contamination"])
        check_columns(self.parameters["columns"])

    def warm_up_rows(self) -> int:
        return WARM_UP

    # ---------------------------------------------------------------- a state
    def estimate(self, state: State, X: Rows) -> None:
        X = np.asarray(dense(X), np.float64)
        state["drawn_width"] = state["n_features"]
        state["scale"] = scale_of(X)
        U = scaled(X, state["scale"])
        state["gamma"] = kernels.get("gaussian", "median").resolve(U).gamma
        spread = (U @ self._drawn(state).projections).std(axis=0)
        state["lengths"] = np.where(spread > 0, spread, 1.0)

    def reset(self, state: State) -> None:
        state |= blank(self._arrays(state)) | {"mass": 0.0, "near": 0.0, "learned": 0, "n_waiting": 0}
        self.derived.drop("tables")

    def _arrays(self, state: State) -> Schema:
        d, p = state["n_features"], 2 * FREQUENCIES
        return {
            "counts": Array((1 << BITS,), low=0.0),
            "gram": Array((p, p)),
            "shares": Array((MEMBERS + 1, NODES), low=0.0),
            "waiting": Array((WAIT, d)),
            "waiting_weight": Array((WAIT,), low=0.0),
            "waiting_surprise": Array((WAIT, MEMBERS + 2)),
        }

    def schema(self, state: State, trained: bool) -> Schema:
        if not trained:
            return {}
        d = state["n_features"]
        schema: Schema = {"scale": Array((2, d)), "lengths": Array((PROJECTIONS,), low=POSITIVE)}
        schema |= {"gamma": Number(POSITIVE), "drawn_width": Count(1, d), "learned": Count()}
        schema |= {"mass": Number(0.0), "near": Number(0.0)}
        return self._arrays(state) | schema | {"n_waiting": Count(0, WAIT - 1), "offset": Array((2,), optional=True)}

    def verify(self, state: State) -> None:
        if "learned" in state and state["n_waiting"] >= due(state["learned"]):
            raise ValueError(f"{state['n_waiting']} rows wait after {state['learned']}, which is too many")

    # ---------------------------------------------------------------- what follows from a state
    def _drawn(self, state: State) -> Drawn:
        sizes = int(state["drawn_width"]), state["n_features"]
        return self.derived.cached(("drawn", *sizes), lambda: draw(state["seed"], *sizes))

    def tables(self, state: State) -> Tables:
        """What rows are compared with until the next renewal."""

        def make() -> Tables:
            drawn, mass = self._drawn(state), float(state["mass"])
            W, P = drawn.frequencies * math.sqrt(2.0 * state["gamma"]), drawn.projections / state["lengths"]
            factor = inverse_factor(state["gram"] / max(mass, 1.0), LAM)
            grids = drawn.columns, drawn.offset, drawn.density, drawn.salt, drawn.ends
            return Tables(state["scale"], P, *grids, state["counts"], mass, W, factor, *cumulated(state["shares"]))

        return self.derived.cached("tables", make)

    # ---------------------------------------------------------------- rows
    def score(self, state: State, X: Rows) -> np.ndarray:
        return self.surprises(state, np.ascontiguousarray(dense(X), np.float64))[:, -1:].copy()

    def surprises(self, state: State, X: np.ndarray) -> np.ndarray:
        """The surprises of the members and of all, and the score, (n, 6); before the first row the score is 1/2."""
        return self.ops.surprises(X, self.tables(state))

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X, parts = np.ascontiguousarray(dense(X), np.float64), []
        state.pop("offset", None)
        for rows in runs(weight, len(X), lambda: due(state["learned"]) - state["n_waiting"]):
            found = self.surprises(state, X[rows])
            parts.append(found[:, -1:])
            counts = slice(None) if weight is None else weight[rows] > 0
            start, kept = state["n_waiting"], X[rows][counts]
            kept = np.where(np.isnan(kept), state["scale"][0], kept)
            place = slice(start, start + len(kept))
            for name in self._by_row:
                _undo.rows(state[name], place)
            state["waiting"][place], state["waiting_surprise"][place] = kept, found[counts]
            state["waiting_weight"][place] = 1.0 if weight is None else weight[rows][counts]
            state["n_waiting"] = place.stop
            state["t"] += len(kept)
            if place.stop == due(state["learned"]):
                self._renew(state)
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _renew(self, state: State) -> None:
        """Let the rows that wait join: a row counts less the more unusual it was, and if it repeats another."""
        n, tables = state["n_waiting"], self.tables(state)
        X, found, weight = (state[name][:n] for name in ("waiting", "waiting_surprise", "waiting_weight"))
        with np.errstate(over="ignore"):  # not drawn in: far rows lie as far from each other as near ones
            U = np.clip((X - tables.scale[0]) / tables.scale[1], -SQUARES, SQUARES)
        unusual = found[:, -1] > 1 - USUAL
        if np.count_nonzero(~unusual) >= PAIRED:
            state["near"] = nearness(U[~unusual][:PAIRED])
        first = weight / (1.0 + repeats(U, unusual, state["near"])) ** 2
        own = first * np.minimum((1.0 - found[:, -1]) / USUAL, 1.0)
        if not state["mass"]:
            own = first
        keep = math.exp(-n / self.memory)
        counts = keep * state["counts"]
        Z = self.ops.join(X, own, tables, counts)
        state["counts"], state["gram"] = counts, keep * state["gram"] + (own[:, None] * Z).T @ Z
        if state["mass"]:
            fade = math.exp(-n / min(RECENT, state["learned"]))
            state["shares"] = fade * state["shares"] + binned(found[:, :-1], first)
        state["mass"] = keep * state["mass"] + float(own.sum())
        state["learned"] += n
        state["n_waiting"] = 0
        self.derived.drop("tables")
        if n == WAIT:
            self._follow(state, X[first >= weight].copy(), weight[first >= weight].copy())

    def _follow(self, state: State, X: np.ndarray, weight: np.ndarray) -> None:
        """Start over with the last rows X (n, d), without repeated ones, if a column has left its scale."""
        if len(X) < WAIT / 2:
            return
        (middle, unit), (now, width) = state["scale"], scale_of(X)
        if (np.abs(now - middle) > MOVED * np.maximum(unit, width)).any():
            self.estimate(state, X)
            self.reset(state)
            t = state["t"]
            self.learn(state, X, weight, weight)
            state["t"] = t

    # ---------------------------------------------------------------- changes
    def fade(self, state: State, keep: float) -> bool:
        for name in ("counts", "gram", "shares"):
            state[name] = keep * state[name]
        state["mass"] *= keep
        self.derived.drop("tables")
        return True

    def widen(self, state: State, d: int) -> None:
        if "scale" in state:
            n, new = state["n_features"], np.arange(state["n_features"], d)
            state["scale"] = np.concatenate([state["scale"], np.repeat([[0.0], [1.0]], d - n, axis=1)], axis=1)
            state["waiting"] = padded(state["waiting"], d)
            state["n_features"] = d
            self.forget()
            tables = self.tables(state)
            zero = cells(np.zeros((1, d)), tables)[0, new]
            state["counts"] = state["counts"] + np.bincount(zero, minlength=1 << BITS) * state["mass"]


def due(learned: int) -> int:
    """Rows that wait before they join so many others."""
    return max(1, learned) if learned < 64 else min(WAIT, learned // 4)
