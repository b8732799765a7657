"""What learns: a family as an object, functions of a state around which the estimators are a shell."""

from __future__ import annotations

from functools import cached_property
from inspect import get_annotations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ...rows import Rows, host
from ...state.change import Change
from ...state.nested import State, parts
from ...state.schema import Schema
from .deviations import means

if TYPE_CHECKING:
    from .base import StreamEstimator


class Learner:
    """What a shell asks of its learner, an object of the class that it names in ``_learns``.

    A learner keeps nothing that it learns: that is in the state, and what can be derived from it in the cache of the
    shell. What follows from the parameters alone (a map, an update) it may keep: other parameters make another learner.
    An attribute that its class declares (``lam: float``) is the parameter of the shell with that name.

    Parameters
    ----------
    est : StreamEstimator
        The shell, which has the parameters, the engine and the cache.
    """

    keeps_rows: bool = False  # whether rows that are given on a device are brought to the processor
    squashes: bool = False  # whether it draws far values in, so that columns with long tails may keep their scale

    # What a failed call has changed is undone. Arrays of the state are copied before a call, except:
    _replaced: frozenset[str] = frozenset()  # entries that are replaced by new arrays, never changed in place
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

    def seed_source(self) -> Any:
        """Where the seed of a model comes from."""
        return self.est.random_state

    # ---------------------------------------------------------------- a state
    def begin(self, state: State) -> None:
        """Add entries that depend only on ``state["n_features"]``, ``["dtype"]`` and ``["seed"]``."""

    def declared(self, state: State) -> None:
        """What is known of the target before the first row has been entered."""

    def warm_up_rows(self) -> int:
        """How many rows an estimate from data needs; 0 when there is nothing to estimate."""
        return 0

    def one_width(self) -> bool:
        """Whether one width, taken from rows or from a list of ours, compares all columns: then their units matter."""
        return False

    def auto_scaling(self) -> bool | None:
        """Whether ``standardize="auto"`` scales columns; None where the first rows decide."""
        return None if self.one_width() else False

    def estimate(self, state: State, X: Rows) -> None:
        """Set the data-driven entries from the first rows X (n, d)."""

    def end_warm_up(self) -> None:
        """The data have ended."""

    def reset(self, state: State) -> None:
        """Set the weights of ``state["n_outputs"]`` outputs to those of an untrained model."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""

    def schema(self, state: State, trained: bool) -> Schema:
        """What its entries may be, in a state whose common entries have been checked.

        Those of ``begin`` and ``estimate``, and if it is ``trained`` those of :meth:`reset`. Nothing may be
        drawn or made here: the state can come from a file that lies about its sizes.
        """
        raise NotImplementedError

    def verify(self, state: State) -> None:
        """Raise ValueError for entries that keep to the schema and yet do not fit each other."""

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
        """Sparse rows that are to be scaled, made dense; ValueError where that is left to the user."""
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
        """Enter what the targets y (n,) or (n, k) of the first rows tell before they are learned.

        That is their mean, where differences from it are learned: the first target may be far from 0.
        """
        if "center" in state:
            state["center"][1] = np.reshape(means(y, weight), state["center"].shape[1:])

    def tags(self, tags: Any) -> Any:
        """The estimator's tags for scikit-learn."""
        return tags

    def weighs(self, state: State) -> bool:
        """Whether :meth:`weighed` changes the weights of rows."""
        return False

    def weighed(self, state: State, weight: np.ndarray | None, n: int) -> np.ndarray | None:
        """Final weights of n rows; called once for every row."""
        return weight

    def forget_rows(self, state: State) -> None:
        """Undo what :meth:`weighed` counted."""

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
        """Learn a few rows in the units of the user, in one step of compiled code; None where there is no such way."""
        return None

    def score_few(self, state: State, X: Rows, alone: bool) -> np.ndarray | None:
        """Scores of a few rows in the units of the user, likewise; ``alone`` as in ``StreamEstimator._scores``."""
        return None

    def row_learner(self, state: State) -> Any:
        """A compiled learner of single rows that works on the state's own arrays.

        None where there is none; NotImplemented where there will be one after more rows.
        """
        return None

    # ---------------------------------------------------------------- changes
    def fade(self, state: State, keep: float) -> bool:
        """Give what was learned less weight, so that new rows change more; False where that cannot be."""
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
        """A label has appeared, at some place among the sorted ones, and the outputs have changed."""

    def widen(self, state: State, d: int) -> None:
        """Make the entries fit rows of width d; the new columns were zero in all rows so far."""
        raise ValueError(
            f"{type(self.est).__name__} cannot take more columns once it has learned: provide for all of them "
            f"beforehand"
        )

    def remake(self, state: State) -> None:
        """After an undo: recompute entries that were not copied because they follow from the others."""

    def taken_back(self, members: list[Any]) -> None:
        """The state is what it was before a call; ``members`` are the estimators that it had attached to it."""
