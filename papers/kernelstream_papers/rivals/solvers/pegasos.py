"""Support vector machines by sub-gradients of random rows, with steps 1/(lambda t)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelstream.develop import whole
from kernelstream.solvers import Problem, Solution, Solver, register

from .dense import SUBGRADIENTS, averaged_passes, dense_rows, largest_square, row_weights, slopes


@register
@dataclass(eq=False, repr=False)
class Pegasos(Solver):
    r"""Stochastic sub-gradients of ``lam/2 ||w||^2 + sum_i a_i l(y_i, z_i'w)``, one batch of rows at a time.

    With :math:`\lambda = lam / \sum_i a_i`, the strength next to the *mean* loss, step t is

    .. math:: w \leftarrow (1 - \gamma_t\lambda) w - \frac{\gamma_t}{b} \sum_{i \in batch} l'(y_i, z_i'w)\, z_i,
        \qquad \gamma_t = \frac{1}{\lambda (t + t_0)},

    followed, for the hinge, by a projection onto the ball of radius :math:`1/\sqrt\lambda` that holds the minimum.
    ``t_0`` is 0 for losses with a bounded derivative and ``max ||z||^2 / lambda`` for the squared ones, whose first
    steps would be too long otherwise. The answer is the average of the iterates, the t-th with weight t.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when a pass changes the objective by less than this share of it.
    max_iter : int, default 20
        Passes.
    batch_size : int, default 16
        Rows of a step.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos: primal estimated sub-gradient solver for SVM, Mathematical
    Programming 127 (2011), figure 2.
    """

    name: ClassVar[str] = "pegasos"
    losses = SUBGRADIENTS

    tol: float = 1e-3
    max_iter: int = 20
    batch_size: int = 16

    def check(self) -> None:
        super().check()
        whole("batch_size", self.batch_size)

    def solve(self, problem: Problem) -> Solution:
        Z, a = dense_rows(problem), row_weights(problem)
        lam, mean_weight = problem.lam / a.sum(), a.mean()
        offset = 0.0 if problem.loss.bound is not None else largest_square(Z) / lam
        radius = 1.0 / np.sqrt(lam) if problem.loss.name == "hinge" else np.inf
        W = np.zeros((Z.shape[1], problem.Y.shape[1]), Z.dtype) if problem.start is None else problem.start.copy()

        def step(t: int, rows: np.ndarray, W: np.ndarray) -> None:
            part = Z[rows]
            G = slopes(problem, part @ W, rows) / (mean_weight * len(rows))
            rate = 1.0 / (lam * (t + offset))
            W *= W.dtype.type(1.0 - rate * lam)
            W -= part.T @ (rate * G).astype(W.dtype)
            if radius < np.inf:
                W *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(W, axis=0), 1e-300)).astype(W.dtype)

        return averaged_passes(problem, self.batch_size, step, W, self.tol, self.max_iter)
