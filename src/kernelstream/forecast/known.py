r"""Columns known in advance: what their next values change in the forecasts of a ridge regression on the past.

.. math:: y_{t+h} \approx f_{t+h} + u_t\, \theta_h' \phi_{t+h}, \qquad
          \phi = (1, z, z^2, d, d z, d \cos, d \sin, e, e z), \quad d = z_{t+h} - z_{t+h-\text{season}},
    \quad e = z_{t+h} - z_t,

with z the encoded columns and cos, sin the waves of the day. The errors of f that teach it were made before their rows
were learned.
"""

from __future__ import annotations

import numpy as np

from ..columns import Columns
from ..columns.dates import DAY
from .clock import StepClock

Sums = tuple[np.ndarray, np.ndarray]

LAM = 10.0  # next to the sum of squares
WIDEST = 10  # columns that the encoder may make of one
FAR = 5.0  # deviations, within which encoded columns are kept
ONE_HOT = 6


def encoder(engine: str) -> Columns:
    """What turns words, gaps and numbers into columns."""
    return Columns(one_hot=ONE_HOT, engine=engine)


def encoded(made: np.ndarray, width: int) -> np.ndarray:
    """Rows (n, width) of what an encoder has made of them."""
    out = np.zeros((len(made), width))
    used = min(width, made.shape[1])
    out[:, :used] = np.clip(made[:, :used], -FAR, FAR)
    return out


def width(columns: int) -> int:
    """Encoded columns of some, with room for categories that have not come yet."""
    return columns * WIDEST


def count(q: int) -> int:
    """Columns of phi for q encoded ones; none where there are none."""
    return 8 * q + 1 if q else 0


def columns(z: np.ndarray, before: np.ndarray, last: np.ndarray, times: np.ndarray, clock: StepClock) -> np.ndarray:
    """The columns phi (n, H, count) of values z (n, H, q), a season before and ``last`` (n, q), at times (n, H)."""
    n, H, _ = z.shape
    d, e, waves = z - before, z - last[:, None], np.zeros((n, H, 2))
    if clock.unit == "seconds":
        angle = 2 * np.pi * (times % DAY) / DAY
        waves = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    moved = [d, d * z, d * waves[..., :1], d * waves[..., 1:], e, e * z]
    return np.concatenate([np.ones((n, H, 1)), z, z * z, *moved], axis=2)


def added(gram: np.ndarray, moment: np.ndarray, phi: np.ndarray, errors: np.ndarray, weight: np.ndarray) -> Sums:
    """The sums (H, p, p) and (H, p, m) with rows phi (n, H, p), errors (n, H, m) and weights (n, H, m); new arrays."""
    rows, weighted = phi.transpose(1, 2, 0), (errors * weight).transpose(1, 0, 2)
    every = phi * weight.mean(axis=2, keepdims=True)
    return gram + rows @ every.transpose(1, 0, 2), moment + rows @ weighted


def solved(gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Coefficients (H, p, m)."""
    return np.linalg.solve(gram + LAM * np.eye(gram.shape[1]), moment)
