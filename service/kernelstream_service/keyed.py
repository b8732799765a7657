"""A learner as the state of a stream engine: ``(bytes, rows) -> (bytes, forecasts made before the rows were learned)``.

Engines that keep state for each key (Spark, Flink, Quix, Kafka Streams) or for each actor (Ray) store bytes with their
checkpoints and restore those of the last one after a crash. :class:`KeyedLearner` has no other state: from the same
bytes and the same rows it makes the same result, bit for bit, so that learning is exactly once wherever the engine's
state is. :mod:`kernelstream_service.spark` uses it; ``examples/`` has Flink, Ray and Quix.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from kernelstream import model_io
from kernelstream.columns import Columns, make_stream
from kernelstream.copies import seeded
from kernelstream.evaluate.runners import StreamRunner
from kernelstream.rows import take
from kernelstream.streams.cells import NO_TARGET, is_missing

from .rows import takes_dictionaries
from .sources import BadMessage, parse

CHECKSUM = 64  # last bytes of a model file, which depend on all others
LIVE_BYTES = 256 << 20  # of states whose models stay in this process, ready for the next call

NOTHING = {"learned": 0, "problems": 0}  # rows

_live: OrderedDict[bytes, tuple[Any, dict[str, Any], int]] = OrderedDict()  # by the checksum of their bytes


@dataclass
class Forecasts:
    """What was expected of n rows before they were learned.

    Attributes
    ----------
    prediction : list of n labels or numbers
        None before the first target was learned, and for rows that could not be used.
    probabilities : list of n dicts, or None
        Of a classifier, where asked for: label to probability.
    low, high : lists of n numbers, or None
        Of a regressor, where intervals are asked for.
    problem : list of n strings
        Why a row was not learned; None of all others.
    """

    prediction: list[Any]
    probabilities: list[Any] | None
    low: list[Any] | None
    high: list[Any] | None
    problem: list[str | None]


class KeyedLearner:
    """A model that lives in bytes between two calls.

    Parameters
    ----------
    model : estimator
        What every key starts with; it must have ``learn``. Give it a ``random_state``, so that keys that appear after a
        restart start like those before.
    encode : bool, default=False
        Whether rows hold words or gaps, are dictionaries, or may get columns later: they then go through
        :class:`~kernelstream.columns.Columns`.
    probabilities : bool, default=False
        Whether a classifier is to return the probability of each label.
    coverage : float, optional
        Of the intervals of a regressor; it must have ``learn_interval`` (:class:`~kernelstream.KernelRegressor`, or any
        other in :class:`~kernelstream.trust.WithIntervals`).

    Examples
    --------
    >>> from kernelstream import FeatureRegressor
    >>> from kernelstream_service.keyed import KeyedLearner
    >>> learner = KeyedLearner(FeatureRegressor(random_state=0))
    >>> state, first = learner.step(None, [[0.0], [1.0], [float("nan")]], [2.0, 3.0, 4.0])
    >>> print(first.problem[2])
    Input X contains NaN...
    >>> state, later = learner.step(state, [[0.5]], [None])  # a row without a target is answered, and not learned
    >>> later.prediction[0] > 0, learner.counts(state)
    (True, {'learned': 2, 'problems': 1})
    """

    def __init__(
        self, model: Any, *, encode: bool = False, probabilities: bool = False, coverage: float | None = None
    ) -> None:
        if not hasattr(model, "learn"):
            raise ValueError(f"{type(model).__name__} does not learn row by row: it has no learn")
        if coverage is not None and not hasattr(model, "learn_interval"):
            raise ValueError(f"{type(model).__name__} gives no intervals: wrap it in kernelstream.trust.WithIntervals")
        if probabilities and not is_classifier(model):
            raise ValueError(f"{type(model).__name__} is not a classifier and gives no probabilities")
        if encode and not takes_dictionaries(model):
            model = make_stream(Columns(), model)
        elif (
            encode and getattr(model, "columns", None) == "auto"
        ):  # decided here rather than by the first rows of a key
            model = clone(model).set_params(columns={})
        if hasattr(model, "_check_parameters"):
            model._check_parameters()  # once, here: later errors are taken for those of rows
        self.model, self.encode = seeded(model), encode
        self.probabilities, self.coverage = probabilities, coverage

    def step(self, state: bytes | None, rows: Any, y: Any) -> tuple[bytes, Forecasts]:
        """Forecast and learn rows.

        Rows that the model refuses are skipped, and counted in the state; those without a target are answered by the
        model as it was before the call.

        Parameters
        ----------
        state : bytes or None
            What the last call for this key returned, a model file (:func:`kernelstream.load`); None for a new key.
        rows : (n, d) array, data frame, or list of n lists or dictionaries
        y : n targets
            None or NaN where unknown.

        Returns
        -------
        state : bytes
        forecasts : Forecasts
        """
        model, notes = (clone(self.model), NOTHING) if state is None else _awake(state)
        y = np.asarray(y)
        late = (
            np.isnan(y)
            if y.dtype.kind == "f"
            else np.array([is_missing(value, NO_TARGET) for value in y.tolist()], bool)
        )
        found = self.answer(model, rows, late)
        known = np.flatnonzero(~late & np.array([problem is None for problem in found.problem], bool))
        _in_parts(lambda at: self._learn(model, take(rows, at), np.array(y[at].tolist())), known, found)
        bad = sum(problem is not None for problem in found.problem)
        learned = sum(found.problem[i] is None for i in known.tolist())
        notes = {"learned": notes["learned"] + learned, "problems": notes["problems"] + bad}
        content = model_io.to_bytes(model, notes)
        _keep(content, model, notes)
        return content, found

    def answer(self, model: Any, rows: Any, where: Any = True) -> Forecasts:
        """What a model expects of rows, or of those ``where`` a mask is true, without learning them."""
        n = len(rows)
        found = Forecasts(
            prediction=[None] * n,
            probabilities=[None] * n if self.probabilities else None,
            low=None if self.coverage is None else [None] * n,
            high=None if self.coverage is None else [None] * n,
            problem=[None] * n,
        )
        if isinstance(rows, list):
            found.problem = [str(row) if isinstance(row, BadMessage) else None for row in rows]
        usable = np.array([problem is None for problem in found.problem], bool) & where
        with contextlib.suppress(NotFittedError):
            _in_parts(lambda at: self._answer(model, take(rows, at)), np.flatnonzero(usable), found)
        return found

    def messages(
        self, state: bytes | None, contents: Sequence[bytes | str], target: str | None
    ) -> tuple[bytes, Forecasts]:
        """:meth:`step` of messages as brokers bring them: JSON objects of columns, among them the target.

        Those that hold no row are counted like rows that the model refuses.
        """
        rows: list[Any] = []
        for content in contents:
            try:
                rows.append(parse(content if isinstance(content, bytes) else content.encode(), target))
            except BadMessage as error:
                rows.append(error)
        return self.step(state, [getattr(row, "row", row) for row in rows], [getattr(row, "y", None) for row in rows])

    @staticmethod
    def counts(state: bytes) -> dict[str, int]:
        """Numbers of rows learned, and of rows left out because of an error."""
        return model_io.describe(io.BytesIO(state))["notes"]

    def _learn(self, model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
        if self.coverage is not None:
            return dict(zip(("prediction", "low", "high"), model.learn_interval(X, y, coverage=self.coverage)))
        task = "classification" if is_classifier(model) else "regression"
        predicted, table = StreamRunner(model, task, None, self.probabilities).forecast_then_learn(X, y)
        return {"prediction": predicted} | self._by_label(model, table)

    def _answer(self, model: Any, X: Any) -> dict[str, Any]:
        found = {"prediction": model.predict(X)}
        if self.coverage is not None:
            found |= dict(zip(("low", "high"), model.predict_interval(X, coverage=self.coverage)))
        return found | self._by_label(model, model.predict_proba(X) if self.probabilities else None)

    @staticmethod
    def _by_label(model: Any, table: np.ndarray | None) -> dict[str, Any]:
        labels = [] if table is None else model.classes_.tolist()
        return {} if table is None else {"probabilities": [dict(zip(labels, row)) for row in table.tolist()]}


def _in_parts(work: Callable[[np.ndarray], dict[str, Any]], at: np.ndarray, found: Forecasts) -> None:
    """Store what ``work`` says of the rows ``at`` these places; a block that it refuses is halved and tried again."""
    if not len(at):
        return
    try:
        parts = work(at)
    except NotFittedError:
        raise
    except (ValueError, ArithmeticError) as error:  # the model is as it was
        if len(at) == 1:
            found.problem[at[0]] = str(error)
            return
        for half in np.array_split(at, 2):
            _in_parts(work, half, found)
        return
    for name, values in parts.items():
        filled = getattr(found, name)
        for i, value in zip(at.tolist(), values if isinstance(values, list) else values.tolist()):
            filled[i] = value


@functools.lru_cache(maxsize=8)
def loaded(content: bytes) -> Any:
    """The model in the bytes of a model file, for answers only."""
    return model_io.load(io.BytesIO(content))


def _awake(state: bytes) -> tuple[Any, dict[str, Any]]:
    """The model and the counts in a state: the one that wrote it, where it was this process."""
    found = _live.pop(state[-CHECKSUM:], None)
    return found[:2] if found is not None else model_io.read(io.BytesIO(state))


def _keep(state: bytes, model: Any, notes: dict[str, Any]) -> None:
    _live[state[-CHECKSUM:]] = model, notes, len(state)
    while sum(size for *_, size in _live.values()) > LIVE_BYTES:
        _live.popitem(last=False)
