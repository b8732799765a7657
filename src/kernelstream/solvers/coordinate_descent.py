"""Sparse models: an L1 penalty, by coordinate descent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..passes.binning.python import Lasso
from ..random import SeedStream, generator
from ._problem import DenseMatrix, Problem, Solution, Solver


class CoordinateDescent(Solver):
    r"""Coordinate descent for ``sum_i a_i l(y_i, z_i'w) + lam |w|_1``.

    One weight at a time moves to the minimum of a quadratic model, the responses ``f = Z w`` following. On random
    binning features the grids come in random order; the cells of a grid share no row, so the threads take some of
    them each and own the responses they touch, and the result is the same for any number of threads. Dense features,
    whose coordinates share all rows, take one thread.

    Between two passes over all weights, several visit only those that are not zero.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when no derivative is farther from where it must be at the minimum than this share of the largest one at
        w = 0.
    max_iter : int, default 500
        Passes.

    References
    ----------
    Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016, algorithm 2. Yuan, Chang, Hsieh, Lin: A
    comparison of optimization methods and software for large-scale L1-regularized linear classification, JMLR 11
    (2010).
    """

    name: ClassVar[str] = "cd"
    between: ClassVar[int] = 10  # passes over the nonzero weights between two full ones

    def __init__(self, tol: float = 1e-3, max_iter: int = 500):
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, problem: Problem) -> Solution:
        return problem.by_output(self._one)

    def _one(self, problem: Problem) -> Solution:
        Z, lam, loss = problem.Z, problem.lam, problem.loss
        y = np.ascontiguousarray(problem.Y[:, 0])
        w = np.zeros(Z.shape[1]) if problem.start is None else problem.start[:, 0].astype(np.float64)
        f = np.ascontiguousarray(problem.base()[:, 0])
        slopes = loss.gradient(y, f) * (1.0 if problem.weight is None else problem.weight)
        if problem.start is not None:
            f += Z.dot(w[:, None])[:, 0]
        smallest = self.tol * max(float(np.abs(Z.tdot(slopes[:, None].astype(problem.dtype))).max()), 1e-300)
        sweep, blocks = self._sweeper(problem, y, f, w)
        history: list[float] = []
        rng = generator(problem.seed, SeedStream.SOLVER)
        since_full = self.between
        for iteration in range(1, self.max_iter + 1):
            full = since_full >= self.between
            violation, _ = sweep(rng.permutation(blocks), not full)
            since_full = 0 if full else since_full + 1
            penalty = np.array([lam * np.abs(w).sum()])
            history.append(float(problem.objective(f[:, None], penalty)[0]))
            problem.report(iteration, violation / smallest * self.tol)
            if violation <= smallest:
                if full:
                    return Solution(w[:, None], history, iteration, True)
                since_full = self.between  # the nonzero weights have settled: look at all of them again
        return Solution(w[:, None], history, self.max_iter, False)

    @staticmethod
    def _sweeper(problem: Any, y: Any, f: Any, w: Any) -> Any:
        """``(order, active) -> (violation, moved)``, and the number of blocks to be ordered."""
        Z, ops, threads = problem.Z, problem.ops.binning, problem.threads
        lasso = Lasso(y, problem.weight, problem.loss, problem.lam)
        if isinstance(Z, DenseMatrix):
            columns = np.ascontiguousarray(Z.Z.T)
            a = np.ones((len(y), 1)) if problem.weight is None else problem.weight[:, None]
            squares = np.ascontiguousarray(Z.squares(a)[:, 0], np.float64)
            return lambda order, active: ops.sweep_columns(columns, squares, order, lasso, f, w), len(columns)
        lists = ops.cell_lists(Z.cells, Z.starts, threads)
        return lambda order, active: ops.sweep_cells(lists, order, lasso, active, f, w, threads), len(Z.cells)
