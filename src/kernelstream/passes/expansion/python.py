"""Kernel expansions in the python engine: kernel values row by row, and the pass of the budget strategies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...budgets import Row, SupportSet
from ...core.center import follow, offset_of
from ...core.overflow import quiet, require_finite
from ...kernels import Kernel
from ...losses import Loss
from ...rows import Rows
from ...state import undo as _undo
from ...state.nested import State
from ..spec import Spec, Told


class Expansion:
    """Kernel values between rows and the support set of a state."""

    block = 1  # rows handled at once: one, so that a row's values never depend on its neighbours

    def __init__(self, kernel: Kernel, state: State):
        self.kernel = kernel

    def cut(self, X: Rows, rows: slice) -> Rows:
        """The rows of a block."""
        return X[rows]

    def columns(self, X: Rows, state: State) -> np.ndarray:
        """K (m, capacity): kernel values with the support vectors; only the first ``n_support`` columns count."""
        n, support = state["n_support"], state["support"]
        K = np.zeros((X.shape[0], len(support)), support.dtype)
        if n:
            K[:, :n] = self.kernel.pairwise(X, support[:n])
        return K

    def among(self, X: Rows) -> np.ndarray:
        """G (m, m): kernel values of the block's rows with each other; only the upper triangle is used."""
        return np.ascontiguousarray(self.kernel.pairwise(X, X))

    def scores(self, X: Rows, state: State, alpha: np.ndarray) -> np.ndarray:
        """sum_j alpha_cj k(s_j, x) for the rows, alpha (C, n) -> (m, C) float64."""
        n = alpha.shape[1]
        if n == 0:
            return np.zeros((X.shape[0], len(alpha)))
        return np.asarray(self.kernel.pairwise(X, state["support"][:n]) @ alpha.T, np.float64)

    def put(self, X: Rows, joined: np.ndarray, state: State, start: int) -> None:
        """Rows ``joined`` of the block become the support vectors from ``start`` on."""
        stop = start + len(joined)
        _undo.rows(state["support"], slice(start, stop))
        rows = X[joined]
        state["support"][start:stop] = rows.toarray() if hasattr(rows, "toarray") else rows
        state["diag"][start:stop] = self.kernel.diag(rows)


@quiet
def budget_pass(
    expansion: Expansion, X: Rows, Z: np.ndarray | None, targets: Told, state: State, spec: Spec
) -> np.ndarray:
    r"""Kernel expansion under a budget over one block, rows in order; returns the scores before each update, (m, C).

    ``f_t = sum_j alpha_j k(s_j, x_t)``; ``(decay, tau) = step(loss, y_t, f_t, k(x_t, x_t), t)``; ``f <- decay f``; the
    strategy absorbs ``(x_t, tau)``.

    Parameters
    ----------
    X : (m, d)
        Rows of the block; Z (m, P) are their random features, for strategies that use them.
    state : dict
        ``support`` (capacity, d), ``alpha`` (C, capacity), ``scale`` (C,), ``diag`` (capacity,), ``n_support``,
        ``memory``, ``t``, ``center``, and the entries of the strategy. Updated in place.
    """
    loss, update, budget = spec.loss, spec.update, spec.strategy
    y, weight, u = targets
    K, G = expansion.columns(X, state), expansion.among(X)
    S = SupportSet(state, expansion.kernel, X, K, G, Z)
    memory, center = state["memory"], state.get("center")
    first = state["t"]
    scores = np.empty((len(K), len(state["alpha"])))
    for i in range(len(K)):
        f = S.scores(i)
        offset = offset_of(center)
        scores[i] = f + offset
        importance = 1.0 if weight is None else float(weight[i])
        if importance == 0.0:
            continue
        k_xx = float(G[i, i])
        target, score = plain(loss, y[i], offset, f)
        decay, tau = update.step(loss, target, score, k_xx, state["t"] + 1, memory)
        tau = np.atleast_1d(tau) * importance
        S.shrink(decay)
        if tau.any() or budget.restless:
            chance = 0.0 if u is None else float(u[state["t"] - first])
            gradient = np.atleast_1d(loss.gradient(target, score))
            value = float(loss.value(target, score))
            row = Row(i, K[i, : S.n].copy(), k_xx, f * decay, tau, chance, loss.kind, value, gradient)
            budget.absorb(S, row)
        state["t"] += 1
        follow(center, float(y[i]), importance)
    require_finite(state["alpha"], state["diag"], state.get("budget_w"), memory, scores)
    return scores


def plain(loss: Loss, y: float, offset: float, f: np.ndarray) -> tuple[Any, Any]:
    """Target and score as losses take one row: a code and (C,) scores, or two numbers."""
    return (int(y), f) if loss.kind == "multiclass" else (float(y) - offset, float(f[0]))


@quiet
def expansion_pass(
    F: np.ndarray,
    G: np.ndarray,
    targets: Told,
    spec: Spec,
    state: State,
    room: int,
    M: np.ndarray | None = None,
    stop: bool = True,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    r"""Kernel expansion without removal over one block, until ``room`` rows have joined the support set.

    ``f_t = sum_j alpha_j k(s_j, x_t)``; ``(decay, tau) = step(...)``; a row with ``tau != 0`` joins with coefficient
    ``tau``.

    Parameters
    ----------
    F : (m, C)
        Scores of the block under the function at its start; on return, the scores before each update.
    G : (m, m)
        Kernel of the block with itself.
    state : dict
        ``memory`` and ``center`` as in :func:`linear_pass`, both updated in place; ``t``, the rows learned before the
        block, is left alone.
    room : int
        How many rows may join.
    spec : Spec
        Its strategy, if there is one, decides with which coefficient a row joins; without it, with ``tau``.
    M : (m, C), optional
        ``sum_j alpha_j t_j k(s_j, x)`` at the start of the block, t_j the row at which s_j joined: the scores returned
        are then those of the mean of all functions so far, ``f - M/T``.
    stop : bool
        Whether the pass ends after the row that fills the room; otherwise the later rows are scored and change nothing.

    Returns
    -------
    consumed : int
        Rows handled.
    joined : (q,) int64, coefficients : (q, C)
        The new members and their coefficients at the end of the pass.
    decay : (C,)
        Factors for the coefficients held before the block.
    """
    loss, update, growing = spec.loss, spec.update, spec.strategy
    y, weight, u = targets
    memory, center, t = state["memory"], state.get("center"), state["t"]
    first, outputs = t, F.shape[1]
    joined: list[int] = []
    coefficients: list[np.ndarray] = []
    total = np.ones(outputs)
    consumed = len(F)
    for i in range(len(F)):
        full = len(joined) == room
        if full and stop:
            consumed = i
            break
        importance = 1.0 if weight is None else float(weight[i])
        offset = offset_of(center)
        f = F[i].copy()
        F[i] = (f if M is None else f - M[i] / max(t, 1)) + offset
        if importance == 0.0:
            continue
        t += 1
        if full:
            continue
        k_xx = float(G[i, i])
        target, score = plain(loss, y[i], offset, f)
        decay, tau = update.step(loss, target, score, k_xx, t, memory)
        tau = np.atleast_1d(tau)
        if growing is not None and tau.any():
            gradient = np.atleast_1d(loss.gradient(target, score))
            chance = 0.0 if u is None else float(u[t - 1 - first])
            tau = growing.admit(tau, float(loss.value(target, score)), gradient, k_xx, chance)
        tau = tau * importance
        follow(center, float(y[i]), importance)
        if np.any(decay != 1.0):
            if M is not None:  # the mean of the functions so far is known only where coefficients never change
                raise ValueError(
                    f"{type(growing).__name__} predicts by a mean of functions and needs an update that never shrinks "
                    f"them; {type(update).__name__} does"
                )
            F[i + 1 :] *= decay
            total *= decay
            coefficients = [decay * alpha for alpha in coefficients]
        if tau.any():
            F[i + 1 :] += G[i, i + 1 :, None] * tau
            if M is not None:
                M[i + 1 :] += G[i, i + 1 :, None] * (tau * t)
            joined.append(i)
            coefficients.append(tau)
    alpha = np.array(coefficients).reshape(-1, outputs)
    require_finite(F[:consumed], alpha, memory)
    return consumed, np.array(joined, np.int64), alpha, total
