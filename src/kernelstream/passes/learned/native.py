"""The pass that learns its kernel, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...features.spectra import GUARD, Spectrum
from ...rows import Rows
from ..spec import Spec
from . import python as _rrf_python


def rrf_pass(
    X: Rows,
    y: np.ndarray,
    weight: np.ndarray | None,
    state: dict[str, Any],
    spec: Spec,
    spectrum: Spectrum,
    E: np.ndarray,
    eta_g: float,
    batch_size: int,
) -> np.ndarray:
    """Online learning of weights and kernel together; see the python engine."""
    shape = spectrum.native()
    if spec.core is None or shape is None:
        return _rrf_python.rrf_pass(X, y, weight, state, spec, spectrum, E, eta_g, batch_size)
    scores = np.empty((X.shape[0], len(state["w"])))
    rows = (X.data, X.indices, X.indptr) if sp.issparse(X) else X
    kernel = (*shape, E, float(eta_g), float(GUARD), batch_size)
    _core.rrf_pass(state, rows, y, weight, spec.core, kernel, scores)
    return scores
