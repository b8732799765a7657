"""Random rows and random coordinates at once, on a fixed set of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelstream.develop import whole
from kernelstream.random import SeedStream, generator
from kernelstream.solvers import Problem, Solution, Solver, register

from .dense import SUBGRADIENTS, averaged_passes, dense_rows, largest_square, row_weights, slopes


@register
@dataclass(eq=False, repr=False)
class BlockMirrorDescent(Solver):
    r"""Stochastic block mirror descent: a step moves one random block of coordinates, by a batch of random rows.

    With m blocks B of coordinates and :math:`\lambda = lam / \sum_i a_i`,

    .. math:: w_B \leftarrow w_B - \gamma_t \Big(\lambda w_B + \frac1b \sum_{i \in batch} l'(y_i, z_i'w)\, z_{iB}\Big),
        \qquad \gamma_t = \frac{m}{\lambda (t + t_0)}, \qquad t_0 = m \max_i ||z_i||^2 / \lambda

    (the mirror map is the Euclidean one). The answer is the average of the iterates, the t-th with weight t. What
    doubly stochastic gradients are to an endless number of features, this is to a fixed one.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when a pass changes the objective by less than this share of it.
    max_iter : int, default 20
        Passes over the rows.
    batch_size : int, default 16
        Rows of a step.
    n_blocks : int, default 4
        Blocks of coordinates, at most as many as there are.

    References
    ----------
    Dang, Lan: Stochastic block mirror descent methods for nonsmooth and stochastic optimization, SIAM Journal on
    Optimization 25 (2015).
    """

    name: ClassVar[str] = "sbmd"
    losses = SUBGRADIENTS

    tol: float = 1e-3
    max_iter: int = 20
    batch_size: int = 16
    n_blocks: int = 4

    def check(self) -> None:
        super().check()
        whole("batch_size", self.batch_size)
        whole("n_blocks", self.n_blocks)

    def solve(self, problem: Problem) -> Solution:
        Z, a = dense_rows(problem), row_weights(problem)
        P = Z.shape[1]
        m = min(self.n_blocks, P)
        cuts = np.linspace(0, P, m + 1).astype(int)
        lam, mean_weight = problem.lam / a.sum(), a.mean()
        offset = m * largest_square(Z) / lam
        W = np.zeros((P, problem.Y.shape[1]), Z.dtype) if problem.start is None else problem.start.copy()
        rng = generator(problem.seed, SeedStream.SOLVER)

        def step(t: int, rows: np.ndarray, W: np.ndarray) -> None:
            part = Z[rows]
            G = slopes(problem, part @ W, rows) / (mean_weight * len(rows))
            rate = m / (lam * (t + offset))
            k = int(rng.integers(m))
            block = slice(cuts[k], cuts[k + 1])
            W[block] *= W.dtype.type(1.0 - rate * lam)
            W[block] -= part[:, block].T @ (rate * G).astype(W.dtype)

        return averaged_passes(problem, self.batch_size, step, W, self.tol, self.max_iter)
