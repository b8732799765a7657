"""The contract of every streaming estimator: scikit-learn's methods, turns of threads, the undo of failed calls.

What learns is a :class:`.learner.Learner` of the class ``_learns``, a few functions of parameters and a state, with the
layers of :mod:`.layers` around it. :mod:`.classifier` and :mod:`.regressor` add the methods of their tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from ... import engine as engines
from ...checks import flag, fraction, is_whole
from ...columns import Columns
from ...columns._store import NEVER
from ...core.overflow import reword
from ...kernels.bandwidth import median_rows
from ...random import seed_from
from ...registry.parameters import WithParameters
from ...rows import Rows, host, padded, take
from ...state.nested import State as State
from ...state.nested import copied, flatten, nest, thawed
from ...state.schema import Superfluous
from ...state.turns import OwnTurns, in_turn
from ...state.undo import Undo, all_or_nothing, open_call
from . import mixed
from .callbacks import LISTENERS, CallbackSupportMixin, learn_passes, with_callbacks
from .context import learner_of
from .intake import Form, Intake, made_plain, plain_rows
from .layers import Layers
from .learner import Learner, solves
from .order import check_order, counted
from .parts import unfolded
from .scaling import check_standardize, demanded
from .targets import NoTarget

L = TypeVar("L", bound=Learner)


@dataclass(eq=False, repr=False)
class StreamEstimator(CallbackSupportMixin, WithParameters):
    """Base of all estimators that learn row by row.

    Everything mutable is in the dict ``_state``, None before the first row; ``_made``, which is derived from it, is not
    saved. Public methods take turns (``_turns``), so that threads may share an estimator. A call that raises leaves the
    state as it was.
    """

    _: KW_ONLY  # parameters of every estimator
    engine: Any = "auto"
    random_state: Any = None

    standardize: Any = field(default=False, init=False)  # True, False or "auto"; of most a parameter
    columns: Any = field(default=None, init=False)  # of those that take mixed rows a parameter, see `.mixed`
    texts: bool = field(default=False, init=False)  # whether columns of the first rows were scores of texts

    on_device: ClassVar[bool] = False  # whether the family has a torch engine
    _at_once: ClassVar[bool] = False  # whether its learner has `solve`: no `learn` and the like then
    _several_targets: ClassVar[bool] = False  # whether a regressor may have more than one output
    _learns: ClassVar[type[Learner]]  # what learns: a class of learners
    _targets: ClassVar[type[NoTarget]] = NoTarget  # what is learned
    _loss_rule: ClassVar[Any]  # the loss for a number of classes, from the parameters

    _state: Any = field(default=None, init=False)
    _turns = OwnTurns()
    _made = cast("Any", None)  # the layers around the learner; no field, by which Dask would compare models
    _open = cast("Any", None)  # the call that it takes part in, see `..state.undo`
    _encoder: Any = field(default=None, init=False)  # of a model of mixed rows
    _reset: bool = field(default=False, init=False)  # whether parameters were set that the state may not fit

    def __init_subclass__(cls, **options: Any) -> None:
        learns = vars(cls).get("_learns")
        if learns is not None:
            cls._at_once = solves(learns)
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
            with self._kept(fresh=True):
                self._fit_rows(self._all_encoded(X, y, sample_weight, shuffle), y, sample_weight, shuffle, passes)
            self._name_columns()
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
            before, self._state, self._made = self._state, None, None
            self.texts = self.texts if self._encoder is None else self._encoder.scores_texts(int(X.shape[1]))
            layers = self._layers
            layers.infinite = intake.layers.infinite
            seed = seed_from(layers.learner.seed_source())
            state = {"n_features": int(X.shape[1]), "dtype": str(X.dtype).rpartition(".")[2], "seed": seed}
            layers.start(state, declared, before, empty)
            self._state, self._made = state, layers
        elif starts:  # no rows, and nothing is known yet about those to come
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        elif declared is not None:
            self._layers.targets.declare(self._state, declared)
        return X, y, weight

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

        width, t = (0, -1) if encoder is None else (state["n_features"], state["t"])
        learns = mixed.new_encoder(self.columns, self.engine) if encoder is None else encoder
        # an error may come after the last row was learned; a model that was new is dropped as a whole
        with all_or_nothing(learns, complete=lambda: encoder is None or state["t"] > t):
            rows, widths = learns._learn(X, y, sample_weight, "label" if is_classifier(self) else "number")
            if width and all(own <= width for _, own in widths):
                scores = learn(padded(rows, width), slice(0, len(rows)))
            else:
                scores = self._learn_pieces(learns, rows, widths, learn)
        self._name_columns()
        return scores

    def _learn_pieces(self, encoder: Columns, rows: np.ndarray, widths: Any, learn: Any) -> np.ndarray:
        """Learn encoded rows as if new columns had come in calls of their own: with a copy of the state, made wider."""
        self._sync()
        with self._kept(fresh=True):
            start, width = 0, 1  # of a model without a column, which waits for one
            if self._encoder is not None:
                self._state, width = copied(self._state), self._state["n_features"]
                self._forget()
            self._encoder, scores, classes = encoder, [], []
            for stop, wider in [*widths, (len(rows), NEVER)]:
                if wider <= width:
                    continue
                if stop > start or not len(rows):
                    piece = np.ascontiguousarray(padded(rows[start:stop, :width], width))
                    scores.append(learn(piece, slice(start, stop)))
                    classes.append((self._state or {}).get("classes"))
                if wider < NEVER and self._state is not None:
                    self._widened(wider)
                start, width = stop, wider
            return self._layers.targets.joined(self._state, scores, classes)

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
            return form.layers.learn_believed(self._state, X, y, form.rows, how)
        learner = form.layers.learner
        if learner.learn_few is not None and not how:  # a short path for few rows
            found = learner.learn_few(self._state, X, y)
            if found is not None:
                return found
        try:
            layers = form.layers
            if layers.marks is None or not layers.marks.save():  # saving the marks is all that most models need
                layers.begin(self._state)
            if layers.targets.sets_aside:
                scores = layers.learn_believed(self._state, X, y, form.rows, how)
            else:
                scores = form.rows.learn(self._state, X, y, None, **how)
            if layers.undo.journaled:
                layers.undo.end()
            else:
                layers.undo.marks.forget()  # the same, without a call of Python
        except BaseException as error:
            form.layers.take_back(self._state, form.layers.undo, False)
            reword(error)
            raise
        return scores

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
    def _all_encoded(self, X: Any, y: Any, sample_weight: Any, shuffle: Any) -> Any:
        """Rows of a fit, encoded where they must be: all of them have the columns that there are at the end."""
        self._encoder, self.texts = None, False
        if mixed.needs_encoder(self.columns, X):
            encoder, kind = mixed.new_encoder(self.columns, self.engine), "label" if is_classifier(self) else "number"
            learned = (X, y, sample_weight, kind)
            X = encoder._fit(*learned) if shuffle else encoder._learn(*learned)[0]
            self._encoder = encoder
        return X

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, shuffle: bool, passes: int) -> None:
        """The body of ``fit``."""
        check_order(type(self).__name__, self._at_once, shuffle, passes)
        rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
        layers = self._layers
        layers.targets.check_whole(target, weight)
        if self._at_once:
            layers.rows.warn(self._state, rows[median_rows(rows.shape[0])])
            rows, target, weight = counted(rows, target, weight)
        learn_passes(self, X, y, rows, target, weight, shuffle, passes, {})

    # ---------------------------------------------------------------- scoring
    def _scores(self, X: Any, following: bool = False) -> np.ndarray:
        """Raw scores (n, n_outputs) of unchecked rows; the model is left as it is.

        With ``following``, each row is the next one of the stream, to learners for which that makes a difference.
        """
        X, layers = checked_rows(self, X), self._made or self._layers
        return layers.score(self._state, X, {} if self._learns.score_few is None else {"following": following})

    # ---------------------------------------------------------------- the state
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
        encoder = None
        if self.columns is not None and isinstance(state.get("columns"), dict):
            encoder = mixed.new_encoder(self.columns, self.engine)
            encoder.state_ = state.pop("columns")
        self._state, self._encoder, self.texts = state, encoder, "first_texts" in state
        self.n_features_in_ = int(state["n_features"])
        self._forget()
        self._name_columns()

    @in_turn
    def check_state(self) -> None:
        """Raise ValueError where ``state_``, of a file, say, does not fit the parameters, or itself."""
        self._check_parameters()
        self._layers.check(self._state)
        engines.get(self.engine if engines.usable(self.engine) else "auto")  # raises for an unknown engine

    @in_turn
    def widen(self, n_features: int) -> Self:
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

    def _widened(self, n_features: int) -> Self:
        self._sync()
        before = self._of_state()
        d = before["n_features"]
        if not is_whole(n_features) or n_features < d:
            raise ValueError(f"n_features must be an integer >= {d}, the width so far, got {n_features!r}")
        if n_features > d:
            if self._encoder is None and hasattr(self, "feature_names_in_"):
                raise ValueError(f"{type(self).__name__} knows its {d} columns by name and cannot take others")
            self._check_parameters()
            layers, state = self._layers, thawed(before)
            layers.widen(state, int(n_features))
            self._state = state
            self.n_features_in_ = int(n_features)
            self._made = self._around(layers.learner)
        return self

    @in_turn
    def forget(self, keep: float = 0.0) -> Self:
        """Let what was learned lose weight, so that new rows change the model more.

        Parameters
        ----------
        keep : float, default=0.0
            At least 0, less than 1. AdaGrad's sums of squares are multiplied by it (its steps become 1/√keep times as
            long), and so are the sums of least squares; of the default learner, those of its members and of their
            combination. 0 sets the weights to zero; labels, features and scales stay, and how members are combined.

        Returns
        -------
        self
        """
        keep = fraction("keep", keep) if keep else 0.0
        state, learner = self._state, self._learner
        if state is None or state["warm_rows"]:
            return self  # nothing has been learned yet
        learner.sync()
        if not (learner.fade(state, keep) if keep else learner.restart(state)):
            raise ValueError(
                f"{type(self).__name__} has no way to forget: give a monitor a function of your own as react"
            )
        self._forget()
        return self

    def _of_state(self) -> State:
        if self._state is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return self._state

    def _name_columns(self) -> None:
        """Enter the columns of the rows as they come, where there is an encoder; the learner sees others."""
        encoder = self._encoder
        named = hasattr(self, "feature_names_in_") and self.n_features_in_ == getattr(encoder, "n_features_in_", None)
        if encoder is not None and not named:
            self.n_features_in_ = encoder.n_features_in_
            names = getattr(encoder, "feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    def __sizeof__(self) -> int:
        """Bytes, including the arrays of the state: schedulers use it to decide whether to move a model."""
        state = flatten(self._state or {})
        arrays = (value.nbytes for value in state.values() if hasattr(value, "nbytes"))
        return super().__sizeof__() + sum(arrays)

    @in_turn
    def __getstate__(self) -> Any:
        self._sync()
        again = ("_made", "_turns", "_open")  # copies make these again
        kept = {key: value for key, value in super().__getstate__().items() if key not in again}
        # the arrays too: another thread may go on learning before they are written
        if kept.get("_state") is not None:
            kept["_state"] = copied(kept["_state"])
        return kept

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._forget()

    # ---------------------------------------------------------------- all or nothing
    def _begin_call(self) -> Undo | None:
        """Remember the state before a call, if there is one."""
        return None if self._state is None else self._layers.begin(self._state)

    def _inside_call(self) -> list[Any]:
        """What goes back with the estimator when a call fails: the encoder of its rows."""
        return [] if self._encoder is None else [self._encoder]

    def _take_back(self, undo: Undo, nothing_learned: bool) -> None:
        """Restore the state of :meth:`_begin_call`, unless the call is complete."""
        self._layers.take_back(self._state, undo, nothing_learned)

    _lasting = LISTENERS

    @contextlib.contextmanager
    def _kept(self, fresh: bool = False) -> Iterator[None]:
        """Context of a call, or of several: an error leaves the estimator as it was before. See ``all_or_nothing``.

        What is derived from a state goes with it: a fresh one does not begin with what belongs to the old.
        """
        try:
            with all_or_nothing(self, fresh=fresh):
                if fresh:
                    self._made = None
                yield
        except BaseException as error:
            reword(error)
            raise

    # ---------------------------------------------------------------- parameters
    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of range or contradicting each other."""
        for parameter in fields(self):
            if parameter.init and parameter.type == "bool":
                flag(parameter.name, getattr(self, parameter.name))
        check_standardize(self.standardize)
        self._learner.check_parameters()

    @in_turn
    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a part as ``features__n_components``, even if the part is given by name."""
        super().set_params(**unfolded(self, params))
        self._forget()
        self._reset = (bool(params) and self._state is not None) or self._reset
        return self

    def _check_reset(self) -> None:
        """ValueError if parameters that were set after the first row do not fit what was learned."""
        if self._reset:
            self._check_parameters()
            try:
                self.check_state()
            except Superfluous:  # what is not needed any more does no harm
                pass
            except (ValueError, KeyError) as error:
                raise ValueError(
                    f"the parameters that were set do not fit what this {type(self).__name__} has learned ({error}): "
                    f"call fit, which starts over, or set them back"
                ) from error
            self._reset = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not demanded(self.standardize)
        if self.columns is not None:
            tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return self._learner.tags(tags)

    # ---------------------------------------------------------------- the learner, derived from parameters and state
    @property
    def _ops(self) -> Any:
        # a model made on a device can be used on a machine without one: its state is the same
        return engines.get(self.engine if engines.usable(self.engine) else "auto")

    @property
    def _layers(self) -> Layers:
        """What learns; nothing is kept in an untrained model, whose parameters may still change."""
        made: Layers | None = self._made
        if made is None:
            own = self._state or {"n_features": getattr(self, "n_features_in_", 1)}
            width = own.get("first_width", own["n_features"])
            made = self._around(learner_of(self, self._ops, width))
            if self._state is not None:
                self._made = made
        return made

    def _around(self, learner: Learner) -> Layers:
        made = Layers(learner, self._encoder is not None, getattr(self, "feature_names_in_", None))
        made.infinite = made.infinite if self._made is None else self._made.infinite
        return made

    @property
    def _learner(self) -> Learner:
        return self._layers.learner

    def _sync(self) -> None:
        """Bring ``_state`` up to date with whatever the engine holds of it."""
        if self._made is not None:
            self._made.learner.sync()

    def _forget(self) -> None:
        """Drop what was derived from the state."""
        if self._made is not None:
            self._made.learner.leave_device()
            self._made.learner.forget()
        self._made = None


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
    if est._state is None:
        raise NotFittedError(f"This {type(est).__name__} has not learned any row yet: call fit, partial_fit or learn")
    if est._encoder is not None:
        X = padded(est._encoder._encode(X), est._state["n_features"])
    form = (est._made and est._made.form) or est._plain_form()
    return X if form is not None and plain_rows(X, form) else est._intake()(X)
