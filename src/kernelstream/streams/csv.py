"""Delimited text: CSV, TSV and their relatives."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ._parsers import _NUMBER, _core
from ._table import FILLED, Raw, TextTable
from .base import BLOCK_ROWS, Block
from .bytes import decoded
from .cells import LARGEST_NUMBER, MISSING, NO_TARGET, Cells, is_missing
from .marks import ORDERS, DayAndMonth, NumberMarks, find_dates, find_marks

DELIMITERS = ",\t;|"
SAMPLE_BYTES = 1 << 16  # of a text, from which kinds of columns and marks in numbers are inferred
LONGEST_FIELD = 131_072  # characters; what Python's own reader takes by default, whatever its limit is in this process
TOO_LONG = f"a field has more than {LONGEST_FIELD:,} characters"
UNCLOSED = "a quote that opens here is not closed"
_SPACES = " \t\r\v\f"
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1f]")
_PLAIN = frozenset("0123456789+-.eE ")


class CSV(TextTable):
    """Rows of a delimited text: all numbers but the target, or with ``mixed`` cells as they are.

    Memory is bounded by the block; nothing is read twice.

    Parameters
    ----------
    source : path, "-" or binary file
        "-" is standard input. Content packed with gzip, bzip2, xz, zstd or zip is unpacked on the way.
    target : str, int or None
        Column of y, by name or number (-1 is the last one); None for rows without a target.
    block : int, default=1024
        Rows per block.
    mixed : bool, default=False
        Give words, dates and gaps as they are: blocks of :class:`Cells`, for :class:`kernelstream.columns.Columns`.
    header : bool, optional
        Whether the first line holds names. By default, if none of its fields is a number.
    delimiter : str, optional
        By default the most frequent of comma, tab, semicolon and bar in the first line.
    features, drop : list, optional
        Columns to use, or to leave out.
    ignore : list of str
        Columns to leave out if they exist.
    encoding : str, optional
        Of the text, such as "latin-1", "cp1252" or "utf-16"; UTF-8 by default, and a row that is not is an error.
    labels : bool, optional
        Whether targets are labels (strings) rather than numbers; by default, if the first one is not a number.
    missing : float, optional
        Number that replaces an empty field, NA, NaN, null or ?, except in the target; without it such a row is an
        error.
    marks : dict of column: ".", ",", "d/m" or "m/d", optional
        Decimal marks of columns of numbers like ``1,234.5`` or ``1.234,5``; for columns of dates like ``31/12/2024`` or
        ``12/31/2024``, whether the day or the month comes first. Mixed rows have them as Python writes them. See
        :meth:`look_for_marks`.
    thousands : str, optional
        The mark between thousands; it counts only between groups of three digits.
    dtype : float64 or float32
    on_error : {"raise", "skip", "log"}
        What to do with a row that cannot be read.

    Examples
    --------
    >>> import io
    >>> from kernelstream.streams import CSV
    >>> X, y = CSV(io.BytesIO(b"size,rooms,price\\n1,3,10\\n2,4,20.5\\n"), "price").read()
    >>> X.tolist(), y.tolist()
    ([[1.0, 3.0], [2.0, 4.0]], [10.0, 20.5])
    """

    def __init__(
        self,
        source: Any,
        target: str | int | None = None,
        block: int = BLOCK_ROWS,
        *,
        header: bool | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        marks: dict[str, str] | None = None,
        thousands: str | None = None,
        **options: Any,
    ):
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one ASCII character, got {delimiter!r}")
        super().__init__(source, block, target=target, encoding=encoding, **options)
        self._choose(self._names(header, delimiter))
        self.set_marks(marks or {}, thousands)
        self.quoted = _core is None  # the compiled parser leaves quotes to Python's

    def _names(self, header: bool | None, delimiter: str | None) -> list[str]:
        """Read the header, or make one from the first row."""
        if self.text.bytes.arff:
            header, delimiter = True, ","
        start = self.text.peek(3)
        if start.startswith(b"\xef\xbb\xbf"):  # byte order mark
            self.text.use(3, 0)
        begin = self.text.where()
        first = self.text.readline()
        while first and not first.strip():
            begin, first = self.text.where(), self.text.readline()
        binary = _NO_TEXT.search(first) is not None
        try:
            line = decoded(first).rstrip("\r\n")
        except ValueError as error:
            binary = binary or b"\0" in self.text.peek(4096)
            if not binary:
                raise ValueError(f"{self.name}, line {self.text.line}: {error}") from None
        if binary:
            raise ValueError(
                f"{self.name} is not a text in UTF-8: it has control characters. A table in UTF-16 is read with "
                f"encoding='utf-16' (--encoding utf-16 in the shell)"
            )
        if "\r" in line and '"' not in line:
            raise ValueError(
                f"{self.name} has lines that end with a carriage return alone: convert it by tr '\\r' '\\n'"
            )
        self.delimiter = delimiter or max(DELIMITERS, key=line.count)
        try:
            names = [name.strip(_SPACES) for name in next(csv.reader([_clean(line)], delimiter=self.delimiter), [])]
        except csv.Error as error:
            raise ValueError(f"{self.name} is not a table: {error}") from None
        if not names:
            raise ValueError(f"{self.name} is empty")
        self.header = not any(is_number(name) for name in names) if header is None else bool(header)
        if not self.header:
            self.text.seek(begin)
            names = [str(j) for j in range(len(names))]
        return names

    # ---------------------------------------------------------------- numbers as people write them
    def set_marks(self, marks: dict[str, str], thousands: str | None = None) -> None:
        """Set how the numbers and dates of some columns are written."""
        self.marks, self.thousands = marks, thousands
        made = {
            mark: DayAndMonth(mark) if mark in ORDERS else NumberMarks(mark, thousands) for mark in set(marks.values())
        }
        self._readers = {name: made[marks[name]] for name in self.columns.names if name in marks}

    def look_for_marks(self) -> dict[str, str]:
        """Detect the marks of the columns from the first rows; returns a cell of each that Python would misread.

        If there is none, the cells are left unchanged.
        """
        columns = self._by_name(self._first_rows())
        used = [*(self.feature_names or ()), *([] if self.target is None else [self.target])]
        marks, examples = find_marks({name: columns[name] for name in used}, self.delimiter)
        dates = find_dates({name: columns[name] for name in self.feature_names or ()})
        self.set_marks((marks if examples else {}) | dates)
        shown = {name: next(text for text in columns[name] if self.plain(name, text) != text) for name in dates}
        return examples | shown

    def plain(self, name: str, text: str) -> str:
        """A field of a column, numbers and dates as Python writes them."""
        return self._readers[name](text) if name in self._readers else text

    def sample(self) -> Cells:
        """The first rows, without consuming them: as many whole lines as fit in 64 kB."""
        return self._cells(list(self._first_rows())).without(self.target)

    def _first_rows(self, content: bytes | None = None) -> Iterator[list[str]]:
        """Rows of the whole lines of a text, by default of a sample, without consuming them."""
        content = self.text.peek_bytes(SAMPLE_BYTES) if content is None else content
        text = content[: content.rfind(b"\n") + 1] if b"\n" in content else content
        lines = text.decode("utf-8", "replace").replace("\r\n", "\n").splitlines(keepends=True)
        with contextlib.suppress(csv.Error):  # a text that is not a table gives errors later, line by line
            for fields in csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True):
                if len(fields) == len(self.columns.names):
                    yield fields

    def _by_name(self, rows: Iterable[list[str]]) -> dict[str, Any]:
        names = self.columns.names
        return dict(zip(names, list(zip(*rows, strict=True)) or [()] * len(names), strict=True))

    def _cells(self, rows: list[list[str]]) -> Cells:
        """The columns that are used, numbers as Python writes them."""
        columns, used = self._by_name(rows), {self.target, *(self.feature_names or ())}
        return Cells({name: list(map(self._readers[name], texts)) if name in self._readers else list(texts)
                      for name, texts in columns.items() if name in used}, len(rows))  # fmt: skip

    # ---------------------------------------------------------------- blocks
    def _part(self, n: int) -> Block | None:
        if self.labels is None and self.target is not None:
            self.labels = not self._first_target_is_number()
        if self.mixed or self.quoted:
            return super()._part(n)
        return self._fast(n) if self.text.fill() else None

    def _raw(self, n: int) -> Raw | None:
        if not self.text.fill():
            return None
        rows, wrong = [] if self.eager or not self.mixed else self._plain_rows(n), {}
        lines = list(range(self.text.line - len(rows) + 1, self.text.line + 1))
        for line, fields in self._lines() if not rows else ():
            if isinstance(fields, str):
                wrong[line] = fields
            elif len(fields) != len(self.columns.names):
                wrong[line] = self._reason(0, len(fields), [])
            else:
                rows.append(fields)
                lines.append(line)
            if len(rows) == n or (self.eager and not self.text.has_line):
                break
        return self._cells(rows), lines, wrong

    def _plain_rows(self, n: int) -> list[list[str]]:
        """Up to n rows of the buffer, if none of them needs special treatment; no rows otherwise.

        Quotes, carriage returns, long lines, rows of another length and what cannot be read are read line by line.
        """
        text = self.text
        *lines, _ = text.buffer[text.start : text.buffer.rfind(b"\n") + 1].split(b"\n", n)
        piece = b"\n".join(lines)
        if b'"' in piece or b"\r" in piece or max(map(len, lines), default=0) > LONGEST_FIELD:
            return []
        try:
            rows = list(csv.reader(piece.decode().split("\n"), delimiter=self.delimiter, skipinitialspace=True))
        except (UnicodeDecodeError, csv.Error):
            return []
        if set(map(len, rows)) != {len(self.columns.names)}:
            return []
        text.use(len(piece) + 1, len(lines))
        return rows

    def _number(self, value: str) -> float | None:
        text = value.strip(_SPACES)
        if is_number(text):
            x = float(text)
            return None if self.mixed and abs(x) > LARGEST_NUMBER else x
        return math.nan if text in MISSING or is_missing(text) else None

    def _numbers(self, values: Sequence[str]) -> Sequence[float | None]:
        if _PLAIN.issuperset("".join(values)):  # then what Python reads as a number is one
            with contextlib.suppress(ValueError):
                found = list(map(float, values))
                if not self.mixed or max(map(abs, found), default=0.0) <= LARGEST_NUMBER:
                    return found
        return super()._numbers(values)

    def _label(self, value: str) -> str:
        return value.strip()

    def _no_number(self, name: str, value: Any) -> str:
        if is_number(value.strip(_SPACES)):
            return f"{self._what(name)}: {value[:40]!r} is beyond {LARGEST_NUMBER:g}"
        return self._reason(2, self.columns.names.index(name), {self.columns.names.index(name): value})

    def _fast(self, wanted: int) -> Block:
        """Up to ``wanted`` rows of the buffer, by the compiled parser."""
        text, target = self.text, self.columns.target
        numeric = sorted({*(self.columns.features if self.labels else self.columns.used)})  # columns of numbers
        kinds = dict.fromkeys(range(len(self.columns.names)), "s") | dict.fromkeys(numeric, "n")
        if target is not None:
            kinds[target] = "t" if self.labels else "y"
        data, start = text.buffer, text.start
        rows, numbers, fields, lines, consumed, self.quoted, bad = _core.csv_parse(
            data,
            start,
            wanted,
            self.delimiter.encode(),
            "".join(kinds.values()).encode(),
            self.missing,
            float(np.finfo(self.dtype).max),
        )
        if self.on_error == "skip":
            self.skipped += len(bad)
            bad = []
        for line, offset, field, reason in bad:
            content = data[start + offset : data.index(b"\n", start + offset)].decode("utf-8", "replace")
            self._bad(text.line + line + 1, self._reason(reason, field, content.rstrip("\r").split(self.delimiter)))
        table = numbers.reshape(rows, len(numeric))
        places = (fields.reshape(-1, 2) + [start, 0]).tolist()
        texts, wrong = [], dict[int, str]()
        for row, (place, size) in enumerate(places):
            try:
                texts.append(_clean(decoded(data[place : place + size])))
            except ValueError as error:
                texts.append("")
                wrong[row] = f"{self._what(self.columns.names[target or 0])}: {error}"
            if texts[row] in NO_TARGET:
                wrong.setdefault(row, self._reason(4, target or 0, []))
        for row, reason in wrong.items():
            self._bad(text.line + data.count(b"\n", start, places[row][0]) + 1, reason)
        text.use(consumed, lines)
        if wrong:
            good = np.setdiff1d(np.arange(rows), list(wrong))
            table, texts = table[good], [texts[row] for row in good]
        place = {j: i for i, j in enumerate(numeric)}
        X = np.ascontiguousarray(table[:, [place[j] for j in self.columns.features]], self.dtype)
        if target is None:
            return X, None
        return X, np.array(texts, dtype=str) if self.labels else table[:, place[target]].copy()

    def _lines(self) -> Iterator[tuple[int, list[str] | str]]:
        """The number of each line, and its fields by Python's parser, or why it cannot be read."""
        record: list[str] = []  # its lines

        def lines() -> Iterator[str]:
            read = 0
            while content := self.text.readline():
                record.append(_clean(decoded(content)))
                read += len(content)
                if len(record) > 1 and read > 8 * LONGEST_FIELD:
                    raise csv.Error
                yield record[-1]

        while True:
            record.clear()
            line = self.text.line + 1
            try:
                fields = next(csv.reader(lines(), delimiter=self.delimiter, skipinitialspace=True))
            except StopIteration:
                return
            except csv.Error:
                yield line, UNCLOSED if len(record) > 1 else TOO_LONG
            except ValueError as error:
                yield self.text.line, str(error)
            else:
                open_quote = len(record) > 1 and "".join(record).count('"') % 2 and not self.text.fill()
                if max(map(len, fields), default=0) > LONGEST_FIELD:
                    yield line, UNCLOSED if len(record) > 1 else TOO_LONG
                elif open_quote or len(fields) > 1 or (fields and fields[0].strip(_SPACES)):
                    yield line, UNCLOSED if open_quote else fields

    def _reason(self, code: int, field: int, fields: Any) -> str:
        """A sentence about a bad row; the codes are those of csv.hpp."""
        if code < 2:
            return f"{field} fields, but there are {len(self.columns.names)} columns"
        what = self._what(self.columns.names[field])
        if code == 4:
            return f"{what} is missing{'' if field == self.columns.target else FILLED}"
        found = fields[field].strip(_SPACES)
        if code == 3:
            return f"{what}: {found[:40]!r} is not finite"
        hint = "" if field == self.columns.target else " (mixed=True, or --columns auto in the shell, reads words)"
        return f"{what}: {found[:40]!r} is not a number{hint}"

    def _first_target_is_number(self) -> bool:
        """Whether the target of the next row is a number; one that is missing counts as such."""
        rows = self._first_rows(self.text.peek() + b"\n")
        fields = [field for row in rows if (field := row[self.columns.target or 0].strip(_SPACES)) not in NO_TARGET]
        field = next((field for field in fields if field not in MISSING), fields[0] if fields else "0")
        return is_number(self.plain(self.target or "", field))


def _clean(text: str) -> str:
    """A stray carriage return is a blank: lines end with a newline."""
    if "\r" not in text:
        return text
    end = "\n" * text.endswith("\n")
    return text.rstrip("\r\n").replace("\r", " ") + end


def is_number(text: str) -> bool:
    """Whether a field is a number as the compiled parser understands it."""
    return text.isascii() and _NUMBER.match(text.encode()) is not None
