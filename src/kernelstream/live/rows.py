"""Rows as they come over a wire, made into what a model takes; an error names the row and the column."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..columns.dates import seconds
from ..columns.kinds import is_missing, number
from ..estimators._contract.base import StreamEstimator
from ..estimators._contract.mixed import MixedRows

_PLAIN = (float, int, type(None))  # cells that are not words


class RowError(ValueError):
    """A row that the model cannot take.

    Attributes
    ----------
    row : int or None
        Its place among the rows of the call.
    column : str, int or None
        Name of the column that is wrong, or its place where columns have no names.
    """

    def __init__(self, message: str, row: int | None = None, column: str | int | None = None):
        super().__init__(message)
        self.row, self.column = row, column


def takes_dictionaries(model: Any) -> bool:
    """Whether a model takes rows with words and gaps by itself: one with an encoder of columns in it."""
    if not isinstance(model, StreamEstimator):
        return True
    if not isinstance(model, MixedRows):
        return False
    return model._encoder is not None or model.__dict__.get("_state") is None


def encoder_of(model: Any) -> Any:
    """The encoder of columns in a model, or None."""
    return getattr(model, "columns_", None) or getattr(model, "_encoder", None)


def wrong_cells(rows: Any, model: Any) -> list[tuple[int, str, Any]]:
    """Cells of dictionaries that do not fit their column's kind and are taken as missing: row, column, value."""
    encoder = encoder_of(model)
    if encoder is None or not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return []
    found = []
    for name, kind in encoder.kinds_.items():
        if kind in ("number", "integer", "date"):
            for i, row in enumerate(rows):
                value = row.get(name) if isinstance(row, dict) else None
                if value.__class__ not in _PLAIN and not is_missing(value):
                    wrong = math.isnan(seconds(value)) if kind == "date" else number(value) is None
                    found += [(i, name, value)] if wrong else []
    return sorted(found, key=lambda cell: cell[0])


def columns_of(model: Any) -> list[str] | None:
    """Names of the columns, where the model knows them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def as_rows(rows: Any, model: Any, columns: Sequence[str] | None) -> Any:
    """What ``model.learn`` and ``predict`` take.

    Parameters
    ----------
    rows : (n, d) array or CSR, or list of n lists of numbers or n dictionaries
    model : estimator
        It may not have learned anything yet.
    columns : sequence of str, optional
        Names of the model's columns, in order.

    Raises
    ------
    RowError
        It names the row and the column.
    """
    if sp.issparse(rows):
        return rows
    if takes_dictionaries(model):
        return _by_name(rows, model)
    width = getattr(model, "n_features_in_", None)
    if not isinstance(rows, np.ndarray):
        if not isinstance(rows, list):
            raise RowError("rows must be a list of rows")
        if not rows:
            return np.zeros((0, width or 1))
        if isinstance(rows[0], dict):
            rows = _from_dictionaries(rows, width, columns)
        else:
            rows = _from_lists(rows, width, columns)
    if rows.ndim != 2:
        raise RowError(f"rows must be a table, got an array with {rows.ndim} dimensions")
    if width is not None and len(rows) and rows.shape[1] != width:
        raise _wrong_width(0, rows.shape[1], width, columns)
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        row, at = map(int, np.argwhere(~np.isfinite(rows))[0])
        raise _bad_cell(rows[row, at], row, at, columns)
    return rows


def _by_name(rows: Any, model: Any) -> Any:
    """Rows for a model with an encoder: lists are taken as cells of its columns, in their order."""
    encoder = encoder_of(model)
    if not isinstance(rows, list) or encoder is None or not any(isinstance(row, (list, tuple)) for row in rows):
        return rows
    names = list(encoder.kinds_)
    found = []
    for i, row in enumerate(rows):
        if isinstance(row, (list, tuple)):
            if len(row) != len(names):
                raise _wrong_width(i, len(row), len(names), names)
            row = dict(zip(names, row, strict=True))
        found.append(row)
    return found


def _from_lists(rows: list[Any], width: int | None, columns: Sequence[str] | None) -> np.ndarray:
    try:
        table = np.array(rows)
    except (ValueError, OverflowError):
        table = None
    if table is None or table.dtype.kind not in "iuf" or table.ndim != 2:
        _find_fault(rows, width, columns)
        table = np.array(rows, dtype=float)  # whole numbers beyond 64 bits, or truth values
    return np.ascontiguousarray(table, dtype=np.float64)


def _from_dictionaries(rows: list[Any], width: int | None, columns: Sequence[str] | None) -> np.ndarray:
    if columns is None:
        if width is not None:
            raise RowError(f"this model knows its {width} columns by place only: send lists of {width} numbers")
        columns = list(rows[0])
    table = []
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RowError(f"row {i} is not an object, while others are", i)
        try:
            table.append([row[name] for name in columns])
        except KeyError as error:
            name = error.args[0]
            close = difflib.get_close_matches(name, [str(key) for key in row], n=1)
            hint = f" (there is {close[0]!r})" if close and close[0] not in columns else ""
            raise RowError(f"row {i} has no column {name!r}{hint}", i, name) from None
    return _from_lists(table, len(columns), columns)


def _find_fault(rows: list[Any], width: int | None, columns: Sequence[str] | None) -> None:
    """Raise the RowError of the first cell that is not a number, or the first row of another width."""
    for i, row in enumerate(rows):
        if not isinstance(row, (list, tuple)):
            raise RowError(f"row {i} must be a list of numbers or an object, got {_shown(row)}", i)
        width = len(row) if width is None else width
        if len(row) != width:
            raise _wrong_width(i, len(row), width, columns)
        for at, cell in enumerate(row):
            if not isinstance(cell, (int, float)) or not _finite(cell):
                raise _bad_cell(cell, i, at, columns)
    if not width:
        raise RowError("rows must have at least one column", 0)


def _finite(cell: float) -> bool:
    try:
        return math.isfinite(cell)
    except OverflowError:
        return False


def _bad_cell(cell: Any, row: int, at: int, columns: Sequence[str] | None) -> RowError:
    name: str | int = columns[at] if columns is not None and at < len(columns) else at
    what = "is missing" if cell is None else f"is {_shown(cell)}, which is not a finite number"
    return RowError(f"row {row}, column {name!r}: the value {what}", row, name)


def _wrong_width(row: int, found: int, width: int, columns: Sequence[str] | None) -> RowError:
    name: str | int = columns[found] if columns is not None and found < min(width, len(columns)) else min(found, width)
    known = f" ({', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''})" if columns is not None else ""
    return RowError(f"row {row} has {found} columns, the model has {width}{known}", row, name)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
