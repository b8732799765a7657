"""NORMA: gradient descent with an adaptive margin."""

from __future__ import annotations

import math
from typing import Any

from ..checks import fraction, positive
from ..losses import Loss
from ._base import Update, register
from .rates import stable_rate


@register
class NORMA(Update):
    r"""NORMA: OGD with decay ``1 - eta lam``; regression learns its tube (Kivinen, Smola, Williamson 2004).

    With the epsilon-insensitive loss the tube starts at the loss's epsilon and adapts:
    ``epsilon += (1 - nu) eta`` outside the tube and ``epsilon -= nu eta`` inside, never below 0.

    Parameters
    ----------
    eta, lam : float
        Step size and regulariser.
    nu : float
        Share of rows that should end up outside the tube.
    """

    name = "norma"
    n_memory = 2  # the tube's width, and whether it has been set

    def __init__(self, eta: float = 0.1, lam: float = 1e-4, nu: float = 0.5):
        self.eta = eta
        self.lam = lam
        self.nu = nu

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        fraction("nu", self.nu, one=True)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        eta = stable_rate(self.eta, loss, k_xx)
        decay = 1.0 - eta * self.lam
        if loss.name != "epsilon_insensitive":
            return decay, -eta * loss.gradient(y, f)
        epsilon = memory[0, 0] if memory[1, 0] else loss.epsilon
        outside = abs(f - y) > epsilon
        memory[0, 0] = max(0.0, epsilon + ((1 - self.nu) if outside else -self.nu) * self.eta)
        memory[1, 0] = 1.0
        return decay, math.copysign(self.eta, y - f) if outside else 0.0
