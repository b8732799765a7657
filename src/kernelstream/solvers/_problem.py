"""The problem that a solver gets, and the solution that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from .. import losses
from ..checks import positive, whole
from ..losses import Loss
from ..registry.parameters import WithParameters


class DenseMatrix:
    """Dense features Z (n, P) with the products that solvers use; ``CellMatrix`` has the same."""

    def __init__(self, Z: np.ndarray):
        self.Z = Z
        self.shape = Z.shape

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``Z V``, (P, C) -> (n, C) float64."""
        return (self.Z @ V).astype(np.float64, copy=False)

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``Z'U``, (n, C) -> (P, C)."""
        return self.Z.T @ U

    def squares(self, A: np.ndarray) -> np.ndarray:
        """``sum_i A_ic z_ij^2``, (n, C) -> (P, C)."""
        return np.square(self.Z).T @ A


@dataclass
class Problem:
    r"""Minimise ``sum_i a_i l(y_ic, offset_c + (Z w_c)_i) + penalty(w_c)`` for every output c.

    The penalty is ``lam/2 ||w||^2``, or ``lam |w|_1`` for coordinate descent.
    """

    Z: Any  # (n, D), with dot, tdot and squares
    Y: np.ndarray  # (n, C) float64: targets, or -1 and +1
    loss: Loss
    lam: float
    ops: Any  # an engine
    weight: np.ndarray | None = None  # (n,), the factors a_i
    start: np.ndarray | None = None  # (D, C), weights to begin with
    offset: np.ndarray | None = None  # (C,), scores of rows without features; 0 if not given
    dtype: Any = np.float64  # of the weights
    threads: int = 1
    seed: int = 0
    report: Callable[[int, float], None] = field(default=lambda iteration, value: None)

    def outputs(self, some: slice) -> Problem:
        """The problem of some outputs."""
        start = None if self.start is None else np.ascontiguousarray(self.start[:, some])
        offset = None if self.offset is None else self.offset[some]
        return replace(self, Y=np.ascontiguousarray(self.Y[:, some]), start=start, offset=offset)

    def column(self, c: int) -> Problem:
        """The problem of one output."""
        return self.outputs(slice(c, c + 1))

    def by_output(self, solve: Callable[[Problem], Solution]) -> Solution:
        """Solve for every output separately; the history is the sum of theirs."""
        parts = [solve(self.column(c)) for c in range(self.Y.shape[1])]
        longest = max(len(part.history) for part in parts)
        padded = [part.history + part.history[-1:] * (longest - len(part.history)) for part in parts]
        return Solution.joined(parts, [float(sum(values)) for values in zip(*padded)])

    def base(self) -> np.ndarray:
        """Scores at w = 0, (n, C)."""
        return np.zeros_like(self.Y) if self.offset is None else np.tile(self.offset, (len(self.Y), 1))

    def objective(self, F: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Objective of every output at scores F (n, C), with its penalty (C,)."""
        values = self.loss.value(self.Y, F)
        return (values if self.weight is None else values * self.weight[:, None]).sum(axis=0) + penalty


def best_constant(Y: np.ndarray, weight: np.ndarray | None, loss: Loss) -> np.ndarray:
    """The constant score of least loss for every output, (C,): what a row with no known cell gets.

    The mean of the targets, for the squared loss and also for the squared hinge on -1 and +1; the log odds for the
    logistic loss, shrunk by one row so that a class alone has finite ones.
    """
    mean, total = np.average(Y, axis=0, weights=weight), len(Y) if weight is None else weight.sum()
    return 2 * np.arctanh(mean * (total / (total + 1))) if loss.name == "logistic" else mean


@dataclass
class Solution:
    """Weights (D, C), and the course of the solver."""

    W: np.ndarray
    history: list[float]
    n_iter: int
    converged: bool

    @classmethod
    def joined(cls, parts: list[Solution], history: list[float]) -> Solution:
        """The solutions of a problem that was cut by outputs."""
        W = np.concatenate([part.W for part in parts], axis=1)
        return cls(W, history, max(part.n_iter for part in parts), all(part.converged for part in parts))


class Solver(WithParameters):
    """Base of the solvers: parameters, the losses they serve, and ``solve``."""

    name: ClassVar[str] = ""
    losses: ClassVar[tuple[str, ...] | None] = None  # names of the losses it serves; None for all smooth ones
    tol: float
    max_iter: int

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        positive("tol", self.tol)
        whole("max_iter", self.max_iter)

    def serves(self, loss: Loss) -> None:
        """Raise ValueError for a loss this solver cannot minimise."""
        if not self.can(loss):
            able = [name for name in losses.names() if name != "one_vs_rest" and self.can(losses.get(name))]
            raise ValueError(
                f"solver {self.name!r} serves the losses {', '.join(able)}, without dead zones, not {loss!r}"
            )

    def can(self, loss: Loss) -> bool:
        """Whether the solver can minimise a loss: by its name, or by the attributes that the loss has."""
        if self.losses is None:
            return loss.smoothness is not None
        return loss.name in self.losses and not (loss.name == "squared" and loss.smoothness is None)

    def solve(self, problem: Problem) -> Solution:
        """The weights that minimise the problem."""
        raise NotImplementedError
