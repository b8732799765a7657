"""Passive-aggressive updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import positive
from ..losses import Loss
from ._base import Update, register


@register
class PassiveAggressive(Update):
    r"""Smallest change of f that removes the loss on x_t, limited by C (Crammer et al. 2006).

    With ``l`` the loss, ``g`` its gradient and ``n = ||g||^2 k(x, x)``: PA ``tau = l/n`` (C infinite), PA-I
    ``min(C, l/n)``, PA-II ``l / (n + 1/(2C))``; ``f <- f - tau g k(x, .)``. For the Crammer-Singer loss two classes
    move and ``n = 2 k(x, x)``. A row with ``k(x, x) = 0``, on which no step has an effect, gets tau = C, or 0 if that
    is infinite.

    Parameters
    ----------
    C : float
        Aggressiveness; ``inf`` is plain PA.
    variant : {1, 2}
        PA-I or PA-II.
    """

    name = "passive_aggressive"

    def __init__(self, C: float = 1.0, variant: int = 1):
        self.C = C
        self.variant = variant

    def check(self, loss: Loss) -> None:
        positive("C", self.C, infinite=True)
        if self.variant not in (1, 2):
            raise ValueError(f"variant must be 1 (PA-I) or 2 (PA-II), got {self.variant!r}")
        if not loss.piecewise_linear:
            raise ValueError(
                f"PassiveAggressive removes the loss in one step and needs a piecewise linear one "
                f"(hinge, crammer_singer, absolute, epsilon_insensitive, perceptron); {loss.name!r} is not"
            )

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        g = loss.gradient(y, f)
        n = float(np.dot(g, g)) * k_xx
        tau = self.C if math.inf > self.C else 0.0
        if n != 0.0:
            value = loss.value(y, f)
            wanted = min(self.C, value / n) if self.variant == 1 else value / (n + 0.5 / self.C)
            if math.isfinite(wanted):  # not so for a row next to 0 where C sets no limit: no step reaches its target
                tau = wanted
        return 1.0, -tau * g
