"""All layers around a learner, and what is done with them together.

From the inside out: :class:`.link.Linked` learns how scores become probabilities, :class:`.scaled.Scaled` scales
columns, :class:`.first_rows.FirstRows` keeps the first rows until what they tell is settled, :mod:`.targets` turns the
target of the task into numbers, and :class:`.mixed.Encoded` adds the columns that appear in mixed rows. A state has the
entries of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...core.overflow import SCORING
from ...rows import Rows
from ...state.nested import State
from ...state.schema import check
from ...state.undo import Undo
from . import kept, scaled, weights
from .first_rows import FirstRows
from .labels import Labels
from .learner import Learner, solves
from .link import Linked, needs_link
from .mixed import Encoded
from .order import counted
from .scaled import Scaled
from .state import COMMON, is_trained
from .targets import NoTarget


class Layers:
    """A learner and the layers around it.

    Parameters
    ----------
    learner : Learner
    encoder : Columns or None
        What makes the columns, of mixed rows; it fills gaps itself.
    names : array or None
        Of the columns, for messages.
    """

    def __init__(self, learner: Learner, encoder: Any = None, names: Any = None):
        targets: NoTarget = learner.context.targets(learner)
        self.targets = targets
        self.learner, self.encoder, self.names = learner, encoder, names
        self.undo: Any = None  # of the last call
        self.put_back: Any = None  # what a device held of the state before it
        self.marks: Any = None  # saving these is all that a call needs, of most models
        self.form: Any = None  # of rows that need no further checks, see `.intake`
        self.infinite: set[int] = set()  # columns of whose infinity was warned
        self.guards = learner.squashes and encoder is None

    @cached_property
    def linked(self) -> Linked | None:
        """Learns how scores become probabilities, where the loss does not say it."""
        links = isinstance(self.targets, Labels) and needs_link(self.learner)
        return Linked(self.learner) if links else None

    @cached_property
    def known(self) -> Scaled:
        """For rows that say nothing new to the link."""
        return Scaled(self.learner, self.learner, self.guards, self.names)

    @cached_property
    def rows(self) -> Scaled:
        """For rows after the first ones."""
        return self.known if self.linked is None else Scaled(self.linked, self.learner, self.guards, self.names)

    @cached_property
    def first_rows(self) -> FirstRows:
        """For rows with public targets."""
        return FirstRows(self.rows, self.targets, self.linked)

    def start(self, state: State, declared: Any, before: State | None, empty: bool = False) -> None:
        """Add the entries that need no rows to a state that has the width, the type of numbers and the seed.

        With ``empty``, there will be no weights.
        """
        state |= {"t": 0, "n_outputs": 1, "warm_rows": self.rows.first_rows(), "warm_count": 0}
        self.rows.start(state)
        self.targets.declare(state, declared)
        self.learner.start(state, before)
        if not (empty or solves(self.learner) or state["warm_rows"]):
            self.learner.reset(state)

    def learn(
        self,
        state: State,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        how: dict[str, Any],
        known: bool = False,
        encoded: Encoded | None = None,
    ) -> np.ndarray:
        """Learn rows with their public target; of ``known`` rows the link learns nothing. Scores in public form."""
        first_rows = FirstRows(self.known, self.targets, None) if known else self.first_rows

        def learn(X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
            return self.targets.learn(state, X, y, weight, lambda X, y, w: first_rows.learn(state, X, y, w, **how))

        return learn(X, y, weight) if encoded is None else encoded.learn(self, state, X, y, weight, learn)

    def learn_believed(self, state: State, X: Rows, y: np.ndarray, rows: Any, how: dict[str, Any]) -> np.ndarray:
        """Learn plain rows with encoded targets, some of which may be set aside, by the layer ``rows``."""
        believed = self.targets.believed(state, y, None)
        parts = [rows.learn(state, X[run], y[run], own, **how) for run, own in believed]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def score(self, state: State, X: Rows, how: dict[str, Any]) -> np.ndarray:
        """Raw scores (n, n_outputs) of checked rows; ``how`` are further arguments of the learner's ``score``."""
        if state["warm_rows"] and not state["warm_count"]:
            return np.zeros((X.shape[0], state["n_outputs"]))
        few = how and not state["warm_rows"]  # of a learner with a short path for few rows
        found = self.learner.score_few(state, X, **how) if few else None
        scores = self.known.score(state, X, **how) if found is None else found
        if not self.learner.ops.all_below(scores, sys.float_info.max_exp):
            raise ValueError(SCORING)
        return scores

    # ---------------------------------------------------------------- all or nothing
    def begin(self, state: State) -> Undo:
        """Remember a state before a call."""
        if self.undo is None:
            self.undo = Undo(lambda: self.learner.owners(state), lambda nothing: self.restored(state, nothing))
        undo: Undo = self.undo
        on_device, held = self.learner.ops.on_device, self.learner.derived.get("held")  # type: bool, Any
        self.put_back = held.mark() if hasattr(held, "mark") else None
        if undo.begin():
            self.put_back = self.form = None
            self.learner.put_back(state, False)
        self.marks = None if undo.journaled or on_device else undo.marks
        return undo

    def restored(self, state: State, nothing_learned: bool) -> None:
        """A call was undone: drop what was derived from the state that it left.

        Where ``nothing_learned`` nothing has changed: what was derived is kept, because a factor that is computed again
        may differ from the old one in its last bits.
        """
        if not nothing_learned:
            self.form = None
            self.learner.put_back(state, True)
            if self.put_back is not None:
                self.learner.derived["held"] = self.put_back()

    # ---------------------------------------------------------------- all rows at once, other widths, files
    def solve(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, **how: Any) -> None:
        """Let the learner solve for all rows, with their public target."""
        self.learner.solve(state, X, *self.targets.batch(state, y, weight), **how)
        state["t"] = X.shape[0]

    def link_from(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, solve: Callable[..., None] = solve
    ) -> None:
        """Learn the link of a model that learned all rows at once by ``solve``, without predicting any of them before.

        It is learned from rows that a similar model predicts, which solves for others with the parameters found.
        """
        if self.linked is None:
            return

        def similar(found: dict[str, Any], X: Rows, y: np.ndarray, weight: np.ndarray | None) -> Any:
            given = self.learner.parameters | found | {"random_state": state["seed"]}
            layers = Layers(type(self.learner)(given, self.learner.context), self.encoder, self.names)
            own: State = {name: state[name] for name in ("n_features", "dtype", "seed")}
            layers.start(own, layers.targets.check(None, y, None, len(y), weight)[1], None)
            solve(layers, own, *counted(X, y, weight))
            return lambda X: layers.score(own, X, {})

        self.linked.fit(state, X, y, self.targets.encode(state, y), weight, similar)

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
        self.form = self.undo = self.marks = None
        self.learner.forget()
        self.learner.derived |= lasting or {}
