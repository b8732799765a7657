"""The base of what learns: parameters and functions of a state that is passed in."""

from __future__ import annotations

from collections.abc import Callable
from inspect import get_annotations
from typing import Any

import numpy as np

from ...rows import Rows
from ...state.change import Change
from ...state.nested import State, parts
from ...state.schema import Schema
from .context import Context
from .deviations import means


class Derived(dict[Any, Any]):
    """What can be computed again from a state and the parameters, by name: "held" is what a device holds."""

    def cached(self, name: Any, make: Callable[[], Any]) -> Any:
        """What was derived under a name, made where it is asked for first."""
        found = self.get(name)
        if found is None:
            found = self[name] = make()
        return found

    def drop(self, *names: Any) -> None:
        """Drop what was derived under these names."""
        for name in names:
            self.pop(name, None)

    def sync(self) -> None:
        """Bring the state up to date with what a device holds of it."""
        held = self.get("held")
        if held is not None:
            held.sync()

    def leave_device(self) -> None:
        """The same, and drop what the device holds, because the state will be changed elsewhere."""
        self.sync()
        self.drop("held")


class Learner:
    """What an estimator asks of its learner, an object of the class named in ``_learns``.

    All that it learns is in the state, which every function is given. ``derived`` holds what can be computed again from
    the state that the learner is used with: maps, compiled passes, members; :meth:`forget` drops it where the state has
    changed. New parameters make a new learner. An attribute that a class declares (``lam: float``) is the parameter of
    that name.

    Parameters
    ----------
    parameters : dict
        Those of the estimator, as they were given: names or objects.
    context : Context
    """

    on_device: bool = True  # whether it learns where the engine says; False: always on the processor
    keeps_rows: bool = False  # whether rows that are given on a device are brought to the processor
    has_probabilities: bool = False  # whether it has some of its own, so that none are learned beside it
    relative_weights: bool = False  # whether weights count relative to their mean, since one of 2 is not two rows
    squashes: bool = False  # whether it draws far values in, so that columns with long tails may keep their scale
    auto_scaling: bool | None = None  # whether "auto" scales columns; None: where units differ, and matter
    # Functions that only some have:
    end_warm_up: Any = None  # (state): there are no more rows
    class_added: Any = None  # (state, place, trained, change): a label appeared, at a place among the sorted ones
    learn_few: Any = None  # (state, X, y): scores of few rows as users have them, or None if these must go the long way
    score_few: Any = None  # (state, X, following): the same for scores
    row_learner: Any = None  # (state): what learns single rows in compiled code, see `..stack.rows`
    dense: Any = None  # (X): sparse rows that are to be scaled, made dense; without it, that is left to the user
    moved: Any = None  # (state, output, move): whether what was learned follows a target to another level or unit
    found: Any = None  # (state, share): parameters that `solve` chose, for a share of the rows; divisors of columns

    _lasting: tuple[str, ...] = ()  # what does not depend on what is estimated
    # Changes of a failed call are undone. Arrays of the state are copied before a call, except for
    _replaced: frozenset[str] = frozenset()  # entries that are replaced by new arrays, never changed in place, and
    _by_row: frozenset[str] = frozenset()  # entries whose changes are announced to `_undo.rows`

    def __init__(self, parameters: dict[str, Any], context: Context):
        self.parameters, self.context = parameters, context
        self.ops, self.regression = context.ops, context.regression
        self.derived = Derived()
        *own, _, _ = type(self).__mro__  # without this class and object
        for name in (name for base in own for name in get_annotations(base)):
            if name in parameters:
                setattr(self, name, parameters[name])

    # ---------------------------------------------------------------- what is derived from a state
    def forget(self) -> None:
        """Drop everything derived; what is bound to it sees another dict, and is out of date."""
        self.derived = Derived({name: self.derived[name] for name in self._lasting if name in self.derived})

    def loss(self, state: State) -> Any:
        """The loss in use, which depends on the number of classes."""
        n = len(state.get("classes", ()))
        return self.derived.cached("loss of several" if n > 2 else "loss", lambda: self.context.loss_for(n))

    def spec(self, state: State) -> Any:
        """Loss, update and strategy in the form that a pass takes; with other outputs the loss may be another."""
        own: Any = self
        parts = (own.update, own.strategy) if hasattr(own, "strategy") else (own.update,)
        return self.derived.cached(("spec", state["n_outputs"]), lambda: self.ops.spec(self.loss(state), *parts))

    # ---------------------------------------------------------------- a state
    def start(self, state: State, before: State | None) -> None:
        """Add entries that need no rows: width, type of numbers, seed and what is declared of the target are there.

        ``before`` is the state of the model that starts over, if there is one.
        """

    def warm_up_rows(self) -> int:
        """How many rows an estimate from data needs; 0 when there is nothing to estimate."""
        return 0

    def one_width(self) -> bool:
        """Whether one width, from the rows or from our defaults, compares all columns, so that their units matter."""
        return False

    def estimate(self, state: State, X: Rows) -> None:
        """Set the data-driven entries from the first rows X (n, d)."""

    def reset(self, state: State) -> None:
        """Set the weights of ``state["n_outputs"]`` outputs to those of an untrained model."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""

    def schema(self, state: State, trained: bool) -> Schema:
        """What the learner's entries may be, in a state whose common entries have been checked.

        These are the entries of ``start`` and ``estimate``, and those of :meth:`reset` if the state is ``trained``.
        Nothing may be drawn or allocated here: the state may come from a file that lies about its sizes.
        """
        raise NotImplementedError

    def verify(self, state: State) -> None:
        """Raise ValueError for entries that agree with the schema but not with each other."""

    # ---------------------------------------------------------------- rows
    def domains(self) -> list[Any]:
        """The parts (maps, kernels) that may refuse finite rows by raising ValueError in their ``check``."""
        return []

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        """Enter what is known from the targets y (n,) or (n, k) of the first rows before they are learned.

        That is their mean, if differences from it are learned: the first target may be far from 0.
        """
        if "center" in state:
            state["center"][1] = np.reshape(means(y, weight), state["center"].shape[1:])

    def tags(self, tags: Any) -> Any:
        """The estimator's tags for scikit-learn."""
        return tags

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, n_outputs)."""
        raise NotImplementedError

    def score(self, state: State, X: Rows) -> np.ndarray:
        """Scores of rows, (n, n_outputs); changes nothing."""
        raise NotImplementedError

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Instead of ``learn``: fit all rows with targets Y (n, outputs) at once."""
        raise NotImplementedError

    # ---------------------------------------------------------------- changes
    def fade(self, state: State, keep: float) -> bool:
        """Give what was learned less weight, so that new rows change more; False if that is not possible."""
        return False

    def restart(self, state: State) -> bool:
        """Set the weights to those of an untrained model."""
        state["t"] = 0
        self.reset(state)
        return True

    def mix_outputs(self, state: State, change: Change) -> None:
        """Replace the outputs by new ones, as ``change`` says."""
        raise NotImplementedError

    def widen(self, state: State, d: int) -> dict[Any, Any] | None:
        """Make the entries fit rows of width d, whose new columns were zero in all rows so far.

        Returns what stays of ``derived``.
        """
        raise ValueError(
            f"{self.context.name} cannot take more columns once it has learned: provide all of them from the start"
        )

    # ---------------------------------------------------------------- a failed call
    def writes(self, state: State) -> tuple[frozenset[str], frozenset[str]]:
        """Arrays that are not copied before a call: those that are replaced, and those whose changes are announced."""
        return self._replaced, self._by_row

    def owners(self, state: State) -> list[tuple[Any, State]]:
        """Learners and the states they learn into."""
        return [(self, part) for part in parts(state)]

    def put_back(self, state: State, remake: bool) -> None:
        """Arrays of the state are others by now: drop what is bound to those before.

        With ``remake``, a call has been undone: entries that were not copied are made again from the others.
        """
        self.forget()


def solves(learner: Any) -> bool:
    """Whether a learner, or a class of them, learns all rows at once: then it has no ``learn``."""
    kind: Any = learner if isinstance(learner, type) else type(learner)
    return kind.solve is not Learner.solve
