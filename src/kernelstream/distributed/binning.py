r"""Ridge regression on random binning features, exactly: conjugate gradients with the cells pinned on the workers.

A round of ``(Z'A Z + lam I) w = Z'A y`` sends the direction (D, C) to every worker and adds up the workers'
``Z_k'A_k Z_k p``, also (D, C), in a tree; D is the number of cells, C of outputs. The recursion itself is the one of
:class:`~kernelstream.solvers.ConjugateGradient`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators._contract.base import Shell
from ..estimators.binning.base import Binning
from ..registry.caller import warn_unsolved
from ..solvers import Problem
from ..solvers.cg import descend
from ._cells import CellRows, Pinned, pin
from ._data import Data


def fit_binning(est: Shell[Binning], data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all partitions, up to the order of columns and to rounding.

    Conjugate gradients amplify rounding from one iteration to the next, on one machine as well when the rows come in
    another order; two runs agree to about the solver's ``tol``, and to 1e-8 where it is set that low.
    """
    if est._learner.solver.name != "cg":
        raise ValueError(f"solver={est._learner.solver.name!r} works on one machine only: use solver='cg' on several")
    if est._learner.warm_start:
        raise ValueError("warm_start begins with the weights of one machine: set it to False")
    pinned = pin(est, data, client, classes)
    try:
        return _solve(pinned)
    finally:
        pinned.kept.release()


def _solve(pinned: Pinned) -> dict[str, Any]:
    est, state = pinned.est, pinned.est._state
    solver, dtype = est._learner.solver, np.dtype(state["dtype"])
    lam = float(est._learner.lam if est._learner.lam is not None else state["searched_lam"])
    Z = RemoteMatrix(pinned, est.engine, dtype)
    B = Z.right_side()
    W, R = np.zeros_like(B), B.copy()
    problem = Problem(Z, np.zeros((0, B.shape[1])), est._learner.context.loss_for(2), lam, est._ops, dtype=dtype)
    history, converged = descend(problem, np.ones((1, 1)), W, R, B, solver.tol, solver.max_iter, problem.report)
    if not converged:
        warn_unsolved(
            f"ConjugateGradient did not reach tol={solver.tol:g} in {solver.max_iter} iterations; "
            f"raise max_iter, tol or lam"
        )
    state |= {"n_columns": len(pinned.keys), "lam": lam, "n_iter": len(history), "history": np.array(history)}
    state |= {"cells": pinned.keys, "starts": pinned.starts, "w": np.ascontiguousarray(W), "t": pinned.n}
    return state


class RemoteMatrix:
    """Z (n, D) in blocks on the workers, with the products that conjugate gradients need."""

    def __init__(self, pinned: Pinned, engine: str, dtype: Any):
        self.pinned, self.engine, self.dtype = pinned, engine, np.dtype(dtype)
        self.shape = (pinned.n, len(pinned.keys))

    def right_side(self) -> np.ndarray:
        """``Z'A (y - offset)``, (D, C)."""
        return self._sum(_right_side, self.pinned.offset)

    def squares(self, A: np.ndarray) -> np.ndarray:
        """``sum_i a_i z_ij^2``, (D, 1); the weights are the blocks' own."""
        return self._sum(_squares, np.empty(0))

    def normal(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``Z'A Z V``, (D, C)."""
        return self._sum(_normal, V)

    def _sum(self, work: Any, argument: np.ndarray) -> np.ndarray:
        return self.pinned.kept.total(work, argument, self.engine, self.dtype)


def _spread(part: CellRows, local: np.ndarray) -> np.ndarray:
    """Values of a block's columns among those of all, (D, C)."""
    out = np.zeros((part.columns, local.shape[1]), local.dtype)
    out[part.where] = local
    return out


def _weights(part: CellRows) -> np.ndarray:
    return np.ones((len(part.Y), 1)) if part.weight is None else part.weight[:, None]


def _right_side(part: CellRows, offset: np.ndarray, engine: str, dtype: np.dtype) -> np.ndarray:
    return _spread(part, part.matrix(engine).tdot((_weights(part) * (part.Y - offset)).astype(dtype)))


def _squares(part: CellRows, nothing: np.ndarray, engine: str, dtype: np.dtype) -> np.ndarray:
    return _spread(part, part.matrix(engine).squares(_weights(part).astype(dtype)))


def _normal(part: CellRows, V: np.ndarray, engine: str, dtype: np.dtype) -> np.ndarray:
    Z = part.matrix(engine)
    F = Z.dot(np.ascontiguousarray(V[part.where]))
    if part.weight is not None:
        F *= part.weight[:, None]
    return _spread(part, Z.tdot(F.astype(dtype)))
