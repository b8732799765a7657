"""Ridge regression by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..state.blas_threads import on_one_blas_thread
from ._problem import Problem, Solution, Solver


class ConjugateGradient(Solver):
    r"""Ridge regression: conjugate gradients on ``(Z'A Z + lam I) w = Z'A y``, never forming ``Z'Z``.

    The diagonal preconditioner ``1/(sum_i a_i z_ij^2 + lam)`` makes it quick on random binning features,
    where the common cells hold thousands of times more rows than the rare ones.

    Parameters
    ----------
    tol : float, default 1e-3
        Relative size of the preconditioned residual at which to stop.
    max_iter : int, default 200

    References
    ----------
    Golub, Van Loan: Matrix Computations, algorithm 11.5.1. Wu, Yen, Chen, Yan: Revisiting random binning features,
    KDD 2016.
    """

    name: ClassVar[str] = "cg"
    losses: ClassVar[tuple[str, ...] | None] = ("squared",)

    def __init__(self, tol: float = 1e-3, max_iter: int = 200):
        self.tol = tol
        self.max_iter = max_iter

    @on_one_blas_thread
    def solve(self, problem: Problem) -> Solution:
        Z, n = problem.Z, len(problem.Y)
        A = np.ones((n, 1)) if problem.weight is None else problem.weight[:, None]
        W = np.zeros((Z.shape[1], problem.Y.shape[1]), problem.dtype) if problem.start is None else problem.start.copy()
        B = Z.tdot((A * (problem.Y - problem.base())).astype(problem.dtype))
        R = B.copy()
        if problem.start is not None:
            R -= Z.tdot((A * Z.dot(W)).astype(problem.dtype))
            R -= R.dtype.type(problem.lam) * W
        history, converged = descend(problem, System(A, W, R, B, self.tol, self.max_iter, problem.report))
        return Solution(W, history, len(history), converged)


@dataclass
class System:
    """``(Z'A_c Z + lam I) x_c = b_c`` for all outputs c at once, and when conjugate gradients stop."""

    A: Any  # weights of the rows, (n, C), or (n, 1) the same for all outputs; None where the products know them
    X: np.ndarray  # where to begin, (D, C),
    R: np.ndarray  # and the residual there; both change in place
    B: Any  # right-hand sides, (D, C); None where they are the residual
    tol: float  # of the size of the residual r next to that of b, sqrt(r'M r) and sqrt(b'M b), M nearly the inverse
    max_iter: int
    report: Callable[[int, float], Any] = lambda iteration, value: None


Product = Callable[[np.ndarray], np.ndarray]  # (D, C) -> (D, C)


def conjugate_gradients(product: Product, divide: Product, system: System) -> tuple[list[float], bool]:
    """Conjugate gradients in float64, with the products ``K V`` by the matrix of the system and ``M V``.

    Returns
    -------
    history : list of float
        Largest relative residual after each iteration.
    converged : bool
    """
    X, R, B, tol = system.X, system.R, system.B, system.tol
    P = divide(R)
    rz = (R * P).sum(axis=0)
    size = rz if B is None else (B * divide(B)).sum(axis=0)
    scale = np.maximum(np.sqrt(size), 1e-300)
    history: list[float] = []
    for iteration in range(1, system.max_iter + 1):
        going = np.sqrt(rz) > tol * scale
        if not going.any():
            return history, True
        Q = product(P)
        pq = (P * Q).sum(axis=0)
        step = np.where(going & (pq > 0), rz / np.where(pq > 0, pq, 1), 0.0)
        X += step * P
        R -= step * Q
        D = divide(R)
        new = np.maximum((R * D).sum(axis=0), 0.0)  # rounding may leave less
        P = D + np.where(going & (rz > 0), new / np.where(rz > 0, rz, 1), 0.0) * P
        rz = np.where(going, new, rz)
        history.append(float((np.sqrt(rz) / scale).max()))
        system.report(iteration, history[-1])
    return history, bool((np.sqrt(rz) <= tol * scale).all())


def descend(problem: Problem, system: System) -> tuple[list[float], bool]:
    """The same for the matrix of a problem, with what it divides by: by default its diagonal."""
    if hasattr(problem.Z, "descend"):  # a matrix with a better preconditioner than its diagonal
        return problem.Z.descend(problem.lam, system)
    Z, ops, lam, threads = problem.Z, problem.ops.binning, problem.lam, problem.threads
    A, X, R, B = system.A, system.X, system.R, system.B
    dtype = X.dtype.type
    M = np.ascontiguousarray(1 / (Z.squares(A.astype(X.dtype)) + dtype(lam)))
    P = M * R
    rz = (R * P).sum(axis=0, dtype=np.float64)
    scale = np.maximum(np.sqrt((B * (M * B)).sum(axis=0, dtype=np.float64)), 1e-300)
    floor = scale * system.tol
    history: list[float] = []
    for iteration in range(1, system.max_iter + 1):
        going = np.sqrt(rz) > floor
        if not going.any():
            return history, True
        Q = Z.normal(A, P) if hasattr(Z, "normal") else Z.tdot((A * Z.dot(P)).astype(X.dtype))
        pq, pp = ops.cg_dots(P, Q, threads)
        pq += lam * pp
        step = np.where(going & (pq > 0), rz / np.where(pq > 0, pq, 1), 0.0)
        new = ops.cg_step(step.astype(X.dtype), lam, {"P": P, "Q": Q, "M": M, "X": X, "R": R}, threads)
        turn = np.where(going & (rz > 0), new / np.where(rz > 0, rz, 1), 0.0)
        ops.cg_turn(turn.astype(X.dtype), M, R, P, threads)
        rz = np.where(going, new, rz)
        history.append(float((np.sqrt(rz) / scale).max()))
        system.report(iteration, history[-1])
    return history, bool((np.sqrt(rz) <= floor).all())
