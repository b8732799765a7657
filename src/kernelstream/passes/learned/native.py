"""The pass that learns its kernel, in C++: wrapper of ``_core.RrfCall``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...features.spectra import GUARD, Spectrum
from ...rows import Rows
from ..spec import Spec
from . import python as _rrf_python

_CALLS = {np.dtype(np.float32): _core.RrfCall32, np.dtype(np.float64): _core.RrfCall64}


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
    if spec.twins is None or shape is None:
        return _rrf_python.rrf_pass(X, y, weight, state, spec.parts, spectrum, E, eta_g, batch_size)
    w = state["w"]
    scores = np.empty((X.shape[0], len(w)))
    call = _CALLS[w.dtype](
        y,
        weight,
        w,
        state["G"],
        state["theta"].reshape(-1),
        state["theta0"].reshape(-1),
        state["H"].reshape(-1),
        E,
        state["sum_w"] if batch_size > 1 else None,
        state["sum_theta"].reshape(-1) if batch_size > 1 else None,
        state["pending"] if batch_size > 1 else None,
        state["memory"],
        state.get("center"),
        scores,
        state["inverse_length"],
        eta_g,
        GUARD,
        batch_size,
        state["t"],
        *shape,
        *spec.twins,
    )
    if sp.issparse(X):
        state["t"] = call.csr(X.data, X.indices, X.indptr, X.shape[1])
    else:
        state["t"] = call.dense(X)
    return scores
