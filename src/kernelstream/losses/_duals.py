r"""Dual coordinate steps: what SDCA does with one row, on explicit features and in the kernel expansion alike.

The problem is ``1/2 ||f||^2 + sum_i a_i l(y_i, f(x_i))``. Row i owns a number beta_i, and ``f = sum_i beta_i s_i k(x_i,
.)`` with ``s_i = y_i`` for labels and 1 in regression. All other numbers fixed, the dual is largest at ``best(y, f,
beta, a, q)``, q = k(x_i, x_i) and f the score that includes beta; ``value(y, beta, a)`` is what a row adds to ``dual =
sum_i value_i - 1/2 ||f||^2``.

Shalev-Shwartz, Zhang: Stochastic dual coordinate ascent methods for regularized loss minimization, JMLR 14 (2013).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Dual(NamedTuple):
    """Step and dual value of a loss; ``start`` times a is where beta begins."""

    best: Callable[[float, float, float, float, float], float]
    value: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    start: float = 0.0


def _hinge(y: float, f: float, beta: float, a: float, q: float) -> float:
    return min(a, max(0.0, beta + (1.0 - y * f) / q))


def _squared_hinge(y: float, f: float, beta: float, a: float, q: float) -> float:
    return max(0.0, beta + (1.0 - y * f - beta / a) / (q + 1.0 / a))


def _squared(y: float, f: float, beta: float, a: float, q: float) -> float:
    return beta + (y - f - beta / a) / (q + 1.0 / a)


def _logistic(y: float, f: float, beta: float, a: float, q: float) -> float:
    """Root in (0, a) of ``u(b) + y f + q (b - beta)``, ``u = log(b/(a - b))``, by Newton steps in u (slope >= 1)."""
    rest = y * f - q * beta
    u = -y * f
    for _ in range(30):
        share = 0.5 * (1.0 + math.tanh(0.5 * u))  # b/a
        step = (u + rest + q * a * share) / (1.0 + q * a * share * (1.0 - share))
        u = min(max(u - step, -36.0), 36.0)
        if abs(step) < 1e-12 * (1.0 + abs(u)):
            break
    return a * 0.5 * (1.0 + math.tanh(0.5 * u))


def _entropy(y: np.ndarray, beta: np.ndarray, a: np.ndarray) -> np.ndarray:
    share = np.clip(beta / a, 1e-300, 1.0)
    rest = np.clip(1.0 - beta / a, 1e-300, 1.0)
    return -a * (share * np.log(share) + rest * np.log(rest))


HINGE = Dual(_hinge, lambda y, beta, a: beta)
SQUARED_HINGE = Dual(_squared_hinge, lambda y, beta, a: beta - beta * beta / (2.0 * a))
SQUARED = Dual(_squared, lambda y, beta, a: beta * y - beta * beta / (2.0 * a))
LOGISTIC = Dual(_logistic, _entropy, 0.5)  # the entropy needs an inner point to start from


def tube_dual(epsilon: float) -> Dual:
    def best(y: float, f: float, beta: float, a: float, q: float) -> float:
        free = beta + (y - f) / q
        return min(a, max(-a, math.copysign(max(0.0, abs(free) - epsilon / q), free)))

    return Dual(best, lambda y, beta, a: beta * y - epsilon * np.abs(beta))
