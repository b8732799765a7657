"""Smooth losses with a squared penalty, by Newton steps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..state.blas_threads import on_one_blas_thread
from ._problem import Problem, Solution, Solver
from .cg import System, descend


class NewtonCG(Solver):
    r"""Newton's method for ``sum_i a_i l(y_i, z_i'w) + lam/2 ||w||^2`` with squared hinge, logistic or squared loss.

    Each step solves ``(Z'H Z + lam I) d = -gradient``, H the second derivatives of the loss, by conjugate gradients, as
    accurately as it pays, and is halved until the objective falls.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when the gradient has this size relative to the one at w = 0.
    max_iter : int, default 50
        Newton steps.

    References
    ----------
    Lin, Weng, Keerthi: Trust region Newton method for logistic regression, JMLR 9 (2008). Keerthi, DeCoste: A
    modified finite Newton method for fast solution of large scale linear SVMs, JMLR 6 (2005).
    """

    name: ClassVar[str] = "newton-cg"
    inner: ClassVar[int] = 100  # conjugate gradient iterations in a step

    def __init__(self, tol: float = 1e-3, max_iter: int = 50):
        self.tol = tol
        self.max_iter = max_iter

    @on_one_blas_thread
    def solve(self, problem: Problem) -> Solution:
        Z, Y, loss, lam = problem.Z, problem.Y, problem.loss, problem.lam
        dtype = np.dtype(problem.dtype)
        a = np.ones((len(Y), 1)) if problem.weight is None else problem.weight[:, None]
        W = np.zeros((Z.shape[1], Y.shape[1]), dtype) if problem.start is None else problem.start.copy()
        F = problem.base()
        smallest = self.tol * _norms(Z.tdot((a * loss.gradient(Y, F)).astype(dtype)))
        if problem.start is not None:
            F += Z.dot(W)
        objective = problem.objective(F, 0.5 * lam * _norms(W) ** 2)
        history: list[float] = []
        for iteration in range(1, self.max_iter + 1):
            gradient = Z.tdot((a * loss.gradient(Y, F)).astype(dtype)) + dtype.type(lam) * W
            size = _norms(gradient)
            going = size > smallest
            if not going.any():
                return Solution(W, history, iteration - 1, True)
            rough = float(np.clip((size[going] / smallest[going]).max() * self.tol, 1e-4, 0.25) ** 0.5)
            direction = np.zeros_like(W)
            downhill = np.where(going, -gradient, dtype.type(0))
            H = a * loss.curvature(Y, F)
            descend(problem, System(H, direction, downhill.copy(), downhill, min(rough, 0.3), self.inner))
            toward = Z.dot(direction)
            step, objective = self._search(problem, W, F, direction, toward, gradient, objective, going)
            W += step.astype(dtype) * direction
            F += step * toward
            history.append(float(objective.sum()))
            problem.report(iteration, float((size / np.maximum(smallest, 1e-300)).max() * self.tol))
            if not step.any():  # no progress in the arithmetic at hand
                return Solution(W, history, iteration, True)
        return Solution(W, history, self.max_iter, False)

    @staticmethod
    def _search(
        problem: Problem,
        W: np.ndarray,
        F: np.ndarray,
        direction: np.ndarray,
        toward: np.ndarray,
        gradient: np.ndarray,
        objective: np.ndarray,
        going: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps (C,) halved until each objective falls by 1e-4 of what its slope promises, and the new objectives.

        ``toward`` (n, C) is what a whole step adds to the scores F.
        """
        slope, ww, wd, dd = (
            (left * right).sum(axis=0, dtype=np.float64)
            for left, right in ((gradient, direction), (W, W), (W, direction), (direction, direction))
        )
        step = going.astype(np.float64)
        for _ in range(30):
            penalty = 0.5 * problem.lam * (ww + 2 * step * wd + step**2 * dd)
            new = problem.objective(F + step * toward, penalty)
            fails = (step > 0) & (new > objective + 1e-4 * step * slope)
            if not fails.any():
                return step, np.where(step > 0, new, objective)
            step = np.where(fails, step / 2, step)
        return np.where(fails, 0.0, step), np.where(fails, objective, new)


def _norms(V: np.ndarray) -> np.ndarray:
    """Norms of the columns, (C,) float64."""
    return np.sqrt((V * V).sum(axis=0, dtype=np.float64))
