"""Coin betting: no step size at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._base import Update, register


@register
class CoinBetting(Update):
    r"""Parameter-free coin betting (Orabona, Tommasi 2017): each gradient is bet on, with the wealth won so far.

    With ``theta = -sum g_s k(x_s, .)``, ``L`` the largest ``|g| sqrt(k(x, x))`` seen, ``G`` their sum and ``R`` the
    reward ``sum -g_s f_s`` (never below 0): ``f = theta (1 + R/L) / (G + L)``. No step size anywhere. Each class bets
    for itself.
    """

    name = "coin_betting"
    n_memory = 4  # L, G, R and the factor of theta in use

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        g = loss.gradient(y, f)
        L, G, R, s = memory
        size = np.abs(g) * math.sqrt(k_xx)
        np.maximum(L, size, out=L)
        G += size
        np.maximum(R - g * f, 0.0, out=R)
        ratio = np.divide(R, L, out=np.zeros_like(L), where=L > 0)
        new = np.divide(1 + ratio, G + L, out=np.ones_like(L), where=L > 0)
        decay = np.divide(new, s, out=np.ones_like(s), where=s > 0)
        tau = -new * g
        s[:] = np.where(L > 0, new, 0.0)
        return (decay, tau) if loss.kind == "multiclass" else (float(decay[0]), float(tau[0]))
