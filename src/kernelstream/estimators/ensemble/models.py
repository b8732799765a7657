r"""Online multiple kernel learning: many learners, one per kernel, weighted by how well each predicts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from .._contract.classifier import StreamClassifier
from .._contract.composite import learners, weights, weights_history
from .._contract.regressor import StreamRegressor
from .._described import described
from .base import Ensemble
from .parts import NAMED_PARTS, HedgeWeights, StochasticUpdates


@described()
@dataclass(eq=False, repr=False)
class MultiKernelClassifier(StreamClassifier):
    r"""Classifier made of many, one per kernel, whose votes are weighted by how well each has predicted.

    .. math:: \hat y = \mathrm{sign} \sum_i \theta_i\, \mathrm{sign} f_i(x), \qquad
              \theta_i \leftarrow \theta_i\, \gamma^{[y f_i(x) \le 0]}

    with :math:`\mathrm{sign}(0) = 0` in the vote: a learner with a score below 1e-300, whose sign is a matter of
    rounding, has no vote, but counts as wrong (Hedge; algorithms 14 to 18 of [1]_, after [2]_). With several classes
    every learner votes for one.

    Parameters
    ----------
    learners : list of estimators or None, default=None
        Classifiers of this library, of any kind, one for each kernel. None means FOGD with 100 frequencies for each of
        13 Gaussian kernels, sigma = 2^-6, …, 2^6.
    combination : HedgeWeights, "hedge" or "uniform", default="hedge"
        "hedge" multiplies a learner's weight by 0.99 for each mistake (an object has more options); "uniform" keeps
        all weights equal.
    updates : StochasticUpdates, "deterministic" or "stochastic", default="deterministic"
        "deterministic" lets all learners learn every row; "stochastic" lets learner i do so with probability
        ``(1 - delta) theta_i / max theta + delta``, which saves work on hopeless ones. An object sets delta, 0.001 by
        default, and which rows count.
    capacity : {"fixed", "shared", "weights"}, default="fixed"
        "fixed" keeps the size of every learner. "shared" lets budgeted learners with stochastic updates take their
        support vectors from one budget, the sum of theirs: those that learn more get more (algorithm 18). "weights"
        moves budgets towards the learners that earn weight every 1000 rows: a quarter of the sum stays spread evenly,
        the rest goes by weight.
    vote : {"sign", "score"}, default="sign"
        Add votes, or the scores themselves, ``sum_i theta_i f_i(x)``.
    standardize : bool or "auto", default="auto"
        Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
        "auto" does so if the first 100 rows show columns of different units, unless the widths of all ``learners`` are
        given as numbers.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class in losses and discounts.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random choices, and of all learners without their own. The Fourier features of all learners use the
        same random numbers.

    Attributes
    ----------
    weights_ : (m,) array
        The theta_i, which sum to one.
    weights_history_ : pair of arrays (k,), (k, m)
        Row numbers and the weights after those rows, at most 256.
    learners_ : list
        The learners, fitted.

    See Also
    --------
    MultiKernelRegressor : The same for numbers.
    KernelClassifier : Different learners, combined by a recursion.
    kernelstream.estimators.HedgeWeights : Discount and share.
    kernelstream.estimators.StochasticUpdates : Which learners learn a row.

    Notes
    -----
    The Fourier features of all Gaussian learners come from one product of rows and frequencies; budgeted learners share
    a pool of support vectors.

    References
    ----------
    .. [1] Lu: Scalable online kernel learning, PhD thesis, Singapore Management University, 2017, chapter 5.
    .. [2] Hoi, Jin, Zhao, Yang: Online multiple kernel classification, Machine Learning 90 (2013).
    .. [3] Herbster, Warmuth: Tracking the best expert, Machine Learning 32 (1998).

    Examples
    --------
    No kernel width has to be chosen.

    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import MultiKernelClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = MultiKernelClassifier(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.97
    True
    """

    _named_parts: ClassVar = NAMED_PARTS

    learners_, weights_, weights_history_ = property(learners), property(weights), property(weights_history)

    loss = "hinge"  # how labels are coded: ±1 for two classes, a column each for more

    learners: list[Any] | None = None
    combination: HedgeWeights | str = "hedge"
    updates: StochasticUpdates | str = "deterministic"
    _: KW_ONLY
    capacity: str = "fixed"
    vote: str = "sign"
    standardize: bool | str = "auto"

    _learns = Ensemble


@described(like=MultiKernelClassifier)
@dataclass(eq=False, repr=False)
class MultiKernelRegressor(StreamRegressor):
    r"""Regression by many learners, one per kernel, averaged with weights that follow their squared errors.

    .. math:: \hat y = \sum_i \theta_i f_i(x), \qquad
              \theta_i \leftarrow \theta_i\, \gamma^{(y - f_i(x))^2 / R^2}

    R is the range of the targets so far, to which forecasts are confined. With gamma >= exp(-1/2) the squared loss of
    the average is within ``2 R^2 log m`` of that of the best learner, on any sequence (exponentially weighted average
    [1]_).

    Parameters
    ----------
    learners : list of estimators or None, default=None
        Regressors of this library; None means FOGD with 100 frequencies for each of 13 Gaussian kernels.
    combination : HedgeWeights, "hedge" or "uniform", default="hedge"
        "hedge" makes weights follow the squared errors, with a factor of 0.61 (an object has more options); "uniform"
        keeps them equal.

    See Also
    --------
    MultiKernelClassifier : The same for labels.
    KernelRegressor : Different learners, combined by a recursion.
    kernelstream.estimators.HedgeWeights : Discount and share.
    kernelstream.estimators.StochasticUpdates : Which learners learn a row.

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

    _named_parts: ClassVar = NAMED_PARTS

    learners_, weights_, weights_history_ = property(learners), property(weights), property(weights_history)

    learners: list[Any] | None = None
    combination: HedgeWeights | str = "hedge"
    updates: StochasticUpdates | str = "deterministic"
    _: KW_ONLY
    capacity: str = "fixed"
    standardize: bool | str = "auto"

    _learns = Ensemble
