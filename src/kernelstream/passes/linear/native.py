"""First-order learning on explicit features, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...losses import Loss
from ...registry.twins import twins
from ...updates import Update, unwrap
from ..spec import Spec
from . import host
from . import python as specification

State = dict[str, Any]


def spec(loss: Loss, update: Update) -> Spec:
    """What a pass does to a row; made once, used for many blocks."""
    inner, average = unwrap(update)
    found = twins(loss, inner)
    core = None if found is None else _core.Spec(found[0], found[1], None, average)
    return Spec(core, specification.spec(loss, update))


def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, unit: bool, trig: bool = False
) -> np.ndarray:
    """Online learning on explicit features; see :mod:`.python`."""
    if spec.core is None:
        return specification.linear_pass(Z, y, weight, state, spec.parts, unit, trig)
    scores = np.empty((Z.shape[0], len(state["w"])))
    _core.linear_pass(state, Z, y, weight, spec.core, unit + 2 * trig, scores)
    return scores


class FeaturePass(host.FeaturePass):
    """See :class:`.host.FeaturePass`; a single row on Fourier features takes one call."""

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        core = self.spec.core
        if self.W is None or core is None or type(X) is not np.ndarray or len(X) != 1:
            return super().learn(X, y, weight)
        scores = np.empty((1, self.outputs))
        _core.fourier_learn(self.state, X, self.W, y, weight, core, scores)
        return scores
