"""Strategies that project on the span of the whole support set."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone

from .._schema import Array
from ..updates import Perceptron
from ._base import NOVELTY, Budget, Row, SupportSet, register
from .removal import smallest

REFRESH = 100  # updates after which an inverse is made anew, so that rounding errors cannot grow


@register
class Projectron(Budget):
    r"""A row joins while there is room and it is new; otherwise it is projected on the support set.

    With ``d = K^-1 k_t``, K the Gram matrix of the support set, the row lies in its span when ``k_tt - k_t'd <= 1e-10
    k_tt``; it is projected, ``alpha += tau d``, then or when the budget is full. Once full, the support set never
    changes.

    Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009), with a budget.
    """

    name = "projectron"
    precise = True

    def begin(self, state, capacity, kernel):
        # lower Cholesky factor L of the Gram matrix: K^-1 k = L'^-1 L^-1 k, and the residual is k_tt - ||L^-1 k||^2
        return super().begin(state, capacity, kernel) | {"budget_factor": np.zeros((capacity, capacity))}

    def schema(self, state, capacity, kernel):
        return super().schema(state, capacity, kernel) | {"budget_factor": Array((capacity, capacity))}

    def absorb(self, S: SupportSet, row: Row) -> None:
        if row.tau.any():
            self._join(S, row)

    def _join(self, S: SupportSet, row: Row) -> None:
        L, n = S.state["budget_factor"], S.n
        v = solve_triangular(L[:n, :n], row.k, lower=True, check_finite=False) if n else row.k
        residual = row.k_xx - float(v @ v)
        if not S.full and residual > NOVELTY * row.k_xx:
            L[n, :n], L[n, n] = v, math.sqrt(residual)
            S.place(n, row, row.tau)
        else:
            S.add(np.outer(row.tau, back_substitute(L[:n, :n], v)))


def back_substitute(L: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``L'^-1 v``."""
    return solve_triangular(L, v, lower=True, trans="T", check_finite=False) if len(L) else v


@register
class ProjectronPP(Projectron):
    r"""Projectron++: rows that are right by less than the margin are projected too, where that pays.

    On a margin error ``0 < l < 1``, with ``p = k_t'd`` and ``tau = min(l/p, 1)``, ``alpha += tau d`` along the loss's
    descent if ``tau (2l - tau p - 2U sqrt(k_tt - p)) >= 0``, ``U = sqrt((B + 1)/log(B + 1))/4``.

    Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009), with a budget.
    """

    name = "projectron_pp"
    kinds = ("binary", "multiclass")
    restless = True
    budget = 100  # see `sized`

    def check(self, budget, kernel, loss, update):
        super().check(budget, kernel, loss, update)
        if loss.name not in ("hinge", "crammer_singer") or not isinstance(update, Perceptron):
            raise ValueError(
                "ProjectronPP adds margin errors to the perceptron's mistakes: it needs the hinge (or Crammer-Singer) loss "  # noqa: E501
                f"and the Perceptron update, got {loss.name!r} and {type(update).__name__}"
            )

    def absorb(self, S: SupportSet, row: Row) -> None:
        if row.tau.any():
            return self._join(S, row)
        if not 0 < row.value < 1 or not S.n:
            return None
        L, n = S.state["budget_factor"], S.n
        v = solve_triangular(L[:n, :n], row.k, lower=True, check_finite=False)
        tau = margin_step(row.value, float(v @ v), row.k_xx, self.budget)
        if tau > 0:
            S.add(np.outer(-tau * row.gradient, back_substitute(L[:n, :n], v)))
        return None

    def sized(self, budget):
        sized = clone(self)
        sized.budget = budget
        return sized

    def native(self):
        return self.name, [float(self.budget)]


def margin_step(loss: float, p: float, k_xx: float, budget: int) -> float:
    """Size of Projectron++'s step on a margin error; 0 where it does not pay."""
    if p <= NOVELTY * k_xx:
        return 0.0
    U = 0.25 * math.sqrt((budget + 1) / math.log(budget + 1))
    tau = min(loss / p, 1.0)
    return tau if tau * (2 * loss - tau * p - 2 * U * math.sqrt(max(0.0, k_xx - p))) >= 0 else 0.0


@register
class Project(Budget):
    r"""Drop one vector and project it on all the others, the new row included (BPA-P, BSGD projection).

    With A the inverse Gram matrix of support set and new row together, dropping r costs ``|alpha_r|^2 / A_rr`` and
    moves the others by ``-alpha_r A_jr / A_rr``. A row that lies in the span of the support set is projected without
    dropping
    any.

    Wang, Vucetic: Online passive-aggressive algorithms on a budget, AISTATS 2010; Wang, Crammer, Vucetic: Breaking the
    curse of kernelization, JMLR 13 (2012).

    Parameters
    ----------
    victim : {"cheapest", "smallest"}
        Drop the vector with the smallest cost (BPA-P), or the one with the smallest ``|alpha_r|^2 k_rr``, which may be
        the new row (BSGD).
    """

    name = "project"
    gram = True
    precise = True
    n_memory = 1  # updates of the inverse since it was made anew

    def __init__(self, victim: str = "cheapest"):
        self.victim = victim

    def check(self, budget, kernel, loss, update):
        super().check(budget, kernel, loss, update)
        if self.victim not in ("cheapest", "smallest"):
            raise ValueError(f"victim must be 'cheapest' or 'smallest', got {self.victim!r}")

    def begin(self, state, capacity, kernel):
        return super().begin(state, capacity, kernel) | {"budget_inverse": np.zeros((capacity, capacity))}

    def schema(self, state, capacity, kernel):
        return super().schema(state, capacity, kernel) | {"budget_inverse": Array((capacity, capacity))}

    def absorb(self, S: SupportSet, row: Row) -> None:
        n = S.n
        inverse = S.state["budget_inverse"]
        d = inverse[:n, :n] @ row.k
        residual = row.k_xx - float(row.k @ d)
        r = smallest(S, row) if S.full and self.victim == "smallest" else -1
        if residual <= NOVELTY * row.k_xx or (S.full and r == n):
            S.add(np.outer(row.tau, d))
            return
        extended = np.append(d, -1.0)  # the last column of A is -extended/residual
        if not S.full:
            inverse[: n + 1, : n + 1] += np.outer(extended, extended / residual)
            S.place(n, row, row.tau)
        else:
            alpha = S.coefficients
            if r < 0:
                r = int(np.argmin((alpha**2).sum(axis=0) / (np.diag(inverse) + d * d / residual)))
            a = np.append(inverse[:, r], 0.0) + extended * (d[r] / residual)  # column r of A
            moved = np.hstack([alpha, row.tau[:, None]]) - np.outer(alpha[:, r], a / a[r])
            inverse += np.outer(d, d / residual) - np.outer(a[:-1], a[:-1] / a[r])
            new = -extended / residual - a * (a[-1] / a[r])  # column of the new row without r
            inverse[r, :] = inverse[:, r] = new[:-1]
            inverse[r, r] = new[-1]
            S.alpha[:] = moved[:, :-1] / S.scale[:, None]
            S.place(r, row, moved[:, -1])
        S.state["budget_memory"][0] += 1
        if S.state["budget_memory"][0] >= REFRESH:
            refresh(S.state)

    def native(self):
        return self.name, [float(self.victim == "smallest")]


def refresh(state: dict) -> None:
    """Make the inverse Gram matrix anew from the Gram matrix."""
    n = state["n_support"]
    inverse = np.linalg.inv(state["budget_gram"][:n, :n])
    state["budget_inverse"][:n, :n] = 0.5 * (inverse + inverse.T)
    state["budget_memory"][0] = 0.0
