"""Labels as passes take them: -1 and 1 where two classes share a score, else places among the sorted classes.

A loss of kind "binary" has one score for up to two classes, and one for each of more; a lone class has a side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...state.change import Change
from ...state.nested import State
from . import link
from .learner import Learner


def sign_of_lone(classes: np.ndarray) -> float:
    """The side a lone class is put on until the second one appears."""
    return -1.0 if classes[0] in (0, -1) else 1.0


def encoded(state: State, y: np.ndarray, loss: Any) -> np.ndarray:
    """Codes of labels y (n,), all of them classes of the state, for a loss; of rows of weight 0 any number."""
    classes = state["classes"]
    codes = np.minimum(np.searchsorted(classes, y), max(len(classes) - 1, 0)).astype(np.float64)
    if state["n_outputs"] > 1 or loss.kind == "multiclass":
        return codes
    return np.full(len(y), sign_of_lone(classes)) if len(classes) == 1 else 2.0 * codes - 1.0


def decoded(state: State, codes: np.ndarray, loss: Any) -> np.ndarray:
    """Labels of codes (n,), which are others when a class appears."""
    classes = state["classes"]
    places = codes if state["n_outputs"] > 1 or loss.kind == "multiclass" else (codes > 0) & (len(classes) > 1)
    return classes[places.astype(np.intp)]


def outputs_of(learner: Learner, n_classes: int) -> int:
    """Number of outputs of a model with ``n_classes`` classes."""
    several = n_classes > 2 or learner.context.loss_for(2).kind == "multiclass"
    return max(n_classes, 1) if several else 1


def enter(
    learner: Learner, state: State, classes: np.ndarray, place: int, trained: bool | None, change: Change
) -> None:
    """Change the outputs to those of ``classes``, with a new one at a place; the scores of the others stay the same.

    ``change`` is that of models with an output for every class; two classes may share one. ``trained`` says whether
    there are weights; None where the learner has not entered anything yet.
    """
    kept = np.arange(len(classes) - 1)
    kept[place:] += 1
    counts = np.zeros(len(classes))
    counts[kept] = state["class_counts"]
    shared = len(kept) <= 2 and learner.context.loss_for(2).kind == "binary"
    own = _from_shared(state["classes"], kept, change) if shared else change
    state["classes"], state["class_counts"], state["n_outputs"] = classes, counts, len(own)
    link.grow(state, kept, len(classes))
    if trained is None:
        return
    if trained and not (len(own) == own.before == 1 and own.factor[0] == 1):
        learner.mix_outputs(state, own)
    if learner.class_added is not None:
        learner.class_added(state, place, trained, change)


def _from_shared(classes: np.ndarray, kept: np.ndarray, change: Change) -> Change:
    """The change of a model in which two classes, or a lone one, share an output."""
    if len(kept) == 2:
        factor = np.zeros(3)
        factor[kept] = [-0.5, 0.5]
        return Change(np.zeros(3, np.intp), factor, 1, change.coming)
    flips = len(kept) == 1 and (kept[0] == 1) != (sign_of_lone(classes) > 0)
    return Change(np.zeros(1, np.intp), np.array([-1.0 if flips else 1.0]), 1)
