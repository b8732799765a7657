"""Tables: named columns, which of them are features, which is the target, and their cells as rows of a block."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..checks import few
from ..registry.names import did_you_mean
from .base import BLOCK_ROWS, Block, Position, Stream, check_dtype, joined
from .bytes import LineBuffer, name_of
from .cells import NO_TARGET, Cells, is_missing, listed

FILLED = " (missing=, or --missing in the shell, fills such fields)"
Raw = tuple[Cells, list[int], dict[int, str]]  # cells, the line of each row, and what is wrong with other lines


class Table(Stream):
    """Rows of a table: numbers, or with ``mixed`` the cells as they are; one of the columns may be the target.

    A reader implements ``_raw(n)``, the next cells, and how a cell is read: ``_number`` and ``_label``. Errors in a row
    (a missing target, a word among numbers) are found here. The options are
    described with :class:`CSV`.

    Attributes
    ----------
    target : str or None
        Name of the column of y.
    columns : TableColumns or None
        None where they are not known in advance.
    labels : bool or None
        Whether targets are labels; None until the first one decides it.
    lines : list of int
        Line of each row of the last block.
    """

    target: str | None = None
    columns: Any = None  # TableColumns, where they are known in advance
    lines: list[int]

    def __init__(
        self,
        name: str,
        block: int = BLOCK_ROWS,
        *,
        target: Any = None,
        mixed: bool = False,
        features: Sequence[Any] | None = None,
        drop: Sequence[Any] = (),
        ignore: Sequence[str] = (),
        labels: bool | None = None,
        missing: float | None = None,
        dtype: Any = np.float64,
        on_error: str = "raise",
    ):
        if missing is not None and not np.isfinite(missing):
            raise ValueError(f"missing must be a finite number, got {missing!r}")
        super().__init__(name, block, on_error)
        self.mixed, self.labels, self.missing, self.dtype = mixed, labels, missing, check_dtype(dtype)
        self._wanted = target, features, drop, ignore

    def _choose(self, names: Sequence[str]) -> None:
        """Choose the columns that are used; those to ignore need not exist."""
        target, features, drop, ignore = self._wanted
        self.columns = TableColumns(names, target, features, [*drop, *(set(ignore) & set(names))], self.name)
        self.target = None if self.columns.target is None else self.columns.names[self.columns.target]
        self.n_features, self.feature_names = len(self.columns.features), self.columns.feature_names

    # ---------------------------------------------------------------- for readers
    def _raw(self, n: int) -> Raw | None:
        """At most n of the next rows; None at the end."""
        raise NotImplementedError

    def _waits(self) -> bool:
        """Whether the next row may take long to come."""
        return False

    def _number(self, value: Any) -> float | None:
        """A cell as a number: NaN where it is missing, None for anything else."""
        raise NotImplementedError

    def _numbers(self, values: Sequence[Any]) -> Sequence[float | None]:
        return list(map(self._number, values))

    def _label(self, value: Any) -> str:
        return str(value)

    def _no_number(self, name: str, value: Any) -> str:
        """What is wrong with a cell that is not a number."""
        return f"{self._what(name)}: {str(value)[:40]!r} is not a number"

    def _what(self, name: str) -> str:
        return f"column {name!r}" + (" (the target)" if name == self.target else "")

    # ---------------------------------------------------------------- blocks
    def _next(self, n: int) -> Block | None:
        parts: list[Block] = []
        self.lines = []
        while n and (part := self._part(n)) is not None:
            if part[0].shape[0]:
                parts.append(part)
                n -= part[0].shape[0]
            if parts and self.eager and self._waits():
                break
        return joined(parts)

    def _part(self, n: int) -> Block | None:
        """At most n rows, perhaps none, since bad ones are left out; None at the end."""
        raw = self._raw(n)
        if raw is None:
            return None
        cells, lines, wrong = raw
        found: dict[str, np.ndarray] = {}
        chosen = {*([] if self.mixed else self.feature_names or ()), *([] if self.target is None else [self.target])}
        for name in [name for name in cells.first_names() if name in chosen] if len(chosen) > 1 else chosen:
            found[name], odd = self._column(name, cells.get(name), cells.n)
            for row, reason in odd.items():
                wrong.setdefault(lines[row], reason)
        for line in sorted(wrong):
            self._bad(line, wrong[line])
        good = np.array([i for i, line in enumerate(lines) if line not in wrong], np.intp) if wrong else slice(None)
        y = None if self.target is None else found[self.target][good]
        if y is not None and y.dtype == object:
            y = np.array(y.tolist(), dtype=str)
        if not self.mixed:
            columns = [found[name][good] for name in self.feature_names or ()]
            return np.ascontiguousarray(np.column_stack(columns), self.dtype), y
        self.lines += [line for line in lines if line not in wrong]
        return cells.without(self.target).part(good) if wrong else cells.without(self.target), y

    def _column(self, name: str, values: Any, n: int) -> tuple[np.ndarray, dict[int, str]]:
        """A column as numbers, or labels, and what is wrong with some of its cells, by row."""
        is_target = name == self.target
        if is_target and self.labels is None:
            there = [value for value in listed(values, n) if not is_missing(value, NO_TARGET)]
            known = [value for value in there if not is_missing(value)]
            self.labels = self._number(known[0]) is None if known else True if there else None
        if is_target and self.labels:
            texts = [None if is_missing(value, NO_TARGET) else self._label(value) for value in listed(values, n)]
            gaps = [i for i, text in enumerate(texts) if text is None]
            return np.array(texts, object), dict.fromkeys(gaps, f"{self._what(name)} is missing")
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            x, wrong = values.astype(np.float64), {}
        else:
            values = listed(values, n)
            read = self._numbers(values)
            wrong = {i: self._no_number(name, values[i]) for i, value in enumerate(read) if value is None}
            x = np.array(read, np.float64)  # None is NaN
        if self.missing is not None and not is_target:
            x = np.where(np.isnan(x), self.missing, x)
        for i in np.flatnonzero(~(np.abs(x) <= float(np.finfo(self.dtype).max))).tolist():
            gap = f" is missing{'' if is_target else FILLED}"
            reason = gap if np.isnan(x[i]) else f": {str(values[i])[:40]!r} is not finite"
            wrong.setdefault(i, self._what(name) + reason)
        return x, wrong


class TextStream(Stream):
    """Rows of a text."""

    def __init__(self, source: Any, block: int, encoding: str | None = None, **options: Any):
        super().__init__(name_of(source), block, **options)
        self.text = source if isinstance(source, LineBuffer) else LineBuffer(source, encoding=encoding)

    def _where(self) -> Position:
        return self.text.where()

    def _seek(self, position: Position) -> None:
        self.text.seek(position)

    def verify(self, position: Position) -> None:
        self.text.verify(position)

    @property
    def fraction(self) -> float | None:
        return self.text.bytes.fraction

    def close(self) -> None:
        self.text.bytes.close()


class TextTable(TextStream, Table):
    """A table in a text, whose targets may be labels or numbers."""

    def _waits(self) -> bool:
        return not self.text.has_line

    def _where(self) -> Position:
        return {**self.text.where(), "labels": self.labels}

    def _seek(self, position: Position) -> None:
        self.text.seek(position)
        self.labels = position["labels"]


class TableColumns:
    """Which columns of a table become the columns of X.

    Parameters
    ----------
    names : list of str
        Columns of the table; the second of one name is renamed, see :func:`different`.
    target : str, int or None
        Column of y, by name or number; None for rows without a target.
    features : list, optional
        Columns to use, in this order; all but the target by default.
    drop : list
        Columns to leave out.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | int | None = None,
        features: Sequence[Any] | None = None,
        drop: Iterable[Any] = (),
        where: str = "the table",
    ):
        self.names, self.where = different(names), where
        self._numbers = {name: j for j, name in enumerate(self.names)}
        renamed = [f"{old!r} is {new!r}" for old, new in zip(names, self.names, strict=True) if old != new]
        if renamed:
            warnings.warn(f"{where} has columns of the same name: the second {few(renamed)}", UserWarning, stacklevel=3)
        self.target = None if target is None else self._find(target)
        dropped = {self._find(column) for column in drop}
        if features is None:
            chosen = [j for j in range(len(self.names)) if j != self.target and j not in dropped]
        else:
            if features and not any(column in self._numbers or _is_place(column) for column in features):
                raise ValueError(f"{where} has none of the columns {few(features, 20)}: it has {few(self.names, 20)}")
            chosen = [self._find(column) for column in features]
            if self.target in chosen:
                raise ValueError(f"{self.names[self.target or 0]!r} cannot be both a feature and the target")
        if not chosen:
            raise ValueError(f"{where} has no column left to learn from")
        self.features = chosen

    def _find(self, column: Any) -> int:
        """Number of a column given by name or number."""
        if isinstance(column, str):
            if column in self._numbers:
                return self._numbers[column]
            if not _is_place(column):
                hint = did_you_mean(column, self.names)
                raise ValueError(f"{self.where} has no column {column!r}: {hint}it has {few(self.names, 20)}")
            column = int(column)
        if isinstance(column, bool) or not -len(self.names) <= column < len(self.names):
            raise ValueError(f"{self.where} has no column {column!r}: it has {len(self.names)}")
        return int(column) % len(self.names)

    @property
    def feature_names(self) -> list[str]:
        """A name for every column of X."""
        return [self.names[j] for j in self.features]

    @property
    def used(self) -> list[int]:
        """The features and the target."""
        return [*self.features, *([] if self.target is None else [self.target])]


def _is_place(column: Any) -> bool:
    """Whether a column is given by its number rather than its name."""
    return not isinstance(column, str) or column.lstrip("-").isdigit()


def different(names: Sequence[str]) -> list[str]:
    """Names of columns, of which the second ``x`` is ``x.1`` and the third ``x.2``, as in pandas.

    >>> different(["x", "y", "x", "x"])
    ['x', 'y', 'x.1', 'x.2']
    """
    given, found = set(names), dict[str, None]()
    again: dict[str, int] = {}
    for name in names:
        new = name
        while new in found or (new != name and new in given):
            again[name] = again.get(name, 0) + 1
            new = f"{name}.{again[name]}"
        found[new] = None
    return list(found)
