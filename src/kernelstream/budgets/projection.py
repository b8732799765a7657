"""Strategies that project on the span of the whole support set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular
from sklearn.base import clone

from ..state.schema import Array
from ..updates import Perceptron
from ._base import NOVELTY, Budget, Row, SupportSet, register
from .removal import smallest

REFRESH = 100  # updates after which a basis is computed again, so that rounding errors cannot grow
AGAIN = 0.5  # share of a row below which what its projection leaves is projected again
# Vectors that come and go: a row whose residual is below this share of k(x, x) lies in the span of the others. Rounding
# errors of kernel values matter 1/DISTINCT times as much for the coefficients, and at NOVELTY they decide which join.
DISTINCT = 1e-6


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

    def schema(self, state: Any, capacity: Any, kernel: Any) -> Any:
        # lower Cholesky factor L of the Gram matrix: K^-1 k = L'^-1 L^-1 k, and the residual is k_tt - ||L^-1 k||^2
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

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
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

    def sized(self, budget: Any) -> Any:
        sized = clone(self)
        sized.budget = budget
        return sized

    def native(self) -> Any:
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
    dropping any.

    Instead of an inverse, which loses twice the digits that the Gram matrix K has lost and more with every vector that
    comes and goes, an orthonormal basis of the span is kept: ``q_i = sum_j Q_ij k(s_j, .)``, ``Q K Q' = I`` and hence
    ``K^-1 = Q'Q``. A row joins by a step of Gram and Schmidt; a vector leaves by a reflection of the basis after which
    only one function, which is dropped, has a share in it.

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
    n_memory = 1  # changes of the basis since it was computed

    def __init__(self, victim: str = "cheapest"):
        self.victim = victim

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        if self.victim not in ("cheapest", "smallest"):
            raise ValueError(f"victim must be 'cheapest' or 'smallest', got {self.victim!r}")

    def schema(self, state: Any, capacity: Any, kernel: Any) -> Any:
        return super().schema(state, capacity, kernel) | {"budget_basis": Array((capacity, capacity))}

    def absorb(self, S: SupportSet, row: Row) -> None:
        n = S.n
        Q = S.state["budget_basis"][:n, :n]
        d, residual = nearest(Q, S.state["budget_gram"][:n, :n], row.k, row.k_xx)
        r = smallest(S, row) if S.full and self.victim == "smallest" else -1
        if residual <= DISTINCT * row.k_xx or (S.full and r == n):
            S.add(np.outer(row.tau, d))
            return
        own = -d / math.sqrt(residual)  # the new row's function in the basis: own, and `height` for the row itself
        height = 1.0 / math.sqrt(residual)
        if not S.full:
            S.state["budget_basis"][n, :n] = own
            S.state["budget_basis"][n, n] = height
            S.place(n, row, row.tau)
        else:
            alpha = S.coefficients
            if r < 0:
                r = int(np.argmin((alpha**2).sum(axis=0) / ((Q * Q).sum(axis=0) + own * own)))
            g = np.append(Q[:, r], own[r])  # what the functions have of r
            a = g[:-1] @ Q + g[-1] * own  # column r of A, without its last number, which is
            last = g[-1] * height
            moved = np.hstack([alpha, row.tau[:, None]]) - np.outer(alpha[:, r], np.append(a, last) / a[r])
            # the reflection that turns g into the last unit vector: I - v v'/(v'v/2), v = g and at the end more
            size = math.copysign(math.sqrt(a[r]), g[-1])
            share = g[:-1] / (a[r] + size * g[-1])
            Q -= np.outer(share, a + size * own)
            Q[:, r] = -share * (last + size * height)  # the new row takes the place of r
            S.alpha[:] = moved[:, :-1] / S.scale[:, None]
            S.place(r, row, moved[:, -1])
        S.state["budget_memory"][0] += 1
        if S.state["budget_memory"][0] >= REFRESH:
            refresh(S.state)

    def native(self) -> Any:
        return self.name, [float(self.victim == "smallest")]


def nearest(Q: np.ndarray, gram: np.ndarray, k: np.ndarray, k_xx: float) -> tuple[np.ndarray, float]:
    """Coefficients ``d = K^-1 k`` of the row's projection, (n,), and its squared distance ``k_xx - k'd``.

    Where little is left of the row, it is projected again, which removes the rounding errors of the first projection.
    """
    w = Q @ k
    d = w @ Q
    residual = k_xx - float(w @ w)
    if residual < AGAIN * k_xx:
        more = Q @ (k - gram @ d)
        d = d + more @ Q
        residual -= float(w @ more)
    return d, residual


def refresh(state: dict[str, Any]) -> None:
    """Compute the basis again from the Gram matrix."""
    n = state["n_support"]
    state["budget_memory"][0] = 0.0
    Q = basis_of(state["budget_gram"][:n, :n])
    if Q is not None:  # otherwise the present basis is kept
        state["budget_basis"][:n, :n] = Q


def basis_of(gram: np.ndarray) -> np.ndarray | None:
    """Coefficients of orthonormal functions: the inverse of the Cholesky factor of the Gram matrix, if it has one."""
    L, failed = lapack.dpotrf(gram, lower=1, clean=1)
    return None if failed else solve_triangular(L, np.eye(len(gram)), lower=True, check_finite=False)


def some_basis(gram: np.ndarray) -> np.ndarray:
    """Coefficients of orthonormal functions in every case: from the eigenvectors where there is no Cholesky factor."""
    Q = basis_of(gram)
    if Q is None:
        size, vectors = np.linalg.eigh(gram)
        Q = (vectors / np.sqrt(np.maximum(size, np.finfo(float).eps * size[-1]))).T
    return Q
