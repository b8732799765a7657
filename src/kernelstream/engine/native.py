"""The native engine: the functions of :mod:`kernelstream.engine.python`, in C++ over blocks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from .._twins import twins
from ..losses import Loss
from ..rows import Rows
from ..updates import Update, unwrap
from . import _binning_native, python
from ._blocks_native import fourier_scores as fourier_scores
from ._cells_native import by_hashing as by_hashing
from ._cells_native import by_levels as by_levels
from ._cells_native import cells_gains as cells_gains
from ._cells_native import cells_pass as cells_pass
from ._cells_native import cells_score as cells_score
from ._expansion_native import Expansion as Expansion
from ._expansion_native import Rule as Rule
from ._expansion_native import budget_pass as budget_pass
from ._expansion_native import expansion_pass as expansion_pass
from ._multi_native import combine as combine
from ._multi_native import family_pass as family_pass
from ._multi_native import hedge_pass as hedge_pass
from ._multi_native import start_hedge as start_hedge
from ._multi_native import theta as theta
from ._philox_native import normals as normals
from ._pool_native import Pool as Pool
from ._pool_native import pool_hedge_pass as pool_hedge_pass
from ._pool_native import pool_pass as pool_pass
from ._rrf_native import rrf_pass as rrf_pass
from ._rrf_python import rrf_finish as rrf_finish  # once in a while, and as fast as it needs to be
from ._spec_native import Spec
from ._stack_native import stack_pass as stack_pass
from ._window_native import window_pass as window_pass
from ._workspace import workspace as workspace

NAME = "native"
binning = _binning_native  # cells of random binning and the solvers on them
BLOCK = 128  # rows per call of a feature map: two blocks of projections stay in the second-level cache
THREADED = True  # whether a second thread may prepare the next block

State = dict[str, Any]

all_finite = _core.all_finite
all_below = _core.all_below
standardize = _core.standardize  # see the python engine
taylor = _core.taylor  # see kernelstream.features.taylor.taylor
calibrate, track = _core.calibrate, _core.track  # see the python engine


def matmul(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """X W for dense or CSR X, (m, d) (d, D) -> (m, D). ``out`` may be used for the result."""
    if not sp.issparse(X):
        return np.dot(X, W, out=out)
    if out is None:
        out = np.empty((X.shape[0], W.shape[1]), W.dtype)
    _core.csr_matmul(X.data.astype(W.dtype, copy=False), X.indices, X.indptr, W, out)
    return out


def project(X: Rows, rows: slice, W: np.ndarray) -> np.ndarray:
    """X[rows] W for dense or CSR X, in a buffer that the second next call uses again."""
    m, D = rows.stop - rows.start, W.shape[1]
    out = workspace(f"P{rows.start // BLOCK % 2}", (m, D), W.dtype)
    if not sp.issparse(X):
        return np.dot(X[rows], W, out=out)
    # slicing the row pointers is enough; scipy's own slicing costs more than the product
    _core.csr_matmul(X.data.astype(W.dtype, copy=False), X.indices, X.indptr[rows.start : rows.stop + 1], W, out)
    return out


def fourier(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``[cos XW, sin XW] / sqrt(D)``, (m, d) (d, D) -> (m, 2D): unit-norm rows. ``out`` may be used for the result."""
    m, D = X.shape[0], W.shape[1]
    Z = np.empty((m, 2 * D), W.dtype) if out is None else out
    if m == 1 and type(X) is np.ndarray:
        _core.fourier_row(X, W, Z, 1.0 / math.sqrt(D))
    else:
        _core.trig(matmul(X, W, workspace("P", (m, D), W.dtype)), Z, 1.0 / math.sqrt(D))
    return Z


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    _core.exp_scaled(D, gamma)
    return D


def set_aside(y: np.ndarray, weight: np.ndarray | None, seen: np.ndarray) -> np.ndarray | None:
    """Weights of rows, 0 for those whose target is a glitch; see the python engine."""
    out = np.empty(len(y))
    return out if _core.set_aside(y, weight, seen, out) else weight


def spec(loss: Loss, update: Update) -> Spec:
    """What a pass does to a row; made once, used for many blocks."""
    inner, average = unwrap(update)
    return Spec(twins(loss, inner), average, python.spec(loss, update))


def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, unit: bool, trig: bool = False
) -> np.ndarray:
    """Online learning on explicit features; see the python engine."""
    if spec.twins is None:
        return python.linear_pass(Z, y, weight, state, spec.parts, unit, trig)
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
