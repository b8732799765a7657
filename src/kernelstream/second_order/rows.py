"""The recursion row by row, as in textbooks: the specification, and the python engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ..core.overflow import quiet, require_finite
from ..state.nested import State
from .rules import Rule
from .statistics import factor, flush


class RowRecursion:
    r"""Sherman and Morrison's recursion on ``P = A^-1`` and ``w``, restarted from A and b when the window is full.

    ``f = w'z``, ``s = z'Pz``; ``(c, beta) = rule(y, f, s)``; ``w += tau Pz``, ``tau = (beta - c f)/(1 + c s)``;
    ``P -= c/(1 + c s) Pz z'P``.

    Parameters
    ----------
    state : dict
        Entries of :mod:`.statistics`; learning changes them.
    rule : Rule
    forgetting : float
        mu, in (0, 1].
    """

    in_window = False  # whether rows may be written straight into the state's window

    def __init__(self, state: State, rule: Rule, forgetting: float = 1.0):
        self.state, self.rule, self.forgetting = state, rule, forgetting
        G, J = len(state["gram"]), len(state["ridge"])
        self.heads = max(G, J)  # each with its own P
        self.matrix = [h if G > 1 else 0 for h in range(self.heads)]
        self.ridge = [h if J > 1 else 0 for h in range(self.heads)]
        k = len(state["b"])
        self.outputs = [slice(h, h + 1) if G > 1 else slice(0, k) for h in range(self.heads)]
        self._restart()

    @property
    def at_once(self) -> bool:
        """Whether rows may come in blocks of any size, for all of the recursion in one call."""
        return False

    def cuts(self, n: int) -> list[slice] | None:
        """Where n rows should be cut before they come; None leaves that to the caller."""
        return None

    def sync(self) -> None:
        """Bring the state up to date: here it always is."""

    def _restart(self) -> None:
        """P and w from the statistics, then the rows of the window once more."""
        state = self.state
        self.P, self.w = [], []
        r = state["b"].shape[1]
        for h in range(self.heads):
            R = factor(state, self.matrix[h], self.ridge[h])
            self.P.append(cho_solve((R, True), np.eye(r)))
            self.w.append((self.P[h] @ state["b"][self.outputs[h]].T).T)
        for z, c, beta in zip(*(state[name][: state["n_window"]] for name in ("window", "window_c", "window_b"))):
            for h in range(self.heads):
                Pz = self.P[h] @ z
                self._move(h, Pz, self.w[h] @ z, float(z @ Pz), c[self.matrix[h]], beta[self.outputs[h]])

    def _move(self, h: int, Pz: np.ndarray, f: np.ndarray, s: float, c: float, beta: np.ndarray) -> None:
        self.w[h] += ((beta - c * f) / (1 + c * s))[:, None] * Pz
        self.P[h] -= c / (1 + c * s) * np.outer(Pz, Pz)

    @quiet
    def learn(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Learn feature rows Z (n, r) with targets y (n, k); returns scores and uncertainties before each update.

        Returns
        -------
        F : (n, J, k)
            Raw scores ``w'z``, one for every ridge.
        S : (n, heads)
            ``z'P z / mu``: with forgetting, ``A <- mu A + c z z'`` turns ``1 + c s`` into ``1 + c S``.
        """
        state = self.state
        F = np.empty((len(Z), len(state["ridge"]), y.shape[1]))
        S = np.empty((len(Z), self.heads))
        for i, z in enumerate(Z):
            scale = self.forgetting ** -(state["n_window"] + 1.0)
            products = [P @ z for P in self.P]
            scores = [w @ z for w in self.w]
            s = [float(z @ Pz) for Pz in products]
            F[i] = scores if len(state["ridge"]) > 1 else np.concatenate(scores)[: y.shape[1]]
            S[i] = np.multiply(s, scale)
            importance = scale if weight is None else scale * float(weight[i])
            if importance == 0:
                continue
            c, beta = self._decide(y[i], scores, s, importance)
            if not (c.any() or beta.any()):
                continue
            for h in range(self.heads):
                self._move(h, products[h], scores[h], s[h], c[self.matrix[h]], beta[self.outputs[h]])
            n = state["n_window"]
            state["window"][n], state["window_c"][n], state["window_b"][n] = z, c, beta
            state["n_window"] = n + 1
            if n + 1 == len(state["window"]):
                flush(state, self.forgetting)
                self._restart()
        require_finite(F, S, *self.w)
        return F, S

    def _decide(self, y: np.ndarray, f: list[Any], s: list[Any], weight: float) -> tuple[np.ndarray, np.ndarray]:
        if self.rule.shared:  # the step does not depend on the scores, which differ between ridges
            c, beta = self.rule.step(y, None, 0.0, weight)
            return np.array([c]), np.asarray(beta)
        steps = [self.rule.step(float(y[h]), float(f[h][0]), s[h], weight) for h in range(self.heads)]
        return np.array([c for c, _ in steps]), np.array([beta for _, beta in steps])

    def score(self, Z: np.ndarray, uncertainty: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores F (n, J, k) and, if wanted, uncertainties S (n, heads) of rows that are not learned."""
        F = self._scores(Z)
        if not uncertainty:
            return F, None
        scale = self.forgetting ** -(self.state["n_window"] + 1.0)
        return F, np.stack([np.einsum("ij,ij->i", Z @ P, Z) for P in self.P], axis=1) * scale

    def _scores(self, Z: np.ndarray) -> np.ndarray:
        J = len(self.state["ridge"])
        return (Z @ self.weights().reshape(-1, Z.shape[1]).T).reshape(len(Z), J, -1)

    def weights(self) -> np.ndarray:
        """``w``, (J, k, r)."""
        return np.stack(self.w) if len(self.state["ridge"]) > 1 else np.concatenate(self.w)[None]
