"""Probabilities from codes that least squares forecasts: b, the slope of their logarithms that has the least loss."""

from __future__ import annotations

import numpy as np
from scipy import special

STEEPEST = 20.0  # b, at most


def steepness(G: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
    """The b of least loss for logarithms G (n, C) of rows with codes Y (n, C), had one row more been a mistake.

    The rule of succession: n rows without a mistake do not show that there will be none, and a b without bound would
    make the first mistake cost any amount. Every row is the one more, in equal parts, and every wrong label.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and wanted only here

    if not len(G):
        return 1.0
    y = labels(Y)
    G = of_labels(G)
    n, C = G.shape

    def loss(b: float) -> float:
        each = special.logsumexp(b * G, axis=1, keepdims=True) - b * G
        right = each[np.arange(n), y]
        return float(np.average(right + (each.sum(axis=1) - right) / (n * (C - 1)), weights=weight))

    return float(minimize_scalar(loss, bounds=(0.01, STEEPEST), method="bounded").x)


def of_labels(G: np.ndarray) -> np.ndarray:
    """Logarithms (n, labels), up to a constant; log-odds (n, 1) of two labels are halved between them."""
    return np.concatenate([-G, G], axis=1) / 2 if G.shape[1] == 1 else G


def labels(F: np.ndarray) -> np.ndarray:
    """The number (n,) of the label that is ahead by scores or codes (n, outputs)."""
    return F.argmax(axis=1) if F.shape[1] > 1 else (F[:, 0] >= 0).astype(int)
