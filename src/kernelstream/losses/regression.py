"""Losses of regression, functions of the residual ``r = f - y``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import fraction, positive
from ._base import Loss, register
from ._duals import SQUARED, Dual, tube_dual

__all__ = ["Absolute", "EpsilonInsensitive", "Huber", "Quantile", "Squared"]


@register
class Squared(Loss):
    """max(0, (f - y)² - epsilon²) / 2: half the squared error, flat where it is within epsilon.

    The derivative is ``f - y`` where ``|f - y| > epsilon`` and 0 elsewhere; the papers' regression learners act on
    exactly these rows.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half width of the dead zone.
    """

    name = "squared"
    kind = "regression"
    plain = True

    def __init__(self, epsilon: float = 0.0) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        positive("epsilon", self.epsilon, zero=True, infinite=True)

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        r = f - y
        return xp.maximum(0.0, 0.5 * (r * r - self.epsilon * self.epsilon))

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        r = f - y
        return xp.where(xp.abs(r) > self.epsilon, r, 0.0)

    @property
    def smoothness(self) -> float | None:  # type: ignore[override]
        """The largest second derivative; with a dead zone the derivative jumps."""
        return None if self.epsilon else 1.0

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        return np.ones_like(np.asarray(f, np.float64))

    def dual(self) -> Dual | None:
        return None if self.epsilon else SQUARED


@register
class Absolute(Loss):
    """``|f - y|``; derivative 0 where f = y."""

    name = "absolute"
    piecewise_linear = True
    kind = "regression"
    plain = True
    bound = 1.0

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.abs(f - y)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.sign(f - y)

    def dual(self) -> Dual:
        return tube_dual(0.0)


@register
class EpsilonInsensitive(Loss):
    """``max(0, |f - y| - epsilon)``; derivative 0 where ``|f - y| <= epsilon``.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube.
    """

    name = "epsilon_insensitive"
    piecewise_linear = True
    kind = "regression"
    plain = True
    bound = 1.0

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        positive("epsilon", self.epsilon, zero=True, infinite=True)

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.maximum(0.0, xp.abs(f - y) - self.epsilon)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        r = f - y
        return xp.where(xp.abs(r) > self.epsilon, xp.sign(r), 0.0)

    def dual(self) -> Dual:
        return tube_dual(float(self.epsilon))


@register
class Huber(Loss):
    """(f - y)²/2 up to delta, then straight: ``delta (|f - y| - delta/2)``.

    Parameters
    ----------
    delta : float, default=1.0
        Where the parabola meets the lines; also the bound of the derivative.
    """

    name = "huber"
    kind = "regression"
    plain = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        positive("delta", self.delta, infinite=True)

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The largest absolute derivative, ``delta``."""
        return self.delta

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        r = xp.abs(f - y)
        near = xp.minimum(r, self.delta)
        return 0.5 * near * near + self.delta * (r - near)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.maximum(-self.delta, xp.minimum(self.delta, f - y))


@register
class Quantile(Loss):
    """Pinball loss, whose minimiser is the tau-quantile; derivative 1 - tau where f >= y, else -tau.

    Parameters
    ----------
    tau : float, default=0.5
        The quantile, strictly between 0 and 1.
    """

    name = "quantile"
    kind = "regression"
    plain = True

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = tau

    def check(self) -> None:
        fraction("tau", self.tau)

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The largest absolute derivative, ``max(tau, 1 - tau)``."""
        return max(self.tau, 1.0 - self.tau)

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        r = f - y
        return xp.maximum((1.0 - self.tau) * r, -self.tau * r)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return xp.where(f >= y, 1.0 - self.tau, -self.tau)
