"""The contract of every streaming estimator: rows of a user on their way to the layers of a model, and scores back.

:mod:`.classifier` and :mod:`.regressor` add the methods of their tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError

from ... import engine as engines
from ...columns import Columns
from ...core.overflow import SCORING, reword
from ...kernels.bandwidth import median_rows
from ...random import seed_from
from ...rows import Rows, host, padded, take
from ...state.nested import State as State
from ...state.nested import copied
from ...state.undo import all_or_nothing, open_call
from . import mixed
from .callbacks import CallbackSupportMixin, learn_passes, listens, with_callbacks
from .intake import Form, Intake, made_plain, plain_rows
from .layers import Layers
from .learner import Learner, at_once
from .model import Model
from .order import Order, check_order, counted

L = TypeVar("L", bound=Learner)


@dataclass(eq=False, repr=False)
class StreamEstimator(CallbackSupportMixin, Model):
    """Base of all estimators that learn row by row."""

    _few_at_once: ClassVar[bool] = False  # whether its learner has a short path for few rows, see `Learner.learn_few`

    def __init_subclass__(cls, **options: Any) -> None:
        learns = vars(cls).get("_learns")
        if learns is not None:  # what a shell does follows from the methods that its learner has
            cls._few_at_once = learns.learn_few is not None
            cls._at_once = at_once(learns)
            for name in ("learn", "learn_row", "partial_fit") if cls._at_once else ():
                setattr(cls, name, _Absent())
        super().__init_subclass__(**options)

    # ---------------------------------------------------------------- public
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
            self._fit_any(X, y, sample_weight, shuffle, lambda X: self._fit_rows(X, y, sample_weight, shuffle, passes))
        return self

    def learn_row(self, X: np.ndarray, y: Any) -> None:
        """Learn one row that is known to be finite, without the checks of ``learn``.

        Parameters
        ----------
        X : (1, d) float64 array, C-contiguous
        y : a label, or a number for a regressor
        """
        with self._turns:
            self._learn_numbers(X, np.array([y]), None, None, {})

    # ---------------------------------------------------------------- rows that come in
    def _intake(self, fresh: bool = False) -> Intake:
        """What turns rows as they come into those of this model, or of a ``fresh`` one."""
        return Intake(self, self._layers, None if fresh else self._state, self.columns is not None)

    def _admit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool, empty: bool = False
    ) -> tuple[Rows, Any, Any]:
        """Checked rows, target and weights of a call; starts a state if there is none or ``fresh``.

        A ``fresh`` model needs rows of positive weight; ``empty`` leaves it without weights. Later calls may bring no
        rows, or only rows of weight 0.
        """
        starts = fresh or self._state is None
        if starts:
            self._made = None  # parameters may have changed
            engines.check(self.engine, self.on_device, type(self).__name__)
            self._check_parameters()
        intake = self._intake(starts)
        X, y, weight, declared = intake.call(X, y, classes, sample_weight, fresh, open_call(self))
        if starts and (X.shape[0] or classes is not None):
            self._start(int(X.shape[1]), str(X.dtype).rpartition(".")[2], declared, empty)
            self._made.infinite = intake.layers.infinite
        elif starts:  # no rows, and nothing is known yet about those to come
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        elif declared is not None:
            self._layers.targets.declare(self._state, declared)
        return X, y, weight

    def _start(self, d: int, dtype: str, declared: Any, empty: bool) -> None:
        """A fresh state for rows of d columns; ``empty``: without weights."""
        before = self._state
        self._state = None
        self._forget()
        layers = self._layers
        state: State = {"n_features": d, "dtype": dtype, "seed": seed_from(layers.learner.seed_source())}
        layers.start(state, declared, before)
        self._state, self._made = state, layers
        if not (empty or self._at_once or state["warm_rows"]):
            layers.learner.reset(state)

    def _plain_form(self) -> Form | None:
        """What rows of plain calls are like; None while rows still need a decision."""
        if self._state is None:
            return None
        self._check_reset()
        layers = self._layers
        if layers.form is None and (layers.encoded or not hasattr(self, "feature_names_in_")):
            layers.form = Form.of(layers, self._state)
        return layers.form

    # ---------------------------------------------------------------- learning
    def _learn_any(self, X: Any, y: Any, classes: Any, sample_weight: Any, **how: Any) -> np.ndarray:
        """What ``learn`` does for every task; ``how`` are further arguments of the learner's ``learn``."""
        with self._turns:
            if self.columns is not None and (
                self._encoder is not None or (self._state is None and mixed.needs_encoder(self.columns, X))
            ):
                return self._learn_mixed(X, y, classes, sample_weight, how)
            return self._learn_numbers(X, y, classes, sample_weight, how)

    def _learn_mixed(self, X: Any, y: Any, classes: Any, sample_weight: Any, how: dict[str, Any]) -> np.ndarray:
        """Encode rows and learn them."""
        encoder, state = self._encoder, self._state
        if isinstance(y, str) or not hasattr(y, "__len__") or not getattr(y, "ndim", 1):
            y = np.array([y])
        if encoder is not None and classes is None and sample_weight is None:
            one = partial(self._learn_numbers, y=y, classes=None, sample_weight=None, how=how)
            scores = mixed.learn_row(encoder, X, y, state, self.n_features_in_, one)
            if scores is not None:
                return scores
        weighted = sample_weight is not None and np.ndim(sample_weight) > 0

        def learn(rows: np.ndarray, at: slice) -> np.ndarray:
            weight = take(sample_weight, at) if weighted else sample_weight
            return self._learn_numbers(rows, take(y, at), classes, weight, how)

        def complete() -> bool:
            """Whether an error came after the last row had been learned; a new model is dropped as a whole."""
            return encoder is None or state["t"] > t

        width, t = (0, -1) if encoder is None else (state["n_features"], state["t"])
        learns = mixed.new_encoder(self.columns, self.engine) if encoder is None else encoder
        with all_or_nothing(learns, complete=complete):
            rows, widths = learns._learn(X, y, sample_weight, self._target_of_encoder)
            if width and all(own <= width for _, own in widths):
                scores = learn(padded(rows, width), slice(0, len(rows)))
            else:
                scores = self._learn_pieces(learns, rows, widths, learn)
        self._name_columns()
        return scores

    def _learn_pieces(self, encoder: Columns, rows: np.ndarray, widths: Any, learn: Any) -> np.ndarray:
        """Learn encoded rows with a copy of the state, which is widened wherever there are more columns."""
        self._sync()
        with self._kept(fresh=True):
            width = 1  # of a model without a column, which waits for one
            if self._encoder is not None:
                self._state, width = copied(self._state), self._state["n_features"]
                self._forget()
            self._encoder, scores, classes = encoder, [], []
            for at, piece, wider in mixed.pieces(rows, widths, width):
                if piece is not None:
                    scores.append(learn(piece, at))
                    classes.append((self._state or {}).get("classes"))
                if wider is not None and self._state is not None:
                    self._widened(wider)
            return self._layers.targets.joined(self._state, scores, classes)

    @property
    def _target_of_encoder(self) -> str:
        return "label" if isinstance(self, ClassifierMixin) else "number"

    def _learn_numbers(self, X: Any, y: Any, classes: Any, sample_weight: Any, how: dict[str, Any]) -> np.ndarray:
        """Learn rows of numbers: the short path for plain calls, or all checks."""
        plain, made = classes is None and sample_weight is None, self._made
        form = None if not plain else (made and made.form) or self._plain_form()
        if form is None:
            return self._learn_checked(X, y, classes, sample_weight, how)
        targets, target = form.layers.targets, None
        if plain_rows(X, form):
            target = targets.plain(self._state, y, X.shape[0], form)
        if target is None:
            X, y, target = made_plain(X, y, form, self._state, self._intake())
            if target is None:
                return self._learn_checked(X, y, classes, sample_weight, how)
        for domain in form.domains:
            domain.check(host(X))
        scores = self._learn_plain(X, target, form, how)
        return scores[:, 0] if scores.shape[1] == 1 else scores  # `public`, without a call of Python

    def _learn_plain(self, X: Rows, y: np.ndarray, form: Form, how: dict[str, Any]) -> np.ndarray:
        """Learn checked rows with encoded targets; returns the scores before each update, (n, n_outputs)."""
        call = self._open
        if call is not None and call.running:  # the caller that opened it undoes what fails
            call.nothing_learned = False
            return self._learn_believed(X, y, form, how)
        if self._few_at_once and not how:
            found = form.layers.learner.learn_few(self._state, X, y)
            if found is not None:
                return found
        try:
            marks = self._marks
            if marks is None or not marks.save():  # saving the marks is all that most models need
                self._begin_call()
            undo = self._undo
            if form.layers.targets.sets_aside:
                scores = self._learn_believed(X, y, form, how)
            else:
                scores = form.rows.learn(self._state, X, y, None, **how)
            if undo.journaled:
                undo.end()
            else:
                undo.marks.forget()  # the same, without a call of Python
        except BaseException as error:
            self._take_back(self._undo)
            reword(error)
            raise
        return scores

    def _learn_believed(self, X: Rows, y: np.ndarray, form: Form, how: dict[str, Any]) -> np.ndarray:
        state, believed = self._state, form.layers.targets.believed
        parts = [form.rows.learn(state, X[rows], y[rows], own, **how) for rows, own in believed(state, y, None)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _learn_checked(self, X: Any, y: Any, classes: Any, sample_weight: Any, how: dict[str, Any]) -> np.ndarray:
        self._check_reset()
        with self._kept():
            X, y, weight = self._admit(X, y, classes, sample_weight, fresh=False)
            if not X.shape[0]:
                outputs = 1 if self._state is None else self._state["n_outputs"]
                return np.zeros(0) if outputs == 1 else np.zeros((0, outputs))
            if weight is not None:  # from now on rows without weights may be weighed too
                self._layers.form = None
            return self._layers.learn(self._state, X, y, weight, how)

    # ---------------------------------------------------------------- all rows of a fit
    def _fit_any(self, X: Any, y: Any, sample_weight: Any, shuffle: Any, fit: Callable[[Any], None]) -> None:
        """``fit`` rows, encoded where they must be: all of them have the columns that there are at the end."""
        with self._kept(fresh=True):
            encoder = mixed.new_encoder(self.columns, self.engine) if mixed.needs_encoder(self.columns, X) else None
            if encoder is not None and shuffle:
                X = encoder._fit(X, y, sample_weight, self._target_of_encoder)
            elif encoder is not None:
                X, _ = encoder._learn(X, y, sample_weight, self._target_of_encoder)
            self._encoder = encoder
            fit(X)
        self._name_columns()

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, shuffle: bool, passes: int) -> None:
        """The body of ``fit``."""
        with self._kept(fresh=True):
            check_order(type(self).__name__, self._at_once, shuffle, passes)
            rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
            layers = self._layers
            layers.targets.check_whole(target, weight)
            if self._at_once:
                layers.rows.warn(self._state, rows[median_rows(rows.shape[0])])
            listened = listens(self) and not self._at_once
            order = Order(self._state["seed"], rows, weight, shuffle and not self._at_once, passes, listened)
            self._learn_order(X, y, order, rows, target, weight)

    def _learn_order(
        self, X: Any, y: Any, order: Order, rows: Rows, target: np.ndarray, weight: np.ndarray | None, **how: Any
    ) -> None:
        """Learn checked rows in the passes of an order; callbacks get X and y as they came."""

        def learn(part: Any, known: bool) -> None:
            own = None if weight is None else weight[part]
            self._learn_part(take(rows, part), target[part], own, known, **how)

        learn_passes(self, X, y, order, learn, lambda: self._layers.first_rows.end(self._state, how))

    def _learn_part(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, known: bool = False, **how: Any) -> None:
        """Learn validated rows of ``fit``: in their order, or all at once those of positive weight."""
        if self._at_once:
            X, y, weight = counted(X, y, weight)
            self._solve(X, y, weight, **how)
            self._link_from(X, y, weight)
        else:
            self._layers.learn(self._state, X, y, weight, how, known)

    def _solve(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, **how: Any) -> None:
        """Let the learner solve for all rows, with their public target."""
        layers, state = self._layers, self._state
        layers.learner.solve(state, X, *layers.targets.batch(state, y, weight), **how)
        state["t"] = X.shape[0]

    def _link_from(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn the link of a model that learned all rows at once, without predicting any of them before."""
        layers, state = self._layers, self._state
        if layers.linked is not None:
            layers.linked.fit(state, X, y, layers.targets.encode(state, y), weight, self._similar)

    def _similar(
        self, found: dict[str, Any], X: Rows, y: np.ndarray, weight: np.ndarray | None
    ) -> Callable[[Any], np.ndarray]:
        """Scores of a model that solves for some rows with parameters that were found; it has no link."""
        part = clone(self).set_params(**found)
        part.random_state = int(self._state["seed"])
        part._solve(*counted(*part._admit(X, y, None, weight, fresh=True)))
        return part._scores

    # ---------------------------------------------------------------- scoring
    def _scores(self, X: Any, following: bool = False) -> np.ndarray:
        """Raw scores (n, n_outputs) of unchecked rows; the model is left as it is.

        With ``following``, each row is the next one of the stream, to learners for which that makes a difference.
        """
        return self._scores_of(self._rows_of(X), following)

    def _rows_of(self, X: Any) -> Rows:
        """Checked rows of numbers, from rows as they come."""
        if self._state is None:
            raise NotFittedError(
                f"This {type(self).__name__} has not learned any row yet: call fit, partial_fit or learn"
            )
        if self._encoder is not None:
            X = padded(self._encoder._encode(X), self._state["n_features"])
        made = self._made
        form = (made and made.form) or self._plain_form()
        return X if form is not None and plain_rows(X, form) else self._intake()(X)

    def _scores_of(self, X: Rows, following: bool) -> np.ndarray:
        state = self._state
        if state["warm_rows"] and not state["warm_count"]:
            return np.zeros((X.shape[0], state["n_outputs"]))
        layers: Layers = self._made or self._layers
        if self._few_at_once:
            found = None if state["warm_rows"] else layers.learner.score_few(state, X, following)
            scores = layers.known.score(state, X, following=following) if found is None else found
        else:
            scores = layers.known.score(state, X)
        if not layers.learner.ops.all_below(scores, sys.float_info.max_exp):
            raise ValueError(SCORING)
        return scores


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


def checked_rows(est: StreamEstimator, X: Any) -> Rows:
    """Rows of any kind in the one form that the library works with, as a trained estimator takes them."""
    return est._rows_of(X)
