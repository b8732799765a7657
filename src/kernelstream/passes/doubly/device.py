"""Doubly stochastic gradients on a device: the recursion of :mod:`.descent` with weights and features there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rows import Rows
from ...state.nested import State
from .blocks import FeatureBlocks
from .descent import LEAST_SHRINK, Descent, Diverged, batches, gradients


class DeviceFeatureBlocks(FeatureBlocks):
    """Blocks whose scores are summed on the device; only kernels with Fourier features have them."""

    @property
    def device(self) -> Any:
        """The blocks there."""
        held = self.__dict__.get("_device")
        if held is None:
            held = self._device = self.ops.doubly_blocks(self)
        return held

    def scores(self, X: Rows, A: np.ndarray, first: int = 0, together: bool = False) -> np.ndarray:
        if not self.kernel.is_fourier or len(A) == 0:
            return super().scores(X, A, first, together)
        return self.device.scores(X, A, first)


@dataclass
class DeviceDescent(Descent):
    """A :class:`Descent` whose training stays on the device; gradients of the loss are taken by the processor."""

    def train(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, steps: int, batch: int, seed: int
    ) -> None:
        if not self.blocks.kernel.is_fourier:
            super().train(state, X, y, weight, steps, batch, seed)
            return
        ops, device = self.blocks.ops, self.blocks.device  # type: ignore[attr-defined]
        n = X.shape[0]
        batch = min(batch, n)
        last = state["t"] + steps
        weights = ops.doubly_weights(state, last if self.max_blocks is None else self.max_blocks, bool(self.average))
        with ops.products():
            rows = device.rows(X)
            U = ops.tensor(np.zeros((n, state["n_outputs"]) if "n_outputs" in state else (n, weights.alpha.shape[2])))
            for i in range(weights.n):
                device.add_scores(rows, weights.alpha[i], i, U)
            for part in batches(n, batch, steps, seed):
                index = ops.tensor(part)
                F = state["offset"] + state["shrink"] * U[index].cpu().numpy()
                G = gradients(self.loss, y[part], F)
                G = G if weight is None else G * weight[part][:, None]
                delta, i = self._step(state, weights, rows[index], G, F, U)
                device.add_scores(rows, delta, i, U)
        weights.write(state)

    def _step(self, state: State, weights: Any, X: Any, G: np.ndarray, F: np.ndarray, U: Any) -> tuple[Any, int]:
        """One iteration for the rows X of a batch; returns what was added to the weights of which block."""
        ops, device = self.blocks.ops, self.blocks.device  # type: ignore[attr-defined]
        t = state["t"] + 1
        i, gamma = self.block_of(t), self.rate(t)
        Z = device.features(X, i)
        if self.precondition:
            direction = ops.doubly_conditioned(Z, G, F - state["offset"], self.damping, self.lam)
        else:
            direction = Z.T @ ops.tensor(G / len(G)).to(Z.dtype)
        shrink = state["shrink"] * self.decay(t)
        if shrink < LEAST_SHRINK:
            weights.alpha.mul_(shrink)
            U.mul_(shrink)
            shrink = 1.0
        delta = direction * (-gamma / shrink)
        if not bool(delta.isfinite().all()):
            raise Diverged(f"the scores grow without bound: steps of eta={self.eta:.3g} are too large")
        weights.add(i, delta)
        state |= {"t": t, "shrink": shrink}
        weights.average(self.share(t), shrink)
        return delta, i
