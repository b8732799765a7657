r"""Probabilities and intervals that follow a stream, row by row; cpp/passes/trust.hpp is the compiled twin.

**Calibration of two classes.** A score s, in log-odds, becomes

.. math:: q = a \log(1 + e^s) - b \log(1 + e^{-s}) + c \tanh s + d,

which is s itself for a = b = 1, c = d = 0: beta calibration [1]_ and a bend in the middle, where the scores of a margin
have one. Several such answers, each with its own memory, learn by online Newton steps on the log-loss with a pull
back to the identity,

.. math:: H \leftarrow \lambda H + v (p - y)^2 z z' + (1 - \lambda) h_0 I, \qquad
          \theta \leftarrow \theta - H^{-1} \left(v (p - y) z + (1 - \lambda) h_0 (\theta - \theta_0)\right),

v being the weight of the row next to the mean weight so far (so that their unit does not matter, and h_0 is never lost
beside them), with slopes that stay positive (a larger score is never less probable), and are mixed, with the raw score
among them, by the probability that each gave to the truth (Bayes with a fixed share). Whatever comes, the sum of
log-losses is at most that of the raw scores plus ``log(answers)`` plus the share of a row for every row.

**Several classes.** :math:`q_c = a_c s_c + b_c` of centred scores, a 2 by 2 curvature for each class, half a step each
(the whole curvature is at most twice its blocks).

**Intervals.** Trackers with several step sizes follow a quantile of the errors, in units of their running size,
:math:`q \leftarrow q + \eta ([u > q] - \alpha)` (adaptive conformal inference [2]_). They are averaged by their
pinball losses [3]_, and the average is multiplied by a factor that follows the coverage itself,
:math:`c \leftarrow c + \gamma ([\text{missed}] - \alpha)`: over n rows the share of misses differs from alpha by
exactly the change of c, over gamma n.

.. [1] Kull, Silva Filho, Flach: Beta calibration, AISTATS 2017.
.. [2] Gibbs, Candès: Adaptive conformal inference under distribution shift, NeurIPS 2021.
.. [3] Zaffran, Féron, Goude, Josse, Dieuleveut: Adaptive conformal predictions for time series, ICML 2022.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

WIDEST = 30.0  # scores and log-odds are kept within
PRIOR = 5.0  # curvature at the start, and the least there is
SHARE = 1e-4  # part of all weight that is spread evenly after a row
MEMORY = 1e4  # rows over which the size of scores is averaged
LARGEST = 1e300  # square of a score that is counted
RAW = 2.0  # log-odds of a score of usual size, where scores are not log-odds
FLAT = 0.01  # least slope of an answer: a larger score is never less probable
LOWER = {n: np.tril_indices(n) for n in (2, 4)}  # places of a curvature's entries, for n coefficients
EVERY = 2  # a link learns one row in EVERY, which counts for all of them

TRACK_STEP = 0.005  # of the factor that corrects the coverage
TRACK_MEMORY = 1000.0  # rows over which the size of errors is averaged
TRACK_FAR = 10.0  # most times the usual error that an error counts for
TRACK_RATE = 5.0  # of the weights of the trackers
TRACK_SHARE = 1e-3


def calibrate(
    state: dict[str, np.ndarray],
    scores: np.ndarray,
    y: np.ndarray | None,
    weight: np.ndarray | None,
    own: bool,
    keep: np.ndarray,
    out: np.ndarray,
    times: float = 1.0,
) -> None:
    """Calibrated answers before each row; with labels, the rows are learned one by one.

    Parameters
    ----------
    state : dict
        ``size`` (3,), the rows counted, their mean square of scores and mean weight; ``weights`` (E + 1,) of the raw
        score and of the answers; ``theta`` (E, 4) or (E, C, 2); ``curvature`` (E, 10) or (E, C, 3), lower triangles of
        H. Changed in place where there are labels.
    scores : (n,) array for two classes, else (n, C)
    y : (n,) array of the numbers of the classes, or None
    weight : (n,) array or None
    own : bool
        Whether the scores are log-odds (or logarithms of probabilities, up to a constant); else they have no unit.
    keep : (E,) array
        The lambda of each answer.
    out : like scores
        Log-odds of class 1, or logarithms of probabilities.
    times : float
        How many rows each one stands for.
    """
    size, weights, theta, curvature = (state[name] for name in ("size", "weights", "theta", "curvature"))
    one = _two if scores.ndim == 1 else _several
    for i, row in enumerate(scores):
        out[i], parts = one(row, own, size, weights, theta)
        importance = 0.0 if y is None else 1.0 if weight is None else float(weight[i])
        if y is not None and importance > 0.0:
            _count(size, row if scores.ndim == 1 else row - row.mean(), importance)
            _learn(parts, int(y[i]), times * importance / size[2], keep, weights, theta, curvature)


def _count(size: np.ndarray, centred: Any, importance: float) -> None:
    """Enter a row into the running means."""
    with np.errstate(over="ignore"):
        square = min(float(np.mean(centred**2)), LARGEST)
    size[0] += 1.0
    size[1] += (square - size[1]) / min(size[0], MEMORY)
    size[2] += (importance - size[2]) / size[0]


def _unit(size: np.ndarray, own: bool) -> float:
    """Factor of scores that makes log-odds of them."""
    if own:
        return 1.0
    return RAW / math.sqrt(size[1]) if size[1] > 0 else 0.0


def _two(score: Any, own: Any, size: Any, weights: Any, theta: Any) -> Any:
    """Log-odds of a row, its inputs (1, 4), and the probabilities of all answers (E + 1, 2)."""
    s = np.clip(score * _unit(size, own), -WIDEST, WIDEST)
    z = np.array([np.logaddexp(0.0, s), -np.logaddexp(0.0, -s), np.tanh(s), 1.0])
    q = np.concatenate([[s], np.clip(theta @ z, -WIDEST, WIDEST)])
    p = np.stack([1 / (1 + np.exp(q)), 1 / (1 + np.exp(-q))], axis=1)
    no, yes = weights @ p
    return math.log(yes) - math.log(no), (z[None], p)


def _several(scores: Any, own: Any, size: Any, weights: Any, theta: Any) -> Any:
    """Logarithms of probabilities of a row, its inputs (C, 2), and the probabilities of all answers (E + 1, C)."""
    s = np.clip((scores - scores.mean()) * _unit(size, own), -WIDEST, WIDEST)
    q = np.concatenate([s[None], np.clip(theta[..., 0] * s + theta[..., 1], -WIDEST, WIDEST)])
    p = np.exp(q - q.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.log(weights @ p), (np.stack([s, np.ones_like(s)], axis=1), p)


def _learn(parts: Any, label: Any, importance: Any, keep: Any, weights: Any, theta: Any, curvature: Any) -> None:
    """Weigh the answers by the probability they gave to the label, then move each."""
    inputs, p = parts
    truth = p[:, label]
    posterior = weights * (truth / truth.max()) ** importance
    weights[:] = (1 - SHARE) * posterior / posterior.sum() + SHARE / len(weights)
    wrong = p[1:] - (np.arange(p.shape[1]) == label)
    several = theta.ndim == 3
    start = np.array([1.0, 0.0] if several else [1.0, 1.0, 0.0, 0.0])
    if not several:  # one class, the second, whose log-odds they are
        wrong, theta, curvature = wrong[:, 1:], theta[:, None], curvature[:, None]
    n = inputs.shape[1]
    lower, H = LOWER[n], np.empty((*wrong.shape, n, n))
    keep, wrong = keep[:, None, None], wrong[..., None]
    pull = (1 - keep) * PRIOR
    outer = wrong[..., None] ** 2 * (inputs[:, :, None] * inputs[:, None]) * importance + pull[..., None] * np.eye(n)
    curvature[:] = keep * curvature + outer[..., *lower]
    H[..., *lower] = H.swapaxes(2, 3)[..., *lower] = curvature
    gradient = importance * wrong * inputs + pull * (theta - start)
    theta -= (0.5 if several else 1.0) * np.linalg.solve(H, gradient[..., None])[..., 0]
    _rise(theta)


def _rise(theta: np.ndarray) -> None:
    """Change coefficients (E, C, 2) or (E, 1, 4) in place so that the answers rise with the score."""
    slopes = theta[..., : theta.shape[2] // 2]
    np.maximum(slopes, FLAT, out=slopes)
    if theta.shape[2] == 4:  # the slope is at least min(a, b) + c where tanh is steepest
        np.maximum(theta[..., 2], FLAT - slopes.min(axis=2), out=theta[..., 2])


def link_parts(link: np.ndarray, classes: int, answers: int) -> dict[str, np.ndarray]:
    """The state of :func:`calibrate` that follows the number of rows in one array, as views of it."""
    tail = ((4,), (10,)) if classes == 2 else ((classes, 2), (classes, 3))
    shapes = {"size": (3,), "weights": (answers + 1,), "theta": (answers, *tail[0]), "curvature": (answers, *tail[1])}
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    return {
        name: part.reshape(shape)
        for (name, shape), part in zip(shapes.items(), np.split(link[1:], ends[:-1]), strict=True)
    }


def follow(
    link: np.ndarray, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None, classes: int, keep: np.ndarray
) -> None:
    """Learn the scores that rows had before they were learned, which are not log-odds; every second row counts as two.

    Parameters
    ----------
    link : (k,) array
        Rows seen, then see :func:`link_parts`. Changed in place.
    scores : (n, outputs) array
    y : (n,) array
        -1 or 1 for one output, else numbers of classes.
    weight : (n,) array or None
    classes : int
    keep : (E,) array
    """
    if scores.shape[1] == 1:
        scores, y = scores[:, 0], (y > 0).astype(np.float64)
    elif classes == 2:
        scores = scores[:, 1] - scores[:, 0]
    counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    taken = counted[int(-link[0]) % EVERY :: EVERY]
    link[0] += len(counted)
    parts, scores = link_parts(link, classes, len(keep)), scores[taken]
    factor = None if weight is None else weight[taken]
    calibrate(parts, scores, y[taken], factor, False, keep, np.empty_like(scores), EVERY)


def doubts(scores: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Probability that forecasts gave to all labels but the true one, 1 - P(y), (n,).

    Parameters
    ----------
    scores : (n, C) array
        Log-odds for C = 1, else logarithms of probabilities up to a constant.
    y : (n,) array
        -1 or 1 for C = 1, else numbers of classes.
    out : (n,) array
    """
    if scores.shape[1] == 1:
        margin = y * scores[:, 0]
        e = np.exp(-np.abs(margin))
        out[:] = np.where(margin >= 0, e, 1.0) / (1.0 + e)
        return
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    total = e.sum(axis=1)
    e[np.arange(len(y)), y.astype(np.intp)] = 0.0
    out[:] = e.sum(axis=1) / total


def track(
    state: dict[str, np.ndarray], errors: np.ndarray, levels: np.ndarray, steps: np.ndarray, half: np.ndarray
) -> None:
    """Half-widths of intervals before each error, which is then learned.

    Parameters
    ----------
    state : dict
        ``size`` (2,), the rows counted and their usual error; ``quantiles`` and ``weights`` (L, E); ``factors`` (L,).
        Changed in place.
    errors : (n,) array
        Absolute errors of forecasts.
    levels : (L,) array
        Coverages.
    steps : (E,) array
        Step sizes, in units of the usual error.
    half : (n, L) array
        Infinite before the first error.
    """
    size, quantiles, weights, factors = (state[name] for name in ("size", "quantiles", "weights", "factors"))
    miss = 1 - levels
    for i, r in enumerate(errors):
        usual = float(size[1])
        if size[0] == 0:
            half[i] = np.inf
        else:
            u = min(r / usual, 1e6) if usual > 0 else 1e6 * (r > 0)
            half[i] = np.maximum(factors, 0.0) * (weights * quantiles).sum(axis=1) * usual
            factors += TRACK_STEP * ((r > half[i]) - miss)
            over = u - quantiles
            loss = np.where(over > 0, levels[:, None] * over, -miss[:, None] * over)
            weights *= np.exp(-TRACK_RATE * np.minimum(loss, TRACK_FAR))
            weights /= weights.sum(axis=1, keepdims=True)
            weights[:] = (1 - TRACK_SHARE) * weights + TRACK_SHARE / len(steps)
            quantiles[:] = np.maximum(quantiles + steps * ((over > 0) - miss[:, None]), 0.0)
        size[0] += 1
        counted = min(r, TRACK_FAR * usual) if usual > 0 else r
        size[1] += (counted - usual) / min(size[0], TRACK_MEMORY)
