"""Stochastic dual coordinate ascent: one row at a time, its dual variable moved to the best place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelstream.losses import Loss, dual_of
from kernelstream.random import SeedStream, generator
from kernelstream.solvers import Problem, Solution, Solver, register

from .dense import dense_rows, row_weights


@register
@dataclass(eq=False, repr=False)
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

    tol: float = 1e-3
    max_iter: int = 50

    def can(self, loss: Loss) -> bool:
        return loss.dual() is not None

    def solve(self, problem: Problem) -> Solution:
        if problem.start is not None:
            raise ValueError("solver 'sdca' cannot begin with given weights: it keeps a number for every row instead")
        return problem.by_output(self._one)

    def _one(self, problem: Problem) -> Solution:
        Z, lam, y = dense_rows(problem), problem.lam, problem.Y[:, 0]
        a = row_weights(problem)
        dual = dual_of(problem.loss)
        sign = np.ones(len(y)) if problem.loss.kind == "regression" else y
        squares = np.einsum("ij,ij->i", Z, Z).astype(np.float64) / lam
        beta = dual.start * a
        w = (Z.T @ (beta * sign / lam).astype(Z.dtype)).astype(problem.dtype)
        at_zero = float(problem.objective(np.zeros((len(y), 1)), np.zeros(1))[0])
        rng, history = generator(problem.seed, SeedStream.SOLVER), []
        targets, weights, sizes, signs = (part.tolist() for part in (y, a, squares, sign))
        for iteration in range(1, self.max_iter + 1):
            for i in rng.permutation(len(y)).tolist():
                if sizes[i] == 0.0 or weights[i] == 0.0:
                    continue
                z, old = Z[i], float(beta[i])
                new = dual.best(targets[i], float(z @ w), old, weights[i], sizes[i])
                if new != old:
                    w += w.dtype.type((new - old) * signs[i] / lam) * z
                    beta[i] = new
            half = 0.5 * lam * float(np.square(w, dtype=np.float64).sum())
            primal = float(problem.objective(problem.Z.dot(w[:, None]), np.array([half]))[0])
            counted = a > 0
            gap = primal - (float(dual.value(y[counted], beta[counted], a[counted]).sum()) - half)
            history.append(primal)
            problem.report(iteration, gap / max(at_zero, 1e-300))
            if gap <= self.tol * at_zero:
                return Solution(w[:, None], history, iteration, True)
        return Solution(w[:, None], history, self.max_iter, False)
