"""Stochastic dual coordinate ascent: one row at a time, its dual variable moved to the best place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..random import generator
from ._dense import by_column, dense_rows, row_weights
from ._problem import Problem, Solution, Solver


def _hinge(y: float, f: float, beta: float, a: float, q: float) -> float:
    return min(a, max(0.0, beta + (1.0 - y * f) / q))


def _squared_hinge(y: float, f: float, beta: float, a: float, q: float) -> float:
    return max(0.0, beta + (1.0 - y * f - beta / a) / (q + 1.0 / a))


def _squared(y: float, f: float, beta: float, a: float, q: float) -> float:
    return beta + (y - f - beta / a) / (q + 1.0 / a)


def _logistic(y: float, f: float, beta: float, a: float, q: float) -> float:
    """The root of ``log(b / (a - b)) + y f + q (b - beta)`` in (0, a), by Newton's method on u = log(b / (a - b))."""
    margin = y * f - q * beta
    u = -y * f
    for _ in range(20):
        b = a / (1.0 + math.exp(-u)) if u >= 0 else a * math.exp(u) / (1.0 + math.exp(u))
        move = (u + margin + q * b) / (1.0 + q * b * (1.0 - b / a))  # rises with slope >= 1, so the steps are safe
        u = min(max(u - move, -35.0), 35.0)
        if abs(move) < 1e-9:
            break
    return a / (1.0 + math.exp(-u))


def _entropy(beta: np.ndarray, a: np.ndarray) -> np.ndarray:
    share = np.clip(beta / a, 1e-300, 1.0)
    rest = np.clip(1.0 - beta / a, 1e-300, 1.0)
    return -a * (share * np.log(share) + rest * np.log(rest))


Move = Callable[[float, float, float, float, float], float]
# the best beta, and what the betas (n,) of rows with targets y and weights a contribute to the dual objective
_DUALS: dict[str, tuple[Move, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]] = {
    "hinge": (_hinge, lambda y, b, a: b),
    "squared_hinge": (_squared_hinge, lambda y, b, a: b - b * b / (2.0 * a)),
    "squared": (_squared, lambda y, b, a: b * y - b * b / (2.0 * a)),
    "logistic": (_logistic, lambda y, b, a: _entropy(b, a)),
}


class SDCA(Solver):
    r"""Dual coordinate ascent for ``lam/2 ||w||^2 + sum_i a_i l(y_i, z_i'w)``.

    Every row has a number :math:`\beta_i`, and :math:`w = \frac{1}{lam} \sum_i \beta_i y_i z_i` (without the
    :math:`y_i` for the squared loss). Rows come in random order; each moves its :math:`\beta_i` to the maximum of the
    dual, which is a formula (for the logistic loss, a scalar equation). There is no step size, and the gap between
    the two objectives says how far the minimum is.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when the duality gap is this share of the objective at w = 0.
    max_iter : int, default 50
        Passes.

    References
    ----------
    Shalev-Shwartz, Zhang: Stochastic dual coordinate ascent methods for regularized loss minimization, JMLR 14 (2013).
    """

    name: ClassVar[str] = "sdca"
    losses: ClassVar[tuple[str, ...]] = tuple(_DUALS)

    def __init__(self, tol: float = 1e-3, max_iter: int = 50):
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, problem: Problem) -> Solution:
        if problem.start is not None:
            raise ValueError("solver 'sdca' cannot begin with given weights: it keeps a number for every row instead")
        return by_column(problem, self._one)

    def _one(self, problem: Problem) -> Solution:
        Z, lam, y = dense_rows(problem), problem.lam, problem.Y[:, 0]
        a = row_weights(problem)
        move, dual = _DUALS[problem.loss.name]
        sign = np.ones(len(y)) if problem.loss.kind == "regression" else y
        squares = np.einsum("ij,ij->i", Z, Z).astype(np.float64) / lam
        beta = 0.5 * a if problem.loss.name == "logistic" else np.zeros(len(y))  # the entropy wants an inner point
        w = (Z.T @ (beta * sign / lam).astype(Z.dtype)).astype(problem.dtype)
        at_zero = float(problem.objective(np.zeros((len(y), 1)), np.zeros(1))[0])
        rng, history = generator(problem.seed, 5), []
        targets, weights, sizes, signs = (part.tolist() for part in (y, a, squares, sign))
        for iteration in range(1, self.max_iter + 1):
            for i in rng.permutation(len(y)).tolist():
                if sizes[i] == 0.0 or weights[i] == 0.0:
                    continue
                z, old = Z[i], float(beta[i])
                new = move(targets[i], float(z @ w), old, weights[i], sizes[i])
                if new != old:
                    w += w.dtype.type((new - old) * signs[i] / lam) * z
                    beta[i] = new
            half = 0.5 * lam * float(np.square(w, dtype=np.float64).sum())
            primal = float(problem.objective(problem.Z.dot(w[:, None]), np.array([half]))[0])
            counted = a > 0
            gap = primal - (float(dual(y[counted], beta[counted], a[counted]).sum()) - half)
            history.append(primal)
            problem.report(iteration, gap / max(at_zero, 1e-300))
            if gap <= self.tol * at_zero:
                return Solution(w[:, None], history, iteration, True)
        return Solution(w[:, None], history, self.max_iter, False)
