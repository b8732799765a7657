r"""Batch learners on a fixed number of explicit features: ``f(x) = w'z(x)``, a feature map × a loss × a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelstream import estimators, losses, solvers
from kernelstream.develop import (
    LinearOnFeatures,
    Solved,
    SolverBar,
    State,
    StreamClassifier,
    StreamRegressor,
    described,
    entry,
    history,
    n_iter,
    one_against_rest,
    positive,
)
from kernelstream.features import FeatureMap
from kernelstream.losses import Loss
from kernelstream.passes.linear.host import feature_blocks
from kernelstream.registry.caller import warn_unsolved
from kernelstream.rows import Rows
from kernelstream.solvers import CoordinateDescent, DenseMatrix, Problem, Solver
from kernelstream.state.schema import Array, Count, Schema, length

from .solvers import BlockCoordinateDescent

SQUARED = (BlockCoordinateDescent, CoordinateDescent)  # which need a loss without kinks


class FixedFeatures(Solved, LinearOnFeatures):
    """Weights of features that a solver finds."""

    solved_by = ("pegasos", "sbmd", "rbcd", "sdca", "cd")  # those that take dense features
    lam: float

    def check_parameters(self) -> None:
        self.check_solver()
        positive("lam", self.lam)

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        loss = self.context.loss_for(2)
        state["offset"] = np.average(Y, axis=0, weights=weight) if loss.kind == "regression" else np.zeros(Y.shape[1])
        self.estimate(state, X)
        mapping = self.mapping(state)
        Z = np.empty((X.shape[0], mapping.n_out), mapping.dtype)
        for rows, part in feature_blocks(mapping, X, self.ops):
            Z[rows] = part
        problem = Problem(DenseMatrix(Z), Y - state["offset"], loss, float(self.lam), self.ops, weight)
        problem.dtype, problem.seed = Z.dtype, state["seed"]
        with SolverBar(self.context.name) as problem.report:
            found = self.solver.solve(problem)
        if not found.converged:
            passes = f"{self.solver.name} has not converged in {found.n_iter} passes"
            warn_unsolved(f"{passes}: give a solver with a larger max_iter or tol")
        w = np.ascontiguousarray(found.W.T, Z.dtype)
        state |= {"w": w, "history": np.array(found.history), "n_iter": found.n_iter}

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores = np.empty((X.shape[0], len(state["w"])))
        for rows, Z in feature_blocks(self.mapping(state), X, self.ops):
            scores[rows] = Z @ state["w"].T
        return scores + state["offset"]

    def schema(self, state: State, trained: bool) -> Schema:
        schema, width = self.map_schema(state, True)
        outputs, history = state["n_outputs"], (length(state, "history"),)
        return (
            schema
            | {"w": Array((outputs, width), state["dtype"]), "offset": Array((outputs,))}
            | {"history": Array(history, free=True), "n_iter": Count()}
        )


coef = entry("w", "Weights of the features, (outputs, P).")


@estimators.register
@described()
@dataclass(eq=False, repr=False)
class FixedFeatureClassifier(StreamClassifier):
    r"""Linear classifier on a fixed number of features of a kernel, by a solver over all rows.

    .. math:: \min_w \sum_i l(y_i, w'z(x_i)) + \frac{\lambda}{2} \|w\|^2

    several classes one against the rest. With random Fourier features and SDCA this is the r-SDCA of [1]_, with
    Nyström features n-SDCA, and so on: what doubly stochastic gradients are compared with there.

    Parameters
    ----------
    features : FeatureMap or str, default="fourier"
        The map z.
    loss : Loss or str, default="auto"
        "auto" is the hinge, or its square for the solvers "rbcd" and "cd"; else "hinge", "squared_hinge", "logistic",
        "squared".
    lam : float, default=1.0
        Penalty, next to the *sum* of the losses.
    solver : Solver or str, default="sdca"
        "pegasos", "sdca", "sbmd", "rbcd"; "cd", whose penalty is ``lam |w|_1``; or an object of
        :mod:`kernelstream.solvers` with its tolerance.
    engine : {"auto", "native", "python"}, default="auto"
        The compiled feature maps, or their readable specification.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the map and of the solver's order of the rows.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.

    See Also
    --------
    FixedFeatureRegressor : The same for numbers.
    kernelstream.DoublyStochasticClassifier : What it is compared with.

    Notes
    -----
    The features of all rows are made once and kept: memory is proportional to rows times features.

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from kernelstream_papers.rivals import FixedFeatureClassifier
    >>> X, y = make_circles(1000, noise=0.1, factor=0.5, random_state=0)
    >>> model = FixedFeatureClassifier(random_state=0).fit(X[:700], y[:700])
    >>> model.score(X[700:], y[700:]) > 0.97
    True
    """

    _learner: ClassVar[FixedFeatures]
    coef_, n_iter_, history_ = coef, n_iter, history

    features: FeatureMap | str = "fourier"
    loss: Loss | str = "auto"
    lam: float = 1.0
    solver: Solver | str = "sdca"

    _learns = FixedFeatures

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        default = "squared_hinge" if isinstance(solvers.get(parameters["solver"]), SQUARED) else "hinge"
        return one_against_rest(losses.get(default if parameters["loss"] == "auto" else parameters["loss"]), n_classes)


@estimators.register
@described(like=FixedFeatureClassifier)
@dataclass(eq=False, repr=False)
class FixedFeatureRegressor(StreamRegressor):
    r"""Linear regression on a fixed number of features of a kernel, by a solver over all rows.

    .. math:: \min_w \sum_i l(y_i - \bar y, w'z(x_i)) + \frac{\lambda}{2} \|w\|^2

    With random Fourier features and SDCA this is the r-SDCA of [1]_, with Nyström features n-SDCA, and so on.

    Parameters
    ----------
    loss : Loss or str, default="squared"
        "squared"; with "pegasos" and "sbmd" also "absolute", "epsilon_insensitive", "huber", "quantile".
    random_state : int, Generator, RandomState or None, default=None
        Where the seed of all random numbers comes from.

    Attributes
    ----------
    state_ : dict
        Everything learned, as arrays, numbers and strings by name.

    See Also
    --------
    FixedFeatureClassifier : The same for labels.
    kernelstream.DoublyStochasticRegressor : What it is compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.rivals import FixedFeatureRegressor
    >>> from kernelstream_papers.rivals.solvers import BlockCoordinateDescent
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> solver = BlockCoordinateDescent(tol=0.01)
    >>> model = FixedFeatureRegressor(lam=0.01, solver=solver, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.98
    True
    """

    _learner: ClassVar[FixedFeatures]
    coef_, n_iter_, history_ = coef, n_iter, history

    features: FeatureMap | str = "fourier"
    loss: Loss | str = "squared"
    lam: float = 1.0
    solver: Solver | str = "sdca"

    _learns = FixedFeatures
