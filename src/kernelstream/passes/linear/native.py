"""First-order learning on explicit features, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...budgets import Budget
from ...core.blas import BLAS
from ...features import Mapping
from ...features.fourier import FourierMapping
from ...features.nystroem import GaussianNystroemMapping
from ...losses import Loss
from ...registry.twins import twins
from ...rows import host as on_host
from ...state import undo as _undo
from ...state.nested import State
from ...updates import Update
from ..spec import Spec
from ..spec import spec as parts
from . import host
from . import python as specification


def spec(loss: Loss, update: Update, strategy: Budget | None = None) -> Spec:
    """What a pass does to a row."""
    made = parts(loss, update, strategy)
    found = twins(loss, made.update, strategy)
    if found is not None:
        made.core = _core.Spec(found[0], found[1], None if strategy is None else found[2], made.average)
    return made


def linear_pass(Z: Any, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, unit: bool) -> np.ndarray:
    """Online learning on explicit features; see :mod:`.python`."""
    if spec.core is None:
        return specification.linear_pass(Z, y, weight, state, spec, unit)
    scores = np.empty((Z.shape[0], len(state["w"])))
    if sp.issparse(Z):

        def before_all() -> None:
            for name in ("w", "G"):
                if name in state:
                    _undo.rows(state[name], specification.ALL)

        rows = Z.data, Z.indices, Z.indptr
        _core.linear_pass_csr(state, rows, y, weight, spec.core, scores, before_all)
        return scores
    if "G_scale" in state:
        state |= specification.folded(state)
    _core.linear_pass(state, Z, y, weight, spec.core, unit, scores)
    return scores


SPARSE = 6  # dense rows are multiplied as sparse ones where at most one entry of so many is not 0: in calls of
SPARSE_ROWS = 64  # so many rows, and by
SPARSE_WIDTH = 512  # so many columns, because finding the entries takes time, too


class NativeFeaturePass(host.FeaturePass):
    """See :class:`.host.FeaturePass`; Fourier features and those of landmarks take one call."""

    single: Any = None  # learns rows one by one; made for the first of them

    def __init__(self, ops: Any, mapping: Mapping, loss: Loss, update: Update, state: State):
        super().__init__(ops, mapping, loss, update, state)
        self.W = mapping.W if isinstance(mapping, FourierMapping) else None

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        core = self.spec.core
        if core is None:
            return super().learn(X, y, weight)
        if self.W is not None:
            if type(X) is not np.ndarray or len(X) != 1:
                return self._learn_fourier(on_host(X), y, weight)
            scores = np.empty((1, self.outputs))
            if self.single is None or not self.single.learn(X, y, weight, scores):  # the state has other arrays
                make: Any = _core.row_linear32 if self.W.dtype == np.float32 else _core.row_linear64
                self.single = make(self.state, [], self.W, True, core)
                self.single.learn(X, y, weight, scores)
            return scores
        if isinstance(self.mapping, GaussianNystroemMapping) and X.shape[0] > 1:
            return self._learn_nystroem(self.mapping, on_host(X), y, weight)
        return super().learn(X, y, weight)

    def _learn_fourier(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        scores = np.empty((X.shape[0], self.outputs))
        frequencies = np.asarray(self.W), BLAS
        pays = not sp.issparse(X) and len(X) >= SPARSE_ROWS and frequencies[0].shape[1] >= SPARSE_WIDTH
        if pays and SPARSE * np.count_nonzero(X) <= X.size:
            X = sp.csr_array(X)
        _core.fourier_pass(self.state, self._rows(X), frequencies, y, weight, self.spec.core, scores)
        return scores

    def _learn_nystroem(
        self, mapping: GaussianNystroemMapping, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        xx = mapping.sizes(X)
        if not xx.max(initial=0.0) <= mapping.far:
            return super().learn(X, y, weight)
        scores = np.empty((X.shape[0], self.outputs))
        landmarks = mapping.S2, mapping.norms, mapping.P, mapping.gamma, xx, BLAS
        _core.nystroem_pass(self.state, self._rows(X), landmarks, y, weight, self.spec.core, scores)
        return scores

    def _rows(self, X: Any) -> Any:
        """Rows as the passes take them."""
        dtype = self.mapping.dtype
        if sp.issparse(X):
            return np.asarray(X.data, dtype), X.indices, X.indptr
        return np.ascontiguousarray(X, dtype)
