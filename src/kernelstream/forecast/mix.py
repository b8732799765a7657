r"""Members by what they did at each horizon, for each target.

.. math:: w_k \propto \Big(\sum_i \kappa^{t - i} (y_i - f_{k, i})^2\Big)^{-16}
"""

from __future__ import annotations

import numpy as np

MEMORY = 500.0  # rows over which squared errors are summed, as weights fall
POWER = 16.0  # of the mean squared error


def shares(squares: np.ndarray) -> np.ndarray:
    """Weights of members (k, ...) from their sums of squared errors."""
    logs = -POWER * np.log(squares + 1e-300)
    shares = np.exp(logs - logs.max(axis=0))
    return shares / shares.sum(axis=0)


def followed(squares: np.ndarray, errors: np.ndarray, counted: np.ndarray, memory: float) -> np.ndarray:
    """The sums (k, H, m) after errors (n, k, H, m), of which some count (n, H, m); a new array."""
    for own, now in zip(errors, counted, strict=True):
        squares = np.where(now, squares * (1 - 1 / memory) + own * own, squares)
    return squares
