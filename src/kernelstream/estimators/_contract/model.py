"""A model: its state, the learner that goes with it, turns of threads, the undo of failed calls, copies and files.

What learns is a :class:`.learner.Learner` of the class ``_learns``, a few functions of parameters and a state, with the
layers of :mod:`.layers` around it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Self

from ... import engine as engines
from ...checks import flag, fraction, is_whole
from ...core.overflow import reword
from ...registry.parameters import WithParameters
from ...state.nested import State as State
from ...state.nested import copied, flatten, nest, thawed
from ...state.schema import Superfluous
from ...state.turns import OwnTurns, in_turn
from ...state.undo import Undo, all_or_nothing
from . import mixed
from .callbacks import LISTENERS
from .context import handed_over
from .layers import Layers
from .learner import Learner
from .parts import unfolded
from .scaling import check_standardize, demanded
from .targets import Targets


@dataclass(eq=False, repr=False)
class Model(WithParameters):
    """What has learned: a state, the learner that goes with it, and what keeps both together.

    Everything mutable is in the dict ``_state``, None before the first row; ``_made``, which is derived from it, is not
    saved. Public methods take turns (``_turns``), so that threads may share a model. A call that raises leaves the
    state as it was (``_undo``).
    """

    _: KW_ONLY  # parameters of every estimator
    engine: Any = "auto"
    random_state: Any = None

    standardize: Any = field(default=False, init=False)  # True, False or "auto"; of most a parameter
    columns: Any = field(default=None, init=False)  # of those that take mixed rows a parameter, see `.mixed`

    on_device: ClassVar[bool] = False  # whether the family has a torch engine
    _at_once: ClassVar[bool] = False  # whether its learner has `solve`: no `learn` and the like then
    _several_targets: ClassVar[bool] = False  # whether a regressor may have more than one output
    _learns: ClassVar[type[Learner]]  # what learns: a class of learners
    _targets: ClassVar[type[Targets]] = Targets  # what is learned
    _loss_rule: ClassVar[Any]  # the loss for a number of classes, from the parameters

    _state: Any = field(default=None, init=False)
    _turns = OwnTurns()
    _made: Any = field(default=None, init=False)  # the layers around the learner
    _undo: Any = field(default=None, init=False)
    _marks: Any = field(default=None, init=False)
    _open: Any = field(default=None, init=False)  # the call that it takes part in, see `..state.undo`
    _encoder: Any = field(default=None, init=False)  # of a model of mixed rows
    _reset: bool = field(default=False, init=False)  # whether parameters were set that the state may not fit

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
        self._state, self._encoder = state, encoder
        self.n_features_in_ = int(state["n_features"])
        self._forget()
        self._name_columns()

    @in_turn
    def check_state(self) -> None:
        """Raise ValueError where ``state_``, of a file, say, does not fit the parameters, or itself."""
        self._check_state()

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
            self._undo = self._marks = None
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
        again = ("_made", "_undo", "_marks", "_turns", "_open")  # copies make these again
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
        if self._state is None:
            return None
        undo: Undo | None = self._undo
        if undo is None:
            undo = self._undo = Undo(lambda: self._learner.owners(self._state))
        on_device, held = self._learner.ops.on_device, self._learner.derived.get("held")  # type: bool, Any
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
        layers = self._made = self._around(self._learner)
        layers.learner.put_back(self._state, remake)

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

    def _check_state(self, trained: bool | None = None) -> None:
        """Raise ValueError where the state does not fit; ``trained``: whether there are weights, None finds out."""
        self._check_parameters()
        self._layers.check(self._state, trained)
        engines.get(self.engine if engines.usable(self.engine) else "auto")  # raises for an unknown engine

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
                self._check_state()
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
            made = self._around(self._learns(*handed_over(self, self._ops, width)))
            if self._state is not None:
                self._made = made
        return made

    def _around(self, learner: Learner) -> Layers:
        targets = self._targets(learner, self._several_targets)
        made = Layers(learner, targets, self._encoder is not None, getattr(self, "feature_names_in_", None))
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
        self._made = self._undo = self._marks = None
