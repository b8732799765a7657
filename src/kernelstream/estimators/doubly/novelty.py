r"""Novelty detection by doubly stochastic gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ...checks import fraction
from ...kernels import Kernel
from ...passes.doubly.descent import Descent
from ...passes.doubly.novelty import NoveltyDescent, threshold
from ...random import Stream, generator
from ...rows import Rows
from ...state.schema import Number, Schema
from ...state.turns import in_turn
from .._contract.base import State
from .._contract.outlier import StreamOutlier
from .._contract.scaling import scales_columns
from .._contract.state import scaled_rows
from .._described import described
from .base import PARTS, Doubly, fit, kernel, without_scores
from .choice import FRACTIONS, LEAST_ROWS, TRIAL_STEPS, held_out, scaled, top, trial_blocks
from .models import DoublyStochasticRegressor
from .step import DoublySchedule, DoublyStep, Plan

FIRST_STEP = 0.5  # times the largest eigenvalue of K/n, which is about how large f becomes
TURNOVERS = 2.0  # theta >= TURNOVERS / nu: with smaller ones the start of f is never forgotten
QUANTILE_ROWS = 2048
MARGIN = 0.02  # a narrower kernel must separate better by this


class Novelties(Doubly):
    """A function and its threshold."""

    nu: float

    def check_parameters(self) -> None:
        super().check_parameters()
        fraction("nu", self.nu)

    def regulariser(self, state: State, n: int) -> float:
        return float(self.nu)

    def _theta0(self, eta: float) -> float:
        if isinstance(self.est.step, DoublyStep):
            return self.est.step.theta0
        return max(DoublyStep().theta0, TURNOVERS / (self.nu * eta))

    def make_descent(self, state: State) -> Descent:
        plain = super().make_descent(state)
        return NoveltyDescent(**plain.__dict__ | {"theta0": self._theta0(state["eta"])})

    def schema(self, state: State, trained: bool) -> Schema:
        schema = super().schema(state, trained)
        if trained:
            schema["tau"] = Number()
            if self.step.average:
                schema["tau_mean"] = Number()
        return schema

    # ---------------------------------------------------------------- automatic choices
    def choose(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, n: int, plan: Plan) -> float:
        state |= {"offset": 0.0, "lam": self.regulariser(state, n)}
        kernel = self.given.kernel_object.resolve(X)
        if self.chooses_bandwidth() and X.shape[0] >= LEAST_ROWS and not sp.issparse(X):
            separated = [self._separates(state, scaled(kernel, part), X, weight, plan) for part in FRACTIONS]
            good = max(separated) - MARGIN
            kernel = scaled(
                kernel, next(part for part, share in zip(FRACTIONS, separated, strict=True) if share >= good)
            )
        self.enter_kernel(state, kernel)
        state["eta"] = self._first_step(kernel, X, weight)
        return np.nan

    def _first_step(self, kernel: Kernel, X: Rows, weight: np.ndarray) -> float:
        eta = self.step.eta
        if eta != "auto":
            return float(eta)
        return FIRST_STEP * max(top(kernel, X, weight), 1e-12) / float(weight.mean())  # f and tau scale alike

    def _separates(self, state: State, kernel: Kernel, X: Any, weight: np.ndarray, plan: Plan) -> float:
        """Share of held-out rows called normal, less that of rows from the box around all, after a short training."""
        held, blocks = held_out(X.shape[0]), trial_blocks(self, state, kernel)
        d, seed = state["n_features"], state["seed"]
        eta = self._first_step(kernel, X, weight)
        descent = NoveltyDescent(blocks, None, eta, self._theta0(eta), float(self.nu), True, plan.precondition)  # type: ignore[arg-type]
        model: State = {"offset": 0.0}
        descent.reset(model, 1)
        descent.train(model, X[~held], np.zeros((~held).sum()), weight[~held], TRIAL_STEPS, plan.batch, seed)
        rng = generator(seed, Stream.NOVELTY_BOX)
        box = rng.uniform(X.min(axis=0), X.max(axis=0), (int(held.sum()), d)).astype(X.dtype)
        threshold = _quantile(blocks.scores(X[~held], model["mean"], together=True)[:, 0], weight[~held], self.nu)
        normal = blocks.scores(np.concatenate([X[held], box]), model["mean"], together=True)[:, 0] >= threshold
        return float(normal[: len(box)].mean() - normal[len(box) :].mean())

    def start_over(
        self, state: State, X: Rows, y: np.ndarray, target: np.ndarray, weight: np.ndarray, **how: Any
    ) -> None:
        super().start_over(state, X, y, target, weight)
        self.calibrate(state, X, state["warm_weight"])

    def fit(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, passes: Any) -> None:
        super().fit(X, y, weight, passes)
        counted = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        rng = generator(self.est._state["seed"], Stream.NOVELTY_ROWS)
        some = counted[rng.permutation(len(counted))[:QUANTILE_ROWS]]
        rows, state = X[some], self.est._state
        rows = scaled_rows(self.ops, rows, state) if scales_columns(state) else rows
        self.calibrate(state, rows, np.ones(len(some)) if weight is None else weight[some])

    def calibrate(self, state: State, X: Rows, weight: np.ndarray) -> None:
        """Put the threshold at the quantile of f over rows X (n, d), already scaled."""
        if state["t"]:
            f = self.descent(state).predict(state, X)[:, 0] + threshold(state)
            state["tau_mean" if "tau_mean" in state else "tau"] = _quantile(f, weight, self.nu)


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
    gamma : float, "auto", "median", "scale" or None, default="auto"
        Bandwidth of a kernel given by name. "auto" tries 1, 0.5, 0.35, 0.25 and 0.125 times the median distance and
        keeps what best separates held-out rows, which should be normal, from rows drawn uniformly from the box around
        the data, which should be novel; of equally good ones, the widest. Sparse rows have no such box and get the
        median.
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
    partial_fit, kernel_ = without_scores(StreamOutlier.partial_fit), property(kernel)

    kernel: Any = "gaussian"
    gamma: float | str | None = "auto"
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
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, shuffle: bool = True, passes: Any = None
    ) -> DoublyStochasticOneClass:
        """Forget everything, choose what is automatic on a random part of the rows, then learn all in several passes.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored
        sample_weight : (n,) array, optional
        shuffle : bool, default=True
            Take random batches of the rows. False keeps the order: what ``learn`` does on a fresh model.
        passes : float or "auto", optional
            Replaces that of the schedule; with ``shuffle=False`` an integer, by default 1.

        Returns
        -------
        self
        """
        fit(self, X, None, sample_weight, shuffle=shuffle, passes=passes)
        return self

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
