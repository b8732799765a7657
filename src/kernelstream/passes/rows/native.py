"""Learners of single rows, compiled: each has pointers to the arrays of its state, and all learn in one call.

What they do to a row is what the passes do to a block of one row; see cpp/passes/row_learners.hpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...state.nested import State


def row_learner(kind: str, learner: Any, state: State, *parts: Any) -> Any:
    """A learner of single rows that works on the arrays of a state.

    Parameters
    ----------
    kind : {"hashed_cells", "column_cells", "linear", "learned_widths", "window", "metric_window",
        "least_squares"}
    learner : Learner
        Whose learner it is. When that forgets what it has derived, the compiled one must not be used any more.
    state : dict
    *parts
        What the learner needs besides; see the function ``row_…`` of its family in cpp/bind.
    """
    return getattr(_core, f"row_{kind}{_bits(state)}")(state, [(vars(learner), "derived")], *parts)


class RowStack:
    """Learners of single rows and the combination of their forecasts.

    Parameters
    ----------
    state : dict
        Of the whole.
    learners : list
        From :func:`row_learner`.
    squash : float
        Deviations beyond which a scaled value counts by its logarithm.
    regression : bool
    coverages : (levels, steps)
        Coverages that are followed, and the steps of their trackers; of numbers quantiles, and None.
    """

    def __init__(
        self,
        state: State,
        learners: list[Any],
        squash: float,
        regression: bool,
        coverages: tuple[np.ndarray, np.ndarray | None],
    ):
        make = getattr(_core, f"RowStack{_bits(state)}")
        self.outputs = state["n_outputs"]
        self._whole = make(state, learners, regression, squash, *coverages)
        self.ready = self._whole.ready  # asked before each call: False where a state holds other arrays by now

    def learn(self, X: np.ndarray, y: np.ndarray, recent: bool) -> np.ndarray | None:
        """Scores (n, C) before each row, which is then learned; None, and nothing changes, where the passes must do it.

        That is so where something else is due among the rows (a window is full, grids are reviewed), and where a number
        leaves the range of floats.
        """
        scores = np.empty((len(X), self.outputs))
        return scores if self._whole.learn(X, y, recent, scores) else None

    def score(self, X: np.ndarray, recent: bool) -> np.ndarray | None:
        """Scores (n, C) of rows, each as if it was the only one, or None as above."""
        scores = np.empty((len(X), self.outputs))
        return scores if self._whole.score(X, recent, scores) else None


def _bits(state: State) -> str:
    return "32" if state["dtype"] == "float32" else "64"
