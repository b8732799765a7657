"""An encoder in front of an estimator, as one estimator of rows of mixed cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ..checks import whole
from ..named import named
from ..next_row import answers_together
from ..rows import padded
from ..state.nested import State
from ..state.turns import in_turn
from ..state.undo import all_or_nothing
from ..trust._wrapper import Wrapper, asked, if_model_has
from .encoder import Columns


@dataclass(eq=False, repr=False)
class StreamPipeline(Wrapper):
    """Rows of mixed cells, encoded by :class:`Columns` and learned by an estimator, row by row.

    A call that raises changes neither. New columns widen the model; one that cannot be widened needs ``room``.

    Parameters
    ----------
    columns : Columns
        The encoder; a copy of it learns.
    model : estimator
        Any classifier, regressor or novelty detector of this library; a copy of it learns. The encoder scales the
        numbers: ``standardize=True`` is not needed.
    room : int, default=0
        Columns of zeros that the model gets beyond those of the first call, for columns that appear later. Only models
        that cannot be widened need it.

    Examples
    --------
    >>> from kernelstream import FeatureClassifier
    >>> from kernelstream.columns import Columns, make_stream
    >>> model = make_stream(Columns(), FeatureClassifier(loss="logistic", random_state=0))
    >>> rows = [{"town": "Rome" if i % 3 else "Oslo", "month": i % 12} for i in range(300)]
    >>> y = ["warm" if row["town"] == "Rome" else "cold" for row in rows]
    >>> scores = model.learn(rows, y)
    >>> model.predict([{"town": "Oslo", "month": 6}, {"town": "Rome"}]).tolist()
    ['cold', 'warm']
    """

    columns: Any = None
    model: Any = None
    room: int = 0

    # ---------------------------------------------------------------- learning
    @if_model_has("learn")
    @in_turn
    def learn(self, rows: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the scores held before each update; see the model's ``learn``.

        Parameters
        ----------
        rows : data frame, dictionary, list of dictionaries, or array (n, d)
        y : (n,) array, or the target of a single dictionary
        classes : array, optional
            All labels that can occur.
        sample_weight : (n,) array, optional
        """
        return self._learn("learn", rows, y, classes, sample_weight)

    @if_model_has("learn_interval")
    @in_turn
    def learn_interval(self, rows: Any, y: Any, sample_weight: Any = None, coverage: float = 0.9) -> Any:
        """Learn the rows; returns forecasts and intervals held before each; see the model's ``learn_interval``."""
        return self._learn("learn_interval", rows, y, None, sample_weight, coverage=coverage)

    @if_model_has("learn_quantiles")
    @in_turn
    def learn_quantiles(self, rows: Any, y: Any, sample_weight: Any = None, quantiles: Any = (0.1, 0.5, 0.9)) -> Any:
        """Learn the rows; returns forecasts and quantiles held before each; see the model's ``learn_quantiles``."""
        return self._learn("learn_quantiles", rows, y, None, sample_weight, quantiles=quantiles)

    @if_model_has("partial_fit")
    @in_turn
    def partial_fit(
        self, rows: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> StreamPipeline:
        """Learn the rows in order; see :meth:`learn`."""
        self._learn("partial_fit", rows, y, classes, sample_weight)
        return self

    @in_turn
    def fit(self, rows: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> StreamPipeline:  # type: ignore[override]
        """Forget everything, then learn all rows, whose order does not matter; as a stream with ``shuffle=False``.

        ``options`` are those of the model's ``fit``.
        """
        columns, model = self._fresh()
        if options.get("shuffle", True):
            X = columns._fit(rows, y, sample_weight, self._task(model))
        else:
            X, _ = columns._learn(rows, y, sample_weight, self._task(model))
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        model.fit(padded(X, self._first_width(X)), *([] if y is None else [y]), **options)
        self.columns_, self.model_ = columns, model
        return self

    def _learn(self, method: str, rows: Any, y: Any, classes: Any, sample_weight: Any, **asked: Any) -> Any:
        started = "model_" in self.__dict__
        columns, model = (self.columns_, self.model_) if started else self._fresh()
        options = {"classes": classes, "sample_weight": sample_weight}
        options = {name: value for name, value in options.items() if value is not None}
        with all_or_nothing(self, model, columns):
            X, _ = columns._learn(rows, y, sample_weight, self._task(model))
            width = getattr(model, "n_features_in_", None) or self._first_width(X)
            if X.shape[1] > width:
                self._widen(model, X.shape[1])
            X = padded(X, max(width, X.shape[1]))
            if y is not None and np.ndim(y) == 0:
                y = np.array([y])
            answer = getattr(model, method)(X, *([] if y is None else [y]), **options, **asked)
            self.columns_, self.model_ = columns, model
            return answer

    def _inside_call(self) -> list[Any]:
        return [self.columns_, *super()._inside_call()] if "model_" in self.__dict__ else []

    def _fresh(self) -> tuple[Columns, Any]:
        columns = Columns() if self.columns is None else self.columns
        if not isinstance(columns, Columns):
            raise ValueError(f"columns must be a Columns, got {columns!r}")
        if self.model is None or not hasattr(self.model, "fit"):
            raise ValueError(f"model must be an estimator, got {self.model!r}")
        whole("room", self.room, least=0)
        return clone(columns), clone(self.model)

    def _first_width(self, X: np.ndarray) -> int:
        return max(1, X.shape[1]) + int(self.room)

    @staticmethod
    def _task(model: Any) -> str:
        return "label" if is_classifier(model) else "number"

    def _widen(self, model: Any, width: int) -> None:
        name = type(model).__name__
        if not hasattr(model, "widen"):
            raise ValueError(f"the rows have new columns, and {name} cannot be widened: use make_stream(..., room=100)")
        try:
            model.widen(width)
        except ValueError as error:
            raise ValueError(
                f"the rows have new columns: {error}. make_stream(..., room={max(100, width)}) keeps some free"
            ) from None

    # ---------------------------------------------------------------- answers
    def _seen(self, X: Any) -> np.ndarray:
        return padded(self.columns_._encode(X), self.model_.n_features_in_)

    predict_proba = asked("predict_proba", "Class probabilities, (n, n_classes).")
    predict_interval = asked("predict_interval", "Bounds of the targets; see the model's ``predict_interval``.")
    predict_quantiles = asked("predict_quantiles", "Quantiles of the targets; see the model's ``predict_quantiles``.")
    predict_set = asked("predict_set", "Sets of labels; see the model's ``predict_set``.")
    forecast_set = asked("forecast_set", "Sets of labels for the next row; see the model's ``forecast_set``.")
    forecast_proba = asked("forecast_proba", "Class probabilities of the next row; see the model's ``forecast_proba``.")
    forecast_interval = asked("forecast_interval", "Bounds for the next row; see the model's ``forecast_interval``.")
    forecast_quantiles = asked("forecast_quantiles", "Quantiles for the next row; see ``forecast_quantiles`` there.")

    def _labels_and_proba(self, rows: Any, following: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """What ``predict`` and ``predict_proba`` answer, or the forecasts; the rows are encoded once."""
        with self._turns:
            return answers_together(self._fitted(), "predict_proba", self._seen(rows), following)

    def _predict_with_interval(self, rows: Any, following: bool = False) -> tuple[np.ndarray, Any]:
        """What ``predict`` and ``predict_interval`` answer, or the forecasts; the rows are encoded once."""
        with self._turns:
            return answers_together(self._fitted(), "predict_interval", self._seen(rows), following)

    @property
    def relevance_(self) -> np.ndarray:
        """How much each column of the rows matters, in the order of ``columns_.feature_names_in_``, (d,).

        The relevance of the model's own columns, added up over those that encode one column of the rows.
        """
        own, columns = np.asarray(self._fitted().relevance_, float), self.columns_
        sources = columns._sources_of_width()
        return named(np.bincount(sources, own[: len(sources)], columns.n_features_in_), columns)

    @if_model_has("link_now")
    def link_now(self) -> np.ndarray | None:
        """How scores of the model become probabilities now; see there."""
        return self.model_inside.link_now()

    @if_model_has("proba_by_link")
    def proba_by_link(self, scores: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Probabilities of scores of the model; see there."""
        return self._fitted().proba_by_link(scores, held)

    @property
    def loss(self) -> Any:
        """The loss of the model."""
        return self.model_inside.loss

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that the model sees."""
        self._fitted()
        return self.columns_.get_feature_names_out()

    @property
    def n_features_in_(self) -> int:
        """Rows of mixed cells have no fixed width: ``columns_`` and ``model_`` know theirs."""
        raise AttributeError(f"{type(self).__name__} takes rows of any columns")

    feature_names_in_ = n_features_in_  # type: ignore[assignment]

    # ---------------------------------------------------------------- as one estimator
    def _start(self, model: Any) -> State:
        return {"columns": {}}

    @property
    def _beside(self) -> State:
        """The encoder's state: it is beside the model, and undoes by itself what it has learned."""
        return {"columns": self.columns_.state_}

    @_beside.setter
    def _beside(self, own: State) -> None:
        self.columns_ = self._fresh()[0]
        self.columns_.state_ = own["columns"]

    def check_state(self) -> None:
        """Raise ValueError where the states do not fit the parameters, themselves or each other."""
        if not hasattr(self.model_, "state_"):
            raise ValueError("state_ holds no model")
        self.model_.check_state()
        if self.columns_.width_ > self.model_.n_features_in_:
            raise ValueError(f"{self.columns_.width_} columns for a model of {self.model_.n_features_in_}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


def encoder_of(model: Any) -> Columns | None:
    """The encoder of a model for rows of mixed cells: that of a pipeline, or its own; None without one."""
    return getattr(model, "columns_", None)


def make_stream(columns: Any, model: Any, room: int = 0) -> StreamPipeline:
    """An encoder and an estimator as one estimator: ``StreamPipeline(columns, model, room)``.

    Parameters
    ----------
    columns : Columns
    model : estimator
    room : int, default=0
        Columns kept free for later ones, for models that cannot be widened.
    """
    return StreamPipeline(columns, model, room)
