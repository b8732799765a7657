"""AdaGrad with one step size for the norm of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..losses import Loss
from ._base import Update, register
from .rates import TINY, auto_rate, check_auto, within_reach


@register
class NormAdaGrad(Update):
    r"""AdaGrad with one step size per function (per class): ``tau = -eta g / sqrt(sum g_s^2 k(x_s, x_s))``.

    The sum runs over the rows so far, this one included (Streeter, McMahan 2010; Ward, Wu, Bottou 2019). Works in the
    kernel expansion as well as on features.

    Parameters
    ----------
    eta : float or "auto"
        Step scale; "auto" is ``8 / sqrt(m)``, m the mean k(x, x), in regression times 0.3 × the running standard
        deviation of the target (``docs/default_update.md`` has the measurements); a residual then counts for at most
        ten of these deviations.
    """

    name = "norm_adagrad"
    n_memory = 5  # what auto_rate remembers; sum of squared gradients
    n_shared = 4
    AUTO: ClassVar[float] = 8.0

    def __init__(self, eta: float | str = "auto"):
        self.eta = eta

    def check(self, loss: Loss) -> None:
        check_auto(self.eta)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        automatic = isinstance(self.eta, str)
        eta: Any = auto_rate(self.AUTO, loss, y, k_xx, memory) if automatic else self.eta
        g = loss.gradient(y, f)
        if automatic:
            g = within_reach(g, loss, memory)
        memory[4] += g * g * k_xx
        size = np.sqrt(memory[4] + TINY)
        return 1.0, -eta * g / (size if loss.kind == "multiclass" else size[0])
