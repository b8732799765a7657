"""First-order learning on explicit features, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...features.raw import RawMapping
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


WIDE = 256  # columns from which sparse rows that are the features themselves are learned as they are


class FeaturePass(host.FeaturePass):
    """See :class:`.host.FeaturePass`; a single row on Fourier features takes one call, sparse rows stay sparse."""

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        core = self.spec.core
        if core is None:
            return super().learn(X, y, weight)
        if type(X) is np.ndarray:
            if self.W is None or len(X) != 1:
                return super().learn(X, y, weight)
            scores = np.empty((1, self.outputs))
            _core.fourier_learn(self.state, X, self.W, y, weight, core, scores)
            return scores
        if not self._as_they_are(X):
            return super().learn(X, y, weight)
        scores = np.empty((X.shape[0], self.outputs))
        parts = np.asarray(X.data, self.mapping.dtype), X.indices, X.indptr
        _core.linear_pass_csr(self.state, parts, X.shape[1], y, weight, core, scores)
        return scores

    def score(self, X: Any) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        return super().score(X) if not self._as_they_are(X) else self._scaled(X @ self._weights().T)

    def _as_they_are(self, X: Any) -> bool:
        """Whether rows are sparse, and the features themselves."""
        return sp.issparse(X) and X.shape[1] >= WIDE and isinstance(self.mapping, RawMapping)
