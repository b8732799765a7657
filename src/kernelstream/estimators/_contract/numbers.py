"""Targets of regression: a real number per row, or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from ...core.ranges import FAR
from ...core.targets import (
    ABOVE,
    BELOW,
    BLOCK,
    DOUBT,
    HIGH,
    LOW,
    MOVES,
    PLACE,
    SIGNED,
    TOTAL,
    Move,
    look,
    no_targets,
    stay,
)
from ...registry.caller import warn
from ...state.nested import State
from ...state.schema import Array, Schema, check
from .glitches import outlying_values
from .learner import solves
from .targets import NoTarget


class Numbers(NoTarget):
    """Numbers (n,), or (n, k) where there may be several targets; wild ones are set aside."""

    sets_aside = True

    def check(self, state: State | None, y: Any, classes: Any, n: int, weight: np.ndarray | None) -> tuple[Any, Any]:
        several = self.several
        y = np.asarray(y) if several else y
        if not (several and y.ndim == 2 and y.shape[1] > 1):
            y = column_or_1d(y, warn=not several)
        if y.dtype.kind in "mM":
            raise ValueError(f"y holds {y.dtype}: pass numbers, such as days, (y - y.min()) / np.timedelta64(1, 'D')")
        try:
            y = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"y must contain numbers in the range of floats, got dtype {y.dtype}") from None
        assert_all_finite(y, input_name="y")
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if state is None:
            return y, outputs
        if outputs != state["n_outputs"]:
            raise ValueError(f"y has {outputs} columns, the model has {state['n_outputs']} outputs")
        return y, None

    def declare(self, state: State, declared: Any) -> None:
        state["n_outputs"] = 1 if declared is None else declared
        if not solves(self.learner):
            state |= no_targets(state["n_outputs"])

    def schema(self, state: State) -> Schema:
        super().schema(state)
        if solves(self.learner):
            return {}
        schema: Schema = {name: Array(value.shape) for name, value in no_targets(state["n_outputs"]).items()}
        check({name: state[name] for name in schema if name in state}, schema)
        seen = state["target_range"]
        upside_down = (seen[LOW] > seen[HIGH]).any() or (seen[BELOW] > seen[ABOVE]).any()
        if np.delete(seen, SIGNED, axis=0).min() < 0 or upside_down or seen[PLACE].max() >= BLOCK:
            raise ValueError("state_['target_range'] must be counts and ranges of the targets")
        return schema

    def plain(self, state: State, y: Any, n: int, form: Any) -> np.ndarray | None:
        if type(y) is not np.ndarray or y.shape != (n,) or y.dtype.kind not in "fiu" or state["n_outputs"] > 1:
            return None
        y = np.ascontiguousarray(y, np.float64)
        return y if form.all_below(y, form.exponent) else None

    def believed(
        self, state: State, y: np.ndarray, weight: np.ndarray | None
    ) -> Iterator[tuple[slice, np.ndarray | None]]:
        seen, last = state["target_range"], state["target_last"]
        own, n, start, stop, wild = np.empty(len(y)), len(y), 0, 0, 0
        while stop < n:
            given = None if weight is None else weight[stop:]
            taken, due, found = self.learner.ops.take_targets(y[stop:], given, seen, last, own[stop:])
            stop, wild = stop + taken, wild + found
            if found and seen[TOTAL, 0] == found:
                _warn_of_wild(seen)
            before = seen.copy() if due else seen
            moves = look(seen, last) if due else []
            if stop < n and not any(moves):
                continue
            yield slice(start, stop), own[start:stop] if wild else None if weight is None else weight[start:stop]
            start, wild = stop, 0
            # a smaller unit is refused where nothing follows, because forecasts are right in the old one
            follow = self.learner.moved or (lambda state, o, move: move.factor >= 1)
            for o, move in [(o, move) for o, move in enumerate(moves) if move is not None]:
                if not follow(state, o, move):
                    stay(seen, before, o)
                elif seen[MOVES].sum() == 1:
                    _warn_of_move(move)

    def batch(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        return y.reshape(len(y), -1), weight

    def trusted(self, state: State, X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        weight = super().trusted(state, X, y, weight)
        seen = state["target_range"]
        for o, column in enumerate(y.reshape(len(y), -1).T):
            odd = outlying_values(column, FAR)
            seen[LOW, o], seen[HIGH, o] = column[~odd].min(), column[~odd].max()
            weight = np.where(odd, 0.0, weight)
        return weight


def _warn_of_wild(seen: np.ndarray) -> None:
    """Warn once that a row was set aside."""
    o = int(seen[DOUBT].argmax())
    warn(
        f"a target lies far outside the others, more than {FAR:g} times their range ({seen[LOW, o]:g} to "
        f"{seen[HIGH, o]:g}): the row was not learned, and neither will similar rows be, unless a dozen of them arrive "
        f"within a short time",
        RuntimeWarning,
    )


def _warn_of_move(move: Move) -> None:
    """Warn once that the target has another level or unit."""
    unit = "" if move.factor == 1 else f", and varies {move.factor:.3g} times as much"
    warn(
        f"the target has moved from about {move.middle:g} to about {move.to:g}{unit}, which is said once. The default "
        "learner carries over what it has learned, others learn the new level row by row",
        RuntimeWarning,
    )
