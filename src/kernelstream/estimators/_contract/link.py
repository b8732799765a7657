r"""Probabilities for losses without: a link from scores to probabilities that is learned beside the model.

A hinge or a squared loss gives scores that say which label is ahead, but not how certain that is. ``learn`` returns the
score that each row had before it was learned, so the model knows how often such a score was right: a
:class:`~kernelstream.trust.Calibrator` (beta calibration of two classes, a slope and a shift for each of several)
follows every second row, which counts as two. Its numbers are one entry of the state, ``link``: 35 for two classes, 15
for each of several and eight more.

The answers agree with the predictions: they rise with the score, and the predicted label has the largest probability.
Where calibration would put other labels above it, these and the predicted one share their probability equally.

Until the link has learned, and in a model file without one, a score of 1 counts as log-odds of 2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.overflow import SCORING
from ...passes.trust.python import EVERY, link_parts
from ...random import SeedStream, generator
from ...rows import Rows, divided, host
from ...state.nested import State
from ...state.schema import Array, Schema
from ...trust.calibration import KEEP, Calibrator, probabilities
from .learner import Learner

# Share of its past that each answer keeps with every row: memories of 500 rows, 5000 and all; for two classes, where a
# row of the link costs most compared with the learner, the first and the last only.
SEVERAL = KEEP**EVERY
TWO = SEVERAL[[0, 2]]
SLOPE = 1e-6  # log-odds of one unit of the score at which a label that is ahead must be the more probable one
AHEAD = 1e-9  # lead of the predicted label over one that is as probable
PART = 2000  # rows from which a learner of all rows at once takes its link
HELD = 5  # one row in HELD of them is held out
FEWEST = 20  # fewest rows for which that makes sense

#: Learns rows, labels and weights with parameters that were found; returns a function that gives the scores of rows.
Similar = Callable[[dict[str, Any], Any, np.ndarray, "np.ndarray | None"], Callable[[Any], np.ndarray]]


def kept_of(n_classes: int) -> np.ndarray:
    """Share of their past that the answers keep."""
    return TWO if n_classes == 2 else SEVERAL


def start(n_classes: int) -> np.ndarray:
    """A link that has learned nothing."""
    return np.concatenate(
        [[0.0], *(part.ravel() for part in Calibrator._start(n_classes, kept_of(n_classes)).values())]
    )


def schema(state: State) -> Schema:
    """The entries, which are optional: models of a loss with probabilities have none."""
    n = len(state["classes"])
    return {"link": Array(start(n).shape)} if "link" in state and n > 1 else {}


def needs_link(learner: Learner) -> bool:
    """Whether the loss defines no probabilities, so that a link must be learned."""
    loss_for = learner.context.loss_for
    return not (learner.has_probabilities or all(hasattr(loss_for(n), "probability") for n in (2, 3)))


def grow(state: State, kept: np.ndarray, n_classes: int) -> None:
    """Go on with ``n_classes`` classes; class i so far becomes class ``kept[i]``."""
    if "link" not in state or n_classes == len(kept):
        return
    if len(kept) < 2:
        state["link"] = start(n_classes)
        return
    old = link_parts(state["link"], len(kept), len(kept_of(len(kept))))
    new = Calibrator.grown(old, kept, n_classes, SEVERAL)
    state["link"] = np.concatenate([state["link"][:1], *(part.ravel() for part in new.values())])


class Linked:
    """A learner from whose scores probabilities are learned."""

    def __init__(self, inner: Learner):
        self.inner, self.ops = inner, inner.ops
        self.ready: tuple[Any, ...] | None = None  # the entry, the pass that learns it, and its further arguments

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, **how: Any) -> np.ndarray:
        scores = self.inner.learn(state, X, y, weight, **how)
        link: Any = state.get("link")
        ready = self.ready
        if ready is None or ready[0] is not link:
            self.follow(state, scores, y, weight)
        elif len(y) == 1 and weight is None and link.item(0) % EVERY:
            link[0] += 1.0  # the link learns every second row, and skips this one
        else:
            ready[1](link, scores, y, weight, *ready[2:])
        return scores

    def follow(self, state: State, scores: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn from the scores (n, outputs) that rows had before they were learned, and their encoded labels (n,)."""
        n_classes = len(state["classes"])
        if n_classes < 2:
            return
        link = state.get("link")
        if link is None or not link.flags.writeable:  # arrays of a mapped file are read-only
            link = state["link"] = start(n_classes) if link is None else link.copy()
        scores, y = np.ascontiguousarray(host(scores), np.float64), np.ascontiguousarray(y, np.float64)
        own = n_classes, kept_of(n_classes)
        self.ops.follow(link, scores, y, weight, *own)
        if not self.ops.on_device:
            self.ready = link, self.ops.follow, *own

    def fit(
        self, state: State, X: Any, y: np.ndarray, target: np.ndarray, weight: np.ndarray | None, similar: Similar
    ) -> None:
        """The link of a learner of all rows at once: a similar model learns some rows y and predicts others.

        It takes at most 2,000 rows and holds out every fifth. If they are too few, or lack a label, there is no link.
        ``target`` are the encoded labels.
        """
        n_classes = len(state["classes"])
        some = np.sort(generator(state["seed"], SeedStream.LINK_ROWS).permutation(len(y))[:PART])
        asked = np.arange(len(some)) % HELD == 0
        train, share = ~asked, np.count_nonzero(~asked) / len(y)
        X, y, target, weight = X[some], y[some], target[some], None if weight is None else weight[some]
        if n_classes < 2 or len(y) < FEWEST or len(np.unique(y[train])) < n_classes:
            return
        chosen = self.inner.found  # no second search for parameters
        found, width = ({}, None) if chosen is None else chosen(state, share)
        X = X if width is None else divided(X, width)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the main fit has warned about a tolerance that was not reached
            model = similar(found, X[train], y[train], None if weight is None else weight[train])
        self.follow(state, model(X[asked]), target[asked], None if weight is None else weight[asked])


def answers(ops: Any, state: State, scores: np.ndarray) -> np.ndarray:
    """Probabilities (n, n_classes) of scores (n, outputs)."""
    n_classes = len(state["classes"])
    scores = np.ascontiguousarray(scores, np.float64)
    values = scores if n_classes > 2 else scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
    values = np.ascontiguousarray(values)
    parts = link_parts(np.array(state.get("link", start(n_classes))), n_classes, len(kept_of(n_classes)))
    if parts["size"][1] == 0.0:  # nothing was learned: 1 is taken as the usual size of a score
        parts["size"][1] = 1.0
    out = np.empty_like(values)
    ops.calibrate(parts, values, None, None, False, kept_of(n_classes), out)
    if values.ndim == 1:
        ahead = values >= 0 if scores.shape[1] == 1 else values > 0
        least = SLOPE * np.tanh(values)
        p = probabilities(np.where(ahead, np.maximum(out, least + AHEAD), np.minimum(out, least)))
    else:
        p = agreeing(probabilities(out), np.argmax(values, axis=1))
    if not np.isfinite(p).all():
        raise ValueError(SCORING)
    return p


def agreeing(p: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Probabilities (n, C) whose largest is that of the predicted label: larger ones share with it."""
    odd = np.flatnonzero(p.argmax(axis=1) != predicted)
    for i in odd:
        k = predicted[i]
        shared = p[i] >= p[i, k]
        p[i, shared] = p[i, shared].mean() * (1.0 - AHEAD)
        p[i, k] += 1.0 - p[i].sum()
    return p
