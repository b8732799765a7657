"""The base of what learns: an object with functions of a state, for which the estimators are a shell."""

from __future__ import annotations

from functools import cached_property
from inspect import get_annotations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ...core.targets import Move
from ...rows import Rows, host
from ...state.change import Change
from ...state.nested import State, parts
from ...state.schema import Schema
from . import weights
from .deviations import means

if TYPE_CHECKING:
    from .base import StreamEstimator


class Learner:
    """What a shell asks of its learner, an object of the class named in ``_learns``.

    A learner itself stores nothing that it learns: that is in the state, and what is derived from the state is in the
    shell's cache. It may keep what follows from the parameters alone (a map, an update), since new parameters make a
    new learner. An attribute that its class declares (``lam: float``) is the shell's parameter of that name.

    Parameters
    ----------
    est : StreamEstimator
        The shell, which has the parameters, the engine and the cache.
    """

    keeps_rows: bool = False  # whether rows that are given on a device are brought to the processor
    relative_weights: bool = False  # whether weights count relative to their mean, since one of 2 is not two rows
    squashes: bool = False  # whether it draws far values in, so that columns with long tails may keep their scale

    # Changes of a failed call are undone. Arrays of the state are copied before a call, except for
    _replaced: frozenset[str] = frozenset()  # entries that are replaced by new arrays, never changed in place, and
    _by_row: frozenset[str] = frozenset()  # entries whose changes are announced to `_undo.rows`

    def __init__(self, est: StreamEstimator):
        self.est = est
        *own, _, _ = type(self).__mro__  # without this class and object
        for name in (name for base in own for name in get_annotations(base)):
            if hasattr(est, name):
                setattr(self, name, getattr(est, name))

    def parameter(self, name: str, default: Any = None) -> Any:
        """A parameter of the shell as it was given, a name or an object."""
        return getattr(self.est, name, default)

    @cached_property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return isinstance(self.est, RegressorMixin)

    @property
    def ops(self) -> Any:
        """The engine."""
        return self.est._ops

    def spec(self, state: State) -> Any:
        """Loss, update and strategy in the form that a pass takes; with other outputs the loss may be another."""
        own: Any = self
        parts = (own.update, own.strategy) if hasattr(own, "strategy") else (own.update,)
        return self.est._cached(("spec", state["n_outputs"]), lambda: self.ops.spec(self.est._loss_now(state), *parts))

    def seed_source(self) -> Any:
        """Where the seed of a model comes from."""
        return self.est.random_state

    # ---------------------------------------------------------------- a state
    def begin(self, state: State) -> None:
        """Add entries that depend only on ``state["n_features"]``, ``["dtype"]`` and ``["seed"]``."""

    def declared(self, state: State) -> None:
        """What is known of the target before the first row has been entered into the state."""

    def warm_up_rows(self) -> int:
        """How many rows an estimate from data needs; 0 when there is nothing to estimate."""
        return 0

    def one_width(self) -> bool:
        """Whether one width, from the rows or from our defaults, compares all columns, so that their units matter."""
        return False

    def auto_scaling(self) -> bool | None:
        """Whether ``standardize="auto"`` scales columns; None where the first rows decide."""
        return None if self.one_width() else False

    def estimate(self, state: State, X: Rows) -> None:
        """Set the data-driven entries from the first rows X (n, d)."""

    def end_warm_up(self) -> None:
        """There are no more rows."""

    def reset(self, state: State) -> None:
        """Set the weights of ``state["n_outputs"]`` outputs to those of an untrained model."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""

    def schema(self, state: State, trained: bool) -> Schema:
        """What the learner's entries may be, in a state whose common entries have been checked.

        These are the entries of ``begin`` and ``estimate``, and those of :meth:`reset` if the state is ``trained``.
        Nothing may be drawn or allocated here: the state may come from a file that lies about its sizes.
        """
        raise NotImplementedError

    def verify(self, state: State) -> None:
        """Raise ValueError for entries that agree with the schema but not with each other."""

    def owners(self, state: State) -> list[tuple[Any, State]]:
        """Learners and the states they learn into."""
        return [(self, part) for part in parts(state)]

    # ---------------------------------------------------------------- rows
    def domain(self) -> Any:
        """The part (a map, a kernel) that may refuse finite rows, with ``restricted`` and ``check``; None without."""
        return None

    def check_rows(self, X: Rows) -> None:
        """Raise ValueError for finite rows that cannot be learned."""
        if self.restricts_rows:
            self.domain().check(host(X))

    @cached_property
    def restricts_rows(self) -> bool:
        """Whether there are finite rows that :meth:`check_rows` may refuse."""
        domain = self.domain()
        return domain is not None and domain.restricted

    def dense(self, X: Rows) -> np.ndarray:
        """Sparse rows that are to be scaled, made dense; ValueError if that is left to the user."""
        raise ValueError(
            "standardize=True centres every column and would make sparse rows dense; "
            "scale them beforehand (for example with MaxAbsScaler) or pass X.toarray()"
        )

    def learn_scaled(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Standardise and learn rows; y is the public target."""
        est, state = self.est, self.est._state
        return est._learn_encoded(X, est._encode(state, y), est._final_weights(state, y, weight))

    def start_over(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray) -> None:
        """Estimate from the first rows X (n, d), already scaled, then learn them from the start.

        y is the public target; rows of weight 0 are not to be trusted.
        """
        est, trusted = self.est, weight > 0
        self.estimate(state, X if trusted.all() else X[trusted])
        est._forget()
        self.reset(state)
        if trusted.any():
            self.start_targets(state, y, weight)
        est._renewing = True
        try:
            self.learn(state, X, est._encode(state, y), weight)
        finally:
            del est._renewing

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        """Enter what is known from the targets y (n,) or (n, k) of the first rows before they are learned.

        That is their mean, if differences from it are learned: the first target may be far from 0.
        """
        if "center" in state:
            state["center"][1] = np.reshape(means(y, weight), state["center"].shape[1:])

    def tags(self, tags: Any) -> Any:
        """The estimator's tags for scikit-learn."""
        return tags

    def weighs(self, state: State) -> bool:
        """Whether :meth:`weighed` changes the weights of rows."""
        return weights.SUMS in state

    def weighed(self, state: State, weight: np.ndarray | None, n: int) -> np.ndarray | None:
        """Final weights of n rows; called once for every row."""
        if not self.relative_weights:
            return weight
        found = weights.relative(state, weight, n)
        if weights.SUMS in state:  # from now on rows without weights are weighed too
            self.est._cache.pop("fast", None)
        return found

    def forget_rows(self, state: State) -> None:
        """Undo what :meth:`weighed` counted."""
        state.pop(weights.SUMS, None)

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, n_outputs)."""
        raise NotImplementedError

    def score(self, state: State, X: Rows) -> np.ndarray:
        """Scores of rows, (n, n_outputs); changes nothing."""
        raise NotImplementedError

    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        """Instead of ``learn``: fit all rows with targets Y (n, outputs) at once."""
        raise NotImplementedError

    def found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        """Parameters that :meth:`solve` chose, for a model of a share of the rows; divisors of the columns, (d,)."""
        return {}, None

    def learn_few(self, state: State, X: Rows, y: np.ndarray) -> np.ndarray | None:
        """Learn a few rows in the units of the user, in one step of compiled code; None if that is not possible."""
        return None

    def score_few(self, state: State, X: Rows, following: bool) -> np.ndarray | None:
        """Scores of a few rows in the units of the user, likewise; ``following`` as in ``StreamEstimator._scores``."""
        return None

    def row_learner(self, state: State) -> Any:
        """A compiled learner of single rows that works on the state's own arrays.

        None if there is none; NotImplemented if there will be one after more rows.
        """
        return None

    # ---------------------------------------------------------------- changes
    def moved(self, state: State, o: int, move: Move) -> bool:
        """The target of an output has another level or unit: carry over what was learned of it.

        False refuses a smaller unit, because forecasts are right in the old one.
        """
        return move.factor >= 1

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

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        """A label has appeared, at a place among the sorted ones, and the outputs have changed."""

    def widen(self, state: State, d: int) -> None:
        """Make the entries fit rows of width d, whose new columns were zero in all rows so far."""
        name = type(self.est).__name__
        raise ValueError(f"{name} cannot take more columns once it has learned: provide all of them from the start")

    def remake(self, state: State) -> None:
        """After an undo, recompute entries that were not copied because they follow from the others."""

    def taken_back(self, members: list[Any]) -> None:
        """The state has been restored to that before a call; ``members`` are the estimators attached to it."""
