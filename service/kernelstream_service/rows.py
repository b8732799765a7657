"""Rows as they come over a wire, made into what a model takes; an error names the row and the column."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kernelstream.checks import few
from kernelstream.columns.stream import encoder_of
from kernelstream.develop import StreamEstimator
from kernelstream.registry.names import did_you_mean
from kernelstream.streams.cells import LARGEST_NUMBER, is_missing

from .answers import View


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

    def moved(self, rows: int) -> RowError:
        """The same error for a row that follows ``rows`` others."""
        if self.row is None or not rows:
            return self
        message = str(self).replace(f"row {self.row}", f"row {self.row + rows}", 1)
        return RowError(message, self.row + rows, self.column)


def takes_dictionaries(model: Any) -> bool:
    """Whether a model takes rows with words and gaps, because it has an encoder of columns."""
    if not isinstance(model, StreamEstimator):
        return True
    if model.columns is None:
        return False
    return encoder_of(model) is not None or not model.__sklearn_is_fitted__()


class Gap(NamedTuple):
    """A cell that the model cannot use: "missing", "wrong" (it does not fit its column) or of an "unknown" column."""

    row: int
    column: str
    why: str
    value: Any = None


def gaps_in(rows: Any, view: View, opened: bool = False) -> list[Gap]:
    """Gaps of rows; RowError where none of a row can be used, or, unless ``opened``, for a column that is not known."""
    unknown = _unknown(rows, view, opened)
    return unknown if encoder_of(view.model) is None else unknown + gaps_of(rows, view.model)


def _unknown(rows: Any, view: View, opened: bool) -> list[Gap]:
    """Keys of objects that the model does not know, which are an error unless ``opened`` and not too many."""
    encoder = encoder_of(view.model)
    names = view.columns if encoder is None else list(encoder.kinds_)
    if names is None or not isinstance(rows, list):  # the model has learned no row, or its columns have no names
        return []
    known, new, found = frozenset(names), dict[str, None](), list[Gap]()
    for i, row in enumerate(rows):
        if isinstance(row, dict) and not row.keys() <= known:
            unknown = [name for name in row if name not in known]
            if not opened:
                hint = did_you_mean(unknown[0], names)
                message = f"row {i}: the model has no column {_shown(unknown[0])}: {hint}"
                raise RowError(message.rstrip(": "), i, unknown[0])
            new |= dict.fromkeys(unknown)
            found += [Gap(i, name, "unknown") for name in unknown]
            if encoder is not None and len(known) + len(new) > encoder.max_columns:
                raise RowError(f"row {i} would give the model more than {encoder.max_columns:,} columns", i, unknown[0])
    return found


def gaps_of(rows: Any, model: Any) -> list[Gap]:
    """Cells that are missing, and those that do not fit their column's kind; RowError for a row without any other."""
    found, encoder = list[Gap](), encoder_of(model)
    if encoder is None or not isinstance(rows, list):
        return found
    kinds = [(name, kind) for name, kind in encoder.kinds_.items() if kind != "ignored"]
    for i, row in enumerate(_by_name(rows, model)):
        before = len(found)
        for name, kind in kinds:
            value = row.get(name)
            plain = value.__class__ is float or value.__class__ is int
            if plain and kind in ("number", "integer") and -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
                continue
            if is_missing(value):
                found.append(Gap(i, name, "missing"))
            elif kind not in ("category", "text") and not encoder.usable(name, value):
                found.append(Gap(i, name, "wrong", value))
        if kinds and len(found) - before == len(kinds):
            names = few((name for name, _ in kinds), 8)
            raise RowError(f"row {i} has no value in any column of the model ({names})", i)
    return found


def warnings(gaps: list[Gap]) -> list[str]:
    """What a client is told about gaps."""
    wrong = [gap for gap in gaps if gap.why == "wrong"]
    said = [f"row {gap.row}, column {gap.column!r}: {str(gap.value)[:40]!r} is taken as missing" for gap in wrong[:5]]
    if len(wrong) > 5:
        said.append(f"and {len(wrong) - 5} more cells")
    missing = [gap for gap in gaps if gap.why == "missing"]
    first = {gap.column: gap.row for gap in reversed(missing)}
    for name, n in Counter(gap.column for gap in missing).most_common(5):
        said.append(f"column {name!r} is missing in row {first[name]}" + (f" and {n - 1} more" if n > 1 else ""))
    if len(first) > 5:
        said.append(f"and {len(first) - 5} more columns have gaps")
    if unknown := dict.fromkeys(gap.column for gap in gaps if gap.why == "unknown"):
        said.append(f"columns that the model does not know are ignored: {few(map(repr, unknown))}")
    return said


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


def checked_ids(ids: Sequence[Any], n: int) -> list[Any]:
    """Names of ``n`` rows as a list; RowError for anything else."""
    ids = list(ids)
    if len(ids) != n:
        raise RowError(f"{n} rows, but {len(ids)} ids", None, "ids")
    for i, name in enumerate(ids):
        if isinstance(name, bool) or not isinstance(name, (str, int)) or len(str(name)) > 200:
            raise RowError(f"id {i} is {name!r:.60}: ids are integers or words of at most 200 characters", i, "ids")
    return ids


def checked_target(y: Any, n: int, task: str) -> np.ndarray | None:
    """Targets of ``n`` rows as an array, None for a detector of novelties; RowError names the target that is wrong."""
    if task == "novelty":
        return None
    if y is None:
        raise RowError("learn needs y, one target for each row")
    if not isinstance(y, np.ndarray):
        y = list(y)
        wrong = next((i for i, value in enumerate(y) if not isinstance(value, (str, int, float, np.generic))), None)
        if wrong is not None:
            raise RowError(f"target {wrong} is {y[wrong]!r}, which is neither a number nor a word", wrong, "y")
        if len({isinstance(value, str) for value in y}) > 1:
            raise RowError("y mixes words and numbers", None, "y")
        truth = next((i for i, value in enumerate(y) if isinstance(value, bool)), None)
        if truth is not None and task == "regression":
            raise RowError(f"target {truth} is {y[truth]!r}, but this model learns numbers", truth, "y")
        y = np.array(y)
    if len(y) != n:
        raise RowError(f"{n} rows, but {len(y)} targets", None, "y")
    if y.dtype.kind not in "biufUS":
        raise RowError("y must hold numbers of at most 64 bits, or words", None, "y")
    if task == "regression" and y.dtype.kind not in "iuf":
        raise RowError(f"target 0 is {y.tolist()[0]!r:.60}, but this model learns numbers", 0, "y")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        at = int(np.argmin(np.isfinite(y).reshape(n, -1).all(axis=1)))
        raise RowError(f"target {at} is {y[at]}, which is not a finite number", at, "y")
    return y


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
            raise RowError(f"this model has no names for its {width} columns: send lists of {width} numbers")
        columns = list(rows[0])
    table = []
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RowError(f"row {i} is not an object, but others are", i)
        try:
            table.append([row[name] for name in columns])
        except KeyError as error:
            name = error.args[0]
            hint = did_you_mean(name, [str(key) for key in row if key not in columns])
            raise RowError(f"row {i} has no column {name!r}: {hint}".rstrip(": "), i, name) from None
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
            if not isinstance(cell, (int, float)) or not abs(cell) <= sys.float_info.max:
                raise _bad_cell(cell, i, at, columns)
    if not width:
        raise RowError("rows must have at least one column", 0)


def _bad_cell(cell: Any, row: int, at: int, columns: Sequence[str] | None) -> RowError:
    name: str | int = columns[at] if columns is not None and at < len(columns) else at
    what = "is missing" if cell is None else f"is {_shown(cell)}, which is not a finite number"
    return RowError(f"row {row}, column {name!r}: the value {what}", row, name)


def _wrong_width(row: int, found: int, width: int, columns: Sequence[str] | None) -> RowError:
    name: str | int = columns[found] if columns is not None and found < min(width, len(columns)) else min(found, width)
    known = f" ({few(columns, 8)})" if columns is not None else ""
    return RowError(f"row {row} has {found} columns, the model has {width}{known}", row, name)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
