"""Mixed rows, with words, dates, gaps and new columns, for estimators that encode them themselves.

Arrays of numbers, with gaps or without, and data frames of numbers without gaps are learned without an encoder. A model
whose first rows are something else (a data frame with words or gaps, dictionaries) encodes all its rows with its own
:class:`~kernelstream.columns.Columns`. Estimators that do so have the parameter ``columns``; the encoder is their
``_encoder``, and its state is part of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from ...columns import Columns
from ...rows import is_pandas
from ...state.nested import State
from ...state.turns import in_turn
from ...state.undo import all_or_nothing
from .learner import Learner

if TYPE_CHECKING:
    from .base import StreamEstimator


def is_mixed(X: Any) -> bool:
    """Whether rows hold anything but numbers."""
    if sp.issparse(X):
        return False
    if isinstance(X, dict):
        return True
    if isinstance(X, (list, tuple)):
        return any(isinstance(row, dict) or (isinstance(row, (list, tuple)) and _has_words(row)) for row in X)
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "OU":
            return np.ma.is_masked(X) or _has_words(X.ravel())
        return X.dtype.kind == "M"
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return False
    if is_pandas(X) and all(getattr(dtype, "kind", "O") in "iuf" for dtype in X.dtypes):
        return bool(X.isna().to_numpy().any())  # numbers that may be missing, of pandas and Arrow, are numbers
    if hasattr(X, "__array__"):
        try:
            values = np.asarray(X)
        except (TypeError, ValueError):
            return True
        if values.dtype.kind in "iub":
            return False
        return values.dtype.kind != "f" or bool(np.isnan(values).any())
    return True


def _has_words(cells: Any) -> bool:
    return any(cell is None or isinstance(cell, str) for cell in cells)


@in_turn
def columns(est: StreamEstimator) -> Columns:
    """The encoder of the rows, fitted; only models of mixed rows have one."""
    if est._encoder is None:
        raise AttributeError(f"{type(est).__name__} has no columns_: its rows are numbers")
    return est._encoder


def check_columns(columns: Any) -> None:
    """ValueError for a parameter ``columns`` that is neither "auto" nor a dict."""
    if not (isinstance(columns, dict) or (isinstance(columns, str) and columns == "auto")):
        raise ValueError(f"columns must be 'auto' or a dict of name: kind, got {columns!r}")


def encodes(est: StreamEstimator, X: Any, fresh: bool) -> bool:
    """Whether rows of a call go through an encoder."""
    if est.columns is None:
        return False
    if not fresh and est.__dict__.get("_state") is not None:
        return est._encoder is not None
    return isinstance(est.columns, dict) or is_mixed(X)


def learn(
    est: StreamEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    learn: Callable[[np.ndarray], Any],
    fresh: bool = False,
    table: bool = False,
) -> Any:
    """Encode and ``learn`` rows, of a stream or of a table; an error leaves the encoder and the model as they were."""
    started = not fresh and est._encoder is not None
    encoder = est._encoder if started else _new_encoder(est)
    task = "label" if isinstance(est, ClassifierMixin) else "number"
    held = est._encoder
    before: Any = est.__dict__.get("_state")
    t = est._state["t"] if started else -1
    try:
        with all_or_nothing(encoder, complete=lambda: started and est._state["t"] > t):
            if table:
                rows = encoder._fit(X, y, sample_weight, task)
            else:
                rows = encoder._learn(X, y, sample_weight, task, type(est._learner).widen is not Learner.widen)
            if started and rows.shape[1] > est._state["n_features"]:
                est._widened(rows.shape[1])
            est._encoder = encoder
            if started and rows.shape[1] < est._state["n_features"]:
                rows = _filled(est, rows)
            answer = learn(rows)
    except BaseException:
        if est.__dict__.get("_state") is not before:
            est._state = before
            est._forget()
        est._encoder = held
        name_columns(est)
        raise
    name_columns(est)
    return answer


def fit(
    est: StreamEstimator, X: Any, y: Any, sample_weight: Any, shuffle: Any, fit: Callable[[np.ndarray], None]
) -> None:
    """``fit`` rows, encoded where they must be."""
    if encodes(est, X, fresh=True):
        learn(est, X, y, sample_weight, fit, fresh=True, table=shuffle)
        return
    with est._kept(fresh=True):
        est._encoder = None
        fit(X)


def encoded(est: StreamEstimator, X: Any) -> Any:
    """Rows of a model as rows of numbers, each encoded as if it came next."""
    return X if est._encoder is None else _filled(est, est._encoder._encode(X))


def entered(est: StreamEstimator, state: State) -> Columns:
    """The encoder of a state."""
    encoder = _new_encoder(est)
    encoder.state_ = state
    return encoder


def name_columns(est: StreamEstimator) -> None:
    """Enter the columns of the rows as they come into a model with an encoder; its members see others."""
    encoder = est._encoder
    if encoder is None:
        return
    if est.__dict__.get("n_features_in_") != encoder.n_features_in_ or "feature_names_in_" not in est.__dict__:
        est.n_features_in_ = encoder.n_features_in_
        names = getattr(encoder, "feature_names_in_", None)
        if names is not None:
            est.feature_names_in_ = names


def _new_encoder(est: StreamEstimator) -> Columns:
    kinds = est.columns if isinstance(est.columns, dict) else None
    return Columns(kinds, engine=est.engine if est.engine in ("native", "python") else "auto")


def _filled(est: StreamEstimator, rows: np.ndarray) -> np.ndarray:
    missing = est._state["n_features"] - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else rows
