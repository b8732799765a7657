r"""Doubly stochastic gradients for classification and regression: any kernel with random features, any loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

from ...losses import Loss
from .._contract.classifier import StreamClassifier
from .._contract.regressor import StreamRegressor
from .._described import described
from .base import PARTS, Doubly, fit, kernel
from .step import DoublySchedule, DoublyStep

# Plain steps learn directions of small variance last: papers/studies/defaults.py compares both.
AUTO_PARTS: Any = PARTS | {"step": {"auto": partial(DoublyStep, theta0=300.0, precondition="auto")}}


@described()
@dataclass(eq=False, repr=False)
class DoublyStochasticClassifier(StreamClassifier):
    r"""Kernel classifier trained by doubly stochastic gradients: random rows and random features at once.

    Iteration t takes a batch of b rows and a fresh block of random features phi_t of the kernel,

    .. math:: f(x) = \sum_i \alpha_i'\phi_i(x), \qquad
        \alpha_t = -\frac{\gamma_t}{b} \sum_x l'(f(x), y)\, \phi_t(x), \qquad
        \alpha_i \leftarrow (1 - \gamma_t \lambda)\, \alpha_i \; (i < t)

    with steps :math:`\gamma_t = \eta\theta_0 / (\theta_0 + t)` [1]_. The features are never stored: block t is made
    again from the seed and t, with the same bits everywhere. The model is the array of alphas and one integer, however
    wide the rows are; it grows with the rows seen and is not limited to a number of features chosen in advance.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any kernel with random features.
    gamma : float, "median", "scale" or None, default=None
        Bandwidth of a kernel given by name, by default the median distance of the first rows. The more rows there are,
        the narrower a kernel may be: a quarter of the median distance is often better.
    lam : float or "auto", default="auto"
        Penalty ``lam/2 ||f||^2``, next to the *mean* of the losses; "auto" means 1/(100 n) for the n rows of ``fit``,
        6.5e-6 in a stream.
    step : DoublyStep or "auto", default="auto"
        Step sizes, averaging and preconditioning; "auto" means ``DoublyStep(theta0=300.0, precondition="auto")``.
    schedule : DoublySchedule or "auto", default="auto"
        Rows in a batch, random draws in a block, largest number of blocks, and passes of ``fit``.
    standardize : bool or "auto", default="auto"
        Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
        "auto" does so if the bandwidth comes from the rows and the first ones (in ``fit``, as many at random) show
        columns of different units.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class in the loss.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel in use, with a numeric bandwidth.

    See Also
    --------
    DoublyStochasticRegressor : The same for numbers.
    FeatureClassifier : A fixed number of features, learned row by row.
    kernelstream.estimators.DoublySchedule : Sizes of batches and blocks.
    kernelstream.estimators.DoublyStep : Step sizes.

    Notes
    -----
    In a stream (``partial_fit``, ``learn``) the unit is a batch: rows wait in the state until their batch is complete,
    so that any split into calls gives the same model. ``predict`` answers from the complete batches. If something is
    automatic, the first 1536 rows are kept, and after 1, 2, 4, … 1024 and finally 1536 rows the choice is made again
    and the model is trained on them again.

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from kernelstream import DoublyStochasticClassifier
    >>> from kernelstream.estimators import DoublySchedule
    >>> X, y = make_circles(1000, noise=0.1, factor=0.5, random_state=0)
    >>> schedule = DoublySchedule(block_size=64, passes=20)
    >>> model = DoublyStochasticClassifier(schedule=schedule, random_state=0).fit(X[:700], y[:700])
    >>> model.score(X[700:], y[700:]) > 0.97
    True
    """

    on_device = True
    _named_parts: ClassVar = AUTO_PARTS
    fit, kernel_ = fit, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    loss: Loss | str = "hinge"
    lam: float | str = "auto"
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    schedule: DoublySchedule | str = "auto"
    standardize: bool | str = "auto"

    _learns = Doubly


@described(like=DoublyStochasticClassifier)
@dataclass(eq=False, repr=False)
class DoublyStochasticRegressor(StreamRegressor):
    r"""Kernel regression trained by doubly stochastic gradients: random rows and random features at once.

    The recursion of :class:`DoublyStochasticClassifier`, :math:`f(x) = \bar y + \sum_i \alpha_i'\phi_i(x)`, for losses
    of regression: kernel ridge, Huber, support vector, least absolute deviation and quantile regression [1]_.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Penalty ``lam/2 ||f||^2``, next to the *mean* of the losses; "auto" means 1/(100 n) for the n rows of ``fit``,
        6.5e-6 in a stream; for losses with a bounded derivative, this is divided by the target's standard deviation.
    center : bool, default=True
        Learn the difference from the mean of the first targets (in ``fit``, of all).

    See Also
    --------
    DoublyStochasticClassifier : The same for labels.
    DoublyStochasticGP : Regression with a standard deviation.
    kernelstream.estimators.DoublySchedule : Sizes of batches and blocks.
    kernelstream.estimators.DoublyStep : Step sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import DoublyStochasticRegressor
    >>> from kernelstream.estimators import DoublySchedule
    >>> X = np.random.default_rng(0).uniform(-3, 3, (1000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> schedule = DoublySchedule(block_size=64)
    >>> model = DoublyStochasticRegressor(schedule=schedule, random_state=0).fit(X[:700], y[:700])
    >>> model.score(X[700:], y[700:]) > 0.99
    True
    """

    on_device = True
    _named_parts: ClassVar = AUTO_PARTS
    fit, kernel_ = fit, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    loss: Loss | str = "squared"
    lam: float | str = "auto"
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    center: bool = True
    schedule: DoublySchedule | str = "auto"
    standardize: bool | str = "auto"

    _learns = Doubly
