"""NORMA's novelty detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import fraction, positive
from ..losses import Loss
from ._base import Update


class Novelty(Update):
    r"""NORMA's novelty detection: ``f < rho`` adds ``eta k(x, .)`` (Kivinen, Smola, Williamson 2004).

    The threshold learns: ``rho -= (1 - nu) eta`` if f < rho, else ``rho += nu eta``. There is no target and no loss;
    :class:`~kernelstream.BudgetOneClass` uses it, and it is not among :func:`names`.
    """

    name = "novelty"
    n_memory = 1  # rho

    def __init__(self, eta: float = 0.05, lam: float = 0.01, nu: float = 0.1):
        self.eta = eta
        self.lam = lam
        self.nu = nu

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        if self.eta * self.lam >= 1:
            raise ValueError(f"eta * lam must be below 1, or nothing is remembered; got {self.eta!r} * {self.lam!r}")
        fraction("nu", self.nu)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        rho = memory[0, 0]
        memory[0, 0] = self._moved(rho, f)
        return 1.0 - self.eta * self.lam, self.eta if f < rho else 0.0

    def _moved(self, rho: float, f: float) -> float:
        return rho - (1 - self.nu) * self.eta if f < rho else rho + self.nu * self.eta

    def thresholds(self, f: np.ndarray, rho: float, weight: np.ndarray | None) -> np.ndarray:
        """rho before each of the rows with scores f (n,), given the first; rows of weight 0 leave it alone."""
        path = np.empty(len(f))
        for i, score in enumerate(f.tolist()):
            path[i] = rho
            if weight is None or weight[i] > 0:
                rho = self._moved(rho, score)
        return path
