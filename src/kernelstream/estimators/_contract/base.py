"""The contract of every streaming estimator: scikit-learn's methods, turns of threads, the undo of failed calls.

What learns is a :class:`.learner.Learner` of the class ``_learns``, a few functions of parameters and a state, with the
layers of :mod:`.layers` around it. :mod:`.classifier` and :mod:`.regressor` add the methods of their tasks.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np

from ... import engine as engines
from ...checks import flag, fraction, is_whole
from ...random import seed_from
from ...registry.parameters import WithParameters
from ...rows import Rows, host, padded
from ...state.nested import State as State
from ...state.nested import copied, flatten, nest, thawed
from ...state.schema import Superfluous
from ...state.turns import OwnTurns, in_turn
from ...state.undo import Undo, open_call
from . import mixed
from .callbacks import LISTENERS, CallbackSupportMixin, learn_passes, with_callbacks
from .calls import Form, bound, learning, plain_rows
from .context import learner_of
from .intake import Intake, made_plain
from .layers import Layers
from .learner import Learner, solves
from .mixed import Encoded
from .order import check_order
from .parts import unfolded
from .scaling import check_standardize, demanded
from .targets import NoTarget

L = TypeVar("L", bound=Learner)


@dataclass(eq=False, repr=False)
class StreamEstimator(WithParameters, CallbackSupportMixin):
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
    _texts: bool = field(default=False, init=False)  # whether columns of the first rows were scores of texts

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
            with learning(self, fresh=True):
                check_order(type(self).__name__, self._at_once, shuffle, passes)
                checked = self._admit(X, y, None, sample_weight, fresh=True, shuffle=shuffle)
                learn_passes(self, X, y, checked, shuffle, passes, {})
            mixed.name_columns(self, self._encoder)
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
    def _admit(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        fresh: bool,
        shuffle: bool = True,
        empty: bool = False,
        width: int | None = None,
    ) -> tuple[Rows, Any, Any]:
        """Checked rows, target and weights of a call; starts a state if there is none or ``fresh``.

        A ``fresh`` model needs all rows, in any order unless not ``shuffle``, some of positive weight; ``empty`` leaves
        it without weights. Later calls may bring no rows, or only rows of weight 0. The first of the rows have
        ``width`` columns, where others follow.
        """
        starts = fresh or self._state is None
        if fresh:
            self._encoder, self._texts = mixed.new_encoder(self.columns, X, self.engine, whole=True), False
            if self._encoder is not None:
                own = X, y, sample_weight, self._targets.task
                X = self._encoder._fit(*own) if shuffle else self._encoder._learn(*own)[0]
        if starts:
            self._made = None  # parameters may have changed
            engines.check(self.engine, self.on_device, type(self).__name__)
            self._check_parameters()
        intake = Intake(self, self._layers, None if starts else self._state)
        X, y, weight, declared = intake.call(X, y, classes, sample_weight, fresh, open_call(self))
        if starts and (X.shape[0] or classes is not None):
            before, self._state, self._made = self._state, None, None
            self.n_features_in_ = int(X.shape[1]) if width is None else width
            self._texts = self._texts if self._encoder is None else self._encoder.scores_texts(self.n_features_in_)
            layers = self._layers
            layers.infinite = intake.layers.infinite
            seed = seed_from(layers.learner.parameters["seed"])
            state = {"n_features": self.n_features_in_, "dtype": str(X.dtype).rpartition(".")[2], "seed": seed}
            layers.start(state, declared, before, empty)
            self._state, self._made = state, layers
        elif starts:  # no rows, and nothing is known yet about those to come
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        elif declared is not None:
            self._layers.targets.declare(self._state, declared)
        return X, y, weight

    def _plain_form(self) -> Form | None:
        """What rows of plain calls are like; None while rows still need a decision.

        ValueError if parameters that were set after the first row do not fit what was learned.
        """
        if self._state is None:
            return None
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
        layers = self._layers
        if layers.form is None and (layers.encoder is not None or not hasattr(self, "feature_names_in_")):
            layers.form = Form.of(layers, self._state)
        return layers.form

    # ---------------------------------------------------------------- learning
    def _learn_any(self, X: Any, y: Any, classes: Any, sample_weight: Any, **how: Any) -> np.ndarray:
        """What ``learn`` does for every task; ``how`` are further arguments of the learner's ``learn``."""
        with self._turns:
            encoder, state = self._encoder, self._state
            if encoder is None and state is None:
                encoder = mixed.new_encoder(self.columns, X, self.engine)
            if encoder is None:
                return self._learn_numbers(X, y, classes, sample_weight, how)
            if y is not None and (isinstance(y, str) or not hasattr(y, "__len__") or not getattr(y, "ndim", 1)):
                y = np.array([y])
            learn = partial(self._learn_numbers, classes=classes, sample_weight=sample_weight, how=how)
            if state is not None and classes is None and sample_weight is None:
                scores = mixed.learn_row(encoder, X, y, state, self.n_features_in_, learn)
                if scores is not None:
                    return scores
            scores = mixed.learn(encoder, X, y, sample_weight, state, self._targets.task, learn)
            mixed.name_columns(self, encoder)
            return scores

    def _learn_numbers(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, how: dict[str, Any], encoded: Encoded | None = None
    ) -> np.ndarray:
        """Learn rows of numbers: the short path for plain calls, or all checks."""
        made = self._made
        form = (made and made.form) or self._plain_form()
        if form is None or classes is not None or sample_weight is not None or encoded is not None:
            return self._learn_checked(X, y, classes, sample_weight, how, encoded)
        targets, target = form.layers.targets, None
        if plain_rows(X, form):
            target = targets.plain(self._state, y, X.shape[0], form)
        if target is None:
            X, y, target = made_plain(X, y, form, self._state, Intake(self, self._layers, self._state))
            if target is None:
                return self._learn_checked(X, y, classes, sample_weight, how, encoded)
        for domain in form.domains:
            domain.check(host(X))
        return form.learn_plain(self._state, X, target, self._open, how)

    def _learn_checked(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, how: dict[str, Any], encoded: Encoded | None
    ) -> np.ndarray:
        with learning(self):
            if encoded is not None:
                self._encoder = encoded.encoder
                if self._state is not None:  # what users have been given of it stays as narrow as it is
                    self._layers.learner.derived.sync()
                    self._state, self._made = thawed(self._state), None
            first = encoded and encoded.first_width
            X, y, weight = self._admit(X, y, classes, sample_weight, fresh=False, width=first)
            if not X.shape[0]:
                outputs = 1 if self._state is None else self._state["n_outputs"]
                return np.zeros(0) if outputs == 1 else np.zeros((0, outputs))
            if weight is not None:  # from now on rows without weights may be weighed too
                self._layers.form = None
            return self._layers.learn(self._state, X, y, weight, how, encoded=encoded)

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
        if self._state is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        if self._made is not None:
            self._made.learner.derived.sync()
        return flatten(self._state if self._encoder is None else self._state | {"columns": self._encoder.state_})

    @state_.setter
    @in_turn
    def state_(self, state: State) -> None:
        state = nest(state)
        encoder = None
        if self.columns is not None and isinstance(state.get("columns"), dict):
            encoder = mixed.encoder_of(self.columns, self.engine)
            encoder.state_ = state.pop("columns")
        self._state, self._encoder, self._texts = state, encoder, "first_texts" in state
        self.n_features_in_ = int(state["n_features"])
        self._forget()
        mixed.name_columns(self, encoder)

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
        d = self.state_["n_features"]
        if not is_whole(n_features) or n_features < d:
            raise ValueError(f"n_features must be an integer >= {d}, the width so far, got {n_features!r}")
        if n_features > d:
            if hasattr(self, "feature_names_in_"):
                raise ValueError(f"{type(self).__name__} knows its {d} columns by name and cannot take others")
            self._check_parameters()
            layers, state = self._layers, thawed(self._state)
            layers.widen(state, int(n_features))
            self._state, self._made, self.n_features_in_ = state, layers, int(n_features)
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
        learner.derived.sync()
        if not (learner.fade(state, keep) if keep else learner.restart(state)):
            raise ValueError(
                f"{type(self).__name__} has no way to forget: give a monitor a function of your own as react"
            )
        self._forget()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    def __sizeof__(self) -> int:
        """Bytes, including the arrays of the state: schedulers use it to decide whether to move a model."""
        arrays = (value.nbytes for value in flatten(self._state or {}).values() if hasattr(value, "nbytes"))
        return super().__sizeof__() + sum(arrays)

    @in_turn
    def __getstate__(self) -> Any:
        if self._made is not None:
            self._made.learner.derived.sync()
        again = ("_made", "_turns", "_open")  # copies make these again
        kept = {key: value for key, value in super().__getstate__().items() if key not in again}
        # the arrays too: another thread may go on learning before they are written
        if kept.get("_state") is not None:
            kept["_state"] = copied(kept["_state"])
        return kept

    # ---------------------------------------------------------------- all or nothing
    def _begin_call(self) -> list[Undo]:
        """Remember the state before a call, if there is one."""
        return [] if self._state is None else [self._layers.begin(self._state)]

    def _inside_call(self) -> list[Any]:
        """What goes back with the estimator when a call fails: the encoder of its rows."""
        return [] if self._encoder is None else [self._encoder]

    _lasting = LISTENERS

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not demanded(self.standardize)
        if self.columns is not None:
            tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return self._learner.tags(tags)

    # ---------------------------------------------------------------- the learner, derived from parameters and state
    @property
    def _layers(self) -> Layers:
        """What learns; nothing is kept in an untrained model, whose parameters may still change."""
        made: Layers | None = self._made
        if made is None:
            state = self._state
            own = state or {"n_features": getattr(self, "n_features_in_", 1)}
            # a model made on a device can be used on a machine without one: its state is the same
            engine = self.engine if self._learns.on_device else engines.of_processor(self.engine)
            ops = engines.get(engine if engines.usable(engine) else "auto")
            learner = learner_of(self, ops, own.get("first_width", own["n_features"]))
            made = Layers(learner, self._encoder, getattr(self, "feature_names_in_", None))
            if state is not None:
                self._made = made
        return made

    @property
    def _learner(self) -> Learner:
        return self._layers.learner

    def _forget(self) -> None:
        """Drop what was derived from the state."""
        if self._made is not None:
            self._made.learner.derived.leave_device()
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
    layers, state = bound(est)
    if layers.encoder is not None:
        X = padded(layers.encoder._encode(X), state["n_features"])
    form = layers.form or est._plain_form()
    return X if form is not None and plain_rows(X, form) else Intake(est, layers, state)(X)
