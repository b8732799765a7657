"""An L1 penalty by coordinates drawn uniformly, as the paper on random binning prints it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from kernelstream.random import SeedStream, generator
from kernelstream.solvers import CoordinateDescent, DenseMatrix, Problem, Solution, register


@register
class UniformCoordinateDescent(CoordinateDescent):
    r"""Coordinate descent for ``sum_i a_i l(y_i, z_i'w) + lam |w|_1`` with coordinates drawn uniformly.

    A draw j moves one weight to ``w_j + d``, the minimum of an upper bound of the objective,

    .. math:: w_j + d = S\Big(w_j - \frac{g_j}{M_j}, \frac{\lambda}{M_j}\Big), \qquad
        g_j = \sum_i a_i l'(y_i, f_i) z_{ij}, \quad M_j = L \sum_i a_i z_{ij}^2,

    with S the soft threshold and L the largest second derivative of the loss; the responses f follow. It serves
    wherever the library's "cd" does:

    >>> from kernelstream import BinningRegressor
    >>> BinningRegressor(solver=UniformCoordinateDescent(max_iter=2000))
    BinningRegressor(solver=UniformCoordinateDescent(max_iter=2000))

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when no derivative is farther from where it must be at the minimum than this share of the largest one at
        w = 0.
    max_iter : int, default 500
        Passes of as many draws as there are weights.

    References
    ----------
    Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016, algorithm 2.
    """

    name: ClassVar[str] = "uniform_cd"

    def _one(self, problem: Problem) -> Solution:
        dense = isinstance(problem.Z, DenseMatrix)
        Z = sp.csc_matrix(problem.Z.Z if dense else problem.Z.tocsr(), dtype=np.float64)
        loss, lam, y, D = problem.loss, problem.lam, problem.Y[:, 0], Z.shape[1]
        a = np.ones(len(y)) if problem.weight is None else problem.weight
        M = (loss.smoothness or 0.0) * np.asarray(Z.multiply(Z).T @ a)
        w = np.zeros(D) if problem.start is None else problem.start[:, 0].astype(np.float64)
        f = problem.base()[:, 0]
        largest = np.abs(Z.T @ (a * loss.gradient(y, f))).max(initial=1e-300)
        f = f + Z @ w
        columns = [slice(*ends) for ends in zip(Z.indptr[:-1], Z.indptr[1:], strict=True)]
        rng, history = generator(problem.seed, SeedStream.SOLVER), []
        for iteration in range(1, self.max_iter + 1):
            for j in rng.integers(D, size=D):
                if M[j] > 0.0:
                    rows, z = Z.indices[columns[j]], Z.data[columns[j]]
                    v = w[j] - z @ (a[rows] * loss.gradient(y[rows], f[rows])) / M[j]
                    moved = np.sign(v) * max(0.0, abs(v) - lam / M[j])
                    f[rows] += (moved - w[j]) * z
                    w[j] = moved
            g = Z.T @ (a * loss.gradient(y, f))
            left = np.where(w == 0.0, np.maximum(np.abs(g) - lam, 0.0), np.abs(g + lam * np.sign(w))).max()
            history.append(float(problem.objective(f[:, None], np.array([lam * np.abs(w).sum()]))[0]))
            problem.report(iteration, left / largest)
            if left <= self.tol * largest:
                return Solution(w[:, None], history, iteration, True)
        return Solution(w[:, None], history, self.max_iter, False)
