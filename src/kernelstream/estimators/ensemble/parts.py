"""Parts of an ensemble: how its weights change, and which learners learn a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._checks import fraction, one_of
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
        Fixed share: after every row this part of all weight is spread evenly, so that a learner that did badly for long
        can recover quickly when the stream changes [1]_. About 1/(rows between changes).

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
        Rows in which a learner that errs loses weight. All of them; or those for which it was drawn, whether or not it
        then had room to learn: a learner that is hardly ever drawn keeps the weight it has.

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
