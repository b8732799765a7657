r"""Recursive least squares on the device, a window of rows at a time.

With ``A = R R'`` and ``w_0`` at the start of the window, ``V = R^-1 Z'`` and D the diagonal matrix of the 1/c::

    V'V + D = L L',   e = diag(L) L^-1 (y - Z w_0),   s = diag(L)^2 - 1/c

are the errors ``e_i = y_i - w'z_i`` before each update and the uncertainties ``z_i'A^-1 z_i``: an elimination of the
rows in their order is the recursion over them. All in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...core.overflow import LEARNING, require_finite
from ...second_order.rows import RowRecursion
from ...second_order.rules import Rule
from ...second_order.statistics import FLOOR, more_ridge, window_cuts
from ...state.nested import State

SKIPPED = 1e200  # 1/c of a row that is scored but not learned: it has no influence


class DeviceRecursion(RowRecursion):
    """See :class:`~kernelstream.second_order.rows.RowRecursion`; only for rules whose c and beta are known beforehand.

    ``gram``, ``b`` and the other sums, and the window's rows, live on the device; :meth:`sync` writes them back.
    """

    def __init__(self, ops: Any, state: State, rule: Rule, forgetting: float):
        self.ops = ops
        upper = ops.tensor(state["gram"][0]).triu()
        self.gram = upper + upper.triu(1).T
        self.sums = {name: ops.tensor(np.asarray(state[name])) for name in ("b", "yy", "zsum", "mass", "window")}
        self.stale = False
        super().__init__(state, rule, forgetting)

    def cuts(self, n: int) -> list[slice]:
        """Blocks of rows, cut where the window will be full."""
        return window_cuts(self.state, n)

    def sync(self) -> None:
        """Bring the state up to date with the device."""
        if not self.stale:
            return
        state = self.state
        state["gram"] = self.gram.triu().cpu().numpy()[None]
        for name, held in self.sums.items():
            state[name] = held.cpu().numpy() if name != "mass" else float(held)
        self.stale = False

    def mark(self) -> Callable[[], DeviceRecursion]:
        """A function that undoes what is learned from now on and returns the recursion."""
        kept = self.__dict__ | {"sums": dict(self.sums), "V": list(self.V)}
        kept["sums"]["window"] = self.sums["window"].clone()  # the only one that is changed in place

        def put_back() -> DeviceRecursion:
            self.__dict__.update(kept)
            return self

        return put_back

    def _restart(self) -> None:
        """Factors and weights of the statistics; the window's rows are eliminated when there is something to learn."""
        if not bool(self.gram.isfinite().all()):
            raise ValueError(LEARNING)
        eye = torch.eye(len(self.gram), dtype=self.gram.dtype, device=self.gram.device)
        self.R, self.w0, self.V = [], [], []
        self.found: list[torch.Tensor] | None = None
        self.factors: list[torch.Tensor] | None = None
        for ridge in self.state["ridge"]:
            extra = float(ridge)
            while True:
                R, failed = torch.linalg.cholesky_ex(self.gram + extra * eye)
                if not int(failed):
                    break
                extra = more_ridge(self.gram.cpu().numpy(), extra)
            self.R.append(R)
            self.w0.append(torch.cholesky_solve(self.sums["b"].T, R).T)  # (k, r)
        n = self.state["n_window"]
        self.V = [self._solve(R, self.sums["window"][:n].T) for R in self.R]  # (r, n) each
        self.y = self.ops.tensor(self.state["window_b"][:n] / self.state["window_c"][:n])
        self.D = self.ops.tensor(1.0 / self.state["window_c"][:n, 0])

    @staticmethod
    def _solve(L: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(L, B, upper=False)

    def learn(self, Z: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        F = np.empty((len(Z), len(self.state["ridge"]), y.shape[1]))
        S = np.empty((len(Z), self.heads))
        start, room = 0, len(self.state["window"])
        self.stale, self.found, self.factors = True, None, None
        while start < len(Z):
            rows = slice(start, min(len(Z), start + room - self.state["n_window"]))
            F[rows], S[rows] = self._fill(Z[rows], y[rows], None if weight is None else weight[rows])
            start = rows.stop
            if self.state["n_window"] == room:
                self._flush()
        require_finite(F, S)
        return F, S

    def _fill(self, Z: torch.Tensor, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Rows that have room in the window."""
        state, n = self.state, self.state["n_window"]
        c = np.ones(len(Z)) if weight is None else np.asarray(weight, np.float64)
        learned = np.flatnonzero(c)
        scale: Any = 1.0
        if self.forgetting < 1:  # by the row's number in the window, had it been counted
            scale = self.forgetting ** -(n + np.cumsum(c > 0) + (c == 0.0))
            c = c * scale
        D = torch.cat([self.D, self.ops.tensor(np.where(c > 0, 1.0 / np.where(c > 0, c, 1.0), SKIPPED))])
        target = torch.cat([self.y, self.ops.tensor(y)])
        window = torch.cat([self.sums["window"][:n], Z])
        F, S, kept = [], [], self.ops.tensor(learned)
        for h, R in enumerate(self.R):
            V = torch.cat([self.V[h], self._solve(R, Z.T)], dim=1)
            L = _factor(V.T @ V + torch.diag(D))
            e = L.diagonal()[:, None] * self._solve(L, target - window @ self.w0[h].T)
            s = (V * V).sum(dim=0) - (L.tril(-1) ** 2).sum(dim=1)
            F.append((target - e)[n:])
            S.append(s[n:])
            self.V[h] = torch.cat([V[:, :n], V[:, n:][:, kept]], dim=1)
        self.y, self.D = torch.cat([self.y, target[n:][kept]]), torch.cat([self.D, D[n:][kept]])
        end = n + len(learned)
        self.sums["window"][n:end] = Z[kept]
        state["window_c"][n:end, 0], state["window_b"][n:end] = c[learned], c[learned, None] * y[learned]
        state["n_window"] = end
        return torch.stack(F, dim=1).cpu().numpy(), torch.stack(S, dim=1).cpu().numpy() * np.reshape(scale, (-1, 1))

    def _flush(self) -> None:
        """The rows of the window join the sums; see :func:`kernelstream.second_order.statistics.flush`."""
        state, n, sums = self.state, self.state["n_window"], self.sums
        Z, c = sums["window"][:n], 1.0 / self.D
        fade = self.forgetting**n
        rows = c.sqrt()[:, None] * Z
        self.gram = fade * torch.addmm(self.gram, rows.T, rows)
        beta = c[:, None] * self.y
        added = {"b": beta.T @ Z, "yy": (beta * self.y).sum(dim=0), "zsum": c @ Z, "mass": c.sum()}
        for name, value in added.items():
            sums[name] = fade * (sums[name] + value)
        if fade < 1:
            state["ridge"] = np.maximum(state["ridge"] * fade, FLOOR * float(self.gram.trace()))
        state["n_window"] = 0
        self._restart()

    # ---------------------------------------------------------------- without learning
    def score(self, Z: Any, uncertainty: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        F = torch.stack([Z @ w.T for w in self._weights()], dim=1).cpu().numpy()
        if not uncertainty:
            return F, None
        S = []
        for R, V, L in zip(self.R, self.V, self._factors()):
            v = self._solve(R, Z.T)
            u = self._solve(L, V.T @ v)
            S.append((v * v).sum(dim=0) - (u * u).sum(dim=0))
        return F, torch.stack(S, dim=1).cpu().numpy() * self.forgetting ** -(self.state["n_window"] + 1.0)

    def _factors(self) -> list[torch.Tensor]:
        """L with ``L L' = V'V + D`` for every ridge, (n, n); the same until rows are learned."""
        if self.factors is None:
            self.factors = [_factor(V.T @ V + torch.diag(self.D)) for V in self.V]
        return self.factors

    def _weights(self) -> list[torch.Tensor]:
        """``w_0 + R'^-1 V (V'V + D)^-1 (y - Z w_0)`` for every ridge, (k, r); the same until rows are learned."""
        n = self.state["n_window"]
        if self.found is None:
            self.found = self.w0
            if n:
                Z = self.sums["window"][:n]
                self.found = []
                for R, V, w0, L in zip(self.R, self.V, self.w0, self._factors()):
                    x = V @ torch.cholesky_solve(self.y - Z @ w0.T, L)
                    self.found.append(w0 + torch.linalg.solve_triangular(R.T, x, upper=True).T)
        return self.found

    def weights(self) -> np.ndarray:
        return torch.stack(self._weights()).cpu().numpy()


def _factor(A: torch.Tensor) -> torch.Tensor:
    """Cholesky factor of a positive definite matrix; ValueError where too large numbers leave it none."""
    L, failed = torch.linalg.cholesky_ex(A)
    if int(failed):
        raise ValueError(LEARNING)
    return L
