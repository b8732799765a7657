r"""Kernel functions at some rows in a learned metric, shrunk by how well they have predicted recently.

.. math:: g(x) = \mu + b\, (f(x) - \mu), \quad
          f(x) = o + \sum_i a_i e^{-\|R(x - x_i)\|} + \sum_i b_i e^{-\sum_j s_j |x_j - x_{ij}|}, \quad
          b = \frac{\sum_t \gamma^{-t} (f_t - \mu_t)(y_t - \mu_t)}{\sum_t \gamma^{-t} (f_t - \mu_t)^2} \in [0, 1]

Rows have columns of deviation 1, with far values drawn in. The function was solved on earlier rows, separately for each
leaf of a tree of cuts; b, with a memory of some hundred rows, is the slope of a regression of the targets on its
forecasts, which is near 0 if the stream has left it behind. :math:`\mu` is the recent mean of the target; labels are -1
and 1, one against the rest, and their :math:`\mu` is 0. The compiled twin is cpp/passes/metric.hpp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.arrays import exponential_sums, squashed

FADE = 0.99  # gamma
LATELY = 1000  # rows that mean and variance of the target are of, at most
FLOOR = 0.03  # what is left of a probability below 0
FARTHEST = 1e30  # deviations from the mean that a value may have
TRUST = 10.0  # both sums of b at the start


class Leaf(NamedTuple):
    """Rows that a function with C outputs is made of; kernel values are in their type."""

    near: np.ndarray  # m rows R x as `tiles` of the engine has them
    apart: np.ndarray  # rows s x, likewise
    A: np.ndarray  # (C, m)
    B: np.ndarray  # (C, m)


class Functions(NamedTuple):
    """Kernel functions with C outputs, one for each leaf."""

    middle: np.ndarray  # (d,): of the columns, and
    unit: np.ndarray  # (d,): their deviations
    root: np.ndarray  # R (d, d), or (d,)
    scales: np.ndarray  # s (d,)
    directions: np.ndarray  # (cuts, d) and
    thresholds: np.ndarray  # (cuts,): see `leaf_of`
    leaves: list[Leaf]
    offset: np.ndarray  # o (C,)
    labels: bool


def leaf_of(Z: np.ndarray, directions: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The leaves (n,) of rows Z (n, d): down a full tree of cuts, by levels, to the right where ``v'z`` is larger."""
    node, cuts = np.zeros(len(Z), np.intp), len(thresholds)
    while (node < cuts).any():
        along = np.einsum("ij,ij->i", Z, directions[node], dtype=np.float64)
        node = 2 * node + 1 + (along > thresholds[node])
    return node - cuts


def start_following() -> np.ndarray:
    """Before the first forecast: the sums of b; rows, mean and variance of the target."""
    return np.array([TRUST, TRUST, 0.0, 0.0, 0.0])


def metric_pass(
    X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None, follow: np.ndarray, functions: Functions
) -> np.ndarray:
    """Forecasts (n, C) before each row, log-odds or logarithms of probabilities for labels.

    Parameters
    ----------
    X : (n, d) float64
    y : (n,) or None
        BlockTargets, or codes of labels; None learns nothing.
    weight : (n,) or None
    follow : (5,)
        See :func:`start_following`; changed in place.
    functions : Functions
    """
    scores = np.empty((len(X), len(functions.offset)))
    for t, x in enumerate(X):
        f = _values(x, functions)
        mean = 0.0 if functions.labels else follow[3]
        away = f - mean
        g = mean + min(max(follow[0] / follow[1], 0.0), 1.0) * away
        scores[t] = logarithms(g[None])[0] if functions.labels else g
        importance = 1.0 if weight is None else float(weight[t])
        if y is not None and importance > 0.0:
            _follow(away, float(y[t]), importance, follow, functions.labels)
    return scores


def _values(x: np.ndarray, functions: Functions) -> np.ndarray:
    far = np.clip((x - functions.middle) / functions.unit, -FARTHEST, FARTHEST)
    row = squashed(far)
    R = functions.root
    z = row * R if R.ndim == 1 else (row[:, None] * R).sum(axis=0)  # in the order of the columns
    leaf = functions.leaves[leaf_of(z[None], functions.directions, functions.thresholds)[0]]
    kinds = (z, leaf.near, leaf.A, 2), (row * functions.scales, leaf.apart, leaf.B, 1)
    near, apart = (exponential_sums(x[None].astype(S.dtype), S, A, norm, 1.0)[0] for x, S, A, norm in kinds)
    return near + apart + functions.offset


def _follow(away: np.ndarray, y: float, importance: float, follow: np.ndarray, labels: bool) -> None:
    C = len(away)
    if labels:
        target = np.where(y > 0.5 if C == 1 else np.arange(C) == y, 1.0, -1.0)
        unit = float(C)
    else:
        target, unit = y - follow[3], follow[4] if follow[4] > 0 else 1.0
    follow[0] = FADE * follow[0] + importance * ((away * target).sum() / unit)
    follow[1] = FADE * follow[1] + importance * ((away * away).sum() / unit)
    follow[2] = min(follow[2] + 1, LATELY)
    if not labels:
        follow[3] += (y - follow[3]) / follow[2]
        follow[4] += ((y - follow[3]) ** 2 - follow[4]) / follow[2]


def logarithms(F: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities from scores F (n, C) for codes -1 and 1; of one score, the log-odds."""

    def of(q: np.ndarray) -> np.ndarray:
        return np.log((q + np.sqrt(q * q + 4 * FLOOR**2)) / 2)

    return of((1 + F) / 2) - of((1 - F) / 2) if F.shape[1] == 1 else of((1 + F) / 2)
