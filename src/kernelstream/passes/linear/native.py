"""First-order learning on explicit features, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...losses import Loss
from ...registry.twins import twins
from ...updates import Update, unwrap
from ..spec import Spec
from . import python as specification

State = dict[str, Any]


def spec(loss: Loss, update: Update) -> Spec:
    """What a pass does to a row; made once, used for many blocks."""
    inner, average = unwrap(update)
    return Spec(twins(loss, inner), average, specification.spec(loss, update))


def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, unit: bool, trig: bool = False
) -> np.ndarray:
    """Online learning on explicit features; see :mod:`.python`."""
    if spec.twins is None:
        return specification.linear_pass(Z, y, weight, state, spec.parts, unit, trig)
    w = state["w"]
    scores = np.empty((Z.shape[0], w.shape[0]))
    state["t"] = _core.linear_pass(
        Z,
        y,
        weight,
        w,
        state["scale"],
        state.get("G"),
        state["w_mean"] if spec.average else None,
        state["memory"],
        state.get("center"),
        state["t"],
        *spec.twins,
        unit,
        trig,
        scores,
    )
    return scores
