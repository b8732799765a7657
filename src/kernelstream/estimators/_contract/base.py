"""The contract of every streaming estimator: validation, weights, learn and predict.

What learns is a :class:`.learner.Learner` of the class ``_learns``, a few functions of parameters and a state.
:mod:`.warm_up` estimates from the first rows, :mod:`.classifier` adds labels, :mod:`.regressor` targets.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from ... import engine as engines
from ...checks import flag, is_whole
from ...core import threads
from ...core.overflow import SCORING, reword
from ...kernels.bandwidth import median_rows
from ...passes.trust.python import EVERY
from ...registry.parameters import WithParameters
from ...rows import Rows, host, take
from ...state.nested import State as State
from ...state.nested import copied, flatten, nest, thawed
from ...state.schema import Superfluous
from ...state.turns import OwnTurns, in_turn
from ...state.undo import Undo, all_or_nothing, open_call
from . import mixed, warm_up, weights
from .callbacks import LISTENERS, CallbackSupportMixin, learn_passes, listens, with_callbacks
from .changes import forget
from .context import learner_of
from .door import admit, checked_rows
from .fast import made_plain, plain_form, plain_rows
from .first_rows import odd_cells
from .learner import Learner, solves
from .order import Order, check_order, counted
from .parts import unfolded
from .scaling import check_standardize, demanded, scales_columns
from .state import check_model, scaled_rows, widen_rows
from .warm_up import DENSE_ROWS

L = TypeVar("L", bound=Learner)


@dataclass(eq=False, repr=False)
class StreamEstimator(CallbackSupportMixin, WithParameters):
    """Base of all estimators that learn row by row.

    Everything mutable is in the dict ``_state``; the attribute ``_cache`` only holds what can be derived from it.
    Public methods take turns (``_turns``), so that threads may share an estimator. A call that raises leaves the state
    as it was (``_undo``).
    """

    _: KW_ONLY  # parameters of every estimator
    engine: Any = "auto"
    random_state: Any = None

    standardize: Any = field(default=False, init=False)  # True, False or "auto"; of most a parameter
    columns: Any = field(default=None, init=False)  # of those that take mixed rows a parameter, see `.mixed`

    on_device: ClassVar[bool] = False  # whether the family has a torch engine
    _few_at_once: ClassVar[bool] = False  # whether its learner has a short path for few rows, see `Learner.learn_few`
    _at_once: ClassVar[bool] = False  # whether its learner has `solve`: no `learn` and the like then
    _sets_aside: ClassVar[bool] = False  # whether rows may be set aside because of their target, see `_believed`
    _several_targets: ClassVar[bool] = False  # whether a regressor may have more than one output
    _learns: ClassVar[type[Learner]]  # what learns: a class of learners
    _loss_rule: ClassVar[Any]  # the loss for a number of classes, from the parameters
    _how = cast("Any", {})  # further arguments of its `learn` and `solve`, while a call asks for more

    _state: State = field(init=False)
    _turns = OwnTurns()
    _cache = cast("Any", MappingProxyType({}))  # until there is a state
    _undo: Any = field(init=False)
    _marks: Any = field(init=False)
    _encoder: Any = field(default=None, init=False)  # of a model of mixed rows
    _infinite: frozenset[int] = field(default=frozenset(), init=False)  # columns of whose infinity was warned
    _link_frozen: bool = field(default=False, init=False)  # whether rows are known ones, which the link must not learn

    def __init_subclass__(cls, **options: Any) -> None:
        learns = cls.__dict__.get("_learns")
        if learns is not None:  # what a shell does follows from the methods that its learner has
            cls._few_at_once = learns.learn_few is not None
            cls._at_once = solves(learns)
            for name in ("learn", "learn_row", "partial_fit") if cls._at_once else ():
                setattr(cls, name, _Absent())
        super().__init_subclass__(**options)

    # ---------------------------------------------------------------- public
    @property
    @in_turn
    def state_(self) -> State:
        """Everything the model has learned: a flat dict of arrays, numbers and strings.

        The model itself, no copy, unless it is made of others: then their entries have paths as names.
        """
        state = self._of_state()
        self._sync()
        return flatten(state if self._encoder is None else state | {"columns": self._encoder.state_})

    @state_.setter
    @in_turn
    def state_(self, state: State) -> None:
        state = nest(state)
        has_encoder = self.columns is not None and isinstance(state.get("columns"), dict)
        encoder = mixed.entered(self, state.pop("columns")) if has_encoder else None
        self._state, self._encoder = state, encoder
        self.n_features_in_ = int(state["n_features"])
        self._forget()
        mixed.name_columns(self)

    def _learn_any(self, X: Any, y: Any, classes: Any, sample_weight: Any, encoded: bool = False) -> np.ndarray:
        """What ``learn`` does for every task: encode mixed rows, then the short path for plain calls, or all checks."""
        with self._turns:
            mixes = self.columns is not None and not encoded
            if mixes and (self._encoder is not None or mixed.encodes(self, X, fresh=False)):
                if isinstance(y, str) or not hasattr(y, "__len__") or not getattr(y, "ndim", 1):
                    y = np.array([y])
                if self._encoder is not None and classes is None and sample_weight is None:
                    scores = mixed.learn_row(self, X, y)
                    if scores is not None:
                        return scores
                weighted = sample_weight is not None and np.ndim(sample_weight) > 0

                def learn(rows: np.ndarray, at: slice) -> np.ndarray:
                    weight = take(sample_weight, at) if weighted else sample_weight
                    return self._learn_any(rows, take(y, at), classes, weight, encoded=True)

                return mixed.learn(self, X, y, sample_weight, learn)
            plain = classes is None and sample_weight is None
            fast = (self._cache.get("fast") or plain_form(self)) if plain else None
            target = self._fast_target(y, X.shape[0]) if fast is not None and plain_rows(self, X, fast) else None
            if fast is not None and target is None:
                X, y, target = made_plain(self, X, y, fast)
            if fast is None or target is None:
                return self._learn_checked(X, y, classes, sample_weight)
            for domain in fast.domains:
                domain.check(host(X))
            scores = self._learn_plain(X, target)
            return scores[:, 0] if scores.shape[1] == 1 else scores  # `_public`, without a call of Python

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, shuffle: bool = True, passes: int = 1
    ) -> StreamEstimator:
        """Forget everything, then learn the rows in random order, or all at once.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        sample_weight : (n,) array, optional
            Factors of each row's loss. A row of weight 2 need not be two rows: see "What a weight means" in the guide.
        shuffle : bool, default=True
            Take the rows in a random order that follows from the estimator's seed, so that a file sorted by class or by
            date does no harm. False keeps the order: what ``learn`` does on a fresh model.
        passes : int, default=1
            How often to go through the rows, each time in another order. Must be 1 if rows are learned all at once.

        Returns
        -------
        self
        """
        with self._turns:
            mixed.fit(
                self, X, y, sample_weight, shuffle, lambda X: self._fit_rows(X, y, sample_weight, shuffle, passes)
            )
        return self

    @in_turn
    def widen(self, n_features: int) -> StreamEstimator:
        """Accept rows with more columns from now on, as if the new columns had been zero in all rows so far.

        Parameters
        ----------
        n_features : int
            Width of the rows to come, at least ``n_features_in_``.

        Returns
        -------
        self
        """
        if self._encoder is not None:  # mixed rows may have new columns at any time
            return self
        return self._widened(n_features)

    @in_turn
    def check_state(self) -> None:
        """Raise ValueError where ``state_``, of a file, say, does not fit the parameters, or itself."""
        self._check_state()

    def _widened(self, n_features: int) -> StreamEstimator:
        self._sync()
        before = self._of_state()
        d = before["n_features"]
        if not is_whole(n_features) or n_features < d:
            raise ValueError(f"n_features must be an integer >= {d}, the width so far, got {n_features!r}")
        if n_features > d:
            learner = self._learner
            if "feature_names_in_" in self.__dict__ and self._encoder is None:
                raise ValueError(f"{type(self).__name__} knows its {d} columns by name and cannot take others")
            self._check_parameters()
            state = thawed(before)
            lasting = learner.widen(state, int(n_features))
            widen_rows(state, int(n_features))
            self._state = state
            self.n_features_in_ = int(n_features)
            learner.forget()
            learner.derived |= lasting or {}
            self._forget(learner)
        return self

    def _of_state(self) -> State:
        state = self.__dict__.get("_state")
        if state is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return state

    # ---------------------------------------------------------------- learning
    def _learn_plain(self, X: Rows, y: np.ndarray) -> np.ndarray:
        """Learn checked rows with encoded targets; returns the scores before each update, (n, n_outputs)."""
        call = open_call(self) if "_open" in self.__dict__ else None
        if call is not None:  # the caller that opened it undoes what fails
            call.nothing_learned = False
            return self._learn_believed(X, y)
        if self._few_at_once and not self._how:
            found = self._learner.learn_few(self._state, X, y)
            if found is not None:
                return found
        try:
            marks = self._marks
            if marks is None or not marks.save():  # saving the marks is all that most models need
                self._begin_call()
            undo = self._undo
            scores = self._learn_believed(X, y) if self._sets_aside else self._learn_encoded(X, y, None)
            if undo.journaled:
                undo.end()
            else:
                undo.marks.forget()  # the same, without a call of Python
        except BaseException as error:
            self._take_back(self._undo)
            reword(error)
            raise
        return scores

    def _learn_believed(self, X: Rows, y: np.ndarray) -> np.ndarray:
        if not self._sets_aside:
            return self._learn_encoded(X, y, None)
        parts = [self._learn_encoded(X[rows], y[rows], own) for rows, own in self._believed(y, None)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _learn_encoded(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Scale and learn rows whose targets are encoded and whose weights are final."""
        if "x_count" in self._state:  # scales_columns, without a call
            X = warm_up.standardized(self, self._state, X, weight)
        learner: Any = self._cache.get("learner") or self._learner
        scores = learner.learn(self._state, X, y, weight, **self._how)
        ready: Any = self._cache.get("follow")
        link: Any = self._state.get("link")
        if ready is not None and ready[0] is link:  # the short path, for calls of one row
            if len(y) == 1 and weight is None and link.item(0) % EVERY:
                link[0] += 1.0  # the link learns every second row, and skips this one
            else:
                ready[1](link, scores, y, weight, *ready[2:])
        else:
            self._follow(scores, y, weight)
        return scores

    def _learn_public(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn rows with public targets that are all known, after the warm-up or between its points."""
        state = self._state
        return self._learn_encoded(X, self._encode(state, y), self._final_weights(state, y, weight))

    def _learn_checked(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> np.ndarray:
        self._check_reset()
        with self._kept():
            X, y, weight = self._admit(X, y, classes, sample_weight, fresh=False)
            if not X.shape[0]:
                outputs = 1 if self.__dict__.get("_state") is None else self._state["n_outputs"]
                return np.zeros(0) if outputs == 1 else np.zeros((0, outputs))
            return self._learn_task(X, y, weight)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, shuffle: bool, passes: int) -> None:
        """The body of ``fit``."""
        with self._kept(fresh=True):
            check_order(self, shuffle, passes)
            rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
            self._check_whole(target, weight)
            if self._at_once:
                warm_up.warn_about_units(self, rows[median_rows(rows.shape[0])])
            listened = listens(self) and not self._at_once
            order = Order(self._state["seed"], rows, weight, shuffle and not self._at_once, passes, listened)
            learn_passes(self, X, y, order, rows, target, weight)

    def _learn_part(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn validated rows of ``fit``: in their order, or all at once those of positive weight."""
        if not self._at_once:
            self._learn_task(X, y, weight)
            return
        X, y, weight = counted(X, y, weight)
        self._learner.solve(self._state, X, *self._batch_target(self._state, y, weight), **self._how)
        self._state["t"] = X.shape[0]
        self._link_from(X, y, weight)

    def _joined(self, scores: list[np.ndarray], classes: list[Any]) -> np.ndarray:
        """Scores of the pieces of a call, in public form, as those of the call; and the labels known after each."""
        return np.concatenate(scores) if len(scores) > 1 else scores[0]

    # ---------------------------------------------------------------- all or nothing
    def _begin_call(self) -> Undo | None:
        """Remember the state before a call, if there is one."""
        if self.__dict__.get("_state") is None:
            return None
        undo: Undo | None = self.__dict__.get("_undo")
        if undo is None:
            undo = self._undo = Undo(lambda: self._learner.owners(self._state))
        on_device, held = self._ops.on_device, self._learner.derived.get("held")  # type: bool, Any
        undo.put_back = held.mark() if hasattr(held, "mark") else None
        if undo.begin():
            undo.put_back = None
            self._derive_again()
        self._marks = None if undo.journaled or on_device else undo.marks
        return undo

    def _inside_call(self) -> list[Any]:
        """What goes back with the estimator when a call fails: the encoder of its rows."""
        return [] if self._encoder is None else [self._encoder]

    def _take_back(self, undo: Undo | None, nothing_learned: bool = False) -> None:
        """Restore the state of :meth:`_begin_call`, unless the call is complete; drop what was derived from it.

        Where ``nothing_learned`` nothing has changed: what was derived is kept, because a factor that is computed again
        may differ from the old one in its last bits.
        """
        if undo is not None and undo.take_back():
            self._undo = undo
            if nothing_learned:
                return
            self._derive_again(remake=True)
            if undo.put_back is not None:
                self._learner.derived["held"] = undo.put_back()

    def _derive_again(self, remake: bool = False) -> None:
        """Drop what was derived from the state; the learner stays, and members, since others may hold them."""
        learner = self._learner
        self._cache = {"learner": learner}
        learner.put_back(self._state, remake)

    _lasting = LISTENERS

    @contextlib.contextmanager
    def _kept(self, fresh: bool = False) -> Iterator[None]:
        """Context of a call, or of several: an error leaves the estimator as it was before. See ``all_or_nothing``.

        What is derived from a state goes with it: a fresh one does not begin with what belongs to the old.
        """
        try:
            with all_or_nothing(self, fresh=fresh):
                if fresh:
                    self.__dict__.pop("_cache", None)
                yield
        except BaseException as error:
            reword(error)
            raise

    _admit = admit
    forget = forget

    # ---------------------------------------------------------------- scoring
    def _scores(self, X: Any, following: bool = False) -> np.ndarray:
        """Raw scores (n, n_outputs) of unchecked rows; the model is left as it is.

        With ``following``, each row is the next one of the stream, to learners for which that makes a difference.
        """
        return self._scores_of(self._rows_of(X), following)

    @staticmethod
    def _public(scores: np.ndarray) -> np.ndarray:
        """Scores as users get them: one column is an array (n,)."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _rows_of(self, X: Any) -> Rows:
        """Checked rows of numbers, from rows as they come."""
        if self.__dict__.get("_state") is None:
            raise NotFittedError(
                f"This {type(self).__name__} has not learned any row yet: call fit, partial_fit or learn"
            )
        if self._encoder is not None:
            X = mixed.encoded(self, X)
        fast = self._cache.get("fast") or plain_form(self)
        return X if fast is not None and plain_rows(self, X, fast) else checked_rows(self, X, reset=False)

    def _scores_of(self, X: Rows, following: bool) -> np.ndarray:
        state = self._state
        if state["warm_rows"] and not state["warm_count"]:
            return np.zeros((X.shape[0], state["n_outputs"]))
        scores = self._score_in_cuts(state, X, following)
        if not self._ops.all_below(scores, sys.float_info.max_exp):
            raise ValueError(SCORING)
        return scores

    def _score_in_cuts(self, state: State, X: Rows, following: bool) -> np.ndarray:
        """Scores of rows in the units of the user; sparse ones that are made dense, some at a time."""
        score: Callable[..., np.ndarray] = self._learner.score
        if self._few_at_once:
            found = None if state["warm_rows"] else self._learner.score_few(state, X, following)
            if found is not None:
                return found
            score = functools.partial(score, following=following)
        if not scales_columns(state):
            return score(state, X)
        if not sp.issparse(X):
            return score(state, scaled_rows(self._ops, X, state))
        cuts = threads.cuts(X.shape[0], DENSE_ROWS)
        return np.concatenate([score(state, scaled_rows(self._ops, X[rows], state)) for rows in cuts])

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""
        for parameter in fields(self):
            if parameter.init and parameter.type == "bool":
                flag(parameter.name, getattr(self, parameter.name))
        check_standardize(self.standardize)
        self._learner.check_parameters()

    _check_state = check_model

    def __sklearn_is_fitted__(self) -> bool:
        return self.__dict__.get("_state") is not None

    # ---------------------------------------------------------------- caches (derived, never saved)
    @property
    def _ops(self) -> Any:
        # a model made on a device can be used on a machine without one: its state is the same
        return engines.get(self.engine if engines.usable(self.engine) else "auto")

    def _forget(self, learner: Learner | None = None) -> None:
        """Drop what was derived from the state; and the learner, unless it is given since it knows of the change."""
        former = self._cache.get("learner")
        if former is not None and former is not learner:
            former.leave_device()
            former.forget()
        self._cache, self._undo, self._marks = {} if learner is None else {"learner": learner}, None, None

    def _weighs(self) -> bool:
        """Whether rows are weighed by more than ``sample_weight``."""
        return False

    def learn_row(self, X: np.ndarray, y: Any) -> None:
        """Learn one row that is known to be finite, without the checks of ``learn``.

        Parameters
        ----------
        X : (1, d) float64 array, C-contiguous
        y : a label, or a number for a regressor
        """
        with self._turns:
            fast = plain_form(self)
            if fast is not None and plain_rows(self, X, fast):
                target = self._fast_row(y)
                if target is not None:
                    for domain in fast.domains:
                        domain.check(X)
                    self._learn_plain(X, target)
                    return
            self._learn_checked(X, np.array([y]), None, None)

    @in_turn
    def set_params(self, **params: Any) -> StreamEstimator:
        """Set parameters; those of a part as ``features__n_components``, even if the part is given by name."""
        super().set_params(**unfolded(self, params))
        self._forget()
        if params and self.__dict__.get("_state") is not None:
            self._reset = True
        return self

    def _check_reset(self) -> None:
        """ValueError if parameters that were set after the first row do not fit what was learned."""
        if self.__dict__.get("_reset"):
            self._check_parameters()
            try:
                self._check_state()
            except Superfluous:  # what is not needed any more does no harm
                pass
            except (ValueError, KeyError) as error:
                raise ValueError(
                    f"the parameters that were set do not fit what this {type(self).__name__} has learned ({error}): "
                    f"call fit, which starts over, or set them back"
                ) from error
            del self._reset

    def __sizeof__(self) -> int:
        """Bytes, including the arrays of the state: schedulers use it to decide whether to move a model."""
        state = flatten(self.__dict__.get("_state") or {})
        arrays = (value.nbytes for value in state.values() if hasattr(value, "nbytes"))
        return super().__sizeof__() + sum(arrays)

    @in_turn
    def __getstate__(self) -> Any:
        self._sync()
        again = ("_cache", "_undo", "_marks", "_turns", "_open")  # copies make these again
        kept = {key: value for key, value in super().__getstate__().items() if key not in again}
        # the arrays too: another thread may go on learning before they are written
        if kept.get("_state") is not None:
            kept["_state"] = copied(kept["_state"])
        return kept

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._forget()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not demanded(self.standardize)
        if self.columns is not None:
            tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return self._learner.tags(tags)

    # ---------------------------------------------------------------- the first rows, see `.warm_up`
    def _scaling(self) -> bool | None:
        """Whether columns are scaled; None where the first rows decide."""
        return self._learner.auto_scaling() if isinstance(self.standardize, str) else bool(self.standardize)

    def _final_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights of rows as the family takes them: sample weights in its unit, times those of the classes."""
        factor: Any = None
        if self._weighs():
            factor = self._row_weights(state, y, None if weight is None else (weight > 0).astype(np.float64))
            # a row of a class of weight 0 does not count for the mean either
            weight = np.where(factor > 0, 1.0 if weight is None else weight, 0.0)
        if self._learner.relative_weights:
            weight = weights.relative(state, weight, len(y))
            if weights.SUMS in state:  # from now on rows without weights are weighed too
                self._cache.pop("fast", None)
        return weight if factor is None else factor * weight

    def _trusted(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights of the kept rows, 0 for those with a glitch."""
        return weight if "x_usual" in self._state else np.where(odd_cells(X), 0.0, weight)

    def _forget_rows(self, state: State) -> None:
        """Undo what :meth:`_final_weights` counted."""
        state.pop(weights.SUMS, None)

    # ---------------------------------------------------------------- the learner
    @property
    def _learner(self) -> Learner:
        found = self._cache.get("learner")
        if found is None:
            found = learner_of(self, self._ops)
            if "_cache" in self.__dict__:  # nothing is kept in an untrained model
                self._cache["learner"] = found
        return found

    def _sync(self) -> None:
        """Bring ``_state`` up to date with whatever the engine holds of it."""
        learner = self._cache.get("learner")
        if learner is not None:
            learner.sync()

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
        return self._public(warm_up.learn(self, X, y, weight))

    def _encode(self, state: State, y: np.ndarray) -> np.ndarray:
        """Target as the passes take it, (n,) float64."""
        return y

    def _batch_target(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        """Target of all rows as batch solvers take it, (n, outputs), and the weights of the rows or None.

        Enters what the state must know of the target.
        """
        raise NotImplementedError

    def _follow(self, scores: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Scores (n, n_outputs) that rows had before they were learned, with their encoded targets and weights."""

    def _link_from(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn the link of a model that learned all rows at once, without predicting any of them before."""

    def _row_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Sample weights times all other weights of a row."""
        return weight

    def _believed(self, y: np.ndarray, weight: np.ndarray | None) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Runs of rows that are about to be learned, and their weights, 0 for those that should not be."""
        yield slice(0, len(y)), weight

    def _fast_row(self, y: Any) -> np.ndarray | None:
        """Encoded target (1,) of a single row of a plain call, or None when it needs the full checks."""
        return None

    def _fast_target(self, y: Any, n: int) -> np.ndarray | None:
        """Encoded target of a plain call, or None when it needs the full checks."""
        raise NotImplementedError


class Shell(StreamEstimator, Generic[L]):
    """For type checkers: an estimator with a certain kind of learner."""

    _learner: L


class _Absent:
    """A method that a learner of all rows at once does not have."""

    def __get__(self, est: Any, cls: type) -> Any:
        raise AttributeError(f"{cls.__name__} learns all rows at once: use fit")


def has_fixed_width(est: Any) -> bool:
    """Whether an estimator is one of ours that cannot take more columns once it has learned."""
    return isinstance(est, StreamEstimator) and type(est._learner).widen is Learner.widen
