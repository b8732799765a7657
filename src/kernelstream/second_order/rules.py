"""Rules: what a row does to the sufficient statistics, two numbers ``(c, beta)``.

``A <- A + c z z'``, ``b <- b + beta z``, and always ``w = A^-1 b``. With the score ``f = w'z`` and ``s = z'A^-1 z``
before the row this is ``w <- w + tau A^-1 z``, ``tau = (beta - c f) / (1 + c s)``. The C++ twins are in
cpp/passes/second_order.hpp, under the same names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Loss
from ..registry.twins import twins


class Rule:
    """How a row of target y, score f, uncertainty s and weight acts on A and b."""

    name: str
    shared = False  # whether all outputs share one matrix A

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        """``(c, beta)`` of a row of positive weight."""
        raise NotImplementedError

    def show(self, f: np.ndarray) -> np.ndarray:
        """The prediction made from raw scores."""
        return f

    def native(self) -> tuple[str, list[float], str, list[float]] | None:
        """Names and parameters of the compiled twin and of its loss; None if there is none."""
        return self.name, [], "squared", [0.0]


class LeastSquares(Rule):
    """``c = weight``, ``beta = weight y``: recursive least squares."""

    name = "least_squares"
    shared = True

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        return weight, weight * y


class Margin(Rule):
    """Least squares on the rows with ``y f < 1`` only, y = ±1: AROW.

    In the notation of its paper, ``Sigma = r A^-1`` with ``A_0 = r I``: ``beta_t = 1/(v_t + r)`` and
    ``alpha_t = (1 - y f) beta_t`` are ``1/(r (1 + s))`` and ``(1 - y f)/(r (1 + s))``, the steps of least squares.
    """

    name = "margin"

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        return (weight, weight * y) if y * f < 1 else (0.0, 0.0)


class Newton(Rule):
    """Online Newton step, ``A <- A + curvature l'^2 z z'``, ``w <- w - A^-1 l' z``, from a w with ``|w'z| <= bound``.

    The projection that makes it so, in the norm of A: ``w <- w - (h/s) A^-1 z``, h the part of f beyond the bound.
    """

    name = "newton"

    def __init__(self, loss: Loss, curvature: float, bound: float = np.inf):
        self.loss = loss
        self.curvature = curvature
        self.bound = bound

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        inside = min(max(float(f), -self.bound), self.bound)
        slope = float(self.loss.gradient(float(y), inside))
        c = self.curvature * weight * slope**2  # weight l is less exp-concave than l by the same factor
        beyond = (float(f) - inside) / s if f != inside and s > 0 else 0.0  # s is 0: no step moves f
        return c, c * inside - beyond - weight * slope

    def show(self, f: np.ndarray) -> np.ndarray:
        return np.clip(f, -self.bound, self.bound)

    def native(self) -> tuple[str, list[float], str, list[float]] | None:
        loss = twins(self.loss)
        return None if loss is None else (self.name, [self.curvature, self.bound], *loss[0])
