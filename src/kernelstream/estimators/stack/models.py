r"""The default learner: different members, combined by a second-order recursion on their forecasts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np

from ...state.turns import in_turn
from ...trust.intervals import check_coverage
from ...trust.quantiles import check_quantiles, ends_for, forecast_interval, learn_interval, predict_interval
from .._contract.base import Shell, checked_rows
from .._contract.classifier import StreamClassifier
from .._contract.composite import inside, learners, weights, weights_history
from .._contract.mixed import columns
from .._contract.regressor import StreamRegressor
from .._contract.targets import public
from .._described import described
from .answers import changes, explain, members, quantiles, relevance
from .base import Stack
from .fit import fit
from .intervals import Wanted


@described()
@dataclass(eq=False, repr=False)
class KernelClassifier(StreamClassifier):
    r"""Classifier for streams that works without tuning.

    Nine different learners see every row: cells of grids over few columns (with a long and a short memory), hashed
    random binning, Fourier features with learned widths, with forgetting and by recursive least squares, a linear
    model, a smoother over the last thousand rows, and kernel ridge on the last 8,192 rows in a learned metric. Each
    forecasts a row before it learns it, and a recursion combines the log-odds z of these forecasts:

    .. math:: p = \sigma(w'z), \quad A \leftarrow \gamma A + p(1-p) z z', \quad w \leftarrow w - (A + 5I)^{-1} z (p-y)

    with three memories :math:`\gamma` mixed by likelihood; several classes share the weights. A second level of the
    same kind uses the latest labels and residuals. Columns are scaled by running statistics.

    ``learn`` and ``partial_fit`` are for streams: rows in their order, in one pass. ``fit`` is for batches: all rows at
    once, by kernel ridge in a learned metric (:class:`MetricClassifier`). If ``learn`` follows, what ``fit`` has
    learned is one more member, whose weight falls when it is wrong.

    Parameters
    ----------
    members : "auto" or list of classifiers of this library, default="auto"
        "auto" means the learners above; a list replaces them, and its learners keep their own parameters.
    size : {"small", "medium", "large"}, default="medium"
        Trades time and memory for accuracy if members="auto": four members (1.5 MB for two classes), nine (7 MB), or
        nine large ones (15 MB). In ``fit`` each size takes about four times as long as the one before.
    recent : bool, default=True
        Whether the latest labels may help to forecast the next one in a stream. Turn it off if labels arrive late.
        ``forecast`` answers for the next row of the stream, ``predict`` for rows of any time, one at a time or many.
    columns : "auto" or dict of name: kind, default="auto"
        Rows may hold words, dates and gaps: unless the first rows are purely numeric, data frames, dictionaries and
        arrays of objects are encoded on the fly (:class:`~kernelstream.columns.Columns`). A dict gives the kind of
        columns whose first cells do not show it: "number", "integer", "category", "date", "text" or "ignored".
        Rows of numbers may have gaps (NaN) at any time; they become the median of their column over the last rows.
    engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
        "native" runs the compiled loops, "python" their readable specification; "auto" is "native" where it is
        installed. With "torch", ``fit`` learns the metric and solves the system of all rows on a GPU; streams are
        learned on the processor.

    Attributes
    ----------
    weights_ : (m,) array
        Weights of the members' log-odds now; after ``fit`` the last is that of what it learned from all rows at once.
    weights_history_ : pair of arrays (k,), (k, m)
        Row numbers and the weights after those rows, at most 256.
    members_ : list of dict
        Name, weight, share of mistakes so far and recently, restarts after overflow, and rows learned of each member.
    learners_ : list
        The members, fitted.
    columns_ : Columns
        The encoder of mixed rows, if there is one.

    See Also
    --------
    KernelRegressor : The same for numbers.
    FeatureClassifier : A single learner: less work per row.

    Notes
    -----
    Every member forecasts a row before it learns it, so the weights are based on rows that no member had seen.
    Combining forecasts by another learner is stacking [1]_; the recursion is an online Newton step [2]_.

    References
    ----------
    .. [1] Wolpert: Stacked generalization, Neural Networks 5 (1992).
    .. [2] Hazan, Agarwal, Kale: Logarithmic regret algorithms for online convex optimization, Machine Learning 69
       (2007).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import KernelClassifier
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = KernelClassifier(random_state=0)
    >>> scores = model.learn(X[:1500], y[:1500])  # the log-odds held before each row
    >>> model.score(X[1500:], y[1500:]) > 0.95
    True
    >>> best = max(model.members_, key=lambda member: member["weight"])["name"]
    """

    loss = "logistic"  # how labels are coded: ±1 for two classes, a column each for more

    standardize = on_device = True

    fit, explain = fit, explain
    learners_, members_, columns_ = property(learners), property(members), property(columns)
    weights_, weights_history_ = property(weights), property(weights_history)
    relevance_, changes_ = property(relevance), property(changes)

    _learns = Stack

    members: list[Any] | str = "auto"
    size: str = "medium"
    _: KW_ONLY
    recent: bool = True
    columns: dict[str, str] | str = "auto"

    @in_turn
    def forecast(self, X: Any) -> np.ndarray:
        """Predicted labels of rows each of which is the next one of the stream, (n,): the latest labels may help."""
        return self._labels(self._scores(X, following=True))

    @in_turn
    def forecast_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of rows each of which is the next one of the stream, like those of ``predict_proba``."""
        return self._proba_of(self._scores(X, following=True))

    @in_turn
    def forecast_scores(self, X: Any) -> np.ndarray:
        """Scores of rows each of which is the next one of the stream, like those of ``decision_function``."""
        return public(self._scores(X, following=True))

    @in_turn
    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of plausible labels for each row, which contain the true label in a given share of the rows.

        A set holds the labels whose probability is above a threshold; adaptive conformal inference adjusts the
        threshold to the forecasts made so far (:class:`kernelstream.trust.IntervalTracker` of 1 - P(truth)).

        Parameters
        ----------
        X : (n, d) array or CSR
        coverage : float, default=0.9
            0.5 to 0.99.

        Returns
        -------
        (n, n_classes) bool array
            Columns follow ``classes_``. A set is empty if no label fits; before the first forecast it holds all labels.
        """
        coverage = check_coverage(coverage)
        return self._sets_of(self.predict_proba(X), coverage)

    @in_turn
    def forecast_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of plausible labels for rows each of which is the next one of the stream, like ``predict_set``."""
        return self._sets_of(self.forecast_proba(X), check_coverage(coverage))

    @in_turn
    def _sets_of(self, p: np.ndarray, coverage: float = 0.9) -> np.ndarray:
        """What ``predict_set`` answers, of the probabilities."""
        stack, state = inside(cast("Shell[Stack]", self))
        if "intervals" not in state:  # before the first forecast
            return np.ones(p.shape, bool)
        _, half = stack.tracked.tracker(state["intervals"]["o0"]).interval(np.zeros(1), coverage)
        return 1.0 - p <= float(half[0])

    @in_turn
    def learn_set(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn the rows in order; returns the scores and the sets of labels held before each row.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        classes : array, optional
        sample_weight : (n,) array, optional
        coverage : float, default=0.9
            Of the sets, 0.5 to 0.99.

        Returns
        -------
        scores : (n,) or (n, n_classes) array
            What ``learn`` returns.
        sets : (n, n_classes) bool array
            Columns follow ``classes_``; a set holds all labels before there was a row to learn from.
        """
        wanted = Wanted(check_coverage(coverage), [])
        scores = self._learn_any(X, y, classes, sample_weight, wanted=wanted)
        if len(self.classes_) < 2:
            return scores, np.ones((len(scores), len(self.classes_)), bool)
        stack, state = inside(cast("Shell[Stack]", self))
        loss: Any = stack.loss(state)
        p = loss.probability(scores)
        p = p if p.ndim == 2 else np.stack([1.0 - p, p], axis=1)
        half = np.full(len(p), np.inf)
        if wanted.found:
            own = np.concatenate([own for _, own in wanted.found])
            half[len(half) - len(own) :] = own  # the first rows had nothing to go by
        return scores, 1.0 - p <= half[:, None]


@described(like=KernelClassifier)
@dataclass(eq=False, repr=False)
class KernelRegressor(StreamRegressor):
    r"""Regressor for streams that works without tuning.

    The members are those of :class:`KernelClassifier`, for numbers. Their forecasts p are combined around a base, their
    average weighted by squared errors, which leaves residuals of size s: with z = ((p - base)/s, 1),

    .. math:: A \leftarrow \gamma A + h z z', \quad b \leftarrow \gamma b + h z (y - base)/s, \quad
              \hat y = base + s\, z'(A + \Lambda)^{-1} b

    and h less than one for residuals beyond three s. As there, three memories :math:`\gamma` are mixed, and a second
    level uses the latest targets and residuals.

    Parameters
    ----------
    members : "auto" or list of regressors of this library, default="auto"
        "auto" means nine regressors of these kinds; a list replaces them, and its learners keep their own parameters.
    recent : bool, default=True
        Whether the latest targets may help to forecast the next one in a stream.
        ``forecast`` answers for the next row of the stream, ``predict`` for rows of any time, one at a time or many.

    Attributes
    ----------
    weights_ : (m,) array
        Weights of the members now; after ``fit`` the last is that of what it learned from all rows at once.
    members_ : list of dict
        Name, weight, error so far and recently, restarts after overflow, and rows learned of each member.

    See Also
    --------
    KernelClassifier : The same for labels.
    FeatureRegressor : A single learner: less work per row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = KernelRegressor(random_state=0).partial_fit(X[:2500], y[:2500])
    >>> model.score(X[2500:], y[2500:]) > 0.97
    True
    >>> low, high = model.predict_interval(X[2500:], coverage=0.9)
    >>> bool(((low < y[2500:]) & (y[2500:] < high)).mean() > 0.8)
    True
    """

    loss = "squared"
    _several_targets = True

    standardize = on_device = True

    fit, explain = fit, explain
    predict_interval, forecast_interval, learn_interval = predict_interval, forecast_interval, learn_interval
    learners_, members_, columns_ = property(learners), property(members), property(columns)
    weights_, weights_history_ = property(weights), property(weights_history)
    relevance_, changes_ = property(relevance), property(changes)

    _learns = Stack

    members: list[Any] | str = "auto"
    size: str = "medium"
    _: KW_ONLY
    recent: bool = True
    columns: dict[str, str] | str = "auto"

    @in_turn
    def _predict_with_interval(
        self, X: Any, coverage: float | None = None, following: bool = False
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """The answers of ``predict`` and ``predict_interval``, from the same scores (:meth:`_scores`)."""
        scores, found = self._scores_and_quantiles(X, ends_for(self, coverage), following)
        low, high = (public(found[:, :, i]) for i in range(2))
        return public(scores), (low, high)

    @in_turn
    def predict_quantiles(self, X: Any, quantiles: Any = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of the targets of rows.

        The spread of the errors is learned from the errors made so far, as a function of a row's forecast and columns,
        and quantiles of the scaled errors follow the stream (:class:`kernelstream.trust.QuantileTracker`). The rows may
        be of any time: their quantiles are at least as far from the median as the current model's errors on about the
        last thousand rows. After ``fit``, errors are those of rows that were forecast by all others.

        Parameters
        ----------
        X : (n, d) array or CSR
        quantiles : array (k,) of numbers from 0.005 to 0.995, or one, default=(0.1, 0.5, 0.9)

        Returns
        -------
        (n, k) array, or (n, outputs, k) for several targets
            Values rise with the quantile.
        """
        _, found = self._scores_and_quantiles(X, quantiles, following=False)
        return found[:, 0] if found.shape[1] == 1 else found

    @in_turn
    def forecast(self, X: Any) -> np.ndarray:
        """Predicted targets of rows each of which is the next one of the stream: the latest targets may help."""
        return public(self._scores(X, following=True))

    @in_turn
    def forecast_quantiles(self, X: Any, quantiles: Any = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of the targets of rows each of which is the next one of the stream, see ``predict_quantiles``.

        Successive rows are alike, and these quantiles are those of the errors on the rows as they came.
        """
        _, found = self._scores_and_quantiles(X, quantiles, following=True)
        return found[:, 0] if found.shape[1] == 1 else found

    def _scores_and_quantiles(self, X: Any, asked: Any, following: bool) -> tuple[np.ndarray, np.ndarray]:
        levels, rows = check_quantiles(asked), checked_rows(self, X)
        scores = self._layers.score(self._state, rows, {"following": following})
        return scores, quantiles(self, rows, scores, levels, following)

    @in_turn
    def learn_quantiles(
        self, X: Any, y: Any, sample_weight: Any = None, quantiles: Any = (0.1, 0.5, 0.9)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn the rows in order; returns the predictions and the quantiles of the targets held before each row.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) or (n, outputs) array
        sample_weight : (n,) array, optional
        quantiles : array (k,) of numbers from 0.005 to 0.995, or one, default=(0.1, 0.5, 0.9)

        Returns
        -------
        forecast : array like y
        quantiles : (n, k) or (n, outputs, k) array
            Infinite before there was a row to learn from.
        """
        asked, wanted = check_quantiles(quantiles), Wanted(0.9, [])
        forecast = self._learn_any(X, y, None, sample_weight, wanted=wanted)
        found = np.where(asked == 0.5, forecast[..., None], np.copysign(np.inf, asked - 0.5))
        for o in range(1 if forecast.ndim == 1 else forecast.shape[1]):
            own = [part for at, part in wanted.found if at == o]
            if own:  # the first rows had nothing to go by
                place = found if forecast.ndim == 1 else found[:, o]
                stack, state = inside(cast("Shell[Stack]", self))
                held = stack.tracked.tracker(state["intervals"][f"o{o}"]).at(np.concatenate(own), asked)
                place[len(forecast) - len(held) :] = held
        return forecast, found
