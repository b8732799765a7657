"""Which learners learn a row: the random choice, made several rows ahead where that is possible."""

from __future__ import annotations

import numpy as np

from ...passes.ensemble.python import Hedge
from ...random import Stream, uniforms


def chances(seed: int, t: int, weight: np.ndarray | None, n: int, learners: int) -> np.ndarray:
    """Uniform numbers of n rows after row t, (n, learners); a row of weight 0 gets those of the next."""
    counted = np.arange(n) if weight is None else np.cumsum(weight > 0) - (weight > 0)
    rows = int(counted[-1]) + 1
    u = uniforms(seed, t * learners, rows * learners, Stream.MEMBER_CHOICE).reshape(rows, learners)
    return u if weight is None else u[counted]


def drawn(
    log_theta: np.ndarray, u: np.ndarray, weight: np.ndarray | None, smoothing: float, hedge: Hedge
) -> np.ndarray:
    """Which learners are drawn to learn, (rows, m), for as many of the next rows as is certain now: at least one.

    Learner i updates with probability ``(1 - delta) r_i + delta``, ``r_i = theta_i / max theta``. A row of weight w
    changes r_i by a factor between ``exp(-rate w)`` and ``exp(rate w)``, whether all learners pay for their mistakes or
    only those drawn, and fixed share then raises it by at most ``share``. Where the uniform numbers u (n, m) lie
    outside of that range, the choice does not depend on the rows in between.
    """
    n = len(u)
    steps = np.full(n, hedge.rate) if weight is None else hedge.rate * weight
    moved = np.concatenate([[0.0], np.cumsum(steps[:-1])])[:, None]  # before each row
    gap = log_theta - log_theta.max()
    low = np.exp(gap - moved)
    high = np.exp(np.minimum(gap + moved, 0.0))
    if hedge.share:  # r <- min(1, r exp(rate w)) + share, row by row
        high = high + hedge.share * np.arange(n)[:, None] * np.exp(np.minimum(moved, 700.0))
    below = u < (1 - smoothing) * low + smoothing
    above = u >= (1 - smoothing) * np.minimum(high, 1.0) + smoothing
    settled = (below | above).all(axis=1)
    rows = n if settled.all() else max(1, int(np.argmin(settled)))
    return below[:rows]
