"""What every wrapper shares: an estimator inside another, whose state is part of that of the wrapper."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if

from ..random import SeedStream, generator
from ..registry.parameters import WithParameters
from ..rows import take
from ..state.nested import State, flatten, nest, part, parts
from ..state.schema import Schema, check
from ..state.turns import OwnTurns, in_turn
from ..state.undo import Undo, all_or_nothing


def if_model_has(name: str) -> Any:
    """Decorator of a method that exists only if the model inside has one of this name."""

    def check(self: Any) -> bool:
        getattr(self.model_inside, name)  # its own error says why not
        return True

    return available_if(check)


def asked(name: str, summary: str) -> Any:
    """A method that calls the one of the same name of the model inside."""

    def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        return getattr(self._fitted(), name)(self._seen(X), *args, **options)

    answer.__name__, answer.__doc__ = name, summary
    return if_model_has(name)(in_turn(answer))


def _checked(X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, targets and weights that can be shuffled; the model inside checks the rest."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    rows = X.tocsr() if sp.issparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
    target = np.asarray(y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = column_or_1d(target, warn=True)
    check_consistent_length(rows, target)
    if sample_weight is None:
        return rows, target, None
    weight = np.asarray(sample_weight)
    weight = np.full(len(target), weight) if weight.ndim == 0 else weight
    if weight.shape != target.shape[:1]:
        raise ValueError(f"sample_weight has shape {weight.shape} for {len(target)} rows")
    if len(weight) and not weight.any():
        raise ValueError("all sample weights are zero: there is nothing to learn")
    return rows, target, weight


def known(name: str, summary: str) -> Any:
    """A property: the one of the same name of the model that has learned."""
    return property(lambda self: self._of_model(name), doc=summary)


class Wrapper(WithParameters):
    """An estimator with another one inside, ``model``, which is cloned before it learns: ``model_``.

    What is learned beside it is a dict of states with names. A call that raises leaves everything as it was.
    """

    model: Any
    _beside: State  # what is learned beside the model; there from the first row on, as ``model_`` is
    _turns = OwnTurns()

    # ---------------------------------------------------------------- what a wrapper supplies
    def _start(self, model: Any) -> State:
        """What is learned beside a model, before the first row."""
        raise NotImplementedError

    def _schema(self) -> Schema:
        """What the entries beside the model may be, once it has been checked itself."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of range."""

    # ---------------------------------------------------------------- the contract
    @property
    def model_inside(self) -> Any:
        """The model that learns or, before the first row, the one whose copy will; see ``innermost``."""
        return self.__dict__.get("model_", self.model)

    def _inside(self) -> Any:
        """The model that learns: a new one, before it has learned anything."""
        if "model_" in self.__dict__:
            return self.model_
        self._check_parameters()
        if not hasattr(self.model, "learn"):
            raise ValueError(
                f"{self.model!r} cannot learn from a stream: {type(self).__name__} needs a model with learn"
            )
        return clone(self.model)

    writes: Any = staticmethod(lambda state: (frozenset(), frozenset()))  # all arrays are copied before a call

    def _inside_call(self) -> list[Any]:
        """What goes back with the wrapper when a call fails."""
        return [self.model_] if "model_" in self.__dict__ else []

    def _begin_call(self) -> list[Undo]:
        undo = Undo(lambda: [(self, own) for own in parts(vars(self).get("_beside", {}))])
        undo.begin()
        return [undo]

    def _adopt(self, model: Any) -> None:
        """Make a model the one inside, unless it is already."""
        if self.__dict__.get("model_") is not model:
            self.model_, self._beside = model, self._start(model)

    def _has_learned(self, model: Any) -> bool:
        """Whether a model has learned from rows, some of them of positive weight; it is then the one inside."""
        if hasattr(type(model), "state_") and not hasattr(model, "state_"):
            return False
        self._adopt(model)
        return True

    def _fitted(self) -> Any:
        if "model_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} has not learned any row yet: call fit, partial_fit or learn"
            )
        return self.model_

    def partial_fit(self, X: Any, y: Any, **kwargs: Any) -> Any:
        """Learn the rows in order; see ``learn``."""
        self.learn(X, y, **kwargs)
        return self

    @in_turn
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, shuffle: bool = True) -> Any:
        """Forget everything, then learn the rows, in a random order (always the same) unless ``shuffle`` is False.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        sample_weight : (n,) array, optional
        shuffle : bool, default=True
        """
        with all_or_nothing(self, fresh=True):
            self.__dict__.pop("model_", None)
            rows, target, weight = _checked(X, y, sample_weight)
            if len(target) == 0:
                self._inside().fit(rows, target)  # raises the error that says what is wrong
            order = (
                generator(0, SeedStream.WRAPPER_ORDER).permutation(len(target)) if shuffle else np.arange(len(target))
            )
            extra = {} if weight is None else {"sample_weight": weight[order]}
            self.learn(take(rows, order), target[order], **extra)
        return self

    def _seen(self, X: Any) -> Any:
        """Rows as the model inside takes them."""
        return X

    decision_function = asked("decision_function", "Scores of the model inside.")
    predict = asked("predict", "What the model inside predicts, (n,).")
    forecast = asked("forecast", "What the model inside forecasts for rows each of which is the next one, (n,).")
    forecast_scores = asked("forecast_scores", "Scores of rows each of which is the next one of the stream.")

    @if_model_has("score")
    @in_turn
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, share of variance explained (R²) of a regressor."""
        return self._fitted().score(self._seen(X), y, sample_weight)

    @if_model_has("widen")
    @in_turn
    def widen(self, n_features: int) -> Any:
        """Take rows with more columns from now on; see the model inside."""
        self._fitted().widen(n_features)
        return self

    classes_ = known("classes_", "Labels known so far, sorted.")
    n_features_in_ = known("n_features_in_", "Columns of the rows.")

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, where they have names."""
        return self._of_model("feature_names_in_")

    @feature_names_in_.setter
    def feature_names_in_(self, names: np.ndarray) -> None:
        self.model_.feature_names_in_ = names

    def _of_model(self, name: str) -> Any:
        model = self.__dict__.get("model_")
        if model is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it has learned a row")
        return getattr(model, name)

    # ---------------------------------------------------------------- the state
    @property
    @in_turn
    def state_(self) -> State:
        """Everything learned, flat: the entries of the model inside have names that begin with ``model/``."""
        if "model_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return flatten({"model": getattr(self.model_, "state_", {})} | self._beside)

    @state_.setter
    @in_turn
    def state_(self, state: State) -> None:
        model, own = clone(self.model), dict(nest(state))
        if "model" in own:  # otherwise there are only rows that wait to be learned
            model.state_ = own.pop("model")
        names = self._start(model).keys()
        strange = own.keys() - names
        if strange:
            raise ValueError(f"state_ has entries that do not belong there: {', '.join(map(repr, sorted(strange)))}")
        self._beside, self.model_ = {name: part(own, name) for name in names}, model

    def check_state(self) -> None:
        """Raise ValueError where ``state_``, of a file, say, does not fit the parameters, or itself."""
        self._check_parameters()
        if hasattr(self.model_, "state_"):
            self.model_.check_state()
        check(self._beside, self._schema())

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)

    @in_turn
    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name not in ("_turns", "_open")}
