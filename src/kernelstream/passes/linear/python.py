"""First-order learning on explicit features: the specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.center import follow, offset_of
from ...core.overflow import quiet, require_finite
from ...losses import Loss
from ...updates import TINY, Update, unwrap

State = dict[str, Any]


def spec(loss: Loss, update: Update) -> Any:
    """What a pass does to a row, in the form this engine's passes take; made once, used for many blocks."""
    inner, average = unwrap(update)
    return loss, inner, average


@quiet
def linear_pass(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Any, unit: bool
) -> np.ndarray:
    r"""Online learning on explicit features, rows in order; returns the scores before each update, (m, C).

    ``f_t = w'z_t``; ``(decay, tau) = step(loss, y_t, f_t, z_t'z_t, t)``; ``w <- decay w + tau z_t``. Diagonal updates
    move ``w_i <- w_i - eta g z_i / sqrt(G_i)``. The decay is kept as one factor ``scale`` per output.

    Parameters
    ----------
    Z : (m, P)
        Feature rows; ``unit`` says that every row has norm one.
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
