"""Specification of the pass that learns its kernel (reparameterised random features)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.center import follow, offset_of
from ...core.overflow import quiet, require_finite
from ...features.spectra import GUARD, Spectrum
from ...rows import Rows, dense
from ...state.nested import State
from ...updates import REACH, SETTLED, TINY

# As TINY, for theta: its gradients scale with the square of the target, so their squares can be far smaller.
TINY_THETA = 1e-20


class Learned(NamedTuple):
    """Frequencies as functions of theta, and how they are learned."""

    spectrum: Spectrum
    E: np.ndarray  # the fixed random part of the frequencies
    eta_g: float  # step of theta; 0 leaves the kernel as it is
    batch_size: int  # rows whose mean gradient makes one step


@quiet
def rrf_pass(
    X: Rows, y: np.ndarray, weight: np.ndarray | None, state: State, spec: Any, learned: Learned
) -> np.ndarray:
    r"""Online learning of weights and kernel together, rows in order; returns the scores before each update, (m, C).

    With frequencies ``w_j = w_j(theta)``, ``z = [cos w_j'x, sin w_j'x] / sqrt(D)`` and the weights of an output written
    as ``(a, b)``: ``f = a'cos + b'sin``; the loss gives ``g = dl/df``; then

    * ``dl/d(a, b) = g z``,
    * ``dl/d(w_j'x) = q_j = sum_c g_c (b_cj cos - a_cj sin)`` and ``dl/dtheta`` by the spectrum's ``pull_back`` of q,

    both at the state before the row, and both are taken by AdaGrad; theta stays within GUARD of its start. An update
    with ``lam`` takes plain steps along both instead, and ``lam w`` is added to the first.

    Parameters
    ----------
    X : (m, d) dense or CSR
    y : (m,) float64
        ±1, class codes or targets.
    weight : (m,) or None
        Factors of the gradient; a row of weight 0 is scored and skipped.
    state : dict
        ``w``, ``G`` (C, 2D) weights and their accumulated squares; ``theta``, ``theta0``, ``H`` parameters of the
        spectrum, their start and accumulated squares; ``inverse_length``; ``memory``, ``t``, ``center`` as in
        ``linear_pass``; with batches ``sum_w``, ``sum_theta`` and ``pending`` (rows in the unfinished batch, current
        step). Updated in place.
    spec
        From the engine's ``spec``, for an AdaGrad update.
    learned : Learned
    """
    loss, update, (spectrum, E, eta_g, batch_size) = spec.loss, spec.update, learned
    w, center = state["w"], state.get("center")
    D = E.shape[1]
    root, inverse_length = w.dtype.type(math.sqrt(D)), w.dtype.type(state["inverse_length"])
    many = loss.kind == "multiclass"
    scores = np.empty((X.shape[0], len(w)))
    for i in range(X.shape[0]):
        x = dense(X[i : i + 1])[0] * inverse_length
        u = x @ spectrum.frequencies(state["theta"], E)
        cos, sin = np.cos(u) / root, np.sin(u) / root
        z = np.concatenate([cos, sin])
        f = (w @ z).astype(float)
        offset = offset_of(center)
        scores[i] = f + offset
        importance = 1.0 if weight is None else float(weight[i])
        if importance == 0.0:
            continue
        state["t"] += 1
        target: Any = int(y[i]) if many else float(y[i]) - offset
        rate, g = update.step(loss, target, f if many else float(f[0]), 1.0, state["t"], state["memory"])
        follow(center, float(y[i]), importance)
        g = (np.atleast_1d(g) * importance).astype(w.dtype)
        q = g @ (w[:, D:] * cos - w[:, :D] * sin)
        by_w = np.outer(g, z)
        by_theta = spectrum.pull_back(state["theta"], E, x, q)
        lam = getattr(update, "lam", None)
        if lam is not None:  # as printed
            w -= w.dtype.type(rate) * (by_w + w.dtype.type(lam) * w)
            state["theta"] -= state["theta"].dtype.type(eta_g) * by_theta
            continue
        if batch_size == 1:
            _step(state, by_w, by_theta, rate, eta_g, 1)
            continue
        state["sum_w"] += by_w
        state["sum_theta"] += by_theta
        state["pending"] += (1.0, rate - state["pending"][1])
        if state["pending"][0] >= batch_size:
            rrf_finish(state, eta_g)
    require_finite(w, state["G"], state["theta"], state["H"], state["memory"], scores)
    return scores


def rrf_finish(state: State, eta_g: float) -> None:
    """Step along the mean gradient of the rows waiting in an unfinished batch, if there are any."""
    count, rate = state["pending"]
    if count:
        share = state["w"].dtype.type(1.0 / count)
        _step(state, state["sum_w"] * share, state["sum_theta"] * share, rate, eta_g, count)
        for name in ("sum_w", "sum_theta", "pending"):
            state[name][...] = 0


def _step(state: State, by_w: np.ndarray, by_theta: np.ndarray, rate: float, eta_g: float, rows: float) -> None:
    """AdaGrad along the mean gradient of some rows, on the weights, and on theta within its guard."""
    _adagrad(state["w"], state["G"], by_w, rate, TINY)
    if eta_g > 0:
        theta, start = state["theta"], state["theta0"]
        _adagrad(theta, state["H"], usual(by_theta, state["H"], rows, state["t"]), eta_g, TINY_THETA)
        np.clip(theta, start - theta.dtype.type(GUARD), start + theta.dtype.type(GUARD), out=theta)


def usual(gradient: np.ndarray, H: np.ndarray, rows: float, t: int) -> np.ndarray:
    """A gradient of theta, no entry of it larger than REACH roots of the mean square of those before it.

    The gradient scales with the cells of the row, and a single outlier would stop its column from learning. ``H``
    holds the sums of squares, one for every ``rows`` of the t rows so far.
    """
    if t <= SETTLED * rows:
        return gradient
    limit = H * H.dtype.type(REACH * REACH * rows / t)
    return np.where((H > 0) & (gradient * gradient > limit), np.copysign(np.sqrt(limit), gradient), gradient)


def _adagrad(w: np.ndarray, G: np.ndarray, gradient: np.ndarray, eta: float, tiny: float) -> None:
    """``G += gradient^2``, ``w -= eta gradient / sqrt(G)``."""
    G += gradient * gradient
    w -= w.dtype.type(eta) * gradient / np.sqrt(G + w.dtype.type(tiny))
