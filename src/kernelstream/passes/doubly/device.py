"""Doubly stochastic gradients on a device: :mod:`.descent` with weights and features there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...rows import Rows
from ...state.nested import State
from .blocks import FeatureBlocks
from .descent import Descent


class DeviceFeatureBlocks(FeatureBlocks):
    """Blocks whose scores are summed on the device; only kernels with Fourier features have them."""

    @cached_property
    def device(self) -> Any:
        """The blocks there."""
        return self.ops.doubly_blocks(self)

    def scores(self, X: Rows, A: np.ndarray, first: int = 0, together: bool = False) -> np.ndarray:
        if not self.kernel.is_fourier or len(A) == 0:
            return super().scores(X, A, first, together)
        with self.ops.products():
            return self.device.scores(self.device.rows(X), self.ops.tensor(A), first).cpu().numpy()


@dataclass
class DeviceDescent(Descent):
    """A :class:`Descent` whose training stays on the device; gradients of the loss are taken by the processor."""

    def train(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, steps: int, batch: int, seed: int
    ) -> None:
        if not self.blocks.kernel.is_fourier:
            super().train(state, X, y, weight, steps, batch, seed)
            return
        ops: Any = self.blocks.ops
        there = ops.doubly_training(self)
        held = state | {name: ops.tensor(state[name]) for name in ("alpha", "mean") if name in state}
        with ops.products():
            there.train(held, there.blocks.rows(X), y, weight, steps, batch, seed)
        state |= {name: value.cpu().numpy() if name in ("alpha", "mean") else value for name, value in held.items()}
