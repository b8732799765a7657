"""Online gradient descent."""

from __future__ import annotations

import math
from typing import Any

from ..checks import one_of, positive
from ..losses import Loss
from ._base import Update, register
from .rates import stable_rate

_SCHEDULES = ("constant", "sqrt", "inverse")


@register
class OGD(Update):
    r"""Online gradient descent, ``f <- (1 - eta_t lam) f - eta_t l'(f, y) k(x, .)``.

    Where the derivative of the loss has no bound (squared, squared hinge), no step is longer than ``1/k(x, x)``, the
    one that removes the loss of the row: longer ones would overshoot without end.

    Parameters
    ----------
    eta : float
        Step size.
    schedule : {"constant", "sqrt", "inverse"}
        ``eta_t = eta``, ``eta / sqrt(t)`` or ``1 / (lam t)`` (needs ``lam > 0`` and eta left at 1).
    lam : float
        Strength of the regulariser ``lam/2 ||f||^2``; 0 for none.

    Examples
    --------
    >>> from kernelstream.losses import get as loss
    >>> OGD(eta=0.5).step(loss("hinge"), 1.0, 0.0, 1.0, 1, None)
    (1.0, 0.5)
    """

    name = "ogd"

    def __init__(self, eta: float = 1.0, schedule: str = "constant", lam: float = 0.0):
        self.eta = eta
        self.schedule = schedule
        self.lam = lam

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        one_of("schedule", self.schedule, _SCHEDULES)
        if self.schedule == "inverse" and self.lam == 0:
            raise ValueError("schedule='inverse' steps by 1/(lam t): it needs lam > 0")
        if self.schedule == "inverse" and self.eta != 1.0:
            raise ValueError("schedule='inverse' steps by 1/(lam t): leave eta at 1")

    def rate(self, t: int) -> float:
        """The step size eta_t."""
        if self.schedule == "constant":
            return self.eta
        return self.eta / math.sqrt(t) if self.schedule == "sqrt" else 1.0 / (self.lam * t)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        eta = stable_rate(self.rate(t), loss, k_xx)
        return 1.0 - eta * self.lam, -eta * loss.gradient(y, f)

    def native(self) -> Any:
        return "ogd", [self.eta, float(_SCHEDULES.index(self.schedule)), self.lam]
