"""Several targets on the same features."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...features import Mapping
from ...losses import Loss
from ...rows import Rows, host
from ...state import undo as _undo
from ...state.nested import State
from ...updates import Update


class EachTarget:
    """Learner of several targets: a separate one for each, on the same features.

    Parameters
    ----------
    ops, mapping, loss, update
        Engine and parts.
    state : dict
        Entries of all targets, the first axis of weights and the last one of memories being theirs; changed in place.
    by_row : set of str
        Entries whose changes are announced to the undo.
    """

    def __init__(self, ops: Any, mapping: Mapping, loss: Loss, update: Update, state: State, by_row: frozenset[str]):
        self.state, self.outputs = state, state["n_outputs"]
        self.by_row = by_row
        self.make: Any = functools.partial(ops.feature_pass, mapping, loss, update)

    def learn(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn rows with targets y (n, k); returns the scores before each update, (n, k)."""
        X, state = host(X), self.state
        for name in self.by_row & state.keys():
            _undo.rows(state[name], slice(None))
        scores, t = np.empty((X.shape[0], self.outputs)), state["t"]
        for o in range(self.outputs):
            alone: State = {
                name: state[name][o : o + 1] for name in ("w", "scale", "G", "G_scale", "w_mean") if name in state
            }
            alone |= {name: state[name][:, o].copy() for name in ("memory", "center") if name in state}
            alone |= {"memory": alone["memory"][:, None], "t": t}
            scores[:, o] = self.make(alone).learn(X, np.ascontiguousarray(y[:, o]), weight)[:, 0]
            state["t"] = alone.pop("t")
            for name, value in alone.items():
                if name in ("memory", "center"):
                    state[name][:, o] = value.reshape(-1)
                else:
                    state[name][o] = value[0]
        return scores

    def score(self, X: Rows) -> np.ndarray:
        """Scores of rows, (n, k)."""
        scores: np.ndarray = self.make(self.state).score(host(X))
        return scores

    def sync(self) -> None:
        """The state is always up to date."""
