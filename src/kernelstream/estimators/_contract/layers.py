"""All layers around a learner, and what is done with them together.

From the inside out: :class:`.link.Linked` learns how scores become probabilities, :class:`.scaled.Scaled` scales
columns, :class:`.first_rows.FirstRows` keeps the first rows until what they tell is settled, and
:class:`.targets.Targets` turns the target of the task into numbers. A state has the entries of all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import Rows
from ...state.nested import State
from ...state.schema import check
from . import kept, scaled, weights
from .first_rows import FirstRows
from .labels import Labels
from .learner import Learner
from .link import Linked, needs_link
from .scaled import Scaled
from .scaling import scales_columns
from .state import COMMON, is_trained
from .targets import Targets


class Layers:
    """A learner and the layers around it.

    Parameters
    ----------
    learner : Learner
    targets : Targets
    encoded : bool
        Whether the columns come from an encoder, which fills gaps itself.
    names : array or None
        Of the columns, for messages.
    """

    def __init__(self, learner: Learner, targets: Targets, encoded: bool, names: Any):
        self.learner, self.targets, self.encoded = learner, targets, encoded
        self.form: Any = None  # of rows that need no further checks, see `.intake`
        self.infinite: set[int] = set()  # columns of whose infinity was warned
        self.guards = learner.squashes and not encoded
        self.linked = Linked(learner) if isinstance(targets, Labels) and needs_link(learner) else None
        self.known = Scaled(learner, learner, self.guards, names)  # without the link
        self.rows = self.known if self.linked is None else Scaled(self.linked, learner, self.guards, names)
        self.first_rows = FirstRows(self.rows, targets, self.linked)

    def plain(self, state: State) -> Any:
        """What learns plain rows after the first ones: the outermost layer that has something to do."""
        return self.rows if scales_columns(state) else self.rows.inner

    def start(self, state: State, declared: Any, before: State | None) -> None:
        """Add the entries that need no rows to a state that has the width, the type of numbers and the seed."""
        state |= {"t": 0, "n_outputs": 1, "warm_rows": self.rows.first_rows(), "warm_count": 0}
        self.rows.start(state)
        self.targets.declare(state, declared)
        self.learner.start(state, before)

    def learn(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, how: dict[str, Any], known: bool = False
    ) -> np.ndarray:
        """Learn rows with their public target; of ``known`` rows the link learns nothing. Scores in public form."""
        first_rows = FirstRows(self.known, self.targets, None) if known else self.first_rows
        return self.targets.learn(state, X, y, weight, lambda X, y, w: first_rows.learn(state, X, y, w, **how))

    def check(self, state: State, trained: bool | None = None) -> None:
        """Raise ValueError when a state (of a file, say) does not fit the parameters, or itself.

        Only compares entries: nothing is computed or drawn. ``trained`` says whether there are weights; None finds out.
        """
        check({name: value for name, value in state.items() if name in COMMON}, COMMON)
        trained = is_trained(state) if trained is None else trained
        schema = COMMON | self.rows.schema(state) | self.targets.schema(state) | self.first_rows.schema(state)
        if self.learner.relative_weights:
            schema |= weights.schema(state)
        check(state, schema | self.learner.schema(state, trained))
        self.learner.verify(state)

    def widen(self, state: State, d: int) -> None:
        """Make the entries fit rows of width d, whose new columns were zero in all rows so far."""
        lasting = self.learner.widen(state, d)
        scaled.widen(state, d)
        kept.widen("warm_X", state, d)
        state["n_features"] = d
        self.learner.forget()
        self.learner.derived |= lasting or {}
