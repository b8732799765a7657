"""Answers and scores of a model, partition by partition."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..evaluate.metrics import errors
from ..streams.base import BLOCK_ROWS
from ._client import compute, connect, need
from ._data import Data, Piece, partitions, tree

WHAT = ("predict", "decision_function", "predict_proba")


def predict(
    est: Any, X: Any, *, what: str = "predict", client: Any = None, block: int = BLOCK_ROWS, **reader: Any
) -> Any:
    """Answers of a fitted model as a dask array, one chunk per partition; nothing is computed yet.

    Parameters
    ----------
    est : estimator
    X : dask array, dask frame, or names of files
        See :func:`partitions`.
    what : {"predict", "decision_function", "predict_proba"}
    client : distributed.Client, optional
        To compare the columns of files before they are read.
    block : int, default=1024
        Rows at a time.
    **reader
        Options of files.

    Returns
    -------
    dask array
        (n,) or (n, outputs); the length is unknown where the rows come from files.
    """
    if what not in WHAT or not hasattr(est, what):
        raise ValueError(f"what must be one of {', '.join(name for name in WHAT if hasattr(est, name))}, got {what!r}")
    data = partitions(X, block=block, client=client, width=est.n_features_in_, **reader)
    same_columns(est, data)
    one = getattr(_plain(est), what)(np.zeros((1, est.n_features_in_), est.state_["dtype"]))
    array = need("dask.array")
    known = list(X.chunks[0]) if hasattr(X, "chunks") else [np.nan] * len(data)
    parts = [
        array.from_delayed(part, shape=(n, *one.shape[1:]), dtype=one.dtype)
        for part, n in zip(data.map(_answers, _plain(est), what, one[:0]), known)
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def same_columns(est: Any, data: Data) -> None:
    """ValueError when the columns of a frame are not those of the frame that the model has learned."""
    known = getattr(est, "feature_names_in_", None)
    if known is not None and data.feature_names is not None and data.feature_names != list(known):
        raise ValueError(f"the columns are {data.feature_names}, the model has learned {list(known)}")


def _plain(est: Any) -> Any:
    """A copy that takes rows without names of columns."""
    est = copy.copy(est)
    est.__dict__.pop("feature_names_in_", None)
    return est


def _answers(piece: Piece, est: Any, what: str, nothing: np.ndarray) -> np.ndarray:
    return np.concatenate([nothing, *piece.blocks(lambda X, y: getattr(est, what)(X))])


def score(
    est: Any, X: Any, y: Any = None, *, client: Any = None, block: int = BLOCK_ROWS, labels: Any = None, **reader: Any
) -> float:
    """Accuracy of a classifier, R² of a regressor, over all partitions: the number that ``est.score`` gives.

    Parameters
    ----------
    est : estimator
    X, y, client, block, labels, **reader
        See :func:`fit`.

    Returns
    -------
    float
    """
    with connect(client, X) as client:
        data = partitions(X, y, block=block, client=client, labels=labels, width=est.n_features_in_, **reader)
        same_columns(est, data)
        n, _, spread, cost = compute(client, tree(data.map(_moments, _plain(est)), _added))
    if is_classifier(est):
        return float((n - cost) / n)
    if spread == 0:
        return float(cost == 0)
    return float(1 - cost / spread)


def _moments(piece: Piece, est: Any) -> np.ndarray:
    """Rows, mean of the target and sum of its squared deviations from it (0 of labels), and what the answers cost."""
    task = "classification" if is_classifier(est) else "regression"

    def block(X: Any, y: Any) -> np.ndarray:
        numbers = np.zeros(len(y)) if task == "classification" else np.asarray(y, float)
        mean, cost = numbers.mean(), errors(task, y, est.predict(X)).sum()
        return np.array([len(y), mean, np.square(numbers - mean).sum(), cost])

    total = np.zeros(4)
    for part in piece.blocks(block):
        total = _added(total, part)
    return total


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of two sets of rows; means and deviations by the formula of Chan, Golub and LeVeque."""
    n = a[0] + b[0]
    if not n:
        return a
    apart = b[1] - a[1]
    return np.array([n, a[1] + apart * b[0] / n, a[2] + b[2] + apart**2 * a[0] * b[0] / n, a[3] + b[3]])
