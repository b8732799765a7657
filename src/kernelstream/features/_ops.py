"""The array operations of feature maps in plain numpy, for ``transform`` outside a learner.

The engines have the same functions; a learner passes its engine instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def matmul(X: Any, W: np.ndarray) -> np.ndarray:
    """``X @ W`` for dense or CSR X (m, d) and dense W (d, D)."""
    return X @ W


def trig(P: np.ndarray) -> np.ndarray:
    """``[cos P, sin P] / sqrt(D)``: (m, D) -> (m, 2D)."""
    m, D = P.shape
    Z = np.empty((m, 2 * D), dtype=P.dtype)
    np.cos(P, out=Z[:, :D])
    np.sin(P, out=Z[:, D:])
    Z *= P.dtype.type(1 / np.sqrt(D))
    return Z


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    np.maximum(D, 0, out=D)
    D *= -gamma
    return np.exp(D, out=D)
