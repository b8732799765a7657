"""Parts of an ensemble: how its weights change, and which learners learn a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...checks import fraction, one_of
from ...passes.ensemble.python import Hedge
from ...random import SeedStream, uniforms
from ...registry.parameters import WithParameters

COUNTED = ("all", "drawn")


@dataclass(eq=False, repr=False)
class HedgeWeights(WithParameters):
    r"""Weights that follow the mistakes of the learners, :math:`\theta_i \leftarrow \theta_i \gamma^{l_i}` (Hedge).

    Parameters
    ----------
    discount : float or "auto", default="auto"
        :math:`\gamma`, the factor for a mistake, in (0, 1]. "auto" is 0.99 in classification and 0.61 in regression.
    share : float, default=0
        Fixed share: after every row this part of all weight is spread evenly, so that a learner that has long done
        badly can recover quickly when the stream changes [1]_. About 1/(rows between changes) is a good choice.

    References
    ----------
    .. [1] Herbster, Warmuth: Tracking the best expert, Machine Learning 32 (1998).

    Examples
    --------
    >>> from kernelstream import MultiKernelClassifier
    >>> from kernelstream.estimators import HedgeWeights
    >>> MultiKernelClassifier(combination=HedgeWeights(discount=0.9, share=0.001))
    MultiKernelClassifier(combination=HedgeWeights(discount=0.9, share=0.001))
    """

    discount: float | str = "auto"
    share: float = 0.0

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        if self.discount != "auto":
            fraction("discount", self.discount, zero=False, one=True)
        fraction("share", self.share, zero=True, one=False)


@dataclass(eq=False, repr=False)
class StochasticUpdates(WithParameters):
    r"""Learner i of an ensemble learns a row with probability :math:`(1 - \delta)\theta_i / \max_j \theta_j + \delta`.

    Parameters
    ----------
    smoothing : float, default=0.001
        :math:`\delta`, the least probability.
    counted : {"all", "drawn"}, default="all"
        Rows in which a learner that errs loses weight: "all" rows, or those for which it was "drawn", whether or not it
        then had room to learn. With "drawn", a learner that is hardly ever drawn keeps its weight.

    Examples
    --------
    >>> from kernelstream import MultiKernelClassifier
    >>> from kernelstream.estimators import StochasticUpdates
    >>> MultiKernelClassifier(updates=StochasticUpdates(counted="drawn"))
    MultiKernelClassifier(updates=StochasticUpdates(counted='drawn'))
    """

    smoothing: float = 0.001
    counted: str = "all"

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        fraction("smoothing", self.smoothing, zero=True, one=True)
        one_of("counted", self.counted, COUNTED)


NAMED_PARTS: Any = {"combination": {"hedge": HedgeWeights}, "updates": {"stochastic": StochasticUpdates}}


def chances(seed: int, t: int, weight: np.ndarray | None, n: int, learners: int) -> np.ndarray:
    """Uniform numbers of n rows after row t, (n, learners); a row of weight 0 gets those of the next."""
    counted = np.arange(n) if weight is None else np.cumsum(weight > 0) - (weight > 0)
    rows = int(counted[-1]) + 1
    u = uniforms(seed, t * learners, rows * learners, SeedStream.MEMBER_CHOICE).reshape(rows, learners)
    return u if weight is None else u[counted]


def drawn(
    log_theta: np.ndarray, u: np.ndarray, weight: np.ndarray | None, smoothing: float, hedge: Hedge
) -> np.ndarray:
    """Which learners are drawn to learn, (rows, m), for as many of the next rows as is certain now: at least one.

    Learner i updates with probability ``(1 - delta) r_i + delta``, ``r_i = theta_i / max theta``. A row of weight w
    changes r_i by a factor between ``exp(-rate w)`` and ``exp(rate w)``, whether all learners pay for their mistakes or
    only those drawn, and fixed share then raises it by at most ``share``. Where the uniform numbers u (n, m) lie
    outside of that range, the choice does not depend on the rows in between.
    """
    n = len(u)
    steps = np.full(n, hedge.rate) if weight is None else hedge.rate * weight
    moved = np.concatenate([[0.0], np.cumsum(steps[:-1])])[:, None]  # before each row
    gap = log_theta - log_theta.max()
    low = np.exp(gap - moved)
    high = np.exp(np.minimum(gap + moved, 0.0))
    if hedge.share:  # r <- min(1, r exp(rate w)) + share, row by row
        high = high + hedge.share * np.arange(n)[:, None] * np.exp(np.minimum(moved, 700.0))
    below = u < (1 - smoothing) * low + smoothing
    above = u >= (1 - smoothing) * np.minimum(high, 1.0) + smoothing
    settled = (below | above).all(axis=1)
    rows = n if settled.all() else max(1, int(np.argmin(settled)))
    return below[:rows]
