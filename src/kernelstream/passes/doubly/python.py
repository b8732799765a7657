"""Scores of Fourier features without keeping the features: the step that doubly stochastic learners repeat."""

from __future__ import annotations

import math

import numpy as np

from ...rows import Rows


def fourier_scores(X: Rows, W: np.ndarray, A: np.ndarray, F: np.ndarray) -> None:
    """``F += [cos XW, sin XW] / sqrt(D) A``: X (m, d) dense or CSR, W (d, D), A (2D, C), F (m, C) float64.

    One row at a time, so that a row's scores do not depend on its neighbours.
    """
    for i in range(X.shape[0]):
        P = np.asarray(X[i : i + 1] @ W)
        F[i] += times(np.concatenate([np.cos(P), np.sin(P)], axis=1), A)[0] / math.sqrt(W.shape[1])


def times(Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """``Z A``, (m, P) (P, C) -> (m, C), number by number: none depends on how many rows and outputs there are.

    A product of matrices would add up in another order with one output than with two.
    """
    columns = np.ascontiguousarray(A.T)
    return np.array([[z @ a for a in columns] for z in np.ascontiguousarray(Z)])
