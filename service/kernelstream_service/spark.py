"""Spark Structured Streaming: a learner for each key, one learner for a whole stream, and models as functions.

>>> from kernelstream import KernelClassifier
>>> from kernelstream_service import spark
>>> session = spark.session()  # doctest: +SKIP
>>> stream = session.readStream.format("kafka")...  # doctest: +SKIP
>>> answers = spark.learn_by(stream, KernelClassifier(size="small"), "shop", target="sold")  # doctest: +SKIP
>>> answers.writeStream.option("checkpointLocation", ...).start()  # doctest: +SKIP

``distributed.fit`` takes the frames of Spark as well: what adds up over rows, on all executors. Needs the extra
``spark`` and Java 17 or newer; docs/spark.md has the guarantees and their figures.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from kernelstream import model_io
from kernelstream.columns.stream import encoder_of
from kernelstream.rows import take
from kernelstream.streams.cells import NO_TARGET, is_missing

from . import DurableLearner
from .extras import needs
from .keyed import NOTHING, KeyedLearner, loaded

with needs("spark"):
    import pandas as pd
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DoubleType, MapType, NumericType, StringType, StructField, StructType

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
POSITION = "spark"  # under this name a durable learner knows the batch to come


def session(master: str = "local[*]", **options: Any) -> SparkSession:
    """A Spark session that suits this module; any other will do, too.

    Parameters
    ----------
    master : str, default="local[*]"
        Where Spark runs; by default on all cores of this machine.
    **options
        Settings of Spark with ``_`` for the dots: ``spark_sql_shuffle_partitions=4``.
    """
    java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if not (os.path.exists(java) or shutil.which("java")):
        raise RuntimeError("Spark needs Java 17 or newer: apt install openjdk-17-jre-headless, or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # so that workers can import what this process can
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # said at every call
    builder = SparkSession.builder.master(master).appName("kernelstream")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", STATE_STORE: ROCKSDB}
    settings |= {name.replace("_", "."): value for name, value in options.items()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# -------------------------------------------------------------------- a learner for each key
def learn_by(
    frame: DataFrame,
    model: Any,
    by: str | Sequence[str],
    target: str,
    *,
    features: Sequence[str] | None = None,
    messages: str | None = None,
    order: str | Sequence[str] = (),
    keep: Sequence[str] = (),
    encode: bool | None = None,
    probabilities: bool = False,
    coverage: float | None = None,
    label: str = "string",
    ttl: float | None = None,
) -> DataFrame:
    """A learner for each key: rows in, forecasts out, each made before its row was learned.

    The state of a key is a model file, kept in Spark's state store: after a failure Spark repeats a batch with the
    states it began with, so that every row is learned exactly once.

    Parameters
    ----------
    frame : streaming DataFrame
    model : estimator with ``learn``
        What every key starts with; give it a ``random_state``.
    by : str or sequence of str
        Columns that make the key.
    target : str
        Column that is learned; rows where it is null are only answered.
    features : sequence of str, optional
        Columns that are learned from; by default all others.
    messages : str, optional
        Column of JSON texts (or binary) that hold target and features, instead of columns: their columns may change.
    order : str or sequence of str, optional
        Columns by which the rows of a key are sorted in every batch. Spark keeps no order: without it, the order in
        which the rows of a batch are learned is arbitrary.
    keep : sequence of str, optional
        Further columns to include in the answers.
    encode : bool, optional
        Whether rows go through :class:`~kernelstream.columns.Columns`, which takes words, gaps and columns that come
        later; by default, if a column holds no numbers, or with ``messages``. Without it, a row with a gap is a
        problem.
    probabilities, coverage
        See :class:`~kernelstream_service.keyed.KeyedLearner`.
    label : str, default="string"
        With ``messages``, the type of labels; otherwise it is that of the target.
    ttl : float, optional
        Seconds after which the learner of a key without rows is forgotten. Spark then looks at the clock in batches
        without rows: a query with ``trigger(availableNow=True)`` ends only if the session has the setting
        ``spark.sql.streaming.noDataMicroBatches.enabled=false``.

    Returns
    -------
    streaming DataFrame
        Columns ``by``, ``order``, ``keep``, the target (without ``messages``), ``prediction``, ``probabilities`` (a map
        by label) or ``low`` and ``high``, and ``problem``: why a row was not learned, else null. The progress of the
        query counts them: ``query.lastProgress.observedMetrics["kernelstream"]`` has ``rows`` and ``problems``.
    """
    keys, order = _names(by), _names(order)
    types = {field.name: field for field in frame.schema.fields}
    taken = {target, *keys, *order, *keep} | ({messages} if messages else set())
    columns = [name for name in types if name not in taken] if features is None else list(features)
    wanted = [*keys, *order, *keep, *([messages] if messages else [target, *columns])]
    if unknown := [name for name in wanted if name not in types]:
        raise ValueError(f"the frame has no column {', '.join(map(repr, unknown))}: it has {', '.join(types)}")
    if not messages and not columns:
        raise ValueError("there is no column to learn from")
    if encode is None:
        encode = bool(messages) or not all(isinstance(types[name].dataType, NumericType) for name in columns)
    learner = KeyedLearner(model, encode=encode, probabilities=probabilities, coverage=coverage)
    shown = list(dict.fromkeys([*keys, *order, *keep, *([] if messages else [target])]))
    out = StructType([types[name] for name in shown])
    if not is_classifier(learner.model):
        out.add("prediction", DoubleType())
    else:
        out.add("prediction", label if messages else types[target].dataType)
    if probabilities:
        out.add("probabilities", MapType(out["prediction"].dataType, DoubleType()))
    if coverage is not None:
        out.add("low", DoubleType()).add("high", DoubleType())
    out.add("problem", StringType())
    frame.sparkSession.conf.set(STATE_STORE, ROCKSDB)  # the only one that keeps states of this kind
    per_key = _PerKey(learner, target, columns, messages, order, shown, ttl)
    answers = (
        frame.select(*dict.fromkeys(wanted))
        .groupBy(*keys)
        .transformWithStateInPandas(per_key, out, "append", "processingTime" if ttl else "none")
    )
    return answers.observe("kernelstream", F.count("*").alias("rows"), F.count("problem").alias("problems"))


class _PerKey(StatefulProcessor):
    """The operator of :func:`learn_by`."""

    def __init__(
        self,
        learner: KeyedLearner,
        target: str,
        columns: list[str],
        messages: str | None,
        order: list[str],
        shown: list[str],
        ttl: float | None,
    ):
        self.learner, self.target, self.columns, self.messages = learner, target, columns, messages
        self.order, self.shown, self.ttl = order, shown, ttl

    def init(self, handle: Any) -> None:
        self.model = handle.getValueState("model", "file binary", None if self.ttl is None else round(1000 * self.ttl))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        frame = _sorted(pd.concat(list(rows), ignore_index=True), self.order)
        known = self.model.get()
        state = None if known is None else bytes(known[0])
        if self.messages:
            state, found = self.learner.messages(state, frame[self.messages].tolist(), self.target)
        else:
            X = _rows(frame, self.columns, self.learner.encode)
            state, found = self.learner.step(state, X, frame[self.target].to_numpy())
        self.model.update((state,))
        parts = {name: values for name, values in vars(found).items() if values is not None}
        yield frame[self.shown].assign(**parts)

    def close(self) -> None:
        """Nothing is open."""


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _sorted(frame: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    return frame.sort_values(order, kind="stable", ignore_index=True) if order else frame


def _rows(frame: pd.DataFrame, columns: list[str], encode: bool) -> Any:
    """What a model learns from: a table of numbers, or a frame for its encoder."""
    return frame[columns] if encode else frame[columns].to_numpy(np.float64, na_value=np.nan)


# -------------------------------------------------------------------- one learner for the whole stream
class OneModel:
    """One learner for a whole stream, as the function of ``foreachBatch``: every batch is answered, then learned once.

    A :class:`~kernelstream_service.DurableLearner` keeps the model; the number of the batch to come is in its log,
    together with the rows. A batch that Spark repeats is neither learned nor answered again if it has been learned, and
    answered exactly as before if it has not.

    Parameters
    ----------
    folder : path
        Of the learner. It goes with one checkpoint of one query.
    model : estimator
        What to start with.
    target : str
        Column that is learned; rows where it is null are answered only.
    answers : callable, optional
        ``answers(frame, batch_id)`` gets the rows of a batch as a DataFrame with two more columns: ``prediction``, by
        the model as it was before the batch, and ``problem``, why a row was not learned. It may be called twice for a
        batch, with equal answers, so it should replace what it wrote under the same number.
    features, order, encode
        See :func:`learn_by`.
    **options
        Of the DurableLearner.

    Examples
    --------
    >>> from kernelstream import KernelRegressor
    >>> learn = OneModel("model", KernelRegressor(), "price")  # doctest: +SKIP
    >>> stream.writeStream.foreachBatch(learn).option("checkpointLocation", "checkpoint").start()  # doctest: +SKIP
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: Any,
        target: str,
        *,
        answers: Callable[[DataFrame, int], Any] | None = None,
        features: Sequence[str] | None = None,
        order: str | Sequence[str] = (),
        encode: bool = False,
        **options: Any,
    ):
        self.keyed = KeyedLearner(model, encode=encode)
        self.learner = DurableLearner(folder, self.keyed.model, **options)
        self.target, self.features, self.order, self.answers = target, features, _names(order), answers
        self.problems = 0  # rows that could not be learned, since this object was made

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Answer and learn a batch."""
        coming = int(self.learner.positions.get(POSITION, number))
        if number not in (coming - 1, coming):
            raise ValueError(
                f"{self.learner.folder} waits for batch {coming}, but this is {number}: folder and checkpoint do not "
                f"belong together"
            )
        if number < coming:
            return
        frame = _sorted(batch.toPandas(), self.order)
        others = {self.target, *self.order}
        columns = [name for name in frame if name not in others] if self.features is None else list(self.features)
        rows, y = _rows(frame, columns, self.keyed.encode), frame[self.target].tolist()
        found = self.keyed.answer(self.learner.latest().model, rows)
        if self.answers is not None:
            kind = batch.schema[self.target].dataType if is_classifier(self.keyed.model) else DoubleType()
            more = [StructField("prediction", kind), StructField("problem", StringType())]
            said = frame.assign(prediction=found.prediction, problem=found.problem)
            self.answers(batch.sparkSession.createDataFrame(said, StructType([*batch.schema.fields, *more])), number)
        good = [i for i, problem in enumerate(found.problem) if problem is None]
        self.problems += len(y) - len(good)
        self._learn(
            rows, y, np.array([i for i in good if not is_missing(y[i], NO_TARGET)], int), {POSITION: number + 1}
        )

    def _learn(self, rows: Any, y: list[Any], at: np.ndarray, positions: dict[str, int | str]) -> None:
        X, targets = take(rows, at), [y[i] for i in at.tolist()]
        try:
            self.learner.learn(_plain(X), targets, positions=positions)
        except ValueError:  # some are bad in ways that predicting does not show: a copy finds out which
            model = self.learner.latest().model
            state = None if getattr(model, "state_", None) is None else model_io.to_bytes(model, NOTHING)
            problem = self.keyed.step(state, X, targets)[1].problem
            good = [i for i, reason in enumerate(problem) if reason is None]
            self.problems += len(problem) - len(good)
            self.learner.learn(_plain(take(X, np.array(good, int))), [targets[i] for i in good], positions=positions)

    def close(self) -> None:
        """Write a snapshot and release the folder."""
        self.learner.close()


def _plain(rows: Any) -> Any:
    """Rows for a log: arrays as they are, frames as dictionaries."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records") if hasattr(rows, "iloc") else rows


# -------------------------------------------------------------------- scoring
def udf(model: Any, what: str = "predict") -> Callable[..., Column]:
    """A model as a function of columns, for batches, streams and SQL.

    Parameters
    ----------
    model : path of a model file, or estimator
        It travels with the query: executors need no file.
    what : {"predict", "predict_proba", "decision_function"}

    Returns
    -------
    pandas_udf
        Of the columns of the model, in its order. Rows with a gap that the model cannot take are null.

    Examples
    --------
    >>> price = udf("flats.ks")  # doctest: +SKIP
    >>> flats.withColumn("price", price("size", "rooms"))  # doctest: +SKIP
    >>> session.udf.register("price", price)  # doctest: +SKIP
    """
    est = model_io.load(model) if isinstance(model, (str, os.PathLike)) else model
    if not hasattr(est, what):
        raise ValueError(f"{type(est).__name__} has no {what}")
    content, names = model_io.to_bytes(est), [str(name) for name in getattr(est, "feature_names_in_", [])]
    label = np.asarray(getattr(est, "classes_", 0.0)).dtype.kind if what == "predict" else "f"
    kind = {"U": "string", "O": "string", "i": "long", "b": "boolean"}.get(label, "double")
    if what != "predict" and (what == "predict_proba" or len(est.classes_) > 2):
        kind = "array<double>"

    def score(*columns: pd.Series) -> pd.Series:
        learned = loaded(content)
        frame = pd.concat(columns, axis=1, keys=names or range(len(columns)))
        encoded = encoder_of(learned) is not None
        rows = frame if encoded else frame.to_numpy(np.float64, na_value=np.nan)
        good = np.arange(len(frame)) if encoded else np.flatnonzero(np.isfinite(rows).all(axis=1))
        said = pd.Series([None] * len(frame), dtype=object)
        if len(good):
            found = np.asarray(getattr(learned, what)(take(rows, good)))
            said.iloc[good] = list(found) if found.ndim > 1 else found.tolist()
        return said

    make: Any = pandas_udf  # whose types know no functions of any number of columns
    return make(score, kind)
