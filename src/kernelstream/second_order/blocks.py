"""The same recursion over blocks of rows, by matrix products: the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas

from .. import _core
from ..core.blas import BLAS
from ..core.workspace import on_lines
from ..state.nested import State
from .rows import RowRecursion
from .rules import LeastSquares
from .statistics import flush, more_ridge, window_cuts

BLOCK = 64  # rows entered at once where some may not stay; where all do, the window is filled at once
SUMS = ("gram", "b", "yy", "zsum")  # of the rows that have left the window
WINDOW = ("window", "window_c", "window_b")
KNOWN = _core.Act("known", [], "squared", [0.0])  # rows that were learned before: their c and beta are given


class Head:
    r"""One matrix ``A = R R'`` (at the start of the window) and what it does to the rows in the window.

    ``V = R^-1 Z'``, so that ``z'A^-1 z' = v'v'``. Eliminating the window's rows one after the other turns the products
    ``S = V'V`` into ``C[l, i] = z_i'P_l z_l``, P_l being the inverse just before row l; ``kappa = c/(1 + c s)`` and
    ``tau`` are the steps of the rows, and ``M = I + strict_lower((kappa C)')`` undoes the elimination: a new row has
    ``u = M^-1 V'v`` and therefore ``s = v'v - sum kappa u^2``, ``f = q'v + tau'u`` with ``q = R^-1 b`` (b at the
    start of the window, too). See cpp/passes/second_order_block.hpp.

    Only the n rows that moved this matrix are here: others of the window moved those of other classes. Vectors are
    padded with zeros, so that each begins at a line of the processor's cache; R has ones on the diagonal there.
    """

    BLAS = BLAS

    def __init__(self, features: int, m: int, k: int):
        r = -(-features // _core.LINE) * _core.LINE
        self.features = features
        self.R = on_lines((r, r))  # only its lower triangle is used
        self.V = on_lines((m, r))
        self.M = on_lines((m, m))  # only its strict lower triangle is used
        self.tau = np.empty((m, k))
        self.q = on_lines((k, r))
        D = np.empty((-(-r // _core.PANEL), _core.PANEL**2))
        self.factors = (self.R, D)
        # as the compiled functions take it; n is the number of rows in the window
        self.state: State = {"n": 0, "features": features, "R": self.R, "D": D, "V": self.V, "M": self.M}
        self.state |= {"kappa": np.empty(m), "tau": self.tau, "q": self.q}

    def restart(self, state: State, g: int, j: int, outputs: slice) -> None:
        """Empty the window: R and q of matrix g with ridge j."""
        gram, b, ridge = state["gram"][g], np.ascontiguousarray(state["b"][outputs]), float(state["ridge"][j])
        while not _core.second_order_factor(gram, ridge, b, *self.factors, self.q):
            ridge = more_ridge(gram, ridge)
        self.state["n"] = 0

    def learn(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray, c: np.ndarray, act: Any) -> tuple[Any, Any, Any]:
        """Let rows Z (n, r) in, with targets y (n, k) and weights (n,); their scores (n, k), s (n,) and beta (n, k).

        ``c`` (n,) is filled in. ``act`` is a ``_core.Act``.
        """
        F, s, beta = np.empty(y.shape), np.empty(len(Z)), np.empty(y.shape)
        block = {"Z": Z, "y": y, "weight": weight, "F": F, "s": s, "c": c, "beta": beta}
        _core.second_order_learn(self.state, block, act)
        return F, s, beta

    def weights(self) -> np.ndarray:
        """``w`` (k, features) after the rows of the window: ``R'^-1 (q + V M'^-1 tau)``."""
        x, n = np.array(self.q.T, order="F"), self.state["n"]
        if n:  # Fortran reads M by columns, as the upper triangle of M'
            steps = blas.dtrsm(1.0, self.M.T[:n, :n], np.asfortranarray(self.tau[:n]), diag=1)
            x = blas.dgemm(1.0, self.V[:n].T, steps, 1.0, x, overwrite_c=1)
        w = blas.dtrsm(1.0, self.R.T, x, overwrite_b=1).T  # Fortran reads R by columns, as R'
        return np.ascontiguousarray(w[:, : self.features])


class BlockRecursion(RowRecursion):
    """See :class:`.rows.RowRecursion`; the state and the results are the same."""

    BLAS = BLAS
    in_window = True

    def cuts(self, n: int) -> list[slice]:
        return window_cuts(self.state, n)

    def _restart(self) -> None:
        state = self.state
        m, n = len(state["window"]), state["n_window"]
        if not hasattr(self, "head"):
            k = [len(state["b"][outputs]) for outputs in self.outputs]
            self.head = [Head(state["b"].shape[1], m, outputs) for outputs in k]
            self.ones = np.ones(m)
            self.most = m if self.rule.shared else BLOCK
            native: Any = self.rule.native()  # never None: a rule without a twin uses the recursion by rows
            self.act = _core.Act(*native)
        for h, head in enumerate(self.head):
            head.restart(state, self.matrix[h], self.ridge[h], self.outputs[h])
        for start in range(0, n, self.most):  # rows that wait: their c and beta are known
            rows = slice(start, min(start + self.most, n))
            Z, c, beta = state["window"][rows], state["window_c"][rows], state["window_b"][rows]
            for h, head in enumerate(self.head):
                cs, betas = np.array(c[:, self.matrix[h]]), np.array(beta[:, self.outputs[h]])
                head.learn(Z, betas, cs, np.empty_like(cs), KNOWN)

    @property
    def at_once(self) -> bool:
        """Whether rows may come in blocks of any size, for all of the recursion in one call."""
        return self.heads == 1 and self.forgetting == 1 and type(self.rule) is LeastSquares

    def learn(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        state = self.state
        if self.at_once:
            return self._run(Z, y, weight)
        n, room = len(Z), len(state["window"])
        F = np.empty((n, len(state["ridge"]), y.shape[1]))
        S = np.empty((n, self.heads))
        start = 0
        while start < n:
            stop = min(start + self.most, n, start + room - state["n_window"])
            rows = slice(start, stop)
            self._block(Z[rows], y[rows], None if weight is None else weight[rows], F[rows], S[rows])
            start = stop
            if state["n_window"] == room:
                flush(state, self.forgetting)
                self._restart()
        return F, S

    def _run(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        state, head, (n, k) = self.state, self.head[0], y.shape
        F, s = np.empty((n, k)), np.empty(n)
        known = {name: state[name] for name in (*WINDOW, *SUMS, "mass")} | {"ridge": float(state["ridge"][0])}
        if state["n_window"] + n >= len(state["window"]):  # the sums will change: copies allow an undo
            known |= {name: state[name].copy() for name in SUMS}
        _core.second_order_run(BLAS, head.state, known, Z, y, weight, (F, s))
        state |= {name: known[name] for name in (*SUMS, "mass")}
        state["n_window"] = head.state["n"]
        return F[:, None], s[:, None]

    def _block(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, F: np.ndarray, S: np.ndarray) -> None:
        state, (n, k) = self.state, y.shape
        j = state["n_window"]
        importance = self.ones[:n] if weight is None else weight
        scale: np.ndarray | float = 1.0
        if self.forgetting < 1:  # by the row's number in the window, had it been counted
            scale = self.forgetting ** -(j + np.cumsum(importance > 0) + (importance == 0.0))
            importance = importance * scale
        c, beta = np.empty((len(state["gram"]), n)), np.empty((n, k))
        for h, head in enumerate(self.head):
            outputs = self.outputs[h]
            target = y if k == head.tau.shape[1] else np.ascontiguousarray(y[:, outputs])
            f, s, betas = head.learn(Z, target, importance, c[self.matrix[h]], self.act)
            beta[:, outputs], F[:, self.ridge[h], outputs], S[:, h] = betas, f, s * scale
        end = j + n
        if weight is not None or not self.rule.shared:  # rows that changed nothing are not kept
            joins = np.flatnonzero(c.any(axis=0) | beta.any(axis=1))
            if len(joins) < n:
                end = j + len(joins)
                Z, c, beta = Z[joins], c[:, joins], beta[joins]
        place = state["window"][j:end]
        if Z.__array_interface__["data"] != place.__array_interface__["data"]:  # otherwise they were made in place
            place[...] = Z
        state["window_c"][j:end], state["window_b"][j:end] = c.T, beta
        state["n_window"] = end

    def score(self, Z: np.ndarray, uncertainty: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        if not uncertainty:
            return self._scores(Z), None
        F = np.empty((len(Z), len(self.state["ridge"]), len(self.state["b"])))
        S = np.empty((len(Z), self.heads))
        for h, head in enumerate(self.head):
            f, s = np.empty((len(Z), head.tau.shape[1])), np.empty(len(Z))
            _core.second_order_score(head.state, Z, f, s)
            F[:, self.ridge[h], self.outputs[h]], S[:, h] = f, s
        return F, S * self.forgetting ** -(self.state["n_window"] + 1.0)

    def weights(self) -> np.ndarray:
        w = [head.weights() for head in self.head]
        return np.stack(w) if len(self.state["ridge"]) > 1 else np.concatenate(w)[None]
