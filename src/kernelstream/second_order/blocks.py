"""The same recursion over blocks of rows, by matrix products: the native engine."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from .. import _core
from .rows import RowRecursion
from .statistics import factor, flush

BLOCK = 64  # rows whose scalar recursion is made at once; its cost grows with the square


class Head:
    r"""What one matrix ``A = R R'`` (at the start of the window) knows about the rows in the window.

    ``V = R^-1 Z'``, so that ``z'A^-1 z' = v'v'``. Eliminating the window's rows one after the other turns the products
    ``S = V'V`` into ``C[l, i] = z_i'P_l z_l``, P_l being the inverse just before row l; ``kappa = c/(1 + c s)`` and
    ``tau`` are the steps of the rows, and ``M = I + strict_lower((kappa C)')`` undoes the elimination: a new row has
    ``u = M^-1 V'v`` and therefore ``s = v'v - sum kappa u^2``, ``f = w_0'z + tau'u``.
    """

    def __init__(self, R: np.ndarray, b: np.ndarray, m: int):
        r = len(R)
        self.R = R
        half = blas.dtrsm(1.0, R, np.asfortranarray(b.T), lower=1)
        self.w0 = np.ascontiguousarray(blas.dtrsm(1.0, R, half, lower=1, trans_a=1).T)  # (k, r)
        self.V = np.empty((r, m), order="F")
        self.M = np.empty((m, m), order="F")
        self.kappa = np.empty(m)
        self.tau = np.empty((m, len(b)))

    def solve(self, Z: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``V = R^-1 Z'`` in place, (r, n) in Fortran order."""
        V.T[...] = Z
        if len(Z) == 1:  # a vector: the products would be slower
            return blas.dtrsv(self.R, V[:, 0], lower=1, overwrite_x=1)[:, None]
        return blas.dtrsm(1.0, self.R, V, lower=1, overwrite_b=1)

    def see(self, Z: np.ndarray, V: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
        """``u`` (j, n) and scores (n, k) of new rows Z, V after the j rows of the window."""
        F = Z @ self.w0.T
        if j:
            U = blas.dgemm(1.0, self.V[:, :j], V, trans_a=1)
            if len(Z) <= 4:  # BLAS would copy M first
                _core.unit_forward(self.M.T, U.T)
            else:
                U = blas.dtrsm(1.0, self.M[:j, :j], U, lower=1, diag=1, overwrite_b=1)
            F += U.T @ self.tau[:j]
        else:
            U = np.empty((0, len(Z)), order="F")
        return U, F

    def products(self, V: np.ndarray, U: np.ndarray) -> np.ndarray:
        """``z'P z'`` of new rows given the window, upper triangle of (n, n)."""
        S = blas.dsyrk(1.0, V, trans=1, lower=1)
        if len(U):
            S = blas.dsyrk(
                -1.0, np.sqrt(self.kappa[: len(U)])[:, None] * U, beta=1.0, c=S, trans=1, lower=1, overwrite_c=1
            )
        return S.T

    def append(self, j: int, U: np.ndarray, C: np.ndarray, kappa: np.ndarray, tau: np.ndarray) -> None:
        """Rows that joined the window at position j; C (a, a) are the reduced products among them."""
        end = j + len(C)
        self.M[j:end, :j] = (self.kappa[:j, None] * U).T
        self.M[j:end, j:end] = (kappa[:, None] * C).T
        self.kappa[j:end] = kappa
        self.tau[j:end] = tau

    def weights(self, j: int) -> np.ndarray:
        """``w`` (k, r) after the j rows of the window: ``w_0 + R'^-1 V M'^-1 tau``."""
        if not j:
            return self.w0
        x = blas.dtrsm(1.0, self.M[:j, :j], np.asfortranarray(self.tau[:j]), lower=1, trans_a=1, diag=1)
        x = blas.dgemm(1.0, self.V[:, :j], x)
        return self.w0 + blas.dtrsm(1.0, self.R, x, lower=1, trans_a=1, overwrite_b=1).T


class BlockRecursion(RowRecursion):
    """See :class:`.rows.RowRecursion`; the state and the results are the same."""

    def _restart(self) -> None:
        state = self.state
        m, n = len(state["window"]), state["n_window"]
        self.head = [
            Head(factor(state, self.matrix[h], self.ridge[h]), state["b"][self.outputs[h]], m)
            for h in range(self.heads)
        ]
        for start in range(0, n, BLOCK):  # rows that wait: their c and beta are known
            rows = slice(start, min(start + BLOCK, n))
            Z, c, beta = state["window"][rows], state["window_c"][rows], state["window_b"][rows]
            for h, head in enumerate(self.head):
                V = head.solve(Z, head.V[:, rows])
                U, F = head.see(Z, V, start)
                C, cs = head.products(V, U), np.ascontiguousarray(c[:, self.matrix[h]])
                betas = np.ascontiguousarray(beta[:, self.outputs[h]])
                kappa, tau = np.empty(len(Z)), np.empty_like(F)
                _core.second_order_pass(
                    C, F, betas, cs, cs.copy(), betas.copy(), kappa, tau, "known", [], "squared", [0.0]
                )
                head.append(start, U, C, kappa, tau)

    def learn(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        state = self.state
        if len(Z) == 1 and self.heads == 1:
            return self._one(Z[0], y[0], 1.0 if weight is None else float(weight[0]))
        n, room = len(Z), len(state["window"])
        F = np.empty((n, len(state["ridge"]), y.shape[1]))
        S = np.empty((n, self.heads))
        start = 0
        while start < n:
            stop = min(start + BLOCK, n, start + room - state["n_window"])
            part = None if weight is None else weight[start:stop]
            F[start:stop], S[start:stop] = self._block(Z[start:stop], y[start:stop], part)
            start = stop
            if state["n_window"] == room:
                flush(state, self.forgetting)
                self._restart()
        return F, S

    def _one(self, z: np.ndarray, y: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """A single row: the same steps on vectors, with as few calls as they need."""
        state, head, rule = self.state, self.head[0], self.rule
        j = state["n_window"]
        v = head.V[:, j]
        v[:] = z
        v = blas.dtrsv(head.R, v, lower=1, overwrite_x=1)
        f, s = head.w0 @ z, float(v @ v)
        if j:
            u = head.V[:, :j].T @ v
            _core.unit_forward(head.M.T, u[None])
            ku = head.kappa[:j] * u
            f += u @ head.tau[:j]
            s = max(s - float(ku @ u), 0.0)
        scale = self.forgetting ** -(j + 1.0)
        F, S = f[None, None], np.array([[s * scale]])
        if not weight:
            return F, S
        c, beta = rule.step(y if rule.shared else float(y[0]), f if rule.shared else float(f[0]), s, weight * scale)
        if not (c or np.any(beta)):
            return F, S
        head.kappa[j] = c / (1 + c * s)
        head.tau[j] = (beta - c * f) / (1 + c * s)
        head.M[j, j] = 1.0
        if j:
            head.M[j, :j] = ku
        state["window"][j], state["window_c"][j], state["window_b"][j] = z, c, beta
        state["n_window"] = j + 1
        if j + 1 == len(state["window"]):
            flush(state, self.forgetting)
            self._restart()
        return F, S

    def _block(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        state, (n, k) = self.state, y.shape
        j = state["n_window"]
        weight = np.ones(n) if weight is None else weight
        scale = np.ones(n)
        if self.forgetting < 1:  # row number in the window, had it been counted
            scale = self.forgetting ** -(j + np.cumsum(weight > 0) + (weight == 0.0))
        importance = weight * scale
        F, S = np.empty((n, len(state["ridge"]), k)), np.empty((n, self.heads))
        c, beta = np.empty((len(state["gram"]), n)), np.empty((n, k))
        seen = []
        for h, head in enumerate(self.head):
            V = head.solve(Z, head.V[:, j : j + n])
            U, f = head.see(Z, V, j)
            C = head.products(V, U)
            outputs = self.outputs[h]
            kappa, tau, betas = np.empty(n), np.empty_like(f), np.empty_like(f)
            _core.second_order_pass(
                C,
                f,
                np.ascontiguousarray(y[:, outputs]),
                importance,
                c[self.matrix[h]],
                betas,
                kappa,
                tau,
                *self.rule.native(),
            )
            beta[:, outputs] = betas
            F[:, self.ridge[h], outputs] = f
            S[:, h] = C.diagonal() * scale
            seen.append((U, C, kappa, tau))
        joins = np.flatnonzero(c.any(axis=0) | beta.any(axis=1))
        everyone = len(joins) == n
        end = j + len(joins)
        for head, (U, C, kappa, tau) in zip(self.head, seen):
            if not everyone:
                head.V[:, j:end] = head.V[:, j + joins]
                U, C, kappa, tau = U[:, joins], C[np.ix_(joins, joins)], kappa[joins], tau[joins]
            head.append(j, U, C, kappa, tau)
        state["window"][j:end] = Z if everyone else Z[joins]
        state["window_c"][j:end] = c.T[joins]
        state["window_b"][j:end] = beta[joins]
        state["n_window"] = end
        return F, S

    def score(self, Z: np.ndarray, uncertainty: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        F = self._scores(Z)
        if not uncertainty:
            return F, None
        j = self.state["n_window"]
        S = np.empty((len(Z), self.heads))
        for h, head in enumerate(self.head):
            V = head.solve(Z, np.empty((Z.shape[1], len(Z)), order="F"))
            U, _ = head.see(Z, V, j)
            S[:, h] = np.einsum("ij,ij->j", V, V) - head.kappa[:j] @ U**2
        return F, S * self.forgetting ** -(j + 1.0)

    def weights(self) -> np.ndarray:
        w = [head.weights(self.state["n_window"]) for head in self.head]
        return np.stack(w) if len(self.state["ridge"]) > 1 else np.concatenate(w)[None]
