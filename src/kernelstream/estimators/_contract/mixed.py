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
from ...columns._growing import Widths
from ...columns._parse import alone
from ...columns._store import NEVER, Journal
from ...rows import is_pandas, padded
from ...state.nested import State, copied
from ...state.turns import in_turn
from ...state.undo import all_or_nothing

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
    est: StreamEstimator, X: Any, y: Any, sample_weight: Any, learn: Callable[[np.ndarray, slice], np.ndarray]
) -> np.ndarray:
    """Encode and ``learn`` rows of a stream; an error leaves the encoder and the model as they were.

    Where columns appear inside the call, it is learned in pieces, each with the columns that there are by then: as if
    every piece had come in a call of its own.

    Parameters
    ----------
    learn : callable
        Takes rows of numbers (n, width) and their places in the call, and returns their scores.
    """
    encoder = est._encoder or _new_encoder(est)
    width, t = (0, -1) if est._encoder is None else (est._state["n_features"], est._state["t"])

    def complete() -> bool:
        """Whether an error came after the last row had been learned; a model that was new is dropped as a whole."""
        return not width or est._state["t"] > t

    with all_or_nothing(encoder, complete=complete):
        rows, widths = encoder._learn(X, y, sample_weight, _task(est))
        if width and all(own <= width for _, own in widths):
            scores = learn(padded(rows, width), slice(0, len(rows)))
        else:
            est._sync()
            with est._kept(fresh=True):
                scores = _learn_in_pieces(est, encoder, rows, widths, learn)
    name_columns(est)
    return scores


def learn_row(est: StreamEstimator, X: Any, y: Any) -> np.ndarray | None:
    """What :func:`learn` does, for a dictionary with nothing new or unusual in it; None for any other rows.

    The encoder goes back by a journal of its own, without a call that others could take part in.
    """
    encoder: Any = est._encoder
    row = X if type(X) is dict else alone(X)
    if type(row) is not dict:
        return None
    with encoder._turns:
        own, width, t = vars(encoder), est._state["n_features"], est._state["t"]
        store = own.get("_store")
        if store is None or "_open" in own or len(store.layout) > width or len(store.came) != est.n_features_in_:
            return None
        journal = Journal(store)
        try:
            numbers = encoder._learn_quickly(store, row, y, journal)
            if numbers is None:
                return None
            if numbers.shape[1] < width:
                numbers = padded(numbers, width)
            return est._learn_any(numbers, y, None, None, encoded=True)
        except BaseException:
            if not est._state["t"] > t:  # or else an error came after the row had been learned
                journal.undo()
            raise


def _learn_in_pieces(
    est: StreamEstimator,
    encoder: Columns,
    rows: np.ndarray,
    widths: Widths,
    learn: Callable[[np.ndarray, slice], np.ndarray],
) -> np.ndarray:
    """Learn rows with a copy of the state, which is widened wherever there are more columns."""
    width = 1  # of a model without a column, which waits for one
    if est._encoder is not None:
        est._state, width = copied(est._state), est._state["n_features"]
        est._forget()
    est._encoder, start, scores, classes = encoder, 0, [], []
    for stop, wider in [*widths, (len(rows), NEVER)]:
        if wider <= width:
            continue
        if stop > start or not len(rows):
            piece = padded(rows[start:stop, :width], width)
            scores.append(learn(np.ascontiguousarray(piece), slice(start, stop)))
            classes.append(est.__dict__.get("_state", {}).get("classes"))
        if wider < NEVER and est.__dict__.get("_state") is not None:
            est._widened(wider)
        start, width = stop, wider
    return est._joined(scores, classes)


def fit(
    est: StreamEstimator, X: Any, y: Any, sample_weight: Any, shuffle: Any, fit: Callable[[np.ndarray], None]
) -> None:
    """``fit`` rows, encoded where they must be: all of them have the columns that there are at the end."""
    with est._kept(fresh=True):
        encoder = _new_encoder(est) if encodes(est, X, fresh=True) else None
        if encoder is not None and shuffle:
            X = encoder._fit(X, y, sample_weight, _task(est))
        elif encoder is not None:
            X, _ = encoder._learn(X, y, sample_weight, _task(est))
        est._encoder = encoder
        fit(X)
    name_columns(est)


def encoded(est: StreamEstimator, X: Any) -> Any:
    """Rows of a model as rows of numbers, each encoded as if it came next."""
    return X if est._encoder is None else padded(est._encoder._encode(X), est._state["n_features"])


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


def _task(est: StreamEstimator) -> str:
    return "label" if isinstance(est, ClassifierMixin) else "number"


def _new_encoder(est: StreamEstimator) -> Columns:
    kinds = est.columns if isinstance(est.columns, dict) else None
    return Columns(kinds, engine=est.engine if est.engine in ("native", "python") else "auto")
