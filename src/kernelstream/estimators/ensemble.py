r"""Online multiple kernel learning: many learners, one per kernel, weighted by how well each predicts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..engine import threads
from ..engine.python import Hedge
from ..features import RandomFourier
from ..kernels import Gaussian
from ..rows import Rows
from . import _hedge, _members
from ._base import State, StreamEstimator
from ._classifier import StreamClassifier
from ._family import FourierFamily
from ._family import find as find_family
from ._regressor import StreamRegressor
from .feature import FeatureClassifier, FeatureRegressor

COMBINATIONS = ("hedge", "uniform")
UPDATES = ("deterministic", "stochastic")
VOTES = ("sign", "score")
WIDTHS = tuple(2.0**k for k in range(-6, 7))  # sigma of the Gaussians of the default pool
ROWS = 1024  # rows whose scores of all learners are held at once
SIDE_BY_SIDE = 32  # rows from which learners that share nothing run on threads of their own
AHEAD = 64  # rows for which the stochastic choices are looked at together


class MultiKernelEstimator(StreamEstimator):
    """What the classifier and the regressor share: everything but the target."""

    learners: Any
    combination: str
    updates: str
    discount: float
    smoothing: float
    share: float

    _states: list[State]

    # ---------------------------------------------------------------- components
    def _pool(self) -> list[Any]:
        raise NotImplementedError

    def _hedge(self) -> Hedge:
        raise NotImplementedError

    def _prototypes(self) -> list[Any]:
        """Unfitted copies of the learners."""
        return _members.copies(self._pool() if self.learners is None else list(self.learners), self.engine)

    @property
    def learners_(self) -> list[Any]:
        """The learners, fitted; they go on learning with the ensemble."""

        def attach() -> list[Any]:
            members = self._prototypes()
            for member, state in zip(members, self._states, strict=True):
                member.state_ = state
            return members

        return self._cached("learners", attach)

    # ---------------------------------------------------------------- state
    @property
    def state_(self) -> State:
        """Everything learned, flat: the entries of learner i have names that begin with ``m{i}_``."""
        if self.__dict__.get("_state") is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return _members.flatten(self._state, self._states)

    @state_.setter
    def state_(self, flat: State) -> None:
        self._state, self._states = _members.split(flat)
        self.n_features_in_ = int(self._state["n_features"])
        self._forget()

    @property
    def weights_(self) -> np.ndarray:
        """Weights of the learners now, (m,); they sum to one."""
        return self._ops.theta(self._fitted("log_theta"))

    @property
    def weights_history_(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers (k,) and the weights after each of those rows, (k, m); evenly spaced, at most 256 of them."""
        history, stride = self._fitted("history"), self._state["history_stride"]
        k = self._state["t"] // stride
        return stride * np.arange(1, k + 1), history[:k].astype(float)

    def _fitted(self, name: str) -> np.ndarray:
        state = self.__dict__.get("_state") or {}
        if name not in state:
            raise AttributeError(f"{type(self).__name__} has no weights before it has learned a row")
        return state[name]

    # ---------------------------------------------------------------- hooks
    def _begin(self, state: State) -> None:
        self._states = [_members.start(member, i, state) for i, member in enumerate(self._prototypes())]

    def _warm_up_rows(self) -> int:
        return max(member._warm_up_rows() for member in self._prototypes())

    def _estimate(self, state: State, X: Rows) -> None:
        for member in self.learners_:
            if member._warm_up_rows():
                member._estimate(member._state, X)

    def _reset(self, state: State) -> None:
        self._cache.pop("learners", None)
        self._cache.pop("family", None)
        for member in self.learners_:
            member._state["t"] = 0
            member._reset(member._state)
        state |= self._ops.start_hedge(len(self._states), self._hedge())

    def _end_warm_up(self) -> None:
        super()._end_warm_up()
        for member in self.learners_:
            member._end_warm_up()

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        hedge = self._cached("hedge", self._hedge)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, P in self._blocks(X):
            start = rows.start
            while start < rows.stop:
                run = slice(start, rows.stop)
                own = None if weight is None else np.broadcast_to(weight[run], (len(self._states), rows.stop - start))
                if self.updates == "stochastic":
                    run, own = self._chosen(state, weight, run, hedge)
                part = None if P is None else P[run.start - rows.start : run.stop - rows.start]
                F = self._member_scores(state, X, run, part, y[run], own)
                counted = None if weight is None else weight[run]
                scores[run] = self._ops.hedge_pass(F, y[run], counted, state, hedge)
                start = run.stop
        return scores

    def _score(self, state: State, X: Rows) -> np.ndarray:
        ops, hedge = self._ops, self._hedge()
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, P in self._blocks(X):
            F = self._member_scores(state, X, rows, P)
            scores[rows] = ops.combine(F, ops.theta(state["log_theta"]), hedge, state)
        return scores

    def _family(self) -> FourierFamily | None:
        """The learners that share a product of rows and frequencies."""
        return self._cached("family", lambda: find_family(self.learners_, self._state["n_outputs"], self._ops))

    def _blocks(self, X: Rows) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Blocks of rows, with the projections that many learners use; the next block's are made while this one is learned."""
        family = self._family()
        cuts = threads.cuts(X.shape[0], ROWS if self._ops.BLOCK > 1 else 1)
        if family is None:
            return ((rows, None) for rows in cuts)
        if len(cuts) == 1:
            return iter([(cuts[0], family.project(X, "family"))])
        # two buffers: one being consumed, one being filled
        return threads.prefetch(
            lambda rows: family.project(X[rows], f"family{rows.start // ROWS % 2}"), cuts, self._ops.THREADED
        )

    def _member_scores(
        self,
        state: State,
        X: Rows,
        rows: slice,
        P: np.ndarray | None,
        y: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Scores of all learners for some rows, (m, n, C). With y they learn them, those of weight (m, n) > 0; the scores are
        then those before each update."""
        n, outputs = rows.stop - rows.start, state["n_outputs"]
        F = np.empty((len(self._states), n, outputs))
        family = self._family()
        if family is not None and P is not None:
            if y is None:  # a pass over rows of weight 0 changes nothing
                family.learn(P, np.zeros(n), np.zeros((len(F), n)), F)
            else:
                family.learn(P, family.target(state, y), weights, F)
        others = [i for i in range(len(F)) if family is None or i not in family.where]
        block = X if n == X.shape[0] or not others else X[rows]

        def work(i: int) -> None:
            member: Any = self.learners_[i]
            if y is None:
                part = member._score(member._state, block)
            else:
                own = None if weights is None else np.ascontiguousarray(weights[i])
                part = member._learn(member._state, block, _members.target(member, state, y), own)
            F[i] = _members.scores(part, outputs)

        if self._ops.THREADED and n >= SIDE_BY_SIDE:
            threads.each(work, others)
        else:
            for i in others:
                work(i)
        return F

    def _chosen(self, state: State, weight: np.ndarray | None, rows: slice, hedge: Hedge) -> tuple[slice, np.ndarray]:
        """The next of the rows for which it is settled who updates, and the weights (m, n) they then have for each learner."""
        n = min(rows.stop - rows.start, AHEAD if self._ops.BLOCK > 1 else 1)
        ahead = None if weight is None else weight[rows.start : rows.start + n]
        u = _hedge.lots(state["seed"], state["t"], ahead, n, len(self._states))
        chosen = _hedge.chosen(state["log_theta"], u, ahead, self.smoothing, hedge).astype(float)
        if ahead is not None:
            chosen *= ahead[: len(chosen), None]
        return slice(rows.start, rows.start + len(chosen)), np.ascontiguousarray(chosen.T)

    def _widen(self, state: State, d: int) -> None:
        own, states = _members.split(state)
        for member, part in zip(self.learners_, states, strict=True):
            member._widen(part, d)
        state |= _members.flatten(own, states)

    # ---------------------------------------------------------------- checks
    def _check_rows(self, X: Rows) -> None:
        for member in self._cached("restricted", self._prototypes):
            member._check_rows(X)

    def _check_parameters(self) -> None:
        learners = self.learners
        if learners is not None:
            if not isinstance(learners, (list, tuple)) or not learners:
                raise ValueError(f"learners must be a list of estimators or None, got {learners!r}")
            for learner in learners:
                _members.check(learner, self)
        for name, known in {"combination": COMBINATIONS, "updates": UPDATES}.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        _fraction("discount", self.discount, zero=False, one=True)
        _fraction("smoothing", self.smoothing, zero=True, one=True)
        _fraction("share", self.share, zero=True, one=False)
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise ValueError(f"standardize must be True or False, got {self.standardize!r}")
        if self.combination == "uniform" and (self.updates == "stochastic" or self.share):
            raise ValueError("combination='uniform' has no weights that could choose updates or be shared")

    def _check_state(self) -> None:
        expected = len(self._pool() if self.learners is None else self.learners)
        if len(self._states) != expected:
            raise ValueError(f"the state holds {len(self._states)} learners, the parameters {expected}")
        super()._check_state()
        if not self._state["warm_rows"] or self._state["warm_count"]:
            for member in self.learners_:
                member._check_state()

    def _shapes(self, state: State) -> dict[str, tuple[tuple[int, ...], str]]:
        if state["warm_rows"] and not state["warm_count"]:
            return {}
        fresh = self._ops.start_hedge(len(self._states), self._hedge())
        return {k: (v.shape, str(v.dtype)) for k, v in fresh.items() if isinstance(v, np.ndarray)}


def _fraction(name: str, value: Any, *, zero: bool, one: bool) -> None:
    ok = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not ok or not 0 <= value <= 1 or (value == 0 and not zero) or (value == 1 and not one):
        bounds = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ValueError(f"{name} must be a number in {bounds}, got {value!r}")


def gaussian_maps(n_components: int = 100) -> list[RandomFourier]:
    """Fourier features of the Gaussians of the default pool, sigma = 2^-6 … 2^6."""
    return [RandomFourier(Gaussian(0.5 / sigma**2), n_components) for sigma in WIDTHS]


class MultiKernelClassifier(StreamClassifier, MultiKernelEstimator):
    r"""Classifier made of many, one per kernel, that vote with weights earned by predicting well.

    .. math:: \hat y = \mathrm{sign} \sum_i \theta_i\, \mathrm{sign} f_i(x), \qquad
              \theta_i \leftarrow \theta_i\, \gamma^{[y f_i(x) \le 0]}

    with :math:`\mathrm{sign}(0) = 0` inside the vote: a learner that says nothing has no vote, and no excuse either (Hedge;
    algorithms 14 to 18 of [1]_, after [2]_). Of several classes every learner votes for one.

    Parameters
    ----------
    learners : list of estimators or None
        Classifiers of this library, in any mixture, one for each kernel. None is FOGD with 100 frequencies for each of 13 Gaussian
        kernels, sigma = 2^-6, …, 2^6.
    combination : {"hedge", "uniform"}
        Weights that follow the mistakes, or equal ones.
    updates : {"deterministic", "stochastic"}
        All learners learn every row; or learner i does with probability ``(1 - delta) theta_i / max theta + delta``, which saves the
        work on hopeless ones.
    discount : float, default=0.99
        gamma, the factor for a mistake.
    smoothing : float, default=0.001
        delta, the least probability of an update.
    share : float, default=0
        Fixed share: after every row this part of all weight is spread evenly, so that a learner that was bad for long can
        be back soon when the stream changes [3]_. About 1/(rows between changes).
    vote : {"sign", "score"}
        Add votes, or the scores themselves, ``sum_i theta_i f_i(x)``.
    standardize : bool, default=False
        Scale every column by its running mean and deviation.
    class_weight : dict, "balanced" or None
        Factors of losses and discounts by class.
    engine : {"auto", "native", "python"}
    random_state : int, Generator, RandomState or None
        Seed of the choices, and of all learners that have none of their own. Fourier features of all learners are made of the same
        numbers.

    Attributes
    ----------
    weights_ : (m,) array
        The theta_i, which sum to one.
    weights_history_ : pair of arrays (k,), (k, m)
        Row numbers and the weights after them, at most 256.
    learners_ : list
        The learners, fitted.
    classes_ : array
    state_ : dict

    References
    ----------
    .. [1] Lu: Online kernel learning for big data, PhD thesis, Singapore Management University, 2017, chapter 5.
    .. [2] Hoi, Jin, Zhao, Yang: Online multiple kernel classification, Machine Learning 90 (2013).
    .. [3] Herbster, Warmuth: Tracking the best expert, Machine Learning 32 (1998).

    Examples
    --------
    Nobody has said how wide the kernel should be.

    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import MultiKernelClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = MultiKernelClassifier(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.97
    True
    """

    loss = "hinge"  # how labels are coded: ±1 for two classes, a column each for more

    def __init__(
        self,
        learners: list[Any] | None = None,
        combination: str = "hedge",
        updates: str = "deterministic",
        *,
        discount: float = 0.99,
        smoothing: float = 0.001,
        share: float = 0.0,
        vote: str = "sign",
        standardize: bool = False,
        class_weight: dict | str | None = None,
        engine: str = "auto",
        random_state: Any = None,
    ):
        self.learners = learners
        self.combination = combination
        self.updates = updates
        self.discount = discount
        self.smoothing = smoothing
        self.share = share
        self.vote = vote
        self.standardize = standardize
        self.class_weight = class_weight
        self.engine = engine
        self.random_state = random_state

    def _pool(self) -> list[Any]:
        return [FeatureClassifier(features) for features in gaussian_maps()]

    def _hedge(self) -> Hedge:
        rate = -math.log(self.discount) if self.combination == "hedge" else 0.0
        return Hedge(rate, self.share, self.vote == "sign", False)

    @property
    def classes_(self) -> np.ndarray:
        """Labels known so far, sorted."""
        if self.__dict__.get("_state") is None:
            raise AttributeError(f"{type(self).__name__} has no classes_ before it has learned a row")
        return self._state["classes"]

    def _declare(self, state: State, declared: Any) -> None:
        for member_state in self._states:
            if "classes" not in member_state:
                member_state |= {"classes": declared[0][:0], "class_counts": np.zeros(0), "classes_fixed": 0}
        super()._declare(state, declared)
        for member_state in self._states:
            member_state["classes_fixed"] = state["classes_fixed"]

    def _add_class(self, state: State, label: Any, trained: bool) -> None:
        super()._add_class(state, label, trained)
        self._cache.pop("family", None)  # the outputs may have changed
        for member in self.learners_:
            member._add_class(member._state, label, trained)

    def _mix_outputs(self, state: State, T: np.ndarray) -> None:
        """The weights stay as they are; :meth:`_add_class` tells the learners."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.vote not in VOTES:
            raise ValueError(f"vote must be one of {', '.join(VOTES)}, got {self.vote!r}")


class MultiKernelRegressor(StreamRegressor, MultiKernelEstimator):
    r"""Regression by many learners, one per kernel, averaged with weights that follow their squared errors.

    .. math:: \hat y = \sum_i \theta_i f_i(x), \qquad
              \theta_i \leftarrow \theta_i\, \gamma^{(y - f_i(x))^2 / R^2}

    R is the range of the targets so far, which forecasts do not leave. With gamma >= exp(-1/2) the average's squared loss is
    within ``2 R^2 log m`` of that of the best learner, on any sequence (exponentially weighted average [1]_).

    Parameters
    ----------
    learners : list of estimators or None
        Regressors of this library; None is FOGD with 100 frequencies for each of 13 Gaussian kernels.
    discount : float, default=0.61
        gamma.
    combination, updates, smoothing, share, standardize, engine, random_state
        See :class:`MultiKernelClassifier`.

    Attributes
    ----------
    weights_, weights_history_, learners_, state_
        See :class:`MultiKernelClassifier`.

    References
    ----------
    .. [1] Cesa-Bianchi, Lugosi: Prediction, learning, and games, 2006, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MultiKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> y = np.sin(5 * X[:, 0])
    >>> MultiKernelRegressor(random_state=0).fit(X[:2500], y[:2500]).score(X[2500:], y[2500:]) > 0.97
    True
    """

    def __init__(
        self,
        learners: list[Any] | None = None,
        combination: str = "hedge",
        updates: str = "deterministic",
        *,
        discount: float = 0.61,
        smoothing: float = 0.001,
        share: float = 0.0,
        standardize: bool = False,
        engine: str = "auto",
        random_state: Any = None,
    ):
        self.learners = learners
        self.combination = combination
        self.updates = updates
        self.discount = discount
        self.smoothing = smoothing
        self.share = share
        self.standardize = standardize
        self.engine = engine
        self.random_state = random_state

    def _pool(self) -> list[Any]:
        return [FeatureRegressor(features) for features in gaussian_maps()]

    def _hedge(self) -> Hedge:
        rate = -math.log(self.discount) if self.combination == "hedge" else 0.0
        return Hedge(rate, self.share, False, True)
