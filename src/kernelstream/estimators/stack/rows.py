"""Few rows at a time: all members and their combination in one call of the compiled core.

Whether a call goes this way follows from the rows and the state alone, so that a model that is saved and loaded
continues to the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arrays import SQUASH
from ...state.nested import State, copied, parts
from ...trust.intervals import STEPS
from .._contract.composite import Pair
from .._contract.learner import Learner
from ..feature import LinearOnFeatures
from ..learned import LearnedFeatures

AT_ONCE = 32  # rows of a call up to which they go this way
# Families whose scores are products of matrices, which add up in another order for one row than for many.
MULTIPLYING = (LinearOnFeatures, LearnedFeatures)


def bind(pairs: list[Pair], state: State, function: Any, ops: Any, levels: np.ndarray, regression: bool) -> Any:
    """The compiled whole of the members and the function of a batch; None if one has no compiled form.

    NotImplemented if one has none yet. ``levels`` are those of the trackers.
    """
    if not _are_writable(*parts(state), *state["members"]):  # those of a mapped file are not
        return NotImplemented
    try:
        learners = [_row_learner(*pair) for pair in pairs]
    except ValueError:  # a member that is out of range starts again on the long path
        return NotImplemented
    if NotImplemented in learners:
        return NotImplemented
    if "batch" in state:
        learners.append(function(state))
    if None in learners:
        return None
    return ops.RowStack(state, learners, SQUASH, regression, (levels, None if regression else STEPS))


def _are_writable(*states: State) -> bool:
    """Whether numbers of states can be changed, which compiled learners want even where they only score."""
    for state in states:
        for value in state.values():
            if isinstance(value, np.ndarray) and not value.flags.writeable and value.dtype.kind in "fiu":
                return False
    return True


def member_scores(learner: Learner, state: State, X: np.ndarray) -> np.ndarray | None:
    """Scores (n, outputs) of rows as the members see them, with the bits that each has alone.

    None where the member's own scores are like that, as those of all but MULTIPLYING are, or without a compiled form.
    """
    if not isinstance(learner, MULTIPLYING):
        return None
    try:
        found = _row_learner(learner, state if _are_writable(state) else copied(state))
    except ValueError:  # a member that is out of range
        return None
    scores = np.empty((len(X), state["n_outputs"]))
    return scores if found not in (None, NotImplemented) and found.score(X, scores) else None


def _row_learner(learner: Learner, state: State) -> Any:
    """The member's learner of single rows; None if a subclass overrides how rows are learned or scored."""
    for kind in type(learner).__mro__:
        if vars(kind).get("row_learner") is not None:
            return learner.row_learner(state)
        if "learn" in vars(kind) or "score" in vars(kind):
            return None
    return None
