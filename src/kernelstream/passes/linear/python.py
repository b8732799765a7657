"""First-order learning on explicit features: the specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.center import follow, offset_of
from ...core.overflow import quiet, require_finite
from ...state import undo as _undo
from ...state.nested import State
from ...updates import TINY
from ..spec import Spec

ALL = slice(None)
SAFE = 1e-6  # a factor that weights have in common lies between this and its inverse


@quiet
def linear_pass(Z: Any, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Spec, unit: bool) -> np.ndarray:
    r"""Online learning on explicit features, rows in order; returns the scores before each update, (m, C).

    ``f_t = w'z_t``; ``(decay, tau) = step(loss, y_t, f_t, z_t'z_t, t)``; ``w <- decay w + tau z_t``. Diagonal updates
    move ``w_i <- w_i - eta g z_i / sqrt(G_i)``. The decay is kept as one factor ``scale`` per output; so is the fading
    of G where features are sparse, so that a row costs what its entries cost (averaging moves all means).

    Parameters
    ----------
    Z : (m, P) array or CSR
        Feature rows; ``unit`` says that every row has norm one.
    y : (m,) float64
        ±1, class codes or targets.
    weight : (m,) or None
        Factors of the gradient; a row of weight 0 is scored and skipped.
    state : dict
        ``w`` (C, P), ``scale`` (C,), ``memory``, ``t``; ``G`` (C, P) for diagonal updates, times ``G_scale`` (C,) where
        there is one; ``w_mean`` (C, P) for averaging; ``center`` (2,) = count and mean of the target when it is
        centred. Updated in place.
    """
    loss, update, average = spec.loss, spec.update, spec.average
    w, scale, memory = state["w"], state["scale"], state["memory"]
    center = state.get("center")
    many = loss.kind == "multiclass"
    scores = np.empty((Z.shape[0], len(w)))
    for i, (at, z) in enumerate(_rows(Z)):
        f = (w[:, at] @ z).astype(float) * scale
        offset = offset_of(center)
        scores[i] = ((state["w_mean"][:, at] @ z) if average else f) + offset
        importance = 1.0 if weight is None else float(weight[i])
        if importance == 0.0:
            continue
        state["t"] += 1
        k_xx = 1.0 if unit else float(z @ z)
        target: Any = int(y[i]) if many else float(y[i]) - offset
        decay, tau = update.step(loss, target, f if many else float(f[0]), k_xx, state["t"], memory)
        if update.diagonal:
            _diagonal(state, at, z, decay, np.atleast_1d(tau) * importance, update.fade)
        else:
            _shrink(w, scale, decay)
            for c, tau_c in enumerate(np.atleast_1d(tau) * importance):
                if tau_c != 0.0:
                    w[c, at] += w.dtype.type(tau_c / scale[c]) * z
        if average:
            state["w_mean"] += (w * scale[:, None].astype(w.dtype) - state["w_mean"]) / w.dtype.type(state["t"])
        follow(center, float(y[i]), importance)
    moved = (ALL, Z.indices) if sp.issparse(Z) else ALL
    squares = state["G"][moved] if update.diagonal else None
    require_finite(w[moved], squares, state.get("w_mean"), memory, scores)
    return scores


def _rows(Z: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Of each row the columns that it has, and its numbers there."""
    if not sp.issparse(Z):
        for z in Z:
            yield ALL, z
        return
    for start, end in zip(Z.indptr, Z.indptr[1:]):
        yield Z.indices[start:end], Z.data[start:end]


def _diagonal(state: State, at: Any, z: np.ndarray, eta: float, g: np.ndarray, fade: float) -> None:
    """AdaGrad: ``G_i <- fade G_i + (g z_i)^2``, ``w_i -= eta g z_i / sqrt(G_i)``."""
    w, G, faded = state["w"], state["G"], state.get("G_scale")
    one = w.dtype.type
    for c, g_c in enumerate(g):
        if g_c == 0.0:
            continue
        step = one(g_c) * z
        if faded is None:
            G[c] *= one(fade)
            G[c, at] += step * step
            w[c, at] -= one(eta) * step / np.sqrt(G[c, at] + one(TINY))
            continue
        faded[c] *= fade
        if not faded[c] > SAFE:
            _stretch(G, c, faded)
        G[c, at] += step * step / one(faded[c])
        w[c, at] -= one(eta) * step / np.sqrt(G[c, at] * one(faded[c]) + one(TINY))


def _shrink(w: np.ndarray, scale: np.ndarray, decay: Any) -> None:
    """Multiply the factor of every output; fold it into w before it leaves the safe range."""
    scale *= decay
    for c, s in enumerate(scale):
        if not SAFE < s < 1 / SAFE:
            _stretch(w, c, scale)


def _stretch(w: np.ndarray, c: int, scale: np.ndarray) -> None:
    """Fold the factor of one output into its weights."""
    _undo.rows(w, slice(c, c + 1))
    w[c] *= w.dtype.type(scale[c])
    scale[c] = 1.0
    require_finite(w[c])


def folded(state: State) -> State:
    """The state with squares of gradients that have no factor, ``G_scale = 1``."""
    scale = state.get("G_scale")
    if scale is None or (scale == 1.0).all():
        return state
    G = state["G"]
    return state | {"G": G * scale.astype(G.dtype)[:, None], "G_scale": np.ones_like(scale)}
