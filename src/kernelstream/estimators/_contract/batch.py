"""Learners that take all rows at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ... import solvers
from ...rows import Rows
from .base import StreamEstimator, entry
from .learner import Learner


def counted(X: Rows, y: np.ndarray, weight: np.ndarray | None) -> tuple[Rows, np.ndarray, np.ndarray | None]:
    """The rows of positive weight."""
    if weight is None:
        return X, y, weight
    some = weight > 0
    if some.all():
        return X, y, weight
    return X[some], y[some], weight[some]


def _never(est: Any) -> bool:
    return False  # all rows must be there at once


class Solved(Learner):
    """A learner of all rows at once whose weights a solver finds: the parameter ``solver``, a name or an object."""

    finders: Any = solvers  # where names are looked up
    solved_by: tuple[str, ...]  # names of the solvers that can do it

    @cached_property
    def solver(self) -> solvers.Solver:
        """The solver."""
        return self.finders.get(self.parameter("solver"))

    def check_solver(self) -> None:
        """Raise ValueError for a solver of another kind, bad parameters of it, or a loss that it cannot minimise."""
        solver = self.solver
        if solver.name not in self.solved_by:
            known = ", ".join(map(repr, self.solved_by))
            raise ValueError(f"{type(self.est).__name__} is solved by {known}; got {solver.name!r}")
        solver.check()
        solver.serves(self.est._loss_for(2))


# -------------------------------------------------------------------- what the estimators say of the solution
lam = entry("lam", "The penalty in use.")
dual_coef = entry("alpha", "Coefficients of the kernel functions at the centres, (outputs, m).", np.transpose)
intercept = entry("offset", "The constant score, (outputs,).")
n_iter = entry("n_iter", "Iterations of the solver: passes over the rows, or Newton steps.")
history = entry("history", "Course of the solver, one number per iteration: residuals or objectives.")


class BatchEstimator(StreamEstimator):
    """An estimator of all rows at once: its learner has ``solve``, and it has no ``learn``.

    Among the bases it comes before the class of the target, so that it hides the methods of that class.
    """

    _at_once = True

    def _learn_task(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        self._link_from(*self._solved(X, y, weight))
        return np.empty(0)

    def _solved(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        """Fit the model to the rows of positive weight, which are returned."""
        X, y, weight = counted(X, y, weight)
        self._learner.solve(self._state, X, *self._batch_target(self._state, y, weight))
        self._state["t"] = X.shape[0]
        return X, y, weight

    @available_if(_never)
    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Not there: all rows are needed at once."""
        raise NotImplementedError

    @available_if(_never)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Not there: all rows are needed at once."""
        raise NotImplementedError
