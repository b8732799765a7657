"""Files of rows as they come: tables of text, JSON lines, Parquet and Arrow, as streams of cells and targets.

They read what the readers of :mod:`kernelstream.streams` read, but leave the cells as they are: words, gaps and all. A
row with too few or too many fields is bad, and so is one without a target.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..streams._base import BLOCK_ROWS, Block, Stream
from ..streams._bytes import Text, name_of
from ..streams._open import format_by_content, format_by_name
from ..streams._text import TextStream
from ..streams.csv import CSV, is_number
from ..streams.tables import Arrow
from .kinds import is_missing, number
from .marks import Marks, find_marks
from .sources import Cells, Records, cells_of, joined

SAMPLE_BYTES = 1 << 16  # of a text, from which kinds of columns and marks in numbers are inferred


class CellsCSV(CSV):
    """Rows of a delimited text, as they are.

    Parameters
    ----------
    source : path, "-" or binary file
    target : str, int or None
        Column of y; None for rows without a target.
    block : int, default=1024
    ignore : list of str
        Columns to leave out where they are there.
    eager : bool
        Give the rows that are there instead of waiting for a whole block, for pipes.
    marks : dict of column: "." or ",", optional
        Columns of numbers that are written as people do, ``1,234.5`` or ``1.234,5``, and their decimal marks; they are
        given as Python writes them. See :meth:`look_for_marks`.
    thousands : str, optional
        The mark between thousands; only one that parts digits into groups of three counts.
    **options
        ``header``, ``delimiter``, ``features``, ``drop``, ``labels``, ``on_error`` as for
        :class:`kernelstream.streams.CSV`.

    Attributes
    ----------
    lines : list of int
        Line of each row of the last block.
    """

    mixed = True  # it gives cells, not numbers

    def __init__(
        self,
        source: Any,
        target: Any = None,
        block: int = BLOCK_ROWS,
        *,
        ignore: Sequence[str] = (),
        eager: bool = False,
        marks: dict[str, str] | None = None,
        thousands: str | None = None,
        **options: Any,
    ):
        super().__init__(source, target, block, **options)
        self.used = [j for j in self.columns.features if self.columns.names[j] not in ignore]
        self.feature_names = [self.columns.names[j] for j in self.used]
        self.n_features = len(self.used)
        self.eager = eager
        self.lines: list[int] = []
        self._set_marks(marks or {}, thousands)

    def _set_marks(self, marks: dict[str, str], thousands: str | None = None) -> None:
        self.marks, self.thousands = marks, thousands
        made = {decimal: Marks(decimal, thousands) for decimal in set(marks.values())}
        self._readers = {j: made[marks[name]] for j, name in enumerate(self.columns.names) if name in marks}

    def look_for_marks(self) -> dict[str, str]:
        """Find the marks of the columns by the first rows; returns a number of each that Python would not read so.

        Where there is none, the cells stay as they are.
        """
        names, rows = self.columns.names, self._first_rows()
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        used = [*self.used, *([] if self.columns.target is None else [self.columns.target])]
        marks, examples = find_marks({names[j]: columns[j] for j in used}, self.delimiter)
        self._set_marks(marks if examples else {})
        return examples

    def _plain(self, j: int, text: str) -> str:
        return self._readers[j](text) if j in self._readers else text

    def number(self, name: str, text: str) -> str:
        """A cell of a column as it is given."""
        return self._plain(self.columns.names.index(name), text)

    def _cells(self, columns: Sequence[Sequence[str]], n: int) -> Cells:
        """The columns that are used, numbers as Python writes them."""
        found = {}
        for j in self.used:
            read = self._readers.get(j)
            found[self.columns.names[j]] = list(columns[j]) if read is None else list(map(read, columns[j]))
        return Cells(found, n)

    def _next(self, n: int) -> Block | None:
        target, width = self.columns.target, len(self.columns.names)
        if self.labels is None and target is not None:
            self.labels = not self._first_target_is_number()
        rows: list[list[str]] = []
        self.lines = []
        while not self.eager and len(rows) < n and (plain := self._plain_rows(n - len(rows))):
            self.lines += range(self.text.line - len(plain) + 1, self.text.line + 1)
            rows += plain
        if len(rows) < n:
            for line, fields in self._lines(skipinitialspace=True):
                if len(fields) != width:
                    self._bad(line, self._reason(0, len(fields), fields))
                elif target is None or self._has_target(fields[target], line):
                    rows.append(fields)
                    self.lines.append(line)
                    if len(rows) == n or (self.eager and not self.text.has_line):
                        break
        if not rows:
            return None
        columns = list(zip(*rows, strict=True))
        cells = self._cells(columns, len(rows))
        if target is None:
            return cells, None
        texts = [self._plain(target, text).strip() for text in columns[target]]
        return cells, np.array(texts, dtype=str) if self.labels else np.array(list(map(float, texts)))

    def _plain_rows(self, n: int) -> list[list[str]]:
        """Up to n rows of the buffer, if none of them needs special treatment; no rows otherwise.

        Quotes, carriage returns, rows of another length and unusable targets are left to the loop over lines.
        """
        text, target = self.text, self.columns.target
        if not text.fill():
            return []
        *lines, _ = text.buffer[text.start : text.buffer.rfind(b"\n") + 1].split(b"\n", n)
        piece = b"\n".join(lines)
        if b'"' in piece or b"\r" in piece:
            return []
        rows = list(
            csv.reader(piece.decode("utf-8", "replace").split("\n"), delimiter=self.delimiter, skipinitialspace=True)
        )
        if set(map(len, rows)) != {len(self.columns.names)}:
            return []
        if target is not None:
            fields = {self._plain(target, row[target]) for row in rows}
            if self.labels and any(map(is_missing, fields)):
                return []
            if not self.labels and not all(is_number(f.strip()) and number(f) is not None for f in fields):
                return []
        text.use(len(piece) + 1, len(lines))
        return rows

    def _has_target(self, field: str, line: int) -> bool:
        """Whether a row has a target that can be used; it is a bad row otherwise."""
        target = self.columns.target or 0
        plain = self._plain(target, field)
        if is_missing(field):
            self._bad(line, self._reason(5, target, []))
        elif not self.labels and not (is_number(plain.strip()) and number(plain) is not None):
            self._bad(line, f"column {self.columns.names[target]!r} (the target): {field[:40]!r} is not a number")
        else:
            return True
        return False

    def sample(self) -> Cells:
        """The first rows, which stay unread: as many whole lines as fit in 64 kB."""
        rows = self._first_rows()
        return self._cells(list(zip(*rows, strict=True)) or [()] * len(self.columns.names), len(rows))

    def _first_rows(self) -> list[list[str]]:
        content = self.text.peek_bytes(SAMPLE_BYTES)
        text = content[: content.rfind(b"\n") + 1] if b"\n" in content else content
        width, rows = len(self.columns.names), []
        lines = text.decode("utf-8", "replace").replace("\r\n", "\n").splitlines(keepends=True)
        try:
            for fields in csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True):
                if len(fields) == width:
                    rows.append(fields)
        except csv.Error:
            pass
        return rows


class JSONLines(TextStream):
    """Rows of a text with one JSON object on each line.

    Parameters
    ----------
    source : path, "-" or binary file
    target : str or None
        Key of y; None for rows without a target.
    block : int, default=1024
    features, drop, ignore : list of str, optional
        Keys to use, or to leave out.
    labels : bool, optional
        Whether targets are labels; by default they are if the first one is not a number.
    eager : bool
        Give the rows that are there instead of waiting for a whole block, for pipes.
    on_error : {"raise", "skip", "log"}
        What to do about a line that is not a JSON object, or has no target.
    """

    mixed = True  # it gives cells, not numbers

    def __init__(
        self,
        source: Any,
        target: str | None = None,
        block: int = BLOCK_ROWS,
        *,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        ignore: Sequence[str] = (),
        labels: bool | None = None,
        on_error: str = "raise",
        eager: bool = False,
    ):
        self.text = source if isinstance(source, Text) else Text(source)
        super().__init__(self.text.bytes.name, block, on_error)
        self.target, self.labels, self.eager = target, labels, eager
        self.features = None if features is None else set(features)
        self.left_out = {*drop, *ignore, *([] if target is None else [target])}
        self.lines: list[int] = []
        self.columns = None  # not known beforehand

    def _next(self, n: int) -> Block | None:
        rows: list[dict[str, Any]] = []
        y: list[Any] = []
        self.lines = []
        while len(rows) < n and not (self.eager and rows and not self.text.has_line):
            line = self.text.line + 1
            content = self.text.readline()
            if not content:
                break
            if not content.strip():
                continue
            row = self._object(content, line)
            if row is None:
                continue
            if self.target is not None:
                goal = row.get(self.target)
                if not self._has_target(goal, line):
                    continue
                y.append(str(goal) if self.labels else float(goal))  # type: ignore[arg-type]
            rows.append(self._kept(row))
            self.lines.append(line)
        if not rows:
            return None
        return Records(rows), None if self.target is None else np.array(y)

    def _object(self, content: bytes, line: int) -> dict[str, Any] | None:
        try:
            row = json.loads(content)
        except (ValueError, RecursionError) as error:
            self._bad(line, f"this is not JSON ({error})")
            return None
        if not isinstance(row, dict):
            self._bad(line, f"a JSON object is expected, this is {content[:40].decode('utf-8', 'replace')!r}")
            return None
        return row

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
        names = row.keys() - self.left_out if self.features is None else row.keys() & self.features - self.left_out
        return {name: value for name, value in row.items() if name in names}

    def _has_target(self, goal: Any, line: int) -> bool:
        if is_missing(goal) or isinstance(goal, (dict, list)):
            self._bad(line, f"{self.target!r} (the target) is missing")
            return False
        plain = not isinstance(goal, (bool, str)) and number(goal) is not None
        if self.labels is None:
            self.labels = not plain
        if not self.labels and not plain:
            self._bad(line, f"{self.target!r} (the target): {str(goal)[:40]!r} is not a number")
            return False
        return True

    def sample(self) -> Records:
        """The first rows, without reading them."""
        content = self.text.peek_bytes(SAMPLE_BYTES)
        rows = []
        for line in content[: content.rfind(b"\n") + 1].splitlines() or [content]:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                rows.append(self._kept(row))
        return Records(rows)


class CellsArrow(Arrow):
    """Rows of a Parquet, Feather or Arrow file, as they are; see :class:`kernelstream.streams.Arrow`."""

    mixed = True  # it gives cells, not numbers

    def __init__(
        self,
        source: Any,
        target: Any = None,
        block: int = BLOCK_ROWS,
        *,
        ignore: Sequence[str] = (),
        eager: bool = False,
        **options: Any,
    ):
        super().__init__(source, target, block, **options)
        self.used = [self.columns.names[j] for j in self.columns.features if self.columns.names[j] not in ignore]
        self.feature_names, self.n_features = self.used, len(self.used)
        self.lines: list[int] = []

    def _next(self, n: int) -> Block | None:
        self.lines = []
        return super()._next(n)

    def _good(self, taken: Any, size: int) -> tuple[Any, int]:
        cells, y, target = cells_of(taken), None, self.columns.target
        cells = Cells({name: cells.get(name) for name in self.used}, size, cells.hints)
        lines = np.arange(self.at + 1, self.at + size + 1)
        if target is not None:
            y = self._column(taken, target)
            missing = np.isnan(y) if y.dtype.kind == "f" else np.array([text is None for text in y])
            for line in lines[missing].tolist():
                self._bad(line, f"column {self.columns.names[target]!r} (the target) is missing")
            y = y[~missing] if y.dtype.kind == "f" else np.array(y[~missing].tolist(), dtype=str)
            cells, lines = cells.part(np.flatnonzero(~missing)), lines[~missing]
        self.lines += lines.tolist()
        return (cells, y), cells.n

    def _joined(self, parts: list[Any]) -> Block:
        y = None if self.columns.target is None else np.concatenate([y for _, y in parts])
        return joined([cells for cells, _ in parts]), y

    def sample(self) -> Cells:
        """The first rows, without reading them."""
        first = next(self._pieces(0), None)
        if first is None:
            return Cells({}, 0)
        cells = cells_of(first.slice(0, 1000))
        return Cells({name: cells.get(name) for name in self.used}, cells.n, cells.hints)


FORMATS: dict[str, Any] = {"csv": CellsCSV, "jsonl": JSONLines, "arrow": CellsArrow}


def format_of(name: str, first: bytes) -> str | None:
    """The format of a file of rows, by its name or its first bytes; None for one that holds numbers only."""
    found = format_by_name(name) or format_by_content(first, name)
    return found if found in FORMATS else None


def open_rows(source: Any, target: Any = None, format: str | None = None, **options: Any) -> Stream:
    """Open a file or a pipe of rows as they come: a stream of blocks (cells, y) for :class:`StreamPipeline`.

    Parameters
    ----------
    source : path, "-" or binary file
    target : str, int or None
        Column of y.
    format : {"csv", "jsonl", "arrow"}, optional
        By default it is inferred from the name, then from the first bytes.
    **options
        Of the reader: see :class:`CellsCSV`, :class:`JSONLines`, :class:`CellsArrow`.

    Examples
    --------
    >>> import io
    >>> from kernelstream.columns import open_rows
    >>> cells, y = open_rows(io.BytesIO(b'{"a": 1, "b": "x", "y": 2.5}\\n'), "y").read()
    >>> cells.get("b"), y.tolist()
    (['x'], [2.5])
    """
    if format is None:
        format = format_by_name(name_of(source))
    if format is None:
        source = source if isinstance(source, Text) else Text(source)
        format = format_of(name_of(source), source.peek())
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    return FORMATS[format](source, target, **options)
