"""Second derivatives of the smooth losses, which Newton steps need."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import Loss

SMOOTH = ("squared", "squared_hinge", "logistic")
#: Largest second derivative.
BOUND = {"squared": 1.0, "squared_hinge": 1.0, "logistic": 0.25}


def curvature(loss: Loss, y: Any, f: Any) -> np.ndarray:
    """Second derivative of the loss in f, in the shape of ``f``; at the kink of the squared hinge, 0."""
    f = np.asarray(f, np.float64)
    if loss.name == "squared":
        return np.ones_like(f)
    if loss.name == "squared_hinge":
        return (y * f < 1.0).astype(np.float64)
    p = np.abs(loss.gradient(np.asarray(y, np.float64), f))
    return p * (1.0 - p)
