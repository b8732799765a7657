"""Few rows at a time: all members and their combination in one call of the compiled core.

Whether a call goes this way follows from the rows and the state alone, so that a model that is saved and loaded
continues to the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import corrupt
from ...core.arrays import SQUASH
from ...state.nested import State, copied, parts
from ...trust.intervals import STEPS
from .._contract.learner import Learner
from ..feature import LinearOnFeatures
from ..learned import LearnedFeatures
from . import batch, intervals, level, watch

if TYPE_CHECKING:
    from .base import Stack

AT_ONCE = 32  # rows of a call up to which they go this way
# Families whose scores are products of matrices, which add up in another order for one row than for many.
MULTIPLYING = (LinearOnFeatures, LearnedFeatures)


def learn(stack: Stack, state: State, X: Any, y: np.ndarray) -> np.ndarray | None:
    """Scores (n, outputs) of rows before each is learned; None if they need the long path."""
    n = X.shape[0]
    if n > AT_ONCE or n >= watch.ROWS_A_LOOK - state["t"] % watch.ROWS_A_LOOK:  # only the long path can undo a look
        return None
    if "renewal" in state:
        return None
    if "x_usual" in state and n >= corrupt.rows_until_look(int(state["x_count"])):  # where it is learned what is usual
        return None
    bound = bind(stack, state)
    return None if bound is None else bound.learn(X, y, bool(stack.recent))


def score(stack: Stack, state: State, X: Any, following: bool) -> np.ndarray | None:
    """Scores (n, outputs) of few rows, or None; with ``following``, each is the next of the stream."""
    if batch.alone(state) or "renewal" in state or X.shape[0] > AT_ONCE:
        return None
    streams = stack.follows(state)
    bound = bind(stack, state)
    scores = None if bound is None else bound.score(X, streams and following)
    if scores is not None and streams and not following:
        scores += level.shift(stack, state)
    return scores


def bind(stack: Stack, state: State) -> Any:
    """The compiled whole, ready for a call; None if a member has no compiled form, or none yet."""
    if "rows" in stack.derived:
        held = stack.derived["rows"]
        if held is None or held.ready():
            return held
    if not _may_change(stack, state):
        return None
    try:
        learners = [_row_learner(*pair) for pair in stack.pairs(state)]
    except ValueError:  # a member that is out of range starts again on the long path
        return None
    if any(learner is NotImplemented for learner in learners):
        return None
    if "batch" in state:
        learners.append(batch.row_learner(stack, state))
    held = None
    if all(learner is not None for learner in learners):
        coverages = intervals.tracker(stack, state, 0).levels, None if stack.regression else STEPS
        held = stack.ops.RowStack(state, learners, SQUASH, stack.regression, coverages)
    stack.derived["rows"] = held
    return held if held is None or held.ready() else None


def _may_change(stack: Stack, state: State) -> bool:
    """Whether single rows can be learned into these states; those of a mapped file are read-only."""
    if not stack.standardize or stack.outputs(state) != 1:
        return False
    return all(_is_writable(part) for part in (*parts(state), *state["members"]))


def _is_writable(state: State) -> bool:
    """Whether numbers of a state can be changed, which compiled learners want even where they only score."""
    arrays = (value for value in state.values() if isinstance(value, np.ndarray))
    return all(array.flags.writeable or array.dtype.kind not in "fiu" for array in arrays)


def member_scores(member: Learner, state: State, X: np.ndarray) -> np.ndarray | None:
    """Scores (n, outputs) of rows as the members see them, with the bits that each has alone.

    None where the member's own scores are like that, as those of all but MULTIPLYING are, or without a compiled form.
    """
    if not isinstance(member, MULTIPLYING):
        return None
    try:
        learner = _row_learner(member, state if _is_writable(state) else copied(state))
    except ValueError:  # a member that is out of range
        return None
    scores = np.empty((len(X), state["n_outputs"]))
    return scores if learner not in (None, NotImplemented) and learner.score(X, scores) else None


def _row_learner(member: Learner, state: State) -> Any:
    """The member's learner of single rows; None if its class overrides how rows are learned or scored."""
    ours = _goes_with(type(member), "row_learner", "learn", "score")
    return member.row_learner(state) if ours else None


def _goes_with(cls: type, name: str, *others: str) -> bool:
    """Whether no subclass of the class that defines this method overrides one of the others."""
    place = {
        method: next(i for i, base in enumerate(cls.__mro__) if method in vars(base)) for method in (name, *others)
    }
    return place[name] == min(place.values())
