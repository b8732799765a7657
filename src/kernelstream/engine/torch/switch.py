"""Learning on explicit features in two places: large calls on the device, small ones on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...losses import Loss
from ...state.nested import State
from ...updates import Update, unwrap
from .each_row import EachRowPass
from .passes import DeviceFeaturePass


class SwitchedPass:
    """A :class:`~kernelstream.passes.linear.host.FeaturePass` on the CPU or the device, with current weights."""

    def __init__(self, ops: Any, mapping: Any, loss: Loss, update: Update, state: State):
        self.ops, self.mapping, self.loss, self.update, self.state = ops, mapping, loss, update, state
        self.outputs = len(state["w"])
        self.here = ops.host.feature_pass(mapping, loss, update, state)
        self.there: Any = None  # made at the first call that is large enough
        # row by row the compiled loops are faster than torch: without a GPU they are used, unless "cpu" is requested
        self.never = ops.stands_in and _each_row(update, state)

    def _for(self, n: int) -> Any:
        """The pass that takes a call of n rows."""
        if self.never or self.ops.is_small(n, self.mapping.n_out, self.state["n_features"]):
            if self.there is not None:
                self.there.leave()
            return self.here
        if self.there is None:
            self.there = _on_device(self.ops, self.mapping, self.loss, self.update, self.state)
        self.there.join()
        return self.there

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, C) float64."""
        return self._for(X.shape[0]).learn(X, y, weight)

    def score(self, X: Any) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        return self._for(X.shape[0]).score(X)

    def sync(self) -> None:
        """Bring the state up to date with the device."""
        if self.there is not None:
            self.there.sync()

    def mark(self) -> Callable[[], SwitchedPass] | None:
        """A function that undoes what is learned from now on and returns the pass; None if the state has it all."""
        if self.there is None:
            return None
        put_back = self.there.mark()

        def after() -> SwitchedPass:
            put_back()
            return self

        return after


def _each_row(update: Update, state: State) -> bool:
    """Whether rows are learned one after the other, since Gram matrices do not tell what an update does."""
    inner, average = unwrap(update)
    return inner.diagonal or average or "w_mean" in state


def _on_device(ops: Any, mapping: Any, loss: Loss, update: Update, state: State) -> DeviceFeaturePass:
    """A pass whose weights live on the device: on a GPU one program, if it has the formulas."""
    if ops.cuda and ops.triton:
        from .formulas import program

        known = program(loss, unwrap(update)[0])
        if known is not None:
            from .walk_pass import WalkPass

            return WalkPass(ops, mapping, loss, update, state, known)
    return (EachRowPass if _each_row(update, state) else DeviceFeaturePass)(ops, mapping, loss, update, state)
