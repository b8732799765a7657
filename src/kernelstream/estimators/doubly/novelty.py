r"""Novelty detection by doubly stochastic gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from ...checks import fraction
from ...kernels import Kernel
from ...passes.doubly.descent import Descent, top_eigenvalue
from ...passes.doubly.novelty import NoveltyDescent, threshold
from ...random import SeedStream, generator
from ...rows import Rows
from ...state.schema import Number, Schema
from ...state.turns import in_turn
from .._contract.base import State
from .._contract.outlier import StreamOutlier
from .._described import described
from .base import PARTS, Doubly, fit, kernel
from .models import DoublyStochasticRegressor
from .step import DoublySchedule, DoublyStep

FIRST_STEP = 0.5  # times the largest eigenvalue of K/n, which is about how large f becomes
TURNOVERS = 2.0  # theta >= TURNOVERS / nu: with smaller ones the start of f is never forgotten
QUANTILE_ROWS = 2048


class Novelties(Doubly):
    """A function and its threshold."""

    nu: float

    def check_parameters(self) -> None:
        super().check_parameters()
        fraction("nu", self.nu)

    def penalty(self, state: State, n: int) -> float:
        return float(self.nu)

    def make_descent(self, state: State, kind: Any = NoveltyDescent, **more: Any) -> Descent:
        theta0 = self.step.theta0
        if not isinstance(self.parameters["step"], DoublyStep):
            theta0 = max(theta0, TURNOVERS / (self.nu * state["eta"]))
        return super().make_descent(state, kind, theta0=theta0, **more)

    def schema(self, state: State, trained: bool) -> Schema:
        schema = super().schema(state, trained)
        if trained:
            schema["tau"] = Number()
            if self.step.average:
                schema["tau_mean"] = Number()
        return schema

    def first_step(self, state: State, kernel: Kernel, X: Rows) -> float:
        return float(self.step.eta) if self.step.eta != "auto" else FIRST_STEP * top_eigenvalue(kernel, X)

    def start_targets_of(self, state: State, y: np.ndarray, weight: np.ndarray, n: int) -> None:
        """There are no targets."""

    def train(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, first: np.ndarray, passes: Any) -> None:
        """The same; then put the threshold at the quantile of f."""
        super().train(state, X, y, weight, first, passes)
        some = generator(state["seed"], SeedStream.NOVELTY_ROWS).permutation(len(weight))[:QUANTILE_ROWS]
        f = self.score(state, X[some])[:, 0] + threshold(state)
        state["tau_mean" if "tau_mean" in state else "tau"] = _quantile(f, weight[some], self.nu)


@described(like=DoublyStochasticRegressor)
@dataclass(eq=False, repr=False)
class DoublyStochasticOneClass(StreamOutlier):
    r"""Novelty detection: a row is novel where :math:`f(x) = \sum_i \alpha_i'\phi_i(x) < \tau`, f and tau learned.

    .. math:: \min_{f, \tau} E[\max(0, \tau - f(x))] + \frac\nu2 \|f\|^2 - \nu\tau,

    the one-class support vector machine, by doubly stochastic gradients [1]_:

    .. math:: \alpha_t = \frac{\gamma_t}{b} \sum_x 1[f(x) < \tau]\, \phi_t(x), \qquad
        \tau \leftarrow \tau + \frac{\gamma_t}{b} \sum_x (\nu - 1[f(x) < \tau]).

    Parameters
    ----------
    nu : float, default=0.1
        Share of the rows that are called novel, and strength of the regularisation.
    step : DoublyStep or "auto", default="auto"
        Step sizes, averaging and preconditioning. "auto" starts with half the largest eigenvalue of K/n.

    Attributes
    ----------
    offset_ : float
        The threshold tau: ``decision_function = score_samples - offset_``.

    See Also
    --------
    BudgetOneClass : Novelties by a support set of bounded size.

    Notes
    -----
    For a given f the best threshold is the nu-quantile of f. After ``fit`` tau is that quantile over (at most 2048 of)
    the rows; in a stream it is learned with f, and the unit is a batch, see :class:`DoublyStochasticClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import DoublyStochasticOneClass
    >>> from kernelstream.estimators import DoublySchedule
    >>> rng = np.random.default_rng(0)
    >>> model = DoublyStochasticOneClass(schedule=DoublySchedule(block_size=64), random_state=0)
    >>> model = model.fit(rng.normal(size=(1000, 2)))
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    >>> bool(0.05 < (model.predict(rng.normal(size=(1000, 2))) < 0).mean() < 0.15)
    True
    """

    _named_parts: ClassVar = PARTS
    fit, kernel_ = fit, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    nu: float = 0.1
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    schedule: DoublySchedule | str = "auto"
    standardize: bool | str = "auto"

    @property
    def offset_(self) -> float:
        """The threshold tau."""
        return threshold(self.state_)

    # ---------------------------------------------------------------- public
    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """``f - tau`` of rows, (n,): negative for novelties."""
        return self._scores(X)[:, 0]

    _learns = Novelties


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The least value with more than ``share`` of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    return float(values[order[min(int(np.searchsorted(mass, share * mass[-1], side="right")), len(order) - 1)]])
