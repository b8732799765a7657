"""Mixed rows, with words, dates, gaps and new columns, for estimators that encode them themselves.

Arrays of numbers, with gaps or without, and data frames of numbers without gaps are learned without an encoder. A model
whose first rows are something else (a data frame with words or gaps, dictionaries) encodes all its rows with its own
:class:`~kernelstream.columns.Columns`. Estimators that do so have the parameter ``columns``; the encoder is their
``_encoder``, and its state is part of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...columns import Columns
from ...columns._counting import counting_numbers
from ...columns._journal import Journal
from ...columns._parse import alone
from ...rows import is_pandas, padded
from ...state.nested import State
from ...state.turns import in_turn
from ...state.undo import all_or_nothing


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
def columns(est: Any) -> Columns:
    """The encoder of the rows, fitted; only models of mixed rows have one."""
    if est._encoder is None:
        raise AttributeError(f"{type(est).__name__} has no columns_: its rows are numbers")
    return est._encoder


def check_columns(columns: Any) -> None:
    """ValueError for a parameter ``columns`` that is neither "auto" nor a dict."""
    if not (isinstance(columns, dict) or (isinstance(columns, str) and columns == "auto")):
        raise ValueError(f"columns must be 'auto' or a dict of name: kind, got {columns!r}")


def encoder_of(columns: Any, engine: Any) -> Columns:
    """An encoder that has seen nothing, by the parameters of an estimator."""
    own = engine if engine in ("native", "python") else "auto"
    return Columns(columns if isinstance(columns, dict) else None, engine=own)


def new_encoder(columns: Any, X: Any, engine: Any, whole: bool = False) -> Columns | None:
    """The encoder of a model that starts with rows X, which may be a ``whole`` table; None where it needs none."""
    needed = isinstance(columns, dict) or (columns and (is_mixed(X) or (whole and counts_rows(X))))
    return encoder_of(columns, engine) if needed else None


def counts_rows(X: Any) -> bool:
    """Whether a table of numbers with names has columns that number its rows, or are times, among others."""
    if not hasattr(X, "__array__") or not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return False
    values = np.asarray(X, np.float64)
    return values.shape[1] > 1 and any(counting_numbers(x) is not None for x in values.T)


def name_columns(est: Any, encoder: Columns | None) -> None:
    """Enter the columns of the rows as they come, where there is an encoder; the learner sees others."""
    if encoder is None or (hasattr(est, "feature_names_in_") and est.n_features_in_ == encoder.n_features_in_):
        return
    est.n_features_in_ = encoder.n_features_in_
    if hasattr(encoder, "feature_names_in_"):
        est.feature_names_in_ = encoder.feature_names_in_


def learn(encoder: Columns, X: Any, y: Any, sample_weight: Any, state: State | None, task: str, learn: Any) -> Any:
    """Encode rows and ``learn`` them; ``task`` is what y holds, "number" or "label"."""
    width, t = (0, -1) if state is None else (state["n_features"], state["t"])
    # an error may come after the last row was learned; a model that was new is dropped as a whole
    with all_or_nothing(encoder, complete=lambda: state is None or state["t"] > t):
        rows, wider = encoder._learn(X, y, sample_weight, task)
        if width and all(own <= width for _, own in wider):
            return learn(padded(rows, width), y)
        return learn(padded(rows, max(1, rows.shape[1])), y, encoded=Encoded(encoder, wider))


class Encoded(NamedTuple):
    """Rows in whose course columns appear: a layer around all others, which then take wider ones.

    They are learned as if the new columns had come in a call of their own.

    Parameters
    ----------
    encoder : Columns
        What made them.
    wider : list of pairs
        A row, and how many columns there are from it on.
    """

    encoder: Columns
    wider: list[tuple[int, int]]

    @property
    def first_width(self) -> int:
        """Columns of a model that starts with these rows; without any, one waits for those to come."""
        return max([1, *(width for row, width in self.wider if row == 0)])

    def learn(
        self, layers: Any, state: State, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, learn: Any
    ) -> np.ndarray:
        """Learn rows with the columns that there are at the end, by a function that learns those of one width."""
        scores, classes, start = [], [], 0
        for stop, width in [*self.wider, (len(X), 0)]:
            if stop > start and (width > state["n_features"] or stop == len(X)):
                run = slice(start, stop)
                rows = np.ascontiguousarray(padded(X[run, : state["n_features"]], state["n_features"]))
                scores.append(learn(rows, y[run], None if weight is None else weight[run]))
                classes.append(state.get("classes"))
                start = stop
            if width > state["n_features"]:
                layers.widen(state, width)
        return np.asarray(layers.targets.joined(state, scores, classes))


def learn_row(
    encoder: Any, X: Any, y: Any, state: State, columns: int, learn: Callable[[np.ndarray, Any], np.ndarray]
) -> np.ndarray | None:
    """Encode and ``learn`` a dictionary with nothing new or unusual in it; None for any other rows.

    The encoder goes back by a journal of its own, without a call that others could take part in.

    Parameters
    ----------
    state : dict
        Of the model, which knows so many ``columns``.
    """
    row = X if type(X) is dict else alone(X)
    if type(row) is not dict:
        return None
    with encoder._turns:
        own, width, t = vars(encoder), state["n_features"], state["t"]
        store = own.get("_store")
        if store is None or "_open" in own or len(store.layout) > width or len(store.came) != columns:
            return None
        journal = Journal(store)
        try:
            numbers = encoder._learn_quickly(store, row, y, journal)
            if numbers is None:
                return None
            return learn(padded(numbers, width) if numbers.shape[1] < width else numbers, y)
        except BaseException:
            if not state["t"] > t:  # or else an error came after the row had been learned
                journal.undo()
            raise
