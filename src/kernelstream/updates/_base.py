"""Base of all updates, and the catalogue of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..losses import Loss
from ..registry.names import Catalogue
from ..registry.parameters import WithParameters
from ..registry.twins import numbers_of
from ..state.change import Change


class Update(WithParameters):
    """Base of all updates: immutable parameters, one method ``step``."""

    name: ClassVar[str] = ""
    n_memory: ClassVar[int] = 0  # rows of `memory`
    n_shared: ClassVar[int] = 0  # how many of them, the first, serve all outputs together and use column 0 only
    diagonal: ClassVar[bool] = False  # True: needs explicit features and an array as large as w
    fade: float = 1.0  # of a diagonal update: factor of its sums of squares before each row

    def check(self, loss: Loss) -> None:
        """Raise ValueError for parameters out of range or a loss this update cannot serve."""

    def memory(self, n_outputs: int, n_weights: int = 1) -> np.ndarray:
        """Initial memory, (n_memory, n_outputs); ``n_weights`` is the number of explicit features."""
        return np.zeros((self.n_memory, n_outputs))

    def carry(self, memory: np.ndarray, change: Change) -> np.ndarray:
        """Memory when the outputs change: columns follow their output, new ones start empty."""
        carried = np.where(change.fresh, self.memory(len(change)), memory[:, change.source])
        carried[: self.n_shared, 0] = memory[: self.n_shared, 0]
        return carried

    def step(self, loss: Loss, y: Any, f: Any, k_xx: float, t: int, memory: np.ndarray) -> tuple[Any, Any]:
        """``(decay, tau)`` for a row with target y, score f, ``k(x, x)`` and number t = 1, 2, …"""
        raise NotImplementedError

    def native(self) -> tuple[str, list[float]] | None:
        """Name and parameters of the compiled twin, which has the update's own name; None unless all are numbers."""
        return numbers_of(self)


CATALOGUE = Catalogue("update", Update)
register, names, get = CATALOGUE.register, CATALOGUE.names, CATALOGUE.get
