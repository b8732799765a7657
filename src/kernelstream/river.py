"""River adapters: kernelstream's learners on rows that are dicts, one at a time or many.

>>> from river import evaluate, metrics, preprocessing, datasets
>>> from kernelstream.river import RiverClassifier
>>> model = preprocessing.StandardScaler() | RiverClassifier(seed=1)
>>> metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
>>> metric.get() > 0.85
True
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .checks import whole
from .columns import Columns, make_stream
from .estimators import FeatureClassifier, FeatureRegressor
from .estimators._contract.base import has_fixed_width
from .extras import needs
from .next_row import for_next_row
from .streams.cells import is_missing

with needs("river"):
    from river import base

Row = dict[Any, Any]
WIDE_ROWS = 200  # with more features than this, rows that hold few of them are kept sparse


_PARAMETERS = """seed
        Random seed of the model; by default the model's own.
    room
        Columns kept free for features that appear later. Only needed for models that cannot be widened: those with
        budgets, random binning, learned kernels and Falkon.
    columns
        Kinds of columns, such as {"hour": "category"}; {} infers them from the first cells. Only needed for words,
        dates and gaps that first appear after the first row."""


class _Adapter:
    """Dicts to rows of an array. A feature has a column from the row where it first appears; missing ones are 0.

    New columns are added in the order of their names, so the order of a dict's entries does not matter. Where the first
    row holds anything but numbers (words, dates, gaps), or kinds of columns are given, all rows go through
    :class:`~kernelstream.columns.Columns` instead.
    """

    def __init__(
        self, model: Any = None, seed: int | None = None, room: int = 0, columns: dict[str, str] | None = None
    ):
        self.model = model
        self.seed = seed
        self.room = room
        self.columns = columns
        whole("room", self.room, least=0)
        if not self.room and self.model is not None and has_fixed_width(self.model):
            name = type(self.model).__name__
            warnings.warn(
                f"{name} cannot take features that come later: {type(self).__name__}({name}(...), room=100) keeps "
                "that many columns free",
                UserWarning,
                stacklevel=2,
            )
        self._names: list[Any] = []
        self._columns: dict[Any, int] = {}
        self._width = 0
        self._take: Any = None
        self._est: Any = None
        self._mixed = False

    def __init_subclass__(cls) -> None:
        cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS)

    def _default(self) -> Any:
        raise NotImplementedError

    @property
    def estimator(self) -> Any:
        """The kernelstream estimator that does the learning, or None before the first row."""
        return self._est

    model_inside = estimator

    @property
    def feature_names(self) -> list[Any]:
        """The feature of each column."""
        return self._est.columns_.feature_names_in_.tolist() if self._mixed and self._ready() else list(self._names)

    def _started(self, first: Any) -> Any:
        """The estimator; a new one is made for rows such as the ``first``, an iterable of cells."""
        if self._est is None:
            est = clone(self._default() if self.model is None else self.model)
            if self.seed is not None:
                est.set_params(random_state=self.seed)
            self._mixed = self.columns is not None or not all(map(_is_number, first))
            if self._mixed:
                est = self._encoding(est)
            self._est = est
        return self._est

    def _encoding(self, est: Any) -> Any:
        """An estimator of mixed rows: itself where it takes them, else with an encoder in front."""
        if getattr(est, "columns", None) is None:  # KernelClassifier and KernelRegressor take them
            return make_stream(Columns(self.columns), est, self.room)
        return est if self.columns is None else est.set_params(columns=self.columns)

    # ---------------------------------------------------------------- columns
    def _add(self, rows: Iterable[Iterable[Any]]) -> None:
        """Give a column to every new feature of the rows, row by row, and widen the model."""
        for row in rows:
            new = [name for name in row if name not in self._columns]
            for name in sorted(new, key=lambda name: (str(type(name)), name)):
                self._columns[name] = len(self._names)
                self._names.append(name)
        self._take = None
        wanted = len(self._names)
        if not self._ready():
            self._width = max(wanted, 1) + self.room
        elif wanted > self._width:
            if has_fixed_width(self._est):
                name = type(self._est).__name__
                raise ValueError(
                    f"no column is left for {self._names[self._width]!r}, and {name} cannot be widened: "
                    f"set room above {self.room}"
                )
            self._est.widen(self._ahead(wanted))
            self._width = self._est.n_features_in_

    def _ahead(self, wanted: int) -> int:
        """A width for the features so far and some to come, where columns of zeros do not change the model."""
        state = self._est.state_
        settled = "w" in state and not state["warm_rows"]  # no bandwidth will be estimated any more
        return max(wanted, self._width + self._width // 2) if settled else wanted

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Context in which a failed call changes nothing: no new column, no wider model, no new model."""
        known, width, held, mixed = len(self._names), self._width, self._est, self._mixed
        est = dict(held.__dict__) if held is not None else {}
        try:
            yield
        except BaseException:
            for name in self._names[known:]:
                del self._columns[name]
            del self._names[known:]
            self._take, self._width, self._est, self._mixed = None, width, held, mixed
            if held is not None:
                held.__dict__.clear()
                held.__dict__.update(est)
            raise

    def _row(self, x: Row) -> Any:
        """A row as the estimator takes it: an array (1, d), without features that have no column; or mixed."""
        if self._mixed:
            return x
        known = self._known_row(x)
        return self._rows((x,), grow=False) if known is None else known

    def _known_row(self, x: Row) -> np.ndarray | None:
        """A row that has just the known features, all of them finite numbers, as an array (1, d); else None."""
        if len(x) == len(self._names) == self._width > 1:
            take = self._take
            if take is None:
                take = self._take = itemgetter(*self._names)
            try:
                values = take(x)
                if math.isfinite(sum(values)):  # quicker than an array operation
                    return np.array((values,), np.float64)
            except (KeyError, TypeError, ValueError, OverflowError):
                pass  # needs the full checks: other features, or a value that is not a number
        return None

    def _rows(self, rows: Sequence[Row], grow: bool) -> Any:
        """Rows as an array (n, d), CSR where that is much smaller; without ``grow``, unknown features are left out."""
        if grow:
            new = [x for x in rows if not x.keys() <= self._columns.keys()]
            if new or not self._names:
                self._add(new)
        if len(self._names) > WIDE_ROWS and self._takes_sparse() and 4 * sum(map(len, rows)) < len(rows) * self._width:
            return self._sparse(rows)
        out = np.zeros((len(rows), max(self._width, 1)))
        for i, x in enumerate(rows):
            for name, value in x.items():
                column = self._columns.get(name)
                if column is not None:
                    out[i, column] = _number(name, value)
        return out

    def _takes_sparse(self) -> bool:
        return self._est is not None and self._est.__sklearn_tags__().input_tags.sparse

    def _sparse(self, rows: Sequence[Row]) -> sp.csr_array:
        indices: list[int] = []
        data: list[float] = []
        ends = [0]
        for x in rows:
            cells = sorted(
                (self._columns[name], _number(name, value)) for name, value in x.items() if name in self._columns
            )
            indices += [column for column, value in cells if value]
            data += [value for _, value in cells if value]
            ends.append(len(data))
        shape = len(rows), self._width
        return sp.csr_array((np.array(data), np.array(indices, np.int32), np.array(ends, np.int32)), shape=shape)

    def _frame(self, X: Any, grow: bool) -> Any:
        """Rows of a data frame, or of a list of dicts, as the estimator takes them."""
        if self._mixed:
            return X
        if isinstance(X, (list, tuple)):
            return self._rows(X, grow)
        import narwhals

        frame = narwhals.from_native(X, eager_only=True)
        if grow and any(name not in self._columns for name in frame.columns):
            self._add([frame.columns])
        out = np.zeros((len(frame), max(self._width, 1)))
        for name in frame.columns:
            column = self._columns.get(name)
            if column is not None:
                try:
                    out[:, column] = np.asarray(frame[name].to_numpy(), np.float64)
                except (TypeError, ValueError):
                    raise ValueError(f"feature {name!r} holds no numbers: {_MIXED}") from None
        if not np.isfinite(out).all():
            raise ValueError(f"the data frame holds NaN or infinity: {_MIXED}")
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
        row = None if self._mixed else self._known_row(x)
        if row is not None and w == 1.0:
            self._est.learn_row(row, y)
            return
        with self._all_or_nothing():
            est = self._started(x.values())
            rows: Any = x if self._mixed else self._rows((x,), grow=True)
            if w == 1.0 and isinstance(rows, np.ndarray):
                est.learn_row(rows, y)
            else:
                est.learn(rows, np.array([y]), **({} if w == 1.0 else {"sample_weight": np.array([w])}))

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
            self._started(_first_cells(X))
            if len(X):
                self._est.learn(self._frame(X, grow=True), _targets(y))

    def _ready(self) -> bool:
        """Whether there is something to predict with."""
        return self._est is not None and bool(self._est.__sklearn_is_fitted__())


class RiverClassifier(_Adapter, base.MiniBatchClassifier):
    """A kernelstream classifier for River.

    Parameters
    ----------
    model
        An estimator of kernelstream, which is copied; by default a `FeatureClassifier` with the logistic loss.
    {parameters}

    Examples
    --------
    >>> from kernelstream.river import RiverClassifier
    >>> model = RiverClassifier(seed=1)
    >>> for i in range(300):
    ...     model.learn_one({"a": i % 7, "b": i % 3}, "near" if 2 <= i % 7 <= 4 else "far")
    >>> model.predict_one({"a": 3, "b": 1})
    'near'
    """

    def _default(self) -> Any:
        return FeatureClassifier(loss="logistic")

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """Predicted label of the next row of the stream, or None before the first row was learned."""
        if not self._ready():
            return None
        return for_next_row(self._est, "predict")(self._row(x))[0].item()

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each label known so far, for the next row of the stream."""
        if not self._ready():
            if not hasattr(self._default() if self.model is None else self.model, "predict_proba"):
                raise NotImplementedError
            return {}
        if not hasattr(self._est, "predict_proba"):
            raise NotImplementedError
        p = for_next_row(self._est, "predict_proba")(self._row(x))[0]
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


class RiverRegressor(_Adapter, base.MiniBatchRegressor):
    """A kernelstream regressor for River.

    Parameters
    ----------
    model
        An estimator of kernelstream, which is copied; by default a `FeatureRegressor`.
    {parameters}

    Examples
    --------
    >>> from kernelstream.river import RiverRegressor
    >>> model = RiverRegressor(seed=1)
    >>> for i in range(500):
    ...     model.learn_one({"a": i % 7}, (i % 7) ** 2)
    >>> abs(model.predict_one({"a": 3}) - 9) < 1
    True
    """

    def _default(self) -> Any:
        return FeatureRegressor()

    def predict_one(self, x: Row) -> float:
        """Predicted target of the next row of the stream, 0 before the first row was learned."""
        return float(for_next_row(self._est, "predict")(self._row(x))[0]) if self._ready() else 0.0

    def predict_many(self, X: Any) -> Any:
        """Predicted targets of the rows of a data frame, as a series; of a list of dicts, as an array."""
        return _like(X, self._est.predict(self._frame(X, grow=False)) if self._ready() else np.zeros(len(X)))


_MIXED = "columns={} takes words, dates and gaps that come after rows of numbers"


def _is_number(value: Any) -> bool:
    """Whether a cell is a number as it is: a word that reads as one is a word."""
    return isinstance(value, (int, float, np.number, np.bool_)) and not is_missing(value)


def _first_cells(X: Any) -> Iterable[Any]:
    """Cells of the first row of a data frame, or of a list of dicts."""
    if not len(X):
        return ()
    if isinstance(X, (list, tuple)):
        return X[0].values()
    import narwhals

    return narwhals.from_native(X, eager_only=True).head(1).rows()[0]


def _number(name: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"feature {name!r} is {value!r}, not a number: {_MIXED}") from None
    if not math.isfinite(number):
        raise ValueError(f"feature {name!r} is {value!r}: {_MIXED}")
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
