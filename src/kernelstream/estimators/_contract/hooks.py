"""What a family of streaming learners supplies: pure functions of its parameters and a state.

A family supplies them as methods of its estimators, or as a :class:`.learner.Learner`, which ``_new_learner`` makes.

The part that depends on the target is supplied by :mod:`.classifier`, :mod:`.regressor` or :mod:`.outlier`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import Rows
from ...state.change import Change
from ...state.nested import State as State
from ...state.schema import Schema
from .learner import Learner


class Hooks:
    """Called by :class:`.base.StreamEstimator`, which documents when."""

    engine: Any
    random_state: Any
    standardize: Any = False  # True, False or "auto"

    on_device: bool = False  # whether the family has a torch engine
    _composed: bool = False  # whether the family is an object of its own, see `_new_learner`
    _takes_sparse: bool = False  # whether sparse rows are made dense where columns are scaled anyway
    _at_once: bool = False  # whether it takes all rows in one call of `_learn_task`, without `_begin`
    _short_way: bool = True  # whether plain calls go straight to `_learn`
    _sets_aside: bool = False  # whether rows may be set aside because of their target, see `_set_aside`
    _linkless: bool = False  # True while known rows are learned again: the link must not see their scores
    _several_targets: bool = False  # whether a regressor may have more than one output

    # What a failed call has changed is undone. Arrays of the state are copied before a call, except:
    _replaced: frozenset[str] = frozenset()  # entries that are replaced by new arrays, never changed in place
    _by_row: frozenset[str] = frozenset()  # entries whose changes are announced to `_undo.rows`
    _held: str = ""  # entry of the cache that holds a part of the state; on a device it has a method `mark`

    def _remake(self, state: State) -> None:
        """After an undo: recompute entries that were not copied because they follow from the others."""

    # ---------------------------------------------------------------- a family that is an object of its own
    def _new_learner(self) -> Learner:
        raise NotImplementedError(f"{type(self).__name__} supplies its hooks itself")

    @property
    def _learner(self) -> Learner:
        found = self._cache.get("learner")
        return self._cached("learner", self._new_learner) if found is None else found

    _cache: Any
    _cached: Any

    # ---------------------------------------------------------------- hooks of a family
    def _sync(self) -> None:
        """Bring ``_state`` up to date with whatever a device holds of it."""

    def _begin(self, state: State) -> None:
        """Add entries that depend only on ``state["n_features"]``, ``["dtype"]`` and ``["seed"]``."""
        if self._composed:
            self._learner.begin(state)

    def _warm_up_rows(self) -> int:
        """How many rows an estimate from data needs; 0 when there is nothing to estimate."""
        return self._learner.warm_up_rows() if self._composed else 0

    def _one_width(self) -> bool:
        """Whether one width, taken from rows or from a list of ours, compares all columns: then their units matter."""
        return self._composed and self._learner.one_width()

    def _auto_scaling(self) -> bool | None:
        """Whether ``standardize="auto"`` scales columns; None where the first rows decide."""
        return None if self._one_width() else False

    def _estimate(self, state: State, X: Rows) -> None:
        """Set the data-driven entries from the first rows X (n, d)."""
        if self._composed:
            self._learner.estimate(state, X)

    def _reset(self, state: State) -> None:
        """Set the weights of ``state["n_outputs"]`` outputs to those of an untrained model."""
        self._learner.reset(state)

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, n_outputs)."""
        return self._learner.learn(state, X, y, weight)

    def _score(self, state: State, X: Rows) -> np.ndarray:
        """Scores of rows, (n, n_outputs); changes nothing."""
        return self._learner.score(state, X)

    def _fade(self, state: State, keep: float) -> bool:
        """Give what was learned less weight, so that new rows change more; False where the family cannot."""
        return self._composed and self._learner.fade(state, keep)

    def _anew(self, state: State) -> bool:
        """Set the weights to those of an untrained model."""
        if self._composed:
            return self._learner.restart(state)
        state["t"] = 0
        self._reset(state)
        return True

    def _row_learner(self, state: State) -> Any:
        """A compiled learner of single rows that works on the state's own arrays.

        None where there is none; NotImplemented where there will be one after more rows.
        """
        return None

    def _mix_outputs(self, state: State, change: Change) -> None:
        """Replace the outputs by new ones, as ``change`` says."""
        self._learner.mix_outputs(state, change)

    def _widen(self, state: State, d: int) -> None:
        """Make the entries fit rows of width d; the new columns were zero in all rows so far."""
        if self._composed:
            return self._learner.widen(state, d)
        raise ValueError(
            f"{type(self).__name__} cannot take more columns once it has learned: say how many there will be beforehand"
        )

    def _schema(self, state: State, trained: bool) -> Schema:
        """The family's own entries, of a state whose common entries have been checked.

        Those of :meth:`_begin` and :meth:`_estimate`, and if it is ``trained`` those of :meth:`_reset`. Nothing may be
        drawn or made here: the state can come from a file that lies about its sizes.
        """
        return self._learner.schema(state, trained)

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""
        if self._composed:
            self._learner.check_parameters()

    def _check_rows(self, X: Rows) -> None:
        """Raise ValueError for finite rows that the kernel cannot take."""
        if self._composed:
            self._learner.check_rows(X)

    def _choosy(self) -> bool:
        """Whether there are finite rows that :meth:`_check_rows` may refuse."""
        return self._composed or type(self)._check_rows is not Hooks._check_rows

    # ---------------------------------------------------------------- targets, by task
    def _check_target(self, y: Any, classes: Any, n: int, weight: np.ndarray | None, fresh: bool) -> tuple[Any, Any]:
        """Validated target (n,) and whatever :meth:`_declare` needs; changes nothing."""
        raise NotImplementedError

    def _check_whole(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Raise ValueError for parameters that contradict the target of all rows (``fit``)."""

    def _declare(self, state: State, declared: Any) -> None:
        """Enter what is known about the target before the first row is learned."""

    def _learn_task(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn validated rows; returns the scores in public form."""
        raise NotImplementedError

    def _loss_now(self, state: State) -> Any:
        """The loss in use."""
        raise NotImplementedError

    def _encode(self, state: State, y: np.ndarray) -> np.ndarray:
        """Target as the passes take it, (n,) float64."""
        raise NotImplementedError

    def _batch_target(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        """Target of all rows as batch solvers take it, (n, outputs), and the weights of the rows or None.

        Enters what the state must know of the target.
        """
        raise NotImplementedError

    def _follow(self, scores: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Scores (n, n_outputs) that rows had before they were learned, with their encoded targets and weights."""

    def _link_from(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn the link of a model that learned all rows at once, without predicting any of them before."""

    def _found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        """Parameters that this fit chose, for a similar model of a share of the rows; divisors of the columns, (d,)."""
        return {}, None

    def _row_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Sample weights times all other weights of a row."""
        return weight

    def _set_aside(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of rows with encoded target y that are about to be learned, 0 for those that should not be."""
        return weight

    def _hot_row(self, y: Any) -> np.ndarray | None:
        """Encoded target (1,) of a single row of a plain call, or None when it needs the full checks."""
        return None

    def _hot_target(self, y: Any, n: int) -> np.ndarray | None:
        """Encoded target of a plain call, or None when it needs the full checks."""
        raise NotImplementedError
