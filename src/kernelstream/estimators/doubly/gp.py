r"""Gaussian-process regression by doubly stochastic gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array

from ...checks import positive, whole
from ...passes.doubly.blocks import FeatureBlocks
from ...passes.doubly.descent import Descent
from ...passes.doubly.gp import GPDescent
from ...random import SeedStream
from ...rows import Rows, dense
from ...state.schema import POSITIVE, Count, Number, Schema
from ...state.turns import in_turn
from .._contract.base import State, checked_rows
from .._contract.regressor import StreamRegressor
from .._described import described
from .base import PARTS, Doubly, fit, kernel
from .models import DoublyStochasticRegressor
from .step import DoublySchedule, DoublyStep


class GaussianProcess(Doubly):
    """A posterior mean, and columns beside it that know the variance."""

    least_steps = 100  # with preconditioning, more do not help
    usual_size = 512
    usual_blocks = 8  # every one has weights for all ``variance_features``

    noise: float
    points: Any
    variance_features: int

    @property
    def center(self) -> bool:  # type: ignore[override]
        return self.parameters["normalize_y"]

    def variance(self, state: State, X: Rows) -> np.ndarray:
        """Posterior variance of f divided by the amplitude, (n,)."""
        descent: Any = self.descent(state)
        if descent.points is not None:
            prior = descent.blocks.kernel.diag(X).astype(np.float64)
            left = prior - descent.at_points(state, self._which(descent.points, X))
        elif descent.left is not None:
            left, prior = descent.variance(state, X)
        else:
            raise ValueError("no variance was learned: set variance_features > 0, or give points")
        least = np.zeros(len(prior))
        if descent.blocks.kernel.is_fourier:  # the variance that would remain if all rows were at x
            ratio = self.noise / state["amplitude"]
            least = prior * ratio / (state["rows"] * prior + ratio)
        return np.clip(left, least, prior)

    def _which(self, points: np.ndarray, X: Rows) -> np.ndarray:
        """Positions of rows among the points."""
        index = {row.tobytes(): i for i, row in enumerate(points)}
        found = [index.get(row.tobytes(), -1) for row in np.ascontiguousarray(dense(X))]
        if min(found) < 0:
            raise ValueError(
                f"row {found.index(-1)} of X is not among the points, and only their standard deviations are known: "
                f"use points=None for those of any row"
            )
        return np.array(found)

    def make_descent(self, state: State, kind: Any = GPDescent, **more: Any) -> Descent:
        points = self._checked_points(state)
        left = self._operator(state) if points is None and self.variance_features else None
        return super().make_descent(state, kind, points=points, left=left, **more)

    def _checked_points(self, state: State) -> np.ndarray | None:
        if self.points is None:
            return None
        points = check_array(self.points, dtype=np.dtype(state["dtype"]), order="C")
        if points.shape[1] != state["n_features"]:
            raise ValueError(f"points have {points.shape[1]} columns, the rows have {state['n_features']}")
        for domain in self.domains():
            domain.check(points)
        return points

    def check_parameters(self) -> None:
        super().check_parameters()
        positive("noise", self.noise)
        if self.variance_features:
            whole("variance_features", self.variance_features)
        if self.points is not None:
            check_array(self.points)

    def one_width(self) -> bool:
        return self.points is None and super().one_width()

    def schema(self, state: State, trained: bool) -> Schema:
        schema = super().schema(state, trained)
        return schema | {"amplitude": Number(POSITIVE), "rows": Count()} if schema else {}

    def columns(self, state: State) -> int:
        points = self._checked_points(state)
        if points is not None:
            return 1 + len(points)
        return 1 + (self._operator(state).width if self.variance_features else 0)

    def _operator(self, state: State) -> FeatureBlocks:
        """The features by which the operator is learned."""
        shape = state["n_features"], max(1, self.variance_features // 2), state["dtype"]
        return FeatureBlocks(self.kernel(state), state["seed"], *shape, self.ops, SeedStream.GP_OPERATOR)

    def widen(self, state: State, d: int) -> None:
        if self.points is not None:
            raise ValueError(f"points have {state['n_features']} columns, so the rows cannot have more")
        super().widen(state, d)

    # ---------------------------------------------------------------- prior and rows so far
    def start(self, state: State, before: State | None) -> None:
        if self.points is not None:
            self._checked_points(state)
        super().start(state, before)

    def estimate(self, state: State, X: Rows) -> None:
        state |= {"amplitude": 1.0, "rows": 0}
        super().estimate(state, X)

    def start_targets_of(self, state: State, y: np.ndarray, weight: np.ndarray, n: int) -> None:
        if self.center:
            state["amplitude"] = float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)) or 1.0
        super().start_targets_of(state, y, weight, n)

    def penalty(self, state: State, n: int) -> float:
        return self.noise / (state["amplitude"] * n)

    def learn_waiting(self, state: State) -> np.ndarray:
        state["rows"] += state["waiting"]
        state["lam"] = self.penalty(state, state["rows"])
        return super().learn_waiting(state)

    def train(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, first: np.ndarray, passes: Any) -> None:
        super().train(state, X, y, weight, first, passes)
        state["rows"] = len(y)


@described(like=DoublyStochasticRegressor)
@dataclass(eq=False, repr=False)
class DoublyStochasticGP(StreamRegressor):
    r"""Posterior of a Gaussian process, mean and standard deviation, without a kernel matrix.

    For rows :math:`x_i` with targets :math:`y_i = f(x_i) + \epsilon_i`, :math:`\epsilon_i \sim N(0, s^2)` and
    :math:`f \sim GP(0, k)`, the posterior at x is

    .. math:: N\big(k_x'(K + s^2 I)^{-1} y,\; k(x, x) - k_x'(K + s^2 I)^{-1} k_x\big).

    The mean is a kernel ridge regression with :math:`\lambda = s^2/n`; so are, with targets :math:`k(x, x_i)`, the
    variances at points x given in advance; otherwise the variance comes from the operator
    :math:`A = C(C + \lambda)^{-1}`, :math:`C = \frac1n \sum_i k(x_i, \cdot) \otimes k(x_i, \cdot)`. All are learned
    by doubly stochastic gradients [1]_.

    Parameters
    ----------
    gamma : float, "median", "scale" or None, default=None
        Bandwidth of a kernel given by name, by default the median distance of the first rows; scale columns of
        different units before.
    noise : float, default=0.1
        Variance of the noise.
    points : (m, d) array or None, default=None
        Points whose standard deviation will be needed, if they are known: m regressions. Without them the operator is
        learned, which gives the standard deviation at any point.
    step : DoublyStep or "auto", default="auto"
        "auto" divides gradients by the batch's feature covariance (``precondition=0.05``), because the variance depends
        on directions that plain steps take very long to learn.
    normalize_y : bool, default=False
        Use the mean and the variance of the first targets as those of the prior, instead of 0 and 1.
    variance_features : int, default=256
        Random features by which the operator is learned: with few of them, all variances are too large or too small.
        0 learns no variance.

    See Also
    --------
    DoublyStochasticRegressor : The mean alone, for any loss.
    OnlineRidge : Exact ridge regression on fixed features.

    Notes
    -----
    In a stream, :math:`\lambda = s^2 /` (rows so far). A row of weight w has noise variance :math:`s^2/w`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import DoublyStochasticGP
    >>> from kernelstream.estimators import DoublySchedule
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(500)
    >>> model = DoublyStochasticGP(gamma=1.0, schedule=DoublySchedule(block_size=64), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.0], [8.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2)) < 0.1), bool(std[0] < 0.1), bool(std[1] > 0.8)
    (True, True, True)
    """

    _learner: ClassVar[GaussianProcess]
    loss = "squared"
    _named_parts: ClassVar = PARTS | {"step": {"auto": lambda: DoublyStep(theta0=30.0, precondition=0.05)}}
    fit, kernel_ = fit, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    noise: float = 0.1
    points: Any = None
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    normalize_y: bool = False
    variance_features: int = 256
    schedule: DoublySchedule | str = "auto"

    _learns = GaussianProcess

    # ---------------------------------------------------------------- public
    @in_turn
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior mean, and with ``return_std`` the standard deviation of f (without the noise).

        Parameters
        ----------
        X : (n, d) array or CSR
            If ``points`` were given, ``return_std`` needs rows that are among them.
        return_std : bool

        Returns
        -------
        (n,) array, or two of them
        """
        mean = self._scores(X)[:, 0]
        if not return_std:
            return mean
        state = self.state_
        X = checked_rows(self, X)
        return mean, np.sqrt(state["amplitude"] * self._learner.variance(state, X))
