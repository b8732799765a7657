r"""Several forecasters at once, weighted by how well each has predicted.

Exponentially weighted average (Cesa-Bianchi, Lugosi: Prediction, Learning, and Games, 2006, section 3.3): forecaster j
has weight proportional to ``exp(-eta L_j)``, L_j its squared loss so far and ``eta = 1/(8 B^2)`` with B the largest
target seen so far, beyond which no forecast goes. The average then loses at most ``8 B^2 log J`` more than the best of
the J forecasters.
"""

from __future__ import annotations

import numpy as np


def combine(P: np.ndarray, losses: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Average of forecasts P (n, J, k) under losses (n, J, k) or (J, k) and bounds (n, k) or (k,).

    Returns
    -------
    average (n, k), forecasts within the bounds (n, J, k), weights (n, J, k)
    """
    limit = bound[..., None, :]
    P = np.clip(P, -limit, limit)
    gap = losses - losses.min(axis=-2, keepdims=True)
    scale = np.where(limit > 0, limit, np.inf)
    theta = np.exp(-(gap / scale) / (8 * scale))  # the square of a bound next to 0 would vanish
    theta = np.broadcast_to(theta / theta.sum(axis=-2, keepdims=True), P.shape)
    return (theta * P).sum(axis=-2), P, theta


def learn(
    P: np.ndarray, y: np.ndarray, weight: np.ndarray | None, losses: np.ndarray, bound: np.ndarray, forgetting: float
) -> np.ndarray:
    """Averages (n, k) of forecasts P (n, J, k), each before its target y (n, k) counts; losses (J, k) and bound (k,)
    are updated in place."""
    n = len(P)
    weight = np.ones(n) if weight is None else weight
    sizes = np.where(weight[:, None] > 0, np.abs(y), 0.0)
    bounds = np.maximum.accumulate(np.concatenate([bound[None], sizes]))
    P = np.clip(P, -bounds[:-1, None], bounds[:-1, None])
    steps = weight[:, None, None] * (y[:, None] - P) ** 2
    totals = np.concatenate([losses[None], steps])
    if forgetting == 1:
        np.add.accumulate(totals, out=totals)
    else:
        for i in range(n):
            totals[i + 1] += totals[i] * (forgetting if weight[i] > 0 else 1.0)
    losses[:], bound[:] = totals[-1], bounds[-1]
    return combine(P, totals[:-1], bounds[:-1])[0]
