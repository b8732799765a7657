"""AdaGrad: a step size for every weight."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..checks import fraction
from ..losses import Loss
from ._base import Update, register
from .rates import auto_rate, check_auto, within_reach


@register
class AdaGrad(Update):
    r"""AdaGrad, a step size per weight: ``G_i <- mu G_i + (g z_i)^2``, ``w_i -= eta g z_i / sqrt(G_i)`` (Duchi, Hazan,
    Singer 2011).

    Diagonal: ``step`` gives ``(eta_t, g)`` and the pass moves every weight by itself.

    Parameters
    ----------
    eta : float or "auto"
        Step scale; "auto" is ``14 / sqrt(P m)`` with P weights per output and m the mean z'z, in regression times 0.3 ×
        the running standard deviation of the target (``docs/default_update.md`` has the measurements); a residual then
        counts for at most ten of these deviations.
    forgetting : float, default=1.0
        mu in (0, 1]. Below 1 the steps do not shrink for ever: a weight follows about 1/(1 - mu) rows.
    """

    name = "adagrad"
    n_memory = 5  # what auto_rate remembers; number of weights
    n_shared = 5
    diagonal = True
    AUTO: ClassVar[float] = 14.0

    def __init__(self, eta: float | str = "auto", forgetting: float = 1.0):
        self.eta = eta
        self.forgetting = forgetting

    @property
    def fade(self) -> float:  # type: ignore[override]
        """Factor of the sums of squares before each row."""
        return float(self.forgetting)

    def check(self, loss: Loss) -> None:
        check_auto(self.eta)
        fraction("forgetting", self.forgetting, one=True)

    def memory(self, n_outputs: int, n_weights: int = 1) -> np.ndarray:
        memory = super().memory(n_outputs)
        memory[4, 0] = n_weights
        return memory

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        eta = self.rate(loss, y, k_xx, memory)
        return eta, self.limited(loss.gradient(y, f), loss, memory)

    def limited(self, g: Any, loss: Loss, memory: np.ndarray) -> Any:
        """The derivative of the row that :meth:`rate` was last called for, within the limit."""
        return within_reach(g, loss, memory) if isinstance(self.eta, str) else g

    def rate(self, loss: Loss, y: Any, k_xx: float, memory: np.ndarray) -> float:
        """eta_t, which does not depend on the score."""
        if not isinstance(self.eta, str):
            return self.eta
        return auto_rate(self.AUTO / math.sqrt(max(1.0, memory[4, 0])), loss, y, k_xx, memory)
