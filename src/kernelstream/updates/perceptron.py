"""The perceptron."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import flag, positive
from ..losses import Loss
from ._base import Update, register


@register
class Perceptron(Update):
    r"""Perceptron: on a mistake ``f <- f + eta y k(x, .)`` (Rosenblatt 1958).

    A mistake is a wrong predicted label (f = 0 predicts +1), whatever the loss; multi-class moves the true class up and
    the best wrong class down; regression moves by ``eta sign(y - f)`` wherever the loss is not zero.

    Parameters
    ----------
    eta : float
        Size of a step; it changes nothing but the scale of f in classification.
    ties : bool
        Whether f = 0 is acted on for both labels (y f <= 0, the Forgetron's rule) instead of for y = -1 only.
    """

    name = "perceptron"

    def __init__(self, eta: float = 1.0, ties: bool = False):
        self.eta = eta
        self.ties = ties

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        flag("ties", self.ties)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        if loss.kind == "binary":
            wrong = y * f <= 0 if self.ties else (f >= 0) != (y > 0)
            return 1.0, (self.eta * y if wrong else 0.0)
        if loss.kind == "regression":
            return 1.0, (math.copysign(self.eta, y - f) if loss.value(y, f) > 0 else 0.0)
        tau = np.zeros(len(f))
        best = int(np.argmax(f))
        if best != y:
            tau[best], tau[y] = -self.eta, self.eta
        return 1.0, tau
