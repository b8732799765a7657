"""Kernel expansions under a budget: Gram blocks on the device; the pass over their numbers there or here."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...kernels import Gaussian, Kernel
from ...rows import dense
from .maps import gaussian

State = dict[str, Any]


class Gaussians:
    """Gaussian kernel values between rows and support vectors that stay on the device.

    Parameters
    ----------
    ops : Ops
    gamma : float
    """

    def __init__(self, ops: Any, gamma: float):
        self.ops, self.gamma = ops, gamma
        self.S = torch.empty((0, 0))  # (capacity, d), the support vectors

    def support(self, state: State) -> torch.Tensor:
        """The support vectors; copied when there is another number of them than before."""
        if self.S.shape != state["support"].shape:
            self.S = self.ops.tensor(state["support"])
        return self.S

    def changed(self, state: State, slots: np.ndarray) -> None:
        """The support vectors ``slots`` of the state are new."""
        if self.S.shape != state["support"].shape:
            return
        at, vectors = self.ops.tensor(slots), self.ops.tensor(state["support"][slots])
        self.S[at] = vectors

    def between(self, X: torch.Tensor, S: torch.Tensor) -> torch.Tensor:
        """Kernel values of rows X (m, d) and vectors S (n, d); distances are taken about the mean of the rows."""
        middle = X.mean(dim=0)
        return gaussian(self.ops, X - middle, S - middle, self.gamma)


def expansion(ops: Any, kernel: Kernel, state: State) -> Any:
    """An ``Expansion`` of the engine of the processor; for a Gaussian kernel its kernel values come from the device.

    The python engine's passes do not say which support vectors they changed, so it keeps to itself.
    """
    base = ops.host.Expansion
    if type(kernel) is not Gaussian or ops.host.NAME != "native":
        return base(kernel, state)

    class DeviceExpansion(base):  # type: ignore[misc, valid-type]
        """Rows of a block are dense; see the engine of the processor."""

        block = ops.block

        def __init__(self) -> None:
            super().__init__(kernel, state)
            self.values = Gaussians(ops, float(kernel.gamma))  # type: ignore[attr-defined]
            self.passes: tuple[Any, Any] | None = None

        def removal(self, spec: Any, outputs: int) -> Any:
            """The device's pass for a spec, or None; made once."""
            from .removal import device_removal

            if self.passes is None or self.passes[0] is not spec:
                self.passes = spec, device_removal(ops, kernel, spec, outputs)
            return self.passes[1]

        def cut(self, X: Any, rows: slice) -> Any:
            return np.ascontiguousarray(dense(X[rows]))

        def _small(self, X: Any, n: int) -> bool:
            """Whether the processor is quicker; the support vectors then need not be kept up to date there."""
            small = ops.is_small(len(X), max(n, 1), X.shape[1])
            if small:
                self.values.S = torch.empty((0, 0))
            return small

        def columns(self, X: Any, state: State) -> np.ndarray:
            if self._small(X, state["n_support"]):
                return super().columns(X, state)
            n, capacity = state["n_support"], len(state["support"])
            K = np.zeros((len(X), capacity), state["support"].dtype)
            if n:
                S = self.values.support(state)[:n]
                K[:, :n] = self._host(self.values.between(ops.tensor(X), S))
            return K

        def among(self, X: Any) -> np.ndarray:
            if ops.is_small(len(X), len(X), X.shape[1]):
                return super().among(X)
            rows = ops.tensor(X)
            G = self._host(self.values.between(rows, rows))
            np.fill_diagonal(G, 1.0)
            return G

        def scores(self, X: Any, state: State, alpha: np.ndarray) -> np.ndarray:
            n = alpha.shape[1]
            if n == 0:
                return np.zeros((X.shape[0], len(alpha)))
            if self._small(X, n):
                return super().scores(dense(X), state, alpha)
            S = self.values.support(state)[:n]
            K = self.values.between(ops.tensor(dense(X)), S)
            with ops.full():
                return self._host((K @ ops.tensor(alpha).to(K.dtype).T).double())

        def changed(self, state: State, slots: np.ndarray) -> None:
            super().changed(state, slots)
            self.values.changed(state, slots)

        @staticmethod
        def _host(A: torch.Tensor) -> np.ndarray:
            return A.cpu().numpy()

    return DeviceExpansion()
