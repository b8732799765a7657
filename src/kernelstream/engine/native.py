"""The native engine: the functions of :mod:`kernelstream.engine.python`, in C++ over blocks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..losses import Loss
from ..rows import Rows
from ..updates import Update, unwrap

NAME = "native"
BLOCK = 64  # rows per call of a feature map: the block's features stay in the second-level cache

State = dict[str, Any]

all_finite = _core.all_finite


def matmul(X: Rows, W: np.ndarray) -> np.ndarray:
    """X W for dense or CSR X, (m, d) (d, D) -> (m, D)."""
    if not sp.issparse(X):
        return np.dot(X, W)
    out = np.empty((X.shape[0], W.shape[1]), W.dtype)
    _core.csr_matmul(X.data.astype(W.dtype, copy=False), X.indices, X.indptr, W, out)
    return out


def trig(P: np.ndarray) -> np.ndarray:
    """``[cos P, sin P] / sqrt(D)``, (m, D) -> (m, 2D): unit-norm rows."""
    m, D = P.shape
    Z = np.empty((m, 2 * D), P.dtype)
    _core.trig(P, Z, 1.0 / math.sqrt(D))
    return Z


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    _core.exp_scaled(D, gamma)
    return D


def standardize(X: np.ndarray, weight: np.ndarray | None, count: float, mean: np.ndarray, m2: np.ndarray) -> float:
    """Scale rows in place by the running moments; see the python engine."""
    return _core.standardize(X, weight, count, mean, m2)


def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, loss: Loss, update: Update, unit: bool
) -> np.ndarray:
    """Online learning on explicit features; see the python engine."""
    update, average = unwrap(update)
    w = state["w"]
    scores = np.empty((Z.shape[0], w.shape[0]))
    state["t"] = _core.linear_pass(
        Z,
        y,
        weight,
        w,
        state["scale"],
        state.get("G"),
        state["w_mean"] if average else None,
        state["memory"],
        state.get("center"),
        state["t"],
        *loss.native(),
        *update.native(),
        unit,
        scores,
    )
    return scores


def expansion_pass(
    F: np.ndarray,
    G: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    loss: Loss,
    update: Update,
    memory: np.ndarray,
    center: np.ndarray | None,
    t: int,
    room: int,
) -> tuple[int, np.ndarray, np.ndarray, float]:
    """Kernel expansion without removal; see the python engine."""
    joined = np.empty(min(len(F), room), np.int64)
    coefficients = np.empty((len(joined), F.shape[1]))
    consumed, q, decay = _core.expansion_pass(
        F, G, y, weight, memory, center, t, joined, coefficients, *loss.native(), *update.native()
    )
    return consumed, joined[:q], coefficients[:q], decay
