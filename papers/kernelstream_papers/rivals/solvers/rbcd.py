"""Random blocks of coordinates, each moved to the minimum of a quadratic bound over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelstream.develop import whole
from kernelstream.random import SeedStream, generator
from kernelstream.second_order.statistics import more_ridge
from kernelstream.solvers import Problem, Solution, Solver, register

from .dense import dense_rows, row_weights, slopes


@register
@dataclass(eq=False, repr=False)
class BlockCoordinateDescent(Solver):
    r"""Random block coordinate descent for ``lam/2 ||w||^2 + sum_i a_i l(y_i, z_i'w)``, l smooth.

    A pass takes the blocks B of coordinates in random order. With :math:`\kappa` the largest second derivative of l,

    .. math:: w_B \leftarrow w_B - (\kappa Z_B' A Z_B + lam I)^{-1} (Z_B' A\, l'(f) + lam\, w_B), \qquad f = Z w,

    the minimum of a quadratic bound of the objective, which therefore never rises. The matrices are factored once.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when the gradient is this share of its size at w = 0.
    max_iter : int, default 50
        Passes over the coordinates.
    block_size : int, default 128
        Coordinates of a block.

    References
    ----------
    Richtarik, Takac: Iteration complexity of randomized block-coordinate descent methods for minimizing a composite
    function, Mathematical Programming 144 (2014).
    """

    name: ClassVar[str] = "rbcd"

    tol: float = 1e-3
    max_iter: int = 50
    block_size: int = 128

    def check(self) -> None:
        super().check()
        whole("block_size", self.block_size)

    def solve(self, problem: Problem) -> Solution:
        Z, a = dense_rows(problem), row_weights(problem)
        P = Z.shape[1]
        blocks = [slice(start, min(P, start + self.block_size)) for start in range(0, P, self.block_size)]
        root = np.sqrt(problem.loss.smoothness * a)[:, None]
        factors = []
        for block in blocks:
            scaled = Z[:, block] * root.astype(Z.dtype)
            bound = (scaled.T @ scaled).astype(np.float64)
            bound[np.diag_indices_from(bound)] += problem.lam
            factors.append(_factored(bound))
        return problem.by_output(lambda one: self._one(one, blocks, factors))

    def _one(self, problem: Problem, blocks: list[slice], factors: list[Any]) -> Solution:
        Z, lam = dense_rows(problem), problem.lam
        columns = [np.asfortranarray(Z[:, block]) for block in blocks]
        w = np.zeros(Z.shape[1]) if problem.start is None else problem.start[:, 0].astype(np.float64)
        f = problem.Z.dot(w[:, None].astype(Z.dtype))
        at_zero = problem.Z.tdot(slopes(problem, np.zeros_like(f)).astype(Z.dtype))
        smallest = self.tol * max(float(np.linalg.norm(at_zero)), 1e-300)
        rng, history = generator(problem.seed, SeedStream.SOLVER), []
        for iteration in range(1, self.max_iter + 1):
            for k in rng.permutation(len(blocks)):
                part, block = columns[k], blocks[k]
                g = (part.T @ slopes(problem, f).astype(Z.dtype))[:, 0] + lam * w[block]
                move = -cho_solve(factors[k], g)
                w[block] += move
                f += part @ move.astype(Z.dtype)[:, None]
            gradient = problem.Z.tdot(slopes(problem, f).astype(Z.dtype))[:, 0] + lam * w
            size = float(np.linalg.norm(gradient))
            history.append(float(problem.objective(f, np.array([0.5 * lam * w @ w]))[0]))
            problem.report(iteration, size / smallest * self.tol)
            if size <= smallest:
                return Solution(w[:, None].astype(problem.dtype), history, iteration, True)
        return Solution(w[:, None].astype(problem.dtype), history, self.max_iter, False)


def _factored(bound: np.ndarray) -> Any:
    """Cholesky factor of the matrix, or of a larger one where rounding left it singular: that is a bound as well."""
    extra = 0.0
    while True:
        try:
            return cho_factor(bound + extra * np.eye(len(bound)), lower=True, overwrite_a=True)
        except np.linalg.LinAlgError:
            extra = more_ridge(bound, extra)
