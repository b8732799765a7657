r"""Learned kernels (RRF) on the device, a mini-batch at a time.

Within a batch of rows neither the weights nor the kernel move, so its features, scores and gradients are matrix
products: with ``z = [cos, sin] / sqrt(D)``, G (b, C) the derivatives of the loss and ``Q = (G B) * cos - (G A) * sin``,

    dl/d(a, b) = G'Z,    dl/dtheta = sum over the rows of the spectrum's pull-back of Q.

The derivatives themselves are taken here, row by row where the running mean of the target needs it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ...core.center import follow, offset_of
from ...core.overflow import require_finite
from ...features.spectra import GUARD, Diagonal, LowRank, Mixture
from ...passes.learned.python import TINY_THETA
from ...rows import Rows, host
from ...state.nested import State
from ...updates import REACH, SETTLED, TINY
from .maps import far_middle

NAMES = ("w", "G", "theta", "theta0", "H", "sum_w", "sum_theta")


def rrf_pass(ops: Any, X: Any, y: Any, weight: Any, state: Any, spec: Any, learned: Any) -> np.ndarray:
    """Weights and kernel together: batches on the device; single rows and unknown spectra on the CPU."""
    spectrum, E, eta_g, batch_size = learned
    if batch_size == 1 or not is_known(spectrum) or ops.is_small(X.shape[0], state["w"].shape[1], X.shape[1]):
        return ops.host.rrf_pass(host(X), y, weight, state, spec, learned)
    with ops.products():
        return Batches(ops, state, spec.loss, spec.update, spectrum, E).learn(X, y, weight, eta_g, batch_size)


class Batches:
    """Weights and kernel of a model on the device for the time of a call.

    Parameters
    ----------
    ops : Ops
    state : dict
        See :func:`kernelstream.engine.python.rrf_pass`.
    loss, update
    spectrum : Spectrum
    E : (height, D)
        Fixed random part of the frequencies.
    """

    def __init__(self, ops: Any, state: State, loss: Any, update: Any, spectrum: Any, E: np.ndarray):
        self.ops, self.state, self.loss, self.update, self.spectrum = ops, state, loss, update, spectrum
        self.E, self.D = ops.tensor(E), E.shape[1]
        self.held = {name: ops.tensor(state[name]) for name in NAMES}
        self.W = spectrum.frequencies(self.held["theta"], self.E, torch)
        self.middle = torch.zeros(len(self.W), device=self.W.device)

    def learn(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, eta_g: float, batch_size: int) -> np.ndarray:
        """Scores of the rows before each update, (n, C); the state is up to date afterwards."""
        counted = np.ones(len(y), bool) if weight is None else weight > 0
        waiting = int(self.state["pending"][0]) + np.cumsum(counted)
        scores = np.empty((len(y), len(self.state["w"])))
        start = 0
        while start < len(y):
            # the batch ends with the row that completes it; the next one begins with waiting rows left over by none
            full = batch_size * ((waiting[start] - int(counted[start])) // batch_size + 1)
            stop = min(len(y), int(np.searchsorted(waiting, full)) + 1, start + 16 * self.ops.block)
            rows = slice(start, stop)
            scores[rows] = self._rows(X, rows, y[rows], np.ones(stop - start) if weight is None else weight[rows])
            if self.state["pending"][0] >= batch_size:
                self._step(eta_g)
            start = stop
        found = {name: tensor.cpu().numpy() for name, tensor in self.held.items()}
        require_finite(scores, *found.values())
        for name, array in found.items():
            self.state[name][...] = array
        return scores

    def _rows(self, X: Rows, rows: slice, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Rows that see the same weights: their scores; their gradients join the sums."""
        held, D = self.held, self.D
        given, inverse = self.ops.rows(X, rows, self.E.dtype), self.state["inverse_length"]
        x, U = given * inverse, self._angles(given, inverse)
        cos, sin = torch.cos(U), torch.sin(U)
        Z = torch.cat([cos, sin], dim=1).div_(math.sqrt(D))
        with self.ops.full():
            F = (Z @ held["w"].T).double().cpu().numpy()
        scores, gradients = self._gradients(F, y, weight)
        G = self.ops.tensor(gradients).to(Z.dtype)
        held["sum_w"] += G.T @ Z
        Q = ((G @ held["w"][:, D:]) * cos - (G @ held["w"][:, :D]) * sin).div_(math.sqrt(D))
        held["sum_theta"] += pull_back(self.spectrum, held["theta"], self.E, x, Q)
        return scores

    def _angles(self, given: torch.Tensor, inverse: float) -> torch.Tensor:
        """Angles of rows (m, d) by frequencies ``inverse W``; far rows about their mean, as :class:`~.maps.Fourier`."""
        c = far_middle(given, self.middle) if given.dtype == torch.float32 else None
        if c is None:
            return (given * inverse) @ self.W
        c = c.to(given.dtype)  # as it is taken off
        angles = torch.remainder((c.double() * inverse) @ self.W.double(), 2 * math.pi)
        return ((given - c) * inverse) @ self.W + angles.to(given.dtype)

    def _gradients(self, F: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores with the running mean of the target, and derivatives times the weights of the rows, (m, C)."""
        state, loss, update = self.state, self.loss, self.update
        center, memory, rate = state.get("center"), state["memory"], state["pending"][1]
        many = loss.kind == "multiclass"
        gradients, offsets = np.zeros_like(F), np.zeros(len(y))
        if many:
            gradients = loss.gradient(y.astype(np.int64), F)
        for i in range(len(y)):
            offsets[i] = offset_of(center)
            if weight[i] > 0:
                target = float(y[i]) - offsets[i]
                rate = update.rate(loss, target, 1.0, memory)
                if not many:
                    gradients[i] = update.limited(loss.gradient(target, float(F[i, 0])), loss, memory)
                follow(center, float(y[i]), weight[i])
        counted = int(np.count_nonzero(weight))
        state["t"] += counted
        state["pending"] += (counted, rate - state["pending"][1])
        return F + offsets[:, None], gradients * weight[:, None]

    def _step(self, eta_g: float) -> None:
        """AdaGrad along the mean gradient, theta within its guard; see the python engine."""
        held, (count, rate) = self.held, self.state["pending"]
        _adagrad(held["w"], held["G"], held["sum_w"] / count, rate, TINY)
        if eta_g > 0:
            theta, start = held["theta"], held["theta0"]
            gradient = held["sum_theta"] / count
            if self.state["t"] > SETTLED * count:  # see the python engine
                limit = torch.sqrt(held["H"] * (REACH * REACH * count / self.state["t"]))
                limit = torch.where(held["H"] > 0, limit, torch.inf)
                gradient = torch.minimum(torch.maximum(gradient, -limit), limit)
            _adagrad(theta, held["H"], gradient, eta_g, TINY_THETA)
            theta.copy_(torch.clamp(theta, start - GUARD, start + GUARD))
            self.W = self.spectrum.frequencies(theta, self.E, torch)
        held["sum_w"].zero_()
        held["sum_theta"].zero_()
        self.state["pending"][...] = 0.0


def _adagrad(w: torch.Tensor, G: torch.Tensor, gradient: torch.Tensor, eta: float, tiny: float) -> None:
    G += gradient * gradient
    w -= eta * gradient / torch.sqrt(G + tiny)


def is_known(spectrum: Any) -> bool:
    """Whether the device has the formulas of a spectrum."""
    return type(spectrum) in (Diagonal, Mixture, LowRank)


def pull_back(spectrum: Any, theta: torch.Tensor, E: torch.Tensor, x: torch.Tensor, Q: torch.Tensor) -> torch.Tensor:
    """``spectrum.pull_back`` summed over rows x (m, d) with Q (m, D)."""
    if isinstance(spectrum, Diagonal):
        return torch.exp(theta) * (x * (Q @ E.T)).sum(dim=0)
    if isinstance(spectrum, LowRank):
        return x.T @ (Q @ E.T)
    gradient = torch.empty_like(theta)
    for c, mine in enumerate(spectrum.slices(E.shape[1])):
        gradient[0, c] = torch.exp(theta[0, c]) * (x * (Q[:, mine] @ E[:, mine].T)).sum(dim=0)
        gradient[1, c] = x.T @ Q[:, mine].sum(dim=1)
    return gradient
