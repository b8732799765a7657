"""What the solvers on dense features share: rows, batches of them, and passes until convergence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kernelstream.random import SeedStream, generator
from kernelstream.solvers import DenseMatrix, Problem, Solution

SUBGRADIENTS = (  # losses whose derivative a step follows
    "hinge", "squared_hinge", "logistic", "squared", "absolute", "epsilon_insensitive", "huber", "quantile",
)  # fmt: skip


def dense_rows(problem: Problem) -> np.ndarray:
    """The features Z (n, P) of a problem, which must be dense and without an offset of the scores."""
    if problem.offset is not None and np.any(problem.offset):
        raise ValueError("this solver has no constant score: subtract it from the targets, or give it a feature")
    if not isinstance(problem.Z, DenseMatrix):
        raise ValueError(f"this solver needs dense features, got {type(problem.Z).__name__}")
    return problem.Z.Z


def row_weights(problem: Problem) -> np.ndarray:
    """The factors a_i of the losses, (n,)."""
    return np.ones(len(problem.Y)) if problem.weight is None else problem.weight


def value_at(problem: Problem, W: np.ndarray) -> float:
    """Objective, summed over the outputs, at weights W (P, C)."""
    penalty = 0.5 * problem.lam * np.square(W, dtype=np.float64).sum(axis=0)
    return float(problem.objective(problem.Z.dot(W), penalty).sum())


def averaged_passes(
    problem: Problem,
    batch: int,
    step: Callable[[int, np.ndarray, np.ndarray], None],
    W: np.ndarray,
    tol: float,
    max_iter: int,
) -> Solution:
    """Passes over random batches of rows; the answer is the average of the iterates, the t-th with weight t.

    ``step(t, rows, W)`` changes W (P, C) in place. The passes end when the objective of the average changes by less
    than ``tol`` of itself from one to the next.
    """
    mean, t, history = W.copy(), 0, [value_at(problem, W)]
    for iteration in range(1, max_iter + 1):
        for rows in random_batches(len(problem.Y), batch, problem.seed, iteration):
            t += 1
            step(t, rows, W)
            mean += W.dtype.type(2.0 / (t + 1.0)) * (W - mean)
        history.append(value_at(problem, mean))
        change = abs(history[-2] - history[-1]) / max(abs(history[-1]), 1e-300)
        problem.report(iteration, change)
        if change <= tol:
            return Solution(mean, history[1:], iteration, True)
    return Solution(mean, history[1:], max_iter, False)


def random_batches(n: int, batch: int, seed: int, iteration: int) -> Iterator[np.ndarray]:
    """The n rows in random order, in parts of at most ``batch``."""
    order = generator(seed, SeedStream.SOLVER, iteration).permutation(n)
    for start in range(0, n, batch):
        yield order[start : start + batch]


def slopes(problem: Problem, F: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    """``a_i l'(y_ic, F_ic)`` for scores F of some rows, in their shape."""
    G = problem.loss.gradient(problem.Y[rows], F)
    return G if problem.weight is None else G * problem.weight[rows, None]


def largest_square(Z: np.ndarray) -> float:
    """Largest squared norm of a row."""
    return float(np.einsum("ij,ij->i", Z, Z).max(initial=0.0)) or 1.0
