"""River adapters: kernelstream's learners on rows that are dicts, one at a time or many.

>>> from river import evaluate, metrics, preprocessing, datasets
>>> from kernelstream.river import StreamClassifier
>>> model = preprocessing.StandardScaler() | StreamClassifier(seed=1)
>>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
>>> metric.get() > 0.85
True
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import clone

from .estimators import FeatureClassifier, FeatureRegressor

try:
    from river import base
except ImportError:
    raise ImportError("kernelstream.river needs River: pip install 'kernelstream[river]'") from None

Row = dict[Any, Any]


class _Adapter:
    """Dicts to rows of an array. A feature has a column from the row where it first appears; missing ones are 0.

    New columns are given in the order of their names, so the order of a dict's entries means nothing.
    """

    model: Any
    seed: int | None

    def _begin(self) -> None:
        self._names: list[Any] = []
        self._columns: dict[Any, int] = {}
        self._take: Any = None
        self._est: Any = None

    def _default(self) -> Any:
        raise NotImplementedError

    @property
    def estimator(self) -> Any:
        """The kernelstream estimator that does the learning, or None before the first row."""
        return self._est

    @property
    def feature_names(self) -> list[Any]:
        """The feature of each column."""
        return list(self._names)

    def _started(self) -> Any:
        if self._est is None:
            self._est = clone(self._default() if self.model is None else self.model)
            if self.seed is not None:
                self._est.set_params(random_state=self.seed)
        return self._est

    # ---------------------------------------------------------------- columns
    def _add(self, new: Iterable[Any]) -> None:
        """Give features that have none a column; the model is widened by the caller's rows."""
        names = sorted({name for name in new if name not in self._columns}, key=lambda name: (str(type(name)), name))
        width = len(self._names) + len(names)
        if self._ready() and width > self._est.n_features_in_:
            self._est.widen(width)
        # new objects: a row that is refused leaves the old ones
        self._columns = {**self._columns, **{name: len(self._names) + i for i, name in enumerate(names)}}
        self._names = [*self._names, *names]
        self._take = itemgetter(*self._names) if len(self._names) > 1 else None

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Rows that are refused inside leave no trace: no column, no width of the model, no model."""
        before, est = dict(self.__dict__), dict(self._est.__dict__) if self._est is not None else {}
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if self._est is not None:
                self._est.__dict__.clear()
                self._est.__dict__.update(est)
            raise

    def _row(self, x: Row) -> np.ndarray:
        """A row as an array (1, d); features without a column are left out."""
        known = self._known_row(x)
        return self._rows((x,), grow=False) if known is None else known

    def _known_row(self, x: Row) -> np.ndarray | None:
        """A row that has just the known features, all of them finite numbers, as an array (1, d); else None."""
        take = self._take
        if take is not None and len(x) == len(self._names):
            try:
                values = take(x)
                if math.isfinite(sum(values)):  # quicker than an array operation
                    return np.array((values,), np.float64)
            except (KeyError, TypeError, ValueError, OverflowError):
                pass  # a closer look: other features, or a value that is no number
        return None

    def _rows(self, rows: Sequence[Row], grow: bool) -> np.ndarray:
        """Rows as an array (n, d). Unless it may ``grow``, features without a column are left out."""
        width, take = len(self._names), self._take
        if take is not None and all(len(x) == width for x in rows):
            try:
                out = np.array([take(x) for x in rows], np.float64)
                if math.isfinite(out.sum()):
                    return out
            except (KeyError, TypeError, ValueError, OverflowError):
                pass  # a closer look: other features, or a value that is no number
        if grow:
            new = {name for x in rows if not x.keys() <= self._columns.keys() for name in x}
            if new or not self._names:
                self._add(new)
                width = len(self._names)
        out = np.zeros((len(rows), max(width, 1)))
        for i, x in enumerate(rows):
            for name, value in x.items():
                column = self._columns.get(name)
                if column is not None:
                    out[i, column] = _number(name, value)
        return out

    def _frame(self, X: Any, grow: bool) -> np.ndarray:
        """Rows of a data frame, or of a list of dicts, as an array."""
        if isinstance(X, (list, tuple)):
            return self._rows(X, grow)
        import narwhals

        frame = narwhals.from_native(X, eager_only=True)
        if grow and any(name not in self._columns for name in frame.columns):
            self._add(frame.columns)
        out = np.zeros((len(frame), max(len(self._names), 1)))
        for name in frame.columns:
            column = self._columns.get(name)
            if column is not None:
                try:
                    out[:, column] = np.asarray(frame[name].to_numpy(), np.float64)
                except (TypeError, ValueError):
                    raise ValueError(f"feature {name!r} holds no numbers: encode it first") from None
        if not np.isfinite(out).all():
            raise ValueError("the data frame holds NaN or infinity")
        return out

    # ---------------------------------------------------------------- River's interface
    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            Its label or target.
        w
            Its weight.
        """
        row = self._known_row(x)
        if row is not None and w == 1.0:
            self._est.learn_row(row, y)
            return
        with self._all_or_nothing():
            est, row = self._started(), self._rows((x,), grow=True)
            if w == 1.0:
                est.learn_row(row, y)
            else:
                est.learn(row, np.array([y]), sample_weight=np.array([w]))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn rows in order: exactly what :meth:`learn_one` does, faster.

        Parameters
        ----------
        X
            A data frame, or a list of dictionaries.
        y
            Labels or targets.
        """
        with self._all_or_nothing():
            self._started()
            if len(X):
                self._est.learn(self._frame(X, grow=True), _targets(y))

    def _ready(self) -> bool:
        """Whether there is something to predict with."""
        return self._est is not None and hasattr(self._est, "state_")


class StreamClassifier(_Adapter, base.MiniBatchClassifier):
    """A kernelstream classifier for River.

    Parameters
    ----------
    model
        An estimator of kernelstream, which is copied; by default a `FeatureClassifier` with the logistic loss. Features
        that appear later need a model that can be widened, as that one.
    seed
        Random seed of the model; by default the model's own.

    Examples
    --------
    >>> from kernelstream.river import StreamClassifier
    >>> model = StreamClassifier(seed=1)
    >>> for i in range(300):
    ...     model.learn_one({"a": i % 7, "b": i % 3}, "near" if 2 <= i % 7 <= 4 else "far")
    >>> model.predict_one({"a": 3, "b": 1})
    'near'
    """

    def __init__(self, model: Any = None, seed: int | None = None):
        self.model = model
        self.seed = seed
        self._begin()

    def _default(self) -> Any:
        return FeatureClassifier(loss="logistic")

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """Predicted label, or None before the first row was learned."""
        if not self._ready():
            return None
        return self._est.predict(self._row(x))[0].item()

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each label known so far."""
        if not self._ready():
            if not hasattr(self._default() if self.model is None else self.model, "predict_proba"):
                raise NotImplementedError
            return {}
        probability = getattr(self._est, "predict_proba", None)
        if probability is None:
            raise NotImplementedError
        p = probability(self._row(x))[0]
        return dict(zip(self._est.classes_.tolist(), p.tolist(), strict=True))

    def predict_many(self, X: Any) -> Any:
        """Predicted labels of the rows of a data frame, as a series; of a list of dicts, as an array."""
        if not self._ready():
            return _like(X, np.empty(0))
        return _like(X, self._est.predict(self._frame(X, grow=False)))

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities, a column per label: a data frame, or for a list of dicts an array."""
        if not self._ready():
            return _like(X, np.empty((0, 0)), ())
        if not hasattr(self._est, "predict_proba"):
            raise NotImplementedError
        return _like(X, self._est.predict_proba(self._frame(X, grow=False)), self._est.classes_.tolist())


class StreamRegressor(_Adapter, base.MiniBatchRegressor):
    """A kernelstream regressor for River.

    Parameters
    ----------
    model
        An estimator of kernelstream, which is copied; by default a `FeatureRegressor`.
    seed
        Random seed of the model; by default the model's own.

    Examples
    --------
    >>> from kernelstream.river import StreamRegressor
    >>> model = StreamRegressor(seed=1)
    >>> for i in range(500):
    ...     model.learn_one({"a": i % 7}, (i % 7) ** 2)
    >>> abs(model.predict_one({"a": 3}) - 9) < 1
    True
    """

    def __init__(self, model: Any = None, seed: int | None = None):
        self.model = model
        self.seed = seed
        self._begin()

    def _default(self) -> Any:
        return FeatureRegressor()

    def predict_one(self, x: Row) -> float:
        """Predicted target, 0 before the first row was learned."""
        return float(self._est.predict(self._row(x))[0]) if self._ready() else 0.0

    def predict_many(self, X: Any) -> Any:
        """Predicted targets of the rows of a data frame, as a series; of a list of dicts, as an array."""
        return _like(X, self._est.predict(self._frame(X, grow=False)) if self._ready() else np.zeros(len(X)))


def _number(name: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"feature {name!r} is {value!r}, not a number: encode it first") from None
    if not math.isfinite(number):
        raise ValueError(f"feature {name!r} is {value!r}")
    return number


def _targets(y: Any) -> np.ndarray:
    return y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)


def _like(X: Any, values: np.ndarray, columns: Any = None) -> Any:
    """Values in the kind of container that X is."""
    if isinstance(X, (list, tuple)):
        return values
    import narwhals

    frame = narwhals.from_native(X, eager_only=True)
    if frame.implementation.is_pandas():
        import pandas as pd

        index = X.index[: len(values)]
        if columns is None:
            return pd.Series(values, index=index)
        return pd.DataFrame(values, index=index, columns=list(columns))
    if columns is None:
        return narwhals.new_series("prediction", values, backend=frame.implementation).to_native()
    parts = {str(name): values[:, i] for i, name in enumerate(columns)}
    return narwhals.from_dict(parts, backend=frame.implementation).to_native()
