"""Gradients of what a model has learned, with respect to the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.ranges import scale_of, scaled, slopes
from ..features.fourier import FourierMapping
from ..innermost import innermost
from ..state.nested import State
from .recent import differences

STEP = 0.02  # of differences, in deviations of a column


def deviations(model: Any, fallback: np.ndarray) -> np.ndarray:
    """Units of the columns, (d,): those by which the model scales, or else the fallback."""
    state = innermost(model).state_
    if "x_m2" not in state:
        return fallback
    return scale_of(state)[1]


def fourier_form(model: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Frequencies and weights of a model that is linear in Fourier features: its gradients have a formula."""
    learner = innermost(model)
    form = learner.linear_form() if hasattr(learner, "linear_form") else None
    return (form[0].W, form[1]) if form is not None and type(form[0]) is FourierMapping else None


def is_exact(model: Any) -> bool:
    """Whether gradients have a formula."""
    return fourier_form(model) is not None


def exact(W: np.ndarray, weights: np.ndarray, state: State, X: np.ndarray) -> np.ndarray:
    r"""Gradients of a linear model of Fourier features, (n, outputs, d).

    .. math:: \nabla (v'\cos W'x + u'\sin W'x) = W (u \cos W'x - v \sin W'x)

    With scaled columns, in their units.
    """
    slope: Any = 1.0
    if "x_m2" in state:
        slope, X = slopes(X, state)[:, None], scaled(X, state)
    W, D = np.asarray(W, np.float64), W.shape[1]
    weights = weights / np.sqrt(D)
    angles = np.asarray(X, np.float64) @ W
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return (weights[:, D:] * cos - weights[:, :D] * sin) @ W.T * slope


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    """The learner's scores of rows, (n, outputs)."""
    model = innermost(model)
    answers = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return answers.reshape(len(X), -1)


def gradients(model: Any, X: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Gradients of the scores, (n, outputs, d), per unit of each column."""
    form = fourier_form(model)
    if form is not None:
        state = innermost(model).state_
        return exact(*form, state, X) * (1.0 if "x_m2" in state else units)
    return differences(lambda rows: scores(model, rows), X, units, STEP)
