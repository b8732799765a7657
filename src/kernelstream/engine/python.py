"""The python engine: the readable specification of every pass.

Each function here has a twin of the same name and signature in :mod:`kernelstream.engine.native`; tests pair them by
name. Rows are handled one at a time, so that any split of a stream into calls is bit-identical.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._overflow import quiet, require_finite
from ..losses import Loss
from ..rows import Rows
from ..updates import TINY, Update, unwrap
from . import _binning_python
from ._blocks_python import fourier_scores as fourier_scores
from ._cells_python import by_hashing as by_hashing
from ._cells_python import by_levels as by_levels
from ._cells_python import cells_gains as cells_gains
from ._cells_python import cells_pass as cells_pass
from ._cells_python import cells_score as cells_score
from ._center import follow, offset_of
from ._expansion_python import Expansion as Expansion
from ._expansion_python import Rule as Rule
from ._expansion_python import budget_pass as budget_pass
from ._expansion_python import expansion_pass as expansion_pass
from ._multi_python import HISTORY as HISTORY
from ._multi_python import Hedge as Hedge
from ._multi_python import Pool as Pool
from ._multi_python import combine as combine
from ._multi_python import family_pass as family_pass
from ._multi_python import hedge_pass as hedge_pass
from ._multi_python import start_hedge as start_hedge
from ._multi_python import theta as theta
from ._ranges import set_aside as set_aside
from ._ranges import standardize as standardize
from ._rrf_python import rrf_finish as rrf_finish
from ._rrf_python import rrf_pass as rrf_pass
from ._stack_python import stack_pass as stack_pass
from ._trust_python import calibrate as calibrate
from ._trust_python import track as track
from ._window_python import window_pass as window_pass
from .philox import normals as normals

NAME = "python"
binning = _binning_python  # cells of random binning and the solvers on them
BLOCK = 1  # rows per call of a feature map: one, so that a row's features never depend on its neighbours
THREADED = False  # whether a second thread may prepare the next block

State = dict[str, Any]


def matmul(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """X W for dense or CSR X, (m, d) (d, D) -> (m, D). ``out`` may be used for the result."""
    return np.asarray(X @ W)


def fourier(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``[cos XW, sin XW] / sqrt(D)``, (m, d) (d, D) -> (m, 2D): unit-norm rows. ``out`` may be used for the result."""
    return _cos_sin(matmul(X, W))


def project(X: Rows, rows: slice, W: np.ndarray) -> np.ndarray:
    """X[rows] W for dense or CSR X."""
    return matmul(X[rows], W)


def _cos_sin(P: np.ndarray) -> np.ndarray:
    return np.concatenate([np.cos(P), np.sin(P)], axis=1) / np.asarray(math.sqrt(P.shape[1]), P.dtype)


def workspace(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
    """An array that the next call with the same name may reuse, or None: the python engine has no use for it."""
    return None


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    np.maximum(D, 0, out=D)
    D *= -gamma
    return np.exp(D, out=D)


def all_finite(X: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite."""
    return bool(np.isfinite(X).all())


def all_below(X: np.ndarray, exponent: int) -> bool:
    """Whether ``|X| < 2^exponent`` for every entry; False for NaN."""
    limit = X.dtype.type(2.0) ** exponent
    # one after the other without a copy of X: NaN is neither
    return bool(X.size == 0 or (X.max() < limit and X.min() > -limit))


def spec(loss: Loss, update: Update) -> Any:
    """What a pass does to a row, in the form this engine's passes take; made once, used for many blocks."""
    inner, average = unwrap(update)
    return loss, inner, average


@quiet
def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Any, unit: bool, trig: bool = False
) -> np.ndarray:
    r"""Online learning on explicit features, rows in order; returns the scores before each update, (m, C).

    ``f_t = w'z_t``; ``(decay, tau) = step(loss, y_t, f_t, z_t'z_t, t)``; ``w <- decay w + tau z_t``. Diagonal updates
    move ``w_i <- w_i - eta g z_i / sqrt(G_i)``. The decay is kept as one factor ``scale`` per output.

    Parameters
    ----------
    Z : (m, P)
        Feature rows; ``unit`` says that every row has norm one. With ``trig``, projections (m, P/2) whose cosines and
        sines are the features.
    y : (m,) float64
        ±1, class codes or targets.
    weight : (m,) or None
        Factors of the gradient; a row of weight 0 is scored and skipped.
    spec
        From :func:`spec`.
    state : dict
        ``w`` (C, P), ``scale`` (C,), ``memory``, ``t``; ``G`` (C, P) for diagonal updates; ``w_mean`` (C, P) for
        averaging; ``center`` (2,) = count and mean of the target when it is centred. Updated in place.
    """
    if trig:
        Z = _cos_sin(Z)
    loss, update, average = spec
    w, scale, memory = state["w"], state["scale"], state["memory"]
    center = state.get("center")
    many = loss.kind == "multiclass"
    scores = np.empty((len(Z), len(w)))
    for i, z in enumerate(Z):
        f = (w @ z).astype(float) * scale
        offset = offset_of(center)
        scores[i] = ((state["w_mean"] @ z) if average else f) + offset
        importance = 1.0 if weight is None else float(weight[i])
        if importance == 0.0:
            continue
        state["t"] += 1
        k_xx = 1.0 if unit else float(z @ z)
        target: Any = int(y[i]) if many else float(y[i]) - offset
        decay, tau = update.step(loss, target, f if many else float(f[0]), k_xx, state["t"], memory)
        if update.diagonal:
            _diagonal(w, state["G"], z, decay, np.atleast_1d(tau) * importance, update.fade)
        else:
            _shrink(w, scale, decay)
            for c, tau_c in enumerate(np.atleast_1d(tau) * importance):
                if tau_c != 0.0:
                    w[c] += w.dtype.type(tau_c / scale[c]) * z
        if average:
            state["w_mean"] += (w * scale[:, None].astype(w.dtype) - state["w_mean"]) / w.dtype.type(state["t"])
        follow(center, float(y[i]), importance)
    require_finite(w, state.get("G"), state.get("w_mean"), memory, scores)
    return scores


def _diagonal(w: np.ndarray, G: np.ndarray, z: np.ndarray, eta: float, g: np.ndarray, fade: float) -> None:
    """AdaGrad: ``G_i <- fade G_i + (g z_i)^2``, ``w_i -= eta g z_i / sqrt(G_i)``."""
    for c, g_c in enumerate(g):
        if g_c != 0.0:
            step = w.dtype.type(g_c) * z
            G[c] *= w.dtype.type(fade)
            G[c] += step * step
            w[c] -= w.dtype.type(eta) * step / np.sqrt(G[c] + w.dtype.type(TINY))


def _shrink(w: np.ndarray, scale: np.ndarray, decay: Any) -> None:
    """Multiply the factor of every output; fold it into w before it leaves the safe range."""
    scale *= decay
    for c, s in enumerate(scale):
        if not 1e-6 < s < 1e6:
            w[c] *= w.dtype.type(s)
            scale[c] = 1.0
