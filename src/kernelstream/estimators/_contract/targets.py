"""What learning needs to know of a target: the functions of a state that differ between labels, numbers and no target.

:class:`.labels.Labels` and :class:`.numbers.Numbers` are the two kinds; an estimator names its own in ``_targets``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...rows import Rows
from ...state.nested import State
from ...state.schema import Schema
from . import weights
from .glitches import odd_cells
from .learner import Learner

LearnRun = Callable[[Rows, np.ndarray, "np.ndarray | None"], np.ndarray]  # scores of rows whose targets are all known


def public(scores: np.ndarray) -> np.ndarray:
    """Scores as users get them: one column is an array (n,)."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


class NoTarget:
    """No target; and the base of those that there are.

    Parameters
    ----------
    learner : Learner
        What learns them.
    several : bool
        Whether rows may have more than one.
    """

    task = "number"  # what an encoder of mixed rows is told that they are
    sets_aside = False  # whether rows may be set aside because of their target, see :meth:`believed`
    weighs = False  # whether rows are weighed by more than ``sample_weight``

    def __init__(self, learner: Learner, several: bool = False):
        self.learner, self.several = learner, several

    # ---------------------------------------------------------------- checks
    def check(self, state: State | None, y: Any, classes: Any, n: int, weight: np.ndarray | None) -> tuple[Any, Any]:
        """Validated target (n,) and whatever :meth:`declare` needs; changes nothing. No state: a fresh model."""
        return np.zeros(n), None

    def check_whole(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Raise ValueError for parameters that contradict the target of all rows (``fit``)."""

    def declare(self, state: State, declared: Any) -> None:
        """Enter what is known about the target before the first row is learned."""

    def schema(self, state: State) -> Schema:
        """What the entries may be."""
        if state["n_outputs"] > 1 and not self.several:
            raise ValueError(f"{self.learner.context.name} has one output, not {state['n_outputs']}")
        return {}

    # ---------------------------------------------------------------- rows
    def encode(self, state: State, y: np.ndarray) -> np.ndarray:
        """Target as the passes take it, (n,) float64."""
        return y

    def plain(self, state: State, y: Any, n: int, form: Any) -> np.ndarray | None:
        """Encoded target of a plain call, or None when it needs the full checks."""
        return np.zeros(n)

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, learn: LearnRun) -> np.ndarray:
        """Learn validated rows in runs whose targets are all known; returns the scores in public form."""
        return public(learn(X, y, weight))

    def joined(self, state: State, scores: list[np.ndarray], classes: list[Any]) -> np.ndarray:
        """Scores of the pieces of a call, in public form, as those of the call; and the labels known after each."""
        return np.concatenate(scores) if len(scores) > 1 else scores[0]

    def believed(
        self, state: State, y: np.ndarray, weight: np.ndarray | None
    ) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Runs of rows that are about to be learned, and their weights, 0 for those that should not be."""
        yield slice(0, len(y)), weight

    def batch(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        """Target of all rows as batch solvers take it, (n, outputs), and the weights of the rows or None.

        Enters what the state must know of the target.
        """
        raise NotImplementedError

    # ---------------------------------------------------------------- weights
    def row_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Sample weights times all other weights of a row."""
        return weight

    def weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of rows as the family takes them: sample weights in its unit, times those of the classes."""
        factor: Any = None
        if self.weighs:
            factor = self.row_weights(state, y, None if weight is None else (weight > 0).astype(np.float64))
            # a row of a class of weight 0 does not count for the mean either
            weight = np.where(factor > 0, 1.0 if weight is None else weight, 0.0)
        if self.learner.relative_weights:
            weight = weights.relative(state, weight, len(y))
        return weight if factor is None else factor * weight

    def trusted(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights of the first rows, 0 for those with a glitch."""
        return weight if "x_usual" in state else np.where(odd_cells(X), 0.0, weight)

    def forget_rows(self, state: State) -> None:
        """Undo what :meth:`weights` counted."""
        state.pop(weights.SUMS, None)
