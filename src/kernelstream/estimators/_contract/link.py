r"""Probabilities for losses that have none: a link from scores to probabilities, learned beside the model.

A hinge or a squared loss gives scores that say which label is ahead, not how sure that is. ``learn`` returns the score
that each row had before it was learned, so the model knows how often such a score was right: a
:class:`~kernelstream.trust.Calibrator` (beta calibration of two classes, a slope and a shift for each of several)
follows the first 64 rows, and every eighth row from then on, which makes it cheap. Its numbers are two entries of the
state, ``link`` (48 numbers for two classes, 15 for each of several and six more) and ``link_rows``.

The answers keep to what the model predicts: they rise with the score, and the label that is predicted has the largest
probability. Where the calibrated answer would favour another label, the two share what they have.

Before the link has learned, and in a model file without one, a score of 1 counts as log-odds of 2.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ...core.overflow import SCORING
from ...random import generator
from ...rows import host
from ...state.schema import Array, Count, Schema
from ...trust.calibration import KEEP, Calibrator, probabilities

State = dict[str, Any]

DENSE = 64  # rows that are all followed
EVERY = 8  # later, one of so many
SLOPE = 1e-6  # log-odds of one unit of the score at which a label that is ahead must be the more probable one
AHEAD = 1e-9  # by which the predicted label is ahead of one that is as probable
PART = 2000  # rows from which a learner of all rows at once takes its link
HELD = 5  # one row of so many of them is held out
FEWEST = 20  # rows for which that makes sense
ORDER = 11  # stream of the seed that chooses them


def length(n_classes: int) -> int:
    """Numbers of a link."""
    return sum(part.size for part in Calibrator._start(n_classes).values())


def parts_of(link: np.ndarray, n_classes: int) -> dict[str, np.ndarray]:
    """The calibrator's arrays, views of the one array that holds them all."""
    found, start = {}, 0
    for name, like in Calibrator._start(n_classes).items():
        found[name] = link[start : start + like.size].reshape(like.shape)
        start += like.size
    return found


def flat(parts: dict[str, np.ndarray]) -> np.ndarray:
    """All arrays in one."""
    return np.concatenate([part.ravel() for part in parts.values()])


def schema(state: State) -> Schema:
    """The entries, where there are some: a model of a loss with probabilities has none, and old files neither."""
    if "link" not in state and "link_rows" not in state:
        return {}
    return {"link": Array((length(max(len(state["classes"]), 2)),)), "link_rows": Count()}


def grow(state: State, kept: np.ndarray, n_classes: int) -> None:
    """Class i so far is ``kept[i]`` of ``n_classes`` from now on."""
    if "link" not in state or n_classes == len(kept):
        return
    calibrator = Calibrator(len(kept), own=False)
    calibrator.state = parts_of(state["link"], len(kept))
    calibrator.grow(kept, n_classes)
    state["link"] = flat(calibrator.state)


def plain(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Scores (n, outputs) as a calibrator takes them: (n,) for two classes, else (n, n_classes)."""
    if scores.shape[1] == 1:
        return np.ascontiguousarray(scores[:, 0], np.float64)
    if n_classes == 2:
        return np.asarray(scores[:, 1] - scores[:, 0], np.float64)
    return np.ascontiguousarray(scores, np.float64)


def follow(est: Any, state: State, scores: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Learn from the scores (n, outputs) that rows had before they were learned, and their encoded labels (n,)."""
    n_classes = len(state["classes"])
    if n_classes < 2:
        return
    if "link" not in state:
        state |= {"link": flat(Calibrator._start(n_classes)), "link_rows": 0}
    rows = state["link_rows"]
    counted = None if weight is None else np.flatnonzero(weight > 0)
    n = len(y) if counted is None else len(counted)
    state["link_rows"] = rows + n
    taken = picked(rows, n)
    if not len(taken):
        return
    if counted is not None:
        taken = counted[taken]
    labels = y[taken]
    if scores.shape[1] == 1:
        labels = (labels > 0).astype(np.float64)
    chosen = plain(np.asarray(host(scores))[taken], n_classes)
    if not state["link"].flags.writeable:  # of a mapped file
        state["link"] = state["link"].copy()
    own = None if weight is None else np.ascontiguousarray(weight[taken])
    parts = parts_of(state["link"], n_classes)
    est._ops.calibrate(parts, chosen, labels, own, False, KEEP, np.empty_like(chosen))


def picked(rows: int, n: int) -> np.ndarray:
    """Which of n rows are followed, when there were ``rows`` before."""
    if rows >= DENSE:
        return np.arange(-rows % EVERY, n, EVERY)
    first = min(DENSE - rows, n)
    return np.concatenate([np.arange(first), np.arange(DENSE - rows, n, EVERY)])


def answers(est: Any, state: State, scores: np.ndarray) -> np.ndarray:
    """Probabilities (n, n_classes) of scores (n, outputs)."""
    n_classes = len(state["classes"])
    values = plain(np.asarray(scores), n_classes)
    link = state.get("link")
    parts = Calibrator._start(n_classes) if link is None else parts_of(np.array(link), n_classes)
    out = np.empty_like(values)
    est._ops.calibrate(parts, values, None, None, False, KEEP, out)
    if values.ndim == 1:
        ahead = values >= 0 if scores.shape[1] == 1 else values > 0
        least = SLOPE * np.tanh(values)
        p = probabilities(np.where(ahead, np.maximum(out, least + AHEAD), np.minimum(out, least)))
    else:
        p = _agreeing(probabilities(out), np.argmax(values, axis=1))
    if not np.isfinite(p).all():
        raise ValueError(SCORING)
    return p


def _agreeing(p: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Probabilities (n, C) whose largest is that of the predicted label: those above it share with it."""
    odd = np.flatnonzero(p.argmax(axis=1) != predicted)
    for i in odd:
        k = predicted[i]
        shared = p[i] >= p[i, k]
        p[i, shared] = p[i, shared].mean() * (1.0 - AHEAD)
        p[i, k] += 1.0 - p[i].sum()
    return p


def from_a_part(est: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
    """The link of a learner that takes all rows at once: a model like it learns some of them and forecasts others.

    At most 2,000 rows, of which every fifth is held out. Where they are too few, or lack a label, there is no link.
    """
    state = est._state
    n_classes = len(state["classes"])
    some = np.sort(generator(state["seed"], ORDER).permutation(len(y))[:PART])
    held = np.arange(len(some)) % HELD == 0
    train, asked = some[~held], some[held]
    if n_classes < 2 or len(some) < FEWEST or len(np.unique(y[train])) < n_classes:
        return
    part = clone(est)
    part._linkless = True
    part.random_state = int(state["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tolerance that was not reached was said of the whole
        part.fit(X[train], y[train], sample_weight=None if weight is None else weight[train])
    scores = part._scores(X[asked])
    labels = est._encode(state, y[asked])
    follow(est, state, scores, labels, None if weight is None else weight[asked])
