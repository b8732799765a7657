"""Rows of any kind as named columns: dictionaries, data frames, arrays of objects, arrays of numbers."""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..extras import needs
from ..rows import check_names, is_pandas, is_series, unmasked
from ._parsers import _core

Values = Any  # of a column: a list, or an array of numbers, truth values or dates

NO_TARGET = frozenset({"", "?", "NA", "nan", "NaN", "N/A", "null"})  # what stands for a missing target
MISSING = NO_TARGET | {
    "-",
    "--",
    ".",
    "None",
    "NULL",
    "n/a",
    "#N/A",
    "<NA>",
}  # for a cell: these may be labels; csv.hpp
LARGEST_NUMBER = 1e100  # larger numbers are not measurements, and their squares would overflow
NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal, fractions.Fraction)
SPANS = (datetime.timedelta, np.timedelta64)
NAMED = ("interval", "period")  # types of pandas whose values are known by their names: "(0, 1]", "2024-05"
_PLAIN = {float, int, bool, type(None)}


class Cells:
    """Rows by column; ``columns`` are names and the cells of each, all of the same length.

    Attributes
    ----------
    n : int
        Rows.
    hints : dict
        Kinds that follow from the type of a column.
    """

    def __init__(self, columns: Mapping[str, Values], n: int, hints: dict[str, str] | None = None):
        self.columns, self.n, self.hints = columns, n, hints or {}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as of an array."""
        return self.n, len(self.columns)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice) -> Cells:
        """Some of the rows, by a slice."""
        n = len(range(self.n)[rows])
        return Cells({name: values[rows] for name, values in self.columns.items()}, n, self.hints)

    def get(self, name: str) -> Values | None:
        """The cells of a column, or None if it does not exist."""
        return self.columns.get(name)

    def has(self, name: str) -> bool:
        """Whether a column exists."""
        return name in self.columns

    def first_names(self) -> list[str]:
        """Names of the columns of the first row."""
        return list(self.columns)

    def others(self, known: Mapping[str, Any]) -> Iterator[tuple[str, Values]]:
        """Columns with other names than the known ones."""
        return ((name, values) for name, values in self.columns.items() if name not in known)

    def part(self, rows: Any) -> Cells:
        """Some of the rows, by an array of their numbers."""
        return Cells({name: _taken(values, rows) for name, values in self.columns.items()}, len(rows), self.hints)

    def without(self, name: str | None) -> Cells:
        """The rows without a column."""
        return Cells({key: values for key, values in self.columns.items() if key != name}, self.n, self.hints)

    @staticmethod
    def join(parts: Sequence[Cells]) -> Cells:
        """The rows of several parts; a column that one of them lacks is missing there."""
        names = dict.fromkeys(name for cells in parts for name in cells.first_names())
        columns = {name: [cell for cells in parts for cell in listed(cells.get(name), cells.n)] for name in names}
        return Cells(columns, sum(cells.n for cells in parts), parts[0].hints)


def listed(values: Values | None, n: int = 0) -> Any:
    """The cells of a column as a list, or an array of dates; n gaps for a column that does not exist."""
    if values is None:
        return [None] * n
    return values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind != "M" else values


class Records(Cells):
    """Rows that are dictionaries."""

    def __init__(self, rows: Sequence[Mapping[Any, Any]]):
        super().__init__({}, len(rows))
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(f"row {i} is a {type(row).__name__}, where the others are dictionaries")
        self.rows: Any = rows
        if any(type(key) is not str for row in rows for key in row):
            self.rows = [{str(key): value for key, value in row.items()} for row in rows]

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, len({key for row in self.rows for key in row})

    def get(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    def has(self, name: str) -> bool:
        return any(name in row for row in self.rows)

    def first_names(self) -> list[str]:
        return list(self.rows[0]) if self.n else []

    def others(self, known: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
        names: dict[str, None] = {}
        for row in self.rows:
            if not row.keys() <= known.keys():
                names |= dict.fromkeys(key for key in row if key not in known)
        return ((name, self.get(name)) for name in names)

    def _like(self, rows: list[Any]) -> Records:
        """Other rows, which need no checks."""
        made = copy.copy(self)
        made.rows, made.n = rows, len(rows)
        return made

    def __getitem__(self, rows: slice) -> Records:
        return self._like(self.rows[rows])

    def part(self, rows: Any) -> Records:
        return self._like([self.rows[i] for i in rows])

    @staticmethod
    def join(parts: Sequence[Any]) -> Records:
        return parts[0]._like([row for part in parts for row in part.rows])

    def without(self, name: str | None) -> Records:
        return self._like([{key: row[key] for key in row if key != name} for row in self.rows])


def cells_of(rows: Any) -> Cells:
    """Rows of any kind by column; ValueError for anything else."""
    if isinstance(rows, Cells):
        return rows
    if isinstance(rows, Mapping):
        return Records([rows])
    if is_series(rows) and is_pandas(rows):  # a row, whose index names the columns
        return Records([{str(name): cell for name, cell in rows.to_dict().items()}])
    if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
        return Records(rows)
    if sp.issparse(rows):
        return _of_array(rows.toarray())
    if isinstance(rows, np.ndarray):
        rows = unmasked(rows)
        if rows.dtype.names:
            return Cells({name: _plain(rows[name]) for name in rows.dtype.names}, len(rows))
        return _of_array(rows)
    frame = hasattr(rows, "columns") or hasattr(rows, "__dataframe__") or hasattr(rows, "__arrow_c_stream__")
    if frame and type(rows).__name__ != "Series":
        return _of_frame(rows)
    if isinstance(rows, (list, tuple)):
        if not rows:
            return Cells({}, 0)
        if isinstance(rows[0], (list, tuple, np.ndarray)):
            if len({len(row) for row in rows}) > 1:
                raise ValueError("rows have different lengths: give dictionaries, whose keys name the columns")
            return Cells({f"x{j}": list(column) for j, column in enumerate(zip(*rows, strict=True))}, len(rows))
    raise ValueError(
        f"rows must be a data frame, a dictionary, a list of dictionaries or an array (n, d), got {type(rows).__name__}"
    )


def _of_array(rows: np.ndarray) -> Cells:
    if rows.ndim != 2:
        raise ValueError(f"rows must have two dimensions, got an array of {rows.ndim}: one row is array.reshape(1, -1)")
    return Cells({f"x{j}": _plain(rows[:, j]) for j in range(rows.shape[1])}, len(rows))


def _of_frame(frame: Any) -> Cells:
    if is_pandas(frame):
        return _of_pandas(frame)
    if type(frame).__name__ == "RecordBatch":
        import pyarrow

        frame = pyarrow.Table.from_batches([frame])
    with needs("frames"):
        import narwhals
    try:
        table = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(f"rows must be a data frame, dictionaries or an array, got {type(frame).__name__}") from None
    columns, hints = {}, {}
    for name in table.columns:
        series = table[name]
        if series.dtype in (narwhals.Categorical, narwhals.Enum):
            hints[str(name)] = "category"
        if series.dtype.is_integer() and series.is_null().any():
            series = series.cast(narwhals.Float64)
        plain = series.dtype.is_float() or (series.dtype.is_numeric() and not series.is_null().any())
        columns[str(name)] = _plain(series.to_numpy()) if plain else series.to_list()
    return Cells(columns, len(table), hints)


def _of_pandas(frame: Any) -> Cells:
    check_names(frame)
    columns, hints = {}, {}
    for j, label in enumerate(frame.columns):
        name, series = str(label), frame.iloc[:, j]
        if isinstance(series.dtype, np.dtype):
            columns[name] = _plain(series.to_numpy())
        elif series.dtype.name == "category":
            hints[name] = "category"
            columns[name] = _words(series) if series.cat.categories.dtype.name.startswith(NAMED) else series.tolist()
        elif series.dtype.name.startswith(NAMED):
            columns[name] = _words(series)
        elif getattr(series.dtype, "kind", "O") in "iuf":
            columns[name] = series.to_numpy(np.float64, na_value=np.nan)
        else:
            columns[name] = series.tolist()
    return Cells(columns, len(frame), hints)


def _words(series: Any) -> list[Any]:
    """The cells of a column by their names, None where one is missing."""
    return [None if gap else str(value) for value, gap in zip(series, series.isna(), strict=True)]


def _plain(column: np.ndarray) -> Values:
    """An array of numbers or dates unchanged, any other as a list."""
    return column if column.dtype.kind in "fiuM" else column.tolist()


def _taken(values: Values, rows: Any) -> Values:
    return values[rows] if isinstance(values, np.ndarray) else [values[i] for i in rows]


# -------------------------------------------------------------------- one cell
def is_missing(value: Any, words: frozenset[str] = MISSING) -> bool:
    """Whether a cell is missing: None, NaN, NaT, pandas' NA, an empty string or one of the words for it.

    >>> [is_missing(value) for value in (None, float("nan"), "", " ", "NA", "-", 0, "0", False)]
    [True, True, True, True, True, True, False, False, False]
    >>> is_missing("-", NO_TARGET)  # it may be a label
    False
    """
    if value is None:
        return True
    if isinstance(value, str):
        return value in words or value.strip() in words
    if type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except Exception:  # an array, or another object that cannot be compared with itself
        return False


def number(value: Any) -> float | None:
    """A cell as a number; None if it is not a number, or too large, and NaN if it is missing.

    >>> number("1e3"), number("abc"), number(None), number(10**400)
    (1000.0, None, nan, None)
    """
    if isinstance(value, SPANS):
        value = np.timedelta64(value) / np.timedelta64(1, "s")
    elif isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, (*NUMBERS, str, np.bool_)):
        return math.nan if is_missing(value) else None
    try:
        x = float(value)
    except (ValueError, OverflowError, ArithmeticError):
        return math.nan if is_missing(value) else None
    return x if -LARGEST_NUMBER <= x <= LARGEST_NUMBER or x != x else None


# -------------------------------------------------------------------- one column
def numbers(values: Any) -> tuple[np.ndarray, list[int]]:
    """Cells as float64 (n,), NaN where one is missing or wrong; and the rows of those that are wrong.

    >>> numbers([1, "2.5", None, "abc"])
    (array([1. , 2.5, nan, nan]), [3])
    """
    x = plain_numbers(values)
    if x is not None and not (np.abs(x) > LARGEST_NUMBER).any():
        return x, []
    x = np.empty(len(values))
    wrong = []
    for i, value in enumerate(values):
        found = number(value)
        if found is None:
            wrong.append(i)
        x[i] = np.nan if found is None else found
    return x, wrong


def plain_numbers(values: Any) -> np.ndarray | None:
    """Cells as numbers if all of them are plain; None if they must be read one by one."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64) if values.dtype.kind in "fiub" else None
    types = set(map(type, values))
    try:
        if types <= _PLAIN:
            return np.array(values, np.float64)
        if types == {str}:
            return _of_texts(values)
    except (ValueError, OverflowError):
        pass
    return None


def _of_texts(values: list[str]) -> np.ndarray:
    """Texts as numbers, gaps as NaN; ValueError if one is neither."""
    if _core is not None:
        x = np.empty(len(values))
        if _core.numbers_of_texts(values, x):
            return x
    try:
        return np.array(list(map(float, values)))
    except ValueError:
        return np.array([math.nan if text in MISSING else float(text) for text in values])
