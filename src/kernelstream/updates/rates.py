"""Step sizes: those that keep a step stable, and automatic ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import positive
from ..losses import Loss

TINY = 1e-12  # keeps the square roots of AdaGrad away from 0 / 0
REACH = 10.0  # deviations of the target up to which a residual counts, where steps are automatic
SETTLED = 8  # rows after which the deviation can be relied on


def stable_rate(eta: float, loss: Loss, k_xx: float) -> float:
    """The step eta, or where the derivative of the loss has no bound at most ``1/k(x, x)``."""
    return 1.0 / k_xx if loss.bound is None and eta * k_xx > 1.0 else eta


def check_auto(eta: float | str) -> None:
    """Accept "auto" or a positive number."""
    if eta != "auto":
        if isinstance(eta, str):
            raise ValueError(f"eta must be a number > 0 or 'auto', got {eta!r}")
        positive("eta", eta)


def auto_rate(factor: float, loss: Loss, y: Any, k_xx: float, memory: np.ndarray) -> float:
    """``factor / sqrt(mean k(x, x))``, in regression times 0.3 × the deviation of y, both over the rows so far.

    Column 0 of ``memory`` holds the number of rows, mean and sum of squared deviations of y, and mean k(x, x). A
    kernel or a target in other units then gives the same model in those units.
    """
    memory[0, 0] += 1
    memory[3, 0] += (k_xx - memory[3, 0]) / memory[0, 0]
    rate = factor / math.sqrt(memory[3, 0]) if memory[3, 0] > 0 else 0.0
    if loss.kind != "regression":
        return rate
    delta = y - memory[1, 0]
    memory[1, 0] += delta / memory[0, 0]
    memory[2, 0] += delta * (y - memory[1, 0])
    return rate * 0.3 * math.sqrt(memory[2, 0] / memory[0, 0])


def within_reach(g: Any, loss: Loss, memory: np.ndarray) -> Any:
    """The derivative g of a row after :func:`auto_rate`: at most REACH deviations of the target, where it has no bound.

    So a single row cannot throw the weights off, nor make AdaGrad's sums so large that it stops learning.
    """
    count, squares = memory[0, 0], memory[2, 0]
    if loss.kind != "regression" or loss.bound is not None or count <= SETTLED:
        return g
    reach = REACH * math.sqrt(squares / count)
    return min(max(g, -reach), reach)
