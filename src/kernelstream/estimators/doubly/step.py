"""Step sizes and schedule of the doubly stochastic learners, and the tag that says how many rows a step takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Tags

from ...checks import flag, positive, whole
from ...losses import Loss
from ...registry.parameters import WithParameters
from ...updates import check_auto

STREAM_BATCH = 64  # rows of an iteration in a stream,
BATCH, LARGE_BATCH = 256, 4096  # in `fit` with some choices made, and with none
DAMPING, LEAST_DAMPING = 0.1, 0.01  # of preconditioned steps: in batches of a stream, and in large ones
# The first step times the largest eigenvalue of K/n: where the curvature of the loss decides, and where its derivative
# is bounded, for labels, which need only the right sign, and for numbers.
CURVED, LABELS, NUMBERS = 1.0, 8.0, 0.5


@dataclass(eq=False, repr=False)
class DoublyStep(WithParameters):
    r"""Step sizes of a doubly stochastic learner, ``gamma_t = eta theta0 / (theta0 + t)``.

    Parameters
    ----------
    eta : float or "auto", default="auto"
        The first step. "auto" means c divided by the largest eigenvalue of K/n, K the kernel matrix of the first rows:
        c is 1 for losses whose curvature matters (squared, squared hinge, Huber's) and 1/4 for density ratios; for the
        others it is 8 in classification, and half the standard deviation of the target in regression.
    theta0 : float, default=100.0
        Number of iterations after which the step has halved.
    average : bool or "uniform", default=True
        Predict with the average of the iterates. The t-th enters it with weight 4/(t + 3); if "uniform", with weight
        1/t, which gives the plain mean of the paper.
    precondition : float or "auto", default=0.0
        If positive, a gradient is divided by the feature covariance of its batch plus ``precondition`` times the
        covariance's largest eigenvalue: directions of small variance are learned up to 1/precondition times faster.
        An iteration costs up to three times as much, but far fewer are needed. "auto" means 0.1; in a ``fit`` with
        large batches (see :class:`DoublySchedule`) it means 25.6/b for b rows in a batch, but at least 0.01: the more
        rows there are, the better the small eigenvalues of the covariance are known.

    Examples
    --------
    >>> from kernelstream.estimators import DoublyStep
    >>> DoublyStep(eta=2.0, theta0=10.0)
    DoublyStep(eta=2.0, theta0=10.0)
    """

    eta: float | str = "auto"
    theta0: float = 100.0
    average: bool | str = True
    precondition: float | str = 0.0

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_auto(self.eta)
        positive("theta0", self.theta0)
        if self.precondition != "auto":
            positive("precondition", self.precondition, zero=True)
        if self.average != "uniform":
            flag("average", self.average)

    def damping(self, large: int | None = None) -> float:
        """The number that ``precondition`` stands for, in batches of a stream or in ``large`` ones."""
        if self.precondition != "auto":
            return float(self.precondition)
        return DAMPING if large is None else max(LEAST_DAMPING, DAMPING * BATCH / large)


@dataclass(eq=False, repr=False)
class DoublySchedule(WithParameters):
    r"""How many rows and random features an iteration of a doubly stochastic learner takes, and how many iterations.

    Parameters
    ----------
    batch_size : int or "auto", default="auto"
        Rows in a batch, one batch for each iteration. "auto" means 64 on a stream and 256 in ``fit``. If ``passes`` and
        ``DoublyStep(precondition="auto")`` are automatic too, as they are by default for classifiers and regressors, it
        means 4,096 in ``fit``, or all rows if there are fewer: new features are computed for all rows anyway, and an
        iteration gets further.
    block_size : int or "auto", default="auto"
        Random draws in a block, one block for each iteration: a Fourier kernel has two features (cosine and sine) for
        each draw. "auto" means 256, or 512 for a Gaussian process.
    max_blocks : int, None or "auto", default="auto"
        If a number, the model stops growing at this many blocks: further iterations return to them in turn and refine
        their weights. None lets it grow. "auto" means None, or 8 for a Gaussian process.
    passes : float or "auto", default="auto"
        Passes of ``fit`` over the rows; "auto" means one, or as many as make 300 iterations (150 of 4,096
        rows, 100 for a Gaussian process).

    Examples
    --------
    >>> from kernelstream import DoublyStochasticClassifier
    >>> from kernelstream.estimators import DoublySchedule
    >>> DoublyStochasticClassifier(schedule=DoublySchedule(batch_size=64, passes=20))
    DoublyStochasticClassifier(schedule=DoublySchedule(batch_size=64, passes=20))
    """

    batch_size: int | str = "auto"
    block_size: int | str = "auto"
    max_blocks: int | str | None = "auto"
    passes: float | str = "auto"

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        if self.batch_size != "auto":
            whole("batch_size", self.batch_size)
        if self.block_size != "auto":
            whole("block_size", self.block_size)
        if self.max_blocks is not None and self.max_blocks != "auto":
            whole("max_blocks", self.max_blocks)
        checked_passes(self.passes)


def usual_step(loss: Loss) -> float:
    """The first step times the largest eigenvalue of K/n, for targets whose unit is 1."""
    if loss.bound is None or loss.name == "huber":
        return CURVED
    return NUMBERS if loss.kind == "regression" else LABELS


def target_unit(loss: Loss, y: np.ndarray, weight: np.ndarray) -> float:
    """Deviation of the target over the largest derivative of the loss; 1 if the derivative has no bound.

    A step of a bounded derivative moves the function by at most that much, however far the target is: steps grow with
    the unit, and a squared penalty must shrink with it to be as strong relative to a loss that is not squared.
    """
    if loss.bound is None or loss.kind != "regression":
        return 1.0
    spread = float(np.sqrt(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))) / loss.bound
    return max(1.0, spread) if loss.name == "huber" else spread or 1.0


def checked_passes(passes: Any) -> Any:
    """``passes`` itself, "auto" or a positive number."""
    if passes != "auto":
        positive("passes", passes)
    return passes


@dataclass
class BatchTags(Tags):
    """scikit-learn's tags, and how many rows a learner collects before it changes."""

    rows_per_update: int = 1
