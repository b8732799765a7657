"""Learners of all rows at once whose weights a solver finds, and what their estimators say of the solution."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ... import solvers
from .learner import Learner
from .shown import entry as entry


class Solved(Learner):
    """A learner of all rows at once whose weights a solver finds: the parameter ``solver``, a name or an object."""

    solved_by: tuple[str, ...]  # names of the solvers that can do it, and so can what inherits from them

    @cached_property
    def solver(self) -> solvers.Solver:
        """The solver."""
        return solvers.get(self.parameters["solver"])

    def check_solver(self) -> None:
        """Raise ValueError for a solver of another kind, bad parameters of it, or a loss that it cannot minimise."""
        solver = self.solver
        if not {getattr(kind, "name", "") for kind in type(solver).__mro__} & set(self.solved_by):
            known = ", ".join(map(repr, self.solved_by))
            raise ValueError(f"{self.context.name} is solved by {known}; got {solver.name!r}")
        solver.check()
        solver.serves(self.context.loss_for(2))


# -------------------------------------------------------------------- what the estimators say of the solution
lam = entry("lam", "The penalty in use.")
dual_coef = entry("alpha", "Coefficients of the kernel functions at the centres, (outputs, m).", np.transpose)
intercept = entry("offset", "The constant score, (outputs,).")
n_iter = entry("n_iter", "Iterations of the solver: passes over the rows, or Newton steps.")
history = entry("history", "Course of the solver, one number per iteration: residuals or objectives.")
