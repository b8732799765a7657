"""The array operations of feature maps in plain numpy, for ``transform`` outside a learner.

The engines have the same functions; a learner passes its engine instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def matmul(X: Any, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``X W`` for dense or CSR X, (m, d) (d, D) -> (m, D)."""
    return np.asarray(X @ W)


def fourier(X: Any, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``[cos XW, sin XW] / sqrt(D)``, (m, d) (d, D) -> (m, 2D)."""
    P = matmul(X, W)
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
