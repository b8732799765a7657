r"""Online learning on explicit features row after row, weights on a device.

The updates::

    AdaGrad:       G_j <- mu G_j + (g z_j)^2,   w_j <- w_j - eta g z_j / sqrt(G_j)
    (decay, tau):  w <- decay w + tau z
    averaging:     mean <- mean + (w - mean) / t

The features of a block are made at once. Then the rows come one by one: some calls of torch for each, which is right
for every device, loss and update; :mod:`.walk` is the same as one program of a GPU. (decay, tau) updates that it does
not know follow from Gram matrices (:mod:`.passes`), which takes less time than calls for every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...core.center import follow, offset_of
from ...losses import Loss
from ...state.nested import State
from ...updates import TINY, Update, unwrap
from .passes import DeviceFeaturePass


class EachRowPass(DeviceFeaturePass):
    """Weights, and where there are such squares of gradients and the mean of the iterates, on the device."""

    def __init__(self, ops: Any, mapping: Any, loss: Loss, update: Update, state: State):
        super().__init__(ops, mapping, loss, update, state)
        self.inner, self.average = unwrap(update)

    def _block(self, X: torch.Tensor, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """See :func:`kernelstream.passes.linear.python.linear_pass`."""
        state, loss, update, w = self.state, self.loss, self.inner, self.w
        center, many = state.get("center"), loss.kind == "multiclass"
        scores = np.empty((len(X), len(w)))
        Z = self._features(X)
        with self.ops.full():
            for i, z in enumerate(Z):
                f = (w @ z).double().cpu().numpy()
                offset = offset_of(center)
                scores[i] = ((self.answering @ z).double().cpu().numpy() if self.average else f) + offset
                importance = 1.0 if weight is None else float(weight[i])
                if importance == 0.0:
                    continue
                state["t"] += 1
                k_xx = 1.0 if self.map.unit else float(z @ z)
                target: Any = int(y[i]) if many else float(y[i]) - offset
                decay, tau = update.step(loss, target, f if many else float(f[0]), k_xx, state["t"], state["memory"])
                tau = self._outputs(np.atleast_1d(tau) * importance)
                if self.inner.diagonal:
                    self._diagonal(z, float(decay), tau)
                else:
                    w.mul_(self._outputs(np.broadcast_to(decay, len(w)))).addcmul_(tau, z)
                if self.average and "w_mean" in self.held:
                    mean = self.held["w_mean"]
                    mean += (w - mean) / state["t"]
                follow(center, float(y[i]), importance)
        return scores

    def _outputs(self, numbers: np.ndarray) -> torch.Tensor:
        """A number of each output, (C, 1) on the device."""
        return self.ops.tensor(np.array(numbers, float)[:, None], self.w.dtype)

    def _diagonal(self, z: torch.Tensor, eta: float, g: torch.Tensor) -> None:
        """AdaGrad of every weight; the squares of outputs whose derivative is 0 do not fade."""
        G, step = self.held["G"], g * z
        G.mul_(torch.ones_like(g).masked_fill_(g != 0, self.inner.fade)).addcmul_(step, step)
        self.w.addcdiv_(step, (G + TINY).sqrt_(), value=-eta)
