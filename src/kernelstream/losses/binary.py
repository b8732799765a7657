"""Binary losses: y is -1 or +1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import flag
from ._base import Loss, Plain, arrays, register
from ._duals import HINGE, LOGISTIC, SQUARED_HINGE, Dual
from .multiclass import CrammerSinger, MulticlassPerceptron, Softmax

__all__ = ["Hinge", "Logistic", "PerceptronLoss", "SquaredHinge"]


@register
class Hinge(Loss):
    """max(0, 1 - y f); derivative 0 where y f >= 1.

    Parameters
    ----------
    closed : bool, default=False
        Take the derivative -y at the kink y f = 1 too, as BOGD does.
    """

    name = "hinge"
    piecewise_linear = True
    kind = "binary"
    plain = True
    bound = 1.0

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed

    def check(self) -> None:
        flag("closed", self.closed)

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.maximum(0.0, 1.0 - y * f)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.where(y * f <= 1.0 if self.closed else y * f < 1.0, -y, 0.0)

    def dual(self) -> Dual:
        return HINGE

    def multiclass(self) -> Loss:
        """The Crammer-Singer hinge."""
        return CrammerSinger(self.closed)


@register
class SquaredHinge(Loss):
    """max(0, 1 - y f)² / 2: the hinge without its kink."""

    name = "squared_hinge"
    kind = "binary"
    smoothness = 1.0
    plain = True

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        gap = xp.maximum(0.0, 1.0 - y * f)
        return 0.5 * gap * gap

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return -y * xp.maximum(0.0, 1.0 - y * f)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return (y * np.asarray(f, np.float64) < 1.0).astype(np.float64)

    def dual(self) -> Dual:
        return SQUARED_HINGE


@register
class Logistic(Loss):
    """log(1 + exp(-y f)), exact for large scores of either sign."""

    name = "logistic"
    kind = "binary"
    plain = True
    bound = 1.0
    smoothness = 0.25

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        margin = y * f
        return xp.maximum(0.0, -margin) + xp.log1p(xp.exp(-xp.abs(margin)))

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return -y * _sigmoid(-y * f, xp)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        p = np.abs(self.gradient(np.asarray(y, np.float64), np.asarray(f, np.float64)))
        return p * (1.0 - p)

    def dual(self) -> Dual:
        return LOGISTIC

    def probability(self, f: Any) -> Any:
        """P(y = +1) for the scores ``f``.

        >>> from kernelstream.losses import Logistic
        >>> Logistic().probability(0.0)
        0.5
        """
        if isinstance(f, float):
            return _sigmoid(float(f), Plain)
        f = arrays(0, f)[1]
        with np.errstate(under="ignore"):
            return _sigmoid(f, np)[()]

    def multiclass(self) -> Loss:
        """Softmax cross-entropy."""
        return Softmax()


def _sigmoid(f: Any, xp: Any) -> Any:
    e = xp.exp(-xp.abs(f))  # never overflows
    return xp.where(f >= 0.0, 1.0, e) / (1.0 + e)


@register
class PerceptronLoss(Loss):
    """max(0, -y f); derivative -y where the predicted label is wrong, so at f = 0 only for y = -1."""

    name = "perceptron"
    piecewise_linear = True
    kind = "binary"
    plain = True
    bound = 1.0

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.maximum(0.0, -y * f)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.where((f >= 0.0) != (y > 0.0), -y, 0.0)

    def multiclass(self) -> Loss:
        """The multi-class perceptron."""
        return MulticlassPerceptron()
