r"""k-SDCA: the regularised minimum over all rows, which the online learners of the kernel expansion approach."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelstream import estimators, losses
from kernelstream.develop import (
    KernelExpansion,
    SolverBar,
    State,
    StreamClassifier,
    StreamRegressor,
    centres,
    described,
    entry,
    n_iter,
    positive,
    whole,
)
from kernelstream.estimators.budget.base import dual_coef, n_support, support_vectors
from kernelstream.losses import dual_of
from kernelstream.random import SeedStream, generator
from kernelstream.registry.caller import warn_unsolved
from kernelstream.rows import Rows
from kernelstream.state.schema import Count, Number, Schema, length

from .solvers.kernel_sdca import kernel_sdca

KEPT = 4096  # rows up to which the Gram matrix is kept (134 MB); of a larger one, rows are computed again in every pass


class DualAscent(KernelExpansion):
    """The coefficients of all rows."""

    lam: float
    tol: float
    max_iter: int

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        if self.parameters.get("center"):
            mean = float(np.average(Y[:, 0], weights=weight))
            state["center"], Y = np.array([float(len(Y)), mean]), Y - mean
        self.estimate(state, X)
        kernel, loss = self.kernel(state), self.context.loss_for(2)
        n = X.shape[0]
        weight = np.ones(n) if weight is None else weight
        rows = X.astype(np.float64, copy=False)
        whole = kernel.pairwise(rows, rows) if n <= KEPT else None

        def gram(i: np.ndarray) -> np.ndarray:
            return kernel.pairwise(rows[i], rows) if whole is None else whole[i]

        diag, a = np.asarray(kernel.diag(rows), np.float64), weight / (self.lam * weight.sum())
        with SolverBar("k-SDCA") as report:
            found = [
                kernel_sdca(
                    gram,
                    diag,
                    y,
                    a,
                    loss,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    rng=generator(state["seed"], SeedStream.SOLVER, c),
                    report=report,
                )
                for c, y in enumerate(np.ascontiguousarray(Y.T))
            ]
        alpha = np.array([part.alpha for part in found])
        used = np.flatnonzero(alpha.any(axis=0))
        vectors = X[used]
        dtype = np.dtype(state["dtype"])
        state |= {
            "support": vectors.toarray() if hasattr(vectors, "toarray") else np.array(vectors),
            "alpha": np.ascontiguousarray(alpha[:, used], dtype),
            "scale": np.ones(len(alpha)),
            "diag": diag[used].astype(dtype),
            "n_support": len(used),
            "n_iter": max(part.n_iter for part in found),
            "objective": self.lam * sum(part.primal for part in found),
            "dual_gap": self.lam * sum(part.primal - part.dual for part in found),
        }
        if not all(part.converged for part in found):
            warn_unsolved(
                f"k-SDCA stopped after max_iter={self.max_iter} passes with a duality gap of {state['dual_gap']:.2g} "
                f"(objective {state['objective']:.4g}); raise max_iter, tol or lam"
            )

    def schema(self, state: State, trained: bool) -> Schema:
        kernel, n = self.kernel_schema(state, True), length(state, "alpha", -1)
        reached: Schema = {"n_iter": Count(), "objective": Number(free=True), "dual_gap": Number(free=True)}
        support = self.support_schema(state, n, state["dtype"]) | {"n_support": Count(n, n)}
        return kernel | support | reached | centres(self)

    def check_parameters(self) -> None:
        positive("lam", self.lam)
        positive("tol", self.tol)
        whole("max_iter", self.max_iter)
        dual_of(self.context.loss_for(2))


objective = entry("objective", "The objective reached, summed over the outputs.", float)
dual_gap = entry("dual_gap", "Bound of its distance from the minimum.", float)


@estimators.register
@described()
@dataclass(eq=False, repr=False)
class KernelSDCAClassifier(StreamClassifier):
    r"""Kernel machine on all rows at once, by dual coordinate ascent.

    .. math:: \min_f \frac{\lambda}{2} \|f\|^2 + \frac1n \sum_i l(y_i, f(x_i))

    The batch reference of the online learners: with the hinge it is a support vector machine (``C = 1/(lam n)``, no
    intercept), and what Pegasos and NORMA approach [1]_. More than two classes are separated one against the rest. All
    rows are needed at once: there is no ``partial_fit``.

    Parameters
    ----------
    lam : float, default=0.001
        Penalty, next to the *mean* of the losses.
    loss : {"hinge", "squared_hinge", "logistic"} or Loss, default="hinge"
        The loss, by name or as an object that has a dual step.
    tol : float, default=0.001
        Stop when the duality gap is this share of the objective of f = 0.
    max_iter : int, default=200
        Passes over the rows.
    engine : {"auto", "native", "python"}, default="auto"
        The engine of predictions: compiled loops, or their readable specification.

    Attributes
    ----------
    support_vectors_ : (n_support, d) array
        The rows that make up the function.
    dual_coef_ : (n_outputs, n_support) array
        Coefficients of the support vectors.
    n_support_ : int
        Number of support vectors now.
    objective_ : float
        Value of the objective that was reached.
    dual_gap_ : float
        Distance to the dual objective: at most so far from the minimum.
    n_iter_ : int
        Passes or iterations of the solver.

    See Also
    --------
    KernelSDCARegressor : The same for numbers.
    kernelstream.FalkonClassifier : Many more rows, nearly exact.

    Notes
    -----
    The duality gap bounds the distance from the minimum, and is what ``tol`` is about.

    References
    ----------
    .. [1] Shalev-Shwartz, Zhang: Stochastic dual coordinate ascent methods for regularized loss minimization, JMLR 14
       (2013).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream_papers.rivals import KernelSDCAClassifier
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> model = KernelSDCAClassifier(gamma=2.0, random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.98
    True
    """

    n_support_, support_vectors_, dual_coef_ = n_support, support_vectors, dual_coef
    n_iter_, objective_, dual_gap_ = n_iter, objective, dual_gap

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    lam: float = 1e-3
    loss: losses.Loss | str = "hinge"
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 200

    _learns = DualAscent

    _loss_rule = staticmethod(estimators.AROWClassifier._loss_rule)


@estimators.register
@described(like=KernelSDCAClassifier)
@dataclass(eq=False, repr=False)
class KernelSDCARegressor(StreamRegressor):
    r"""Kernel regression on all rows at once, by dual coordinate ascent.

    .. math:: \min_f \frac{\lambda}{2} \|f\|^2 + \frac1n \sum_i l(y_i - \bar y, f(x_i))

    The squared loss gives kernel ridge regression with ``alpha = lam n``, the epsilon-insensitive loss a support vector
    regression [1]_.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive", "absolute"} or Loss, default="squared"
        The loss, by name or as an object that has a dual step.
    center : bool, default=True
        Whether to learn the difference from the mean ybar of the targets.

    See Also
    --------
    KernelSDCAClassifier : The same for labels.
    kernelstream.FalkonRegressor : Many more rows, nearly exact.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.rivals import KernelSDCARegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> KernelSDCARegressor(gamma=1.0, lam=1e-4).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.99
    True
    """

    n_support_, support_vectors_, dual_coef_ = n_support, support_vectors, dual_coef
    n_iter_, objective_, dual_gap_ = n_iter, objective, dual_gap

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    lam: float = 1e-3
    loss: losses.Loss | str = "squared"
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 200
    center: bool = True

    _learns = DualAscent
