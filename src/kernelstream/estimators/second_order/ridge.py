r"""Online ridge regression and the forecaster of Azoury, Warmuth and Vovk, on any feature map."""

from __future__ import annotations

import contextlib
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from ... import second_order
from ...checks import one_of
from ...features import FeatureMap
from ...features.fourier import FourierMapping
from ...features.raw import RawMapping
from ...rows import Rows
from ...second_order import LeastSquares, experts
from ...state.change import Change
from ...state.nested import copied
from ...state.schema import Array, Schema
from ...state.turns import in_turn
from .._contract.base import Shell, State, checked_rows
from .._contract.classifier import StreamClassifier
from .._contract.labels import add
from .._contract.regressor import StreamRegressor
from .._contract.scaling import scales_columns
from .._contract.shown import shown
from .._contract.state import scaled_rows
from .._contract.targets import public
from .._described import described
from ..feature import MAP, linear_form
from .base import SecondOrder

GRID = (0.01, 0.1, 1.0, 10.0, 100.0)  # lam="auto"
FORECASTERS = ("ridge", "awv")


class Ridge(SecondOrder):
    """Ridge forecasts, shrunk or not, for one value of lam or averaged over several."""

    rule = LeastSquares()
    forecaster: str

    def ridges(self) -> np.ndarray:
        if isinstance(self.lam, str):
            if self.lam != "auto":
                raise ValueError(f"lam must be a number, several numbers or 'auto', got {self.lam!r}")
            return np.array(GRID)
        try:
            return np.atleast_1d(np.asarray(self.lam, dtype=float))
        except (TypeError, ValueError):
            raise ValueError(f"lam must be a number, several numbers or 'auto', got {self.lam!r}") from None

    def check_parameters(self) -> None:
        super().check_parameters()
        one_of("forecaster", self.forecaster, FORECASTERS)

    def reset(self, state: State) -> None:
        super().reset(state)
        if len(state["ridge"]) > 1:
            outputs = state["n_outputs"]
            state |= {"expert_loss": np.zeros((len(state["ridge"]), outputs)), "expert_bound": np.zeros(outputs)}

    def _statistics(self, state: State, r: int) -> Schema:
        schema, J, outputs = super()._statistics(state, r), len(self.ridges()), state["n_outputs"]
        if J > 1:
            schema |= {"expert_loss": Array((J, outputs), low=0.0), "expert_bound": Array((outputs,), low=0.0)}
        return schema

    def _needs_uncertainty(self) -> bool:
        return self.forecaster == "awv"

    def shrunk(self, F: np.ndarray, S: np.ndarray | None) -> np.ndarray:
        """AWV lets the row into A before it predicts: ``z'(A + z z')^-1 b = w'z / (1 + z'A^-1 z)``."""
        return F if S is None or self.forecaster == "ridge" else F / (1 + S)[:, :, None]

    def _forecast(self, state: State, F: np.ndarray, S: np.ndarray | None) -> np.ndarray:
        P = self.shrunk(F, S)
        if "expert_loss" not in state:
            return P[:, 0]
        return experts.combine(P, state["expert_loss"], state["expert_bound"])[0]

    def _forecast_and_learn(
        self, state: State, F: np.ndarray, S: np.ndarray, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        if "expert_loss" not in state:
            return self.shrunk(F, S)[:, 0]
        return experts.learn(self.shrunk(F, S), y, weight, state["expert_loss"], state["expert_bound"], self.forgetting)

    def deviations(self, state: State, X: Rows) -> np.ndarray:
        """Standard deviations of new targets, (n, outputs); 0 before anything was learned."""
        std = np.zeros((X.shape[0], state["n_outputs"]))
        if state["warm_rows"] and not state["warm_count"]:
            return std
        recursion = self.recursion(state)
        self.derived.sync()
        b, yy, _, mass = second_order.totals(state, self.forgetting)
        rest = np.maximum(yy - np.einsum("jkr,kr->jk", recursion.weights(), b), 0.0)
        noise = rest / mass if mass else rest
        for rows, Z in self.feature_rows(state, X):
            F, S = recursion.score(Z)
            assert S is not None
            variance = noise * (1 + self.forgetting * S)[:, :, None]
            if "expert_loss" in state:
                mean, P, theta = experts.combine(self.shrunk(F, S), state["expert_loss"], state["expert_bound"])
                variance = (theta * (variance + (P - mean[:, None]) ** 2)).sum(axis=1, keepdims=True)
            std[rows] = np.sqrt(variance[:, 0])
        return std

    def row_learner(self, state: State) -> Any:
        mapping, recursion = self.mapping(state), self.recursion(state)
        head = getattr(recursion, "head", [None])[0]  # of blocks
        W = mapping.W if isinstance(mapping, FourierMapping) else None
        plain = self.forgetting == 1 and self.forecaster == "ridge" and len(state["ridge"]) == 1
        if not plain or head is None or not (W is not None or isinstance(mapping, RawMapping)):
            return None
        how = (bool(self.intercept), "classes" in state)
        return self.ops.row_learner("least_squares", self, state, W, *how, head.BLAS, head.state)

    def fade(self, state: State, keep: float) -> bool:
        second_order.flush(state, self.forgetting)
        for name in ("gram", "b", "yy", "zsum", "mass"):
            state[name] = state[name] * keep
        return True

    def mix_outputs(self, state: State, change: Change) -> None:
        self.derived.leave_device()
        second_order.flush(state, self.forgetting)
        fresh, source, sign = change.fresh, change.source, change.sign
        # an absent class had the target -1 on every row: b = -sum c z, yy = sum c
        state["b"] = np.where(fresh[:, None], -state["zsum"], sign[:, None] * state["b"][source])
        state["yy"] = np.where(fresh, state["mass"], state["yy"][source])
        state["window_b"] = np.zeros((len(state["window"]), len(change)))
        if "expert_loss" in state:
            losses = state["expert_loss"]
            state["expert_loss"] = np.where(fresh, losses.mean(axis=1, keepdims=True), losses[:, source])
            state["expert_bound"] = np.where(fresh, state["expert_bound"].max(), state["expert_bound"][source])


# -------------------------------------------------------------------- what both estimators have
def merge(self: Shell[Ridge], other: Shell[Ridge]) -> Shell[Ridge]:
    """Add what another model has learned: afterwards this model has learned the rows of both, exactly.

    Both must use the same features (the same seed, and no bandwidth estimated from different rows) and the same
    parameters. With ``forgetting`` < 1, the rows of both fade at the same pace from now on.

    Parameters
    ----------
    other : estimator of the same class
        Left as it is.

    Returns
    -------
    self
    """
    with contextlib.ExitStack() as stack:
        for turns in sorted({self._turns, getattr(other, "_turns", self._turns)}, key=id):  # one order for all
            stack.enter_context(turns)
        return _merge(self, other)


def _merge(est: Shell[Ridge], other: Shell[Ridge]) -> Shell[Ridge]:
    mine, theirs = _mergeable(est, other)
    learner = est._learner
    _align(learner, mine, theirs)
    for state in (mine, theirs):
        second_order.flush(state, learner.forgetting)
    for name in ("gram", "b", "yy", "zsum", "expert_loss"):
        if name in mine:
            mine[name] = mine[name] + theirs[name]
    if "expert_bound" in mine:
        mine["expert_bound"] = np.maximum(mine["expert_bound"], theirs["expert_bound"])
    if "link" in mine and len(theirs.get("link", ())) == len(mine["link"]):  # of scores to probabilities
        share = theirs["t"] / max(mine["t"] + theirs["t"], 1)
        rows = mine["link"][0] + theirs["link"][0]
        mine["link"] = (1.0 - share) * mine["link"] + share * theirs["link"]
        mine["link"][0] = rows
    mine["mass"] += theirs["mass"]
    mine["t"] += theirs["t"]
    est.state_ = mine
    return est


def _mergeable(est: Shell[Ridge], other: Any) -> tuple[State, State]:
    """Copies of both states, or a ValueError that says why they do not go together."""
    if type(other) is not type(est):
        raise ValueError(f"a {type(est).__name__} cannot be merged with a {type(other).__name__}")
    mine, theirs = est.state_, other.state_
    if scales_columns(mine) or scales_columns(theirs):
        raise ValueError(
            "models that scale columns (standardize=True, or 'auto' if units differ) do so by their own rows "
            "and cannot be merged: scale the columns beforehand"
        )
    if mine["warm_rows"] or theirs["warm_rows"]:
        raise ValueError("a model that is still estimating its bandwidth cannot be merged: give gamma a number")
    for name in ("lam", "forecaster", "forgetting", "intercept"):
        if not np.array_equal(getattr(est, name), getattr(other, name)):
            raise ValueError(f"the models have different {name}: {getattr(est, name)!r}, {getattr(other, name)!r}")
    keys = [{key for key in state if key.startswith(MAP)} for state in (mine, theirs)]
    same = keys[0] == keys[1] and all(np.array_equal(mine[key], theirs[key]) for key in keys[0])
    if not same or mine["n_features"] != theirs["n_features"] or mine["b"].shape[1] != theirs["b"].shape[1]:
        raise ValueError("the models have different features: give them the same random_state and a numeric gamma")
    return copied(mine), copied(theirs)


def _align(learner: Ridge, mine: State, theirs: State) -> None:
    """Bring two states to the same outputs."""
    if "classes" not in mine:
        if mine["n_outputs"] != theirs["n_outputs"]:
            raise ValueError(f"the models have {mine['n_outputs']} and {theirs['n_outputs']} outputs")
        return
    for state, other in ((mine, theirs), (theirs, mine)):
        for label in np.setdiff1d(other["classes"], state["classes"]):
            if state["classes_fixed"]:
                raise ValueError(f"the other model knows the label {label!r}, which is not in this model's classes")
            add(learner, state, label, trained=True)
    mine["class_counts"] = mine["class_counts"] + theirs["class_counts"]


@described()
@dataclass(eq=False, repr=False)
class OnlineRidge(StreamRegressor):
    r"""Ridge regression after every row, exactly, in constant memory.

    .. math:: \hat y_t = z_t'A_{t-1}^{-1}b_{t-1}, \qquad A_t = \lambda I + \sum_{s \le t} z_s z_s', \quad
              b_t = \sum_{s \le t} y_s z_s

    with features :math:`z = z(x)`; or, with ``forecaster="awv"``, :math:`\hat y_t = z_t'A_t^{-1}b_{t-1}`: the row
    enters A before it is predicted, which shrinks forecasts where little is known and gives the best regret against an
    adversary [1]_ [2]_ [3]_. Predictions of a block of rows come from matrix products, and are those of the recursion.

    Parameters
    ----------
    features : FeatureMap or str, default="fourier"
        The map z: "fourier", "taylor", "nystroem", "raw", … or an object such as ``TaylorFeatures(degree=3)``.
    lam : float, sequence of floats or "auto", default=1.0
        Penalty, next to the *sum* of the squared errors. With several values, the forecasts are averaged with weights
        that follow their losses so far; "auto" means 0.01, 0.1, …, 100. Each value has its own inverse; all share the
        features.
    forecaster : {"ridge", "awv"}, default="ridge"
        "ridge" predicts with what was learned before the row; "awv" lets the row enter A first.
    forgetting : float, default=1.0
        mu in (0, 1]: with every later row, a row counts mu times as much, ``A <- mu A + z z'``. lambda fades as well,
        down to 1e-13 of the trace of A.
    engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
        "python" runs the readable recursion, the others work on blocks of rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the map's random numbers, unless the map has its own.

    Attributes
    ----------
    state_ : dict
        Everything learned: A, b and the rows not yet in them.
    coef_ : array
        Weights of the features.

    See Also
    --------
    OnlineRidgeClassifier : The same for labels.
    FeatureRegressor : First-order steps, in time proportional to the number of features.

    Notes
    -----
    ``sample_weight`` multiplies squared errors. The targets may be (n, k): all outputs share A. Time per row is
    proportional to r² for r features.

    References
    ----------
    .. [1] Azoury, Warmuth: Relative loss bounds for on-line density estimation with the exponential family of
       distributions, Machine Learning 43 (2001).
    .. [2] Vovk: Competitive on-line statistics, International Statistical Review 69 (2001).
    .. [3] Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale problems,
       NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OnlineRidge
    >>> from kernelstream.features import TaylorFeatures
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1]
    >>> model = OnlineRidge(TaylorFeatures(degree=6, gamma=0.5), lam=1e-3, forecaster="awv")
    >>> error = y - model.learn(X, y)  # every row predicted before it is learned
    >>> bool(np.mean(error[1000:] ** 2) < 1e-3)
    True
    >>> mean, std = model.predict(X[:5], return_std=True)
    """

    _learner: ClassVar[Ridge]
    on_device = True
    coef_, linear_form = shown(Ridge.coef), linear_form
    merge = merge
    _several_targets = True

    features: FeatureMap | str = "fourier"
    lam: Any = 1.0
    forecaster: str = "ridge"
    forgetting: float = 1.0
    _: KW_ONLY
    intercept: bool = False
    standardize: bool | str = "auto"

    _learns = Ridge

    @in_turn
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets, (n,) or (n, k), and optionally their standard deviations.

        The deviation is that of a new target under ``y = w'z + noise`` with prior variance noise/lambda of the weights:
        ``sigma sqrt(1 + z'A^-1 z)``, sigma² being the mean of the squared innovations ``(y - f)²/(1 + z'A^-1 z)`` so
        far.

        Parameters
        ----------
        X : (n, d) array or CSR
        return_std : bool, default=False

        Returns
        -------
        array, or a pair of arrays of the same shape
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        state, X = self._state, checked_rows(self, X)
        if scales_columns(state):
            X = scaled_rows(self._learner.ops, X, state)
        return mean, public(self._learner.deviations(state, X))


@described(like=OnlineRidge)
@dataclass(eq=False, repr=False)
class OnlineRidgeClassifier(StreamClassifier):
    r"""Least-squares classification after every row, on targets -1 and +1, one output per class.

    .. math:: f_t(x) = z(x)'A_{t-1}^{-1}b_{t-1}, \qquad A_t = \lambda I + \sum_{s \le t} z_s z_s', \quad
              b_t = \sum_{s \le t} y_s z_s

    with features :math:`z = z(x)` [1]_ [2]_. Two classes share one output. The sufficient statistics allow a class that
    appears late to be treated exactly as if it had been known from the start, with the target -1 on all rows before.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weight of each class in the squared error; "balanced" follows the class frequencies seen so far.

    Attributes
    ----------
    state_ : dict
        Everything learned, as arrays, numbers and strings by name.
    coef_ : array
        Weights of the features, one row for each output.

    See Also
    --------
    OnlineRidge : The same for numbers.
    AROWClassifier : Leaves out rows that are predicted with a margin.

    Notes
    -----
    Time per row is proportional to r² for r features, whatever the number of classes: all outputs share A.

    References
    ----------
    .. [1] Azoury, Warmuth: Relative loss bounds for on-line density estimation with the exponential family of
       distributions, Machine Learning 43 (2001).
    .. [2] Vovk: Competitive on-line statistics, International Statistical Review 69 (2001).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import OnlineRidgeClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> model = OnlineRidgeClassifier("taylor", lam=0.1).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.85
    True
    """

    on_device = True
    coef_, linear_form = shown(Ridge.coef), linear_form
    merge = merge
    loss = "hinge"  # how labels are coded: ±1 for two classes, one column each for more

    features: FeatureMap | str = "fourier"
    lam: Any = 1.0
    forecaster: str = "ridge"
    forgetting: float = 1.0
    _: KW_ONLY
    intercept: bool = False
    standardize: bool | str = "auto"

    _learns = Ridge
