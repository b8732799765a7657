"""The pass that learns its kernel, compiled."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...features.spectra import GUARD
from ...rows import Rows
from ...state.nested import State
from ..spec import Spec
from . import python as _rrf_python
from .python import Learned


def rrf_pass(
    X: Rows, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, learned: Learned
) -> np.ndarray:
    """Online learning of weights and kernel together; see the python engine."""
    shape = learned.spectrum.native()
    if spec.core is None or shape is None:
        return _rrf_python.rrf_pass(X, y, weight, state, spec, learned)
    scores = np.empty((X.shape[0], len(state["w"])))
    rows = (X.data, X.indices, X.indptr) if sp.issparse(X) else X
    kernel = (*shape, learned.E, float(learned.eta_g), float(GUARD), learned.batch_size)
    _core.rrf_pass(state, rows, y, weight, spec.core, kernel, scores)
    return scores
