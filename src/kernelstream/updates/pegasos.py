"""Pegasos: gradient descent with steps 1/(lam t)."""

from __future__ import annotations

from typing import Any

from ..checks import positive
from ..losses import Loss
from ._base import Update, register


@register
class Pegasos(Update):
    r"""Pegasos, ``f <- (1 - eta_t lam) f - eta_t l'(f, y) k(x, .)`` with ``eta_t = 1/(lam t)``.

    Where the derivative of the loss has no bound (squared, squared hinge), the first of these steps would overshoot by
    1/lam, and the next ones more. There the step is the implicit one, ``eta_t = 1/(lam t + k(x, x))``, which takes the
    derivative at the function after the step and never overshoots.

    Shalev-Shwartz, Singer, Srebro: Pegasos, primal estimated sub-gradient solver for SVM, ICML 2007; Kulis, Bartlett:
    Implicit online learning, ICML 2010.

    Parameters
    ----------
    lam : float
        Regulariser.
    """

    name = "pegasos"

    def __init__(self, lam: float = 1e-4):
        self.lam = lam

    def check(self, loss: Loss) -> None:
        positive("lam", self.lam)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        if loss.bound is not None:
            return 1.0 - 1.0 / t, -loss.gradient(y, f) / (self.lam * t)
        eta = 1.0 / (self.lam * t + k_xx)
        return 1.0 - eta * self.lam, -eta * loss.gradient(y, f)
