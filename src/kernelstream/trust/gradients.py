"""Gradients of what a model has learned, with respect to the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.ranges import scale_of, scaled, slopes
from ..features.fourier import FourierMapping
from ..innermost import innermost
from .recent import differences

STEP = 0.02  # of differences, in deviations of a column


def deviations(model: Any, fallback: np.ndarray) -> np.ndarray:
    """Units of the columns, (d,): those by which the model scales, or else the fallback."""
    state = innermost(model).state_
    if "x_m2" not in state:
        return fallback
    return scale_of(state)[1]


def is_exact(model: Any) -> bool:
    """Whether gradients have a formula: linear models of Fourier features."""
    model = innermost(model)
    state = model.state_
    learner: Any = getattr(model, "_learner", None)
    known = "w" in state or hasattr(learner, "recursion")
    if not known or not hasattr(learner, "mapping") or (state["warm_rows"] and not state["warm_count"]):
        return False
    return type(learner.mapping(state)) is FourierMapping


def exact(model: Any, X: np.ndarray) -> np.ndarray:
    r"""Gradients of a linear model of Fourier features, (n, outputs, d).

    .. math:: \nabla (v'\cos W'x + u'\sin W'x) = W (u \cos W'x - v \sin W'x)

    With scaled columns, in their units.
    """
    model = innermost(model)
    state = model.state_
    slope: Any = 1.0
    if "x_m2" in state:
        slope, X = slopes(X, state)[:, None], scaled(X, state)
    W = np.asarray(model._learner.mapping(state).W, np.float64)
    D = W.shape[1]
    weights = _weights(model, state, 2 * D) / np.sqrt(D)
    angles = np.asarray(X, np.float64) @ W
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return (weights[:, D:] * cos - weights[:, :D] * sin) @ W.T * slope


def _weights(model: Any, state: Any, width: int) -> np.ndarray:
    """Weights of the features, (outputs, width)."""
    if "w" not in state:  # a second-order recursion: its answer to one feature alone, less that to none
        recursion = model._learner.recursion(state)
        dtype = np.dtype(state["dtype"])
        alone = np.asarray(recursion.score(np.eye(width, dtype=dtype), False)[0])
        none = np.asarray(recursion.score(np.zeros((1, width), dtype), False)[0])
        return (alone - none).reshape(width, -1).T.astype(np.float64)
    if "w_mean" in state:
        return np.asarray(state["w_mean"], np.float64)
    return np.asarray(state["w"], np.float64) * state["scale"][:, None]


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    """The learner's scores of rows, (n, outputs)."""
    model = innermost(model)
    answers = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return answers.reshape(len(X), -1)


def gradients(model: Any, X: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Gradients of the scores, (n, outputs, d), per unit of each column."""
    if is_exact(model):
        return exact(model, X) * (1.0 if "x_m2" in innermost(model).state_ else units)
    return differences(lambda rows: scores(model, rows), X, units, STEP)
