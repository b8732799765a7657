"""The first rows of a stream, from which bandwidths and the like are estimated: a layer around the learning of rows.

The first ``warm_rows`` rows are kept in the state. After 1, 2, 4, ... rows and at the end of the warm-up, the estimate
is renewed and the kept rows are learned again from the start, so that the model does not depend on how the rows were
cut into calls. Whether columns are scaled is also decided there, before the estimate: see :mod:`.scaled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import Rows, host, unpack
from ...state.nested import State
from ...state.schema import Schema
from . import kept
from .link import Linked
from .scaled import Scaled
from .targets import NoTarget
from .warm_up import runs


class FirstRows:
    """Rows with public targets that are all known, learned one way or the other: as the first ones, or after these.

    Parameters
    ----------
    inner : Scaled
        Learns rows with encoded targets.
    targets : NoTarget
    linked : Linked or None
        Learns from the scores of rows, where probabilities are learned.
    """

    def __init__(self, inner: Scaled, targets: NoTarget, linked: Linked | None):
        self.inner, self.targets, self.learner, self.linked = inner, targets, targets.learner, linked

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, **how: Any) -> np.ndarray:
        """Learn rows, stopping at the warm-up points to renew the estimates."""
        if not state["warm_rows"]:
            believed = self.targets.believed(state, y, weight)
            return np.concatenate([self._learn(state, X[run], y[run], own, how) for run, own in believed])
        parts, n = [], X.shape[0]
        for rows in runs(weight, n, lambda: _next_point(state) - state["warm_count"] if state["warm_rows"] else n):
            X_run, y_run = X[rows], y[rows]
            for run, own in self.targets.believed(state, y_run, None if weight is None else weight[rows]):
                if state["warm_rows"]:
                    parts.append(self._keep(state, host(X_run[run]), y_run[run], own, how))
                else:
                    parts.append(self._learn(state, X_run[run], y_run[run], own, how))
        return np.concatenate(parts)

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, how: Any) -> np.ndarray:
        """Learn rows after the warm-up or between its points."""
        target, own = self.targets.encode(state, y), self.targets.weights(state, y, weight)
        return self.inner.learn(state, X, target, own, **how)

    def _keep(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, how: Any) -> np.ndarray:
        """Rows of the warm-up, up to the next renewal of the estimates."""
        before = state["warm_count"]
        if before:
            scores = self._learn(state, X, y, weight, how)
        else:
            scores = np.zeros((X.shape[0], state["n_outputs"]))
            if self.linked is not None and not self.learner.warm_up_rows():  # as without a warm-up
                target, own = self.targets.encode(state, y), self.targets.weights(state, y, weight)
                self.linked.follow(state, scores, target, own)
        now = state["warm_count"] = before + kept.add("warm", state, X, y, weight)
        if now == state["warm_rows"]:
            self._finish(state, how)
        elif now > before and now & (now - 1) == 0:
            self.renew(state, how)
        return scores

    def end(self, state: State, how: Any) -> None:
        """There are no more rows (``fit``): estimate from those there are."""
        if state["warm_rows"] and state["warm_count"]:
            self._finish(state, how)
        if self.learner.end_warm_up is not None:
            self.learner.end_warm_up(state)

    def _finish(self, state: State, how: Any) -> None:
        """The last estimate, after which no rows are kept."""
        self.renew(state, how)
        self.inner.warn(state, unpack("warm_X", state))
        kept.take("warm", state)
        self.learner.derived.drop("draws")
        state |= {"warm_rows": 0, "warm_count": 0}

    def renew(self, state: State, how: Any) -> None:
        """Let the learner start over with the kept rows, scaled by their own moments.

        Nothing is learned again from their scores, and what is ``wanted`` of them was noted when they came. Rows of
        weight 0 are not to be trusted.
        """
        X: Any = unpack("warm_X", state)
        y, learner = state["warm_y"], self.learner
        weight: Any = self.targets.trusted(state, X, y, state["warm_weight"])
        state["t"] = 0
        self.targets.forget_rows(state)
        weight = self.targets.weights(state, y, weight)
        target, trusted = self.targets.encode(state, y), weight > 0
        X = self.inner.start_over(state, X, weight)
        learner.estimate(state, X if trusted.all() else X[trusted])
        learner.derived.leave_device()
        learner.forget()
        learner.reset(state)
        if trusted.any():
            learner.start_targets(state, y, weight)
        learner.learn(state, X, target, weight, **{name: value for name, value in how.items() if name != "wanted"})

    def schema(self, state: State) -> Schema:
        """The rows kept during the warm-up."""
        n, most = state["warm_count"], state["warm_rows"]
        if n and n >= most:
            raise ValueError(f"{n} rows are kept until there are {most}")
        if not n and "warm_y" not in state:
            return {}
        return kept.schema("warm", state, n)


def _next_point(state: State) -> int:
    """Row count at which the estimate is renewed next: a power of two, or the end of the warm-up."""
    return min(1 << state["warm_count"].bit_length(), state["warm_rows"])
