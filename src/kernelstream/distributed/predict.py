"""Answers of a model, part by part: they are rows' own, so that nothing has to be added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .fit import is_spark


def predict(est: Any, X: Any, method: str = "predict") -> Any:
    """Answers of a fitted model of any kind, partition by partition; nothing is computed yet.

    Parameters
    ----------
    est : estimator
    X : dask array, dask frame, or DataFrame of Spark
        A frame has the columns of the model; one of Spark may have others beside them.
    method : {"predict", "decision_function", "predict_proba"}

    Returns
    -------
    dask array, or DataFrame
        Of Dask, (n,) or (n, outputs). Of Spark, the frame with one more column of that name.

    Examples
    --------
    >>> from kernelstream import distributed
    >>> distributed.predict(model, frame).to_zarr("answers")  # doctest: +SKIP
    """
    answer = getattr(est, method)
    if is_spark(X):
        return _on_spark(answer, X, method, list(getattr(est, "feature_names_in_", X.columns)))
    if not hasattr(X, "columns"):
        few = answer(np.zeros((1, X.shape[1]), X.dtype))
        whole = {"chunks": (X.chunks[0], few.shape[1:])} if few.ndim > 1 else {"drop_axis": 1}
        return X.rechunk({1: -1}).map_blocks(_answers, answer, few[:0], meta=few[:0], **whole)
    few = answer(X._meta_nonempty)
    return X.map_partitions(_answers, answer, few[:0], meta=few[:0])


def _answers(rows: Any, answer: Callable[[Any], np.ndarray], nothing: np.ndarray) -> np.ndarray:
    return answer(rows) if rows.shape[0] else nothing


def _on_spark(answer: Callable[[Any], np.ndarray], frame: Any, name: str, columns: list[str]) -> Any:
    def answers(tables: Iterator[Any]) -> Iterator[Any]:
        for table in tables:
            yield table.assign(**{name: answer(table[columns]).tolist() if len(table) else []})

    few = answer(frame.sparkSession.createDataFrame([(0.0,) * len(columns)], columns).toPandas())
    kind = frame.sparkSession.createDataFrame([(few[0].tolist(),)], [name]).schema
    return frame.mapInPandas(answers, type(frame.schema)([*frame.schema.fields, *kind.fields]))
