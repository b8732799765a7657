"""Delimited text: CSV, TSV and their relatives."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._base import BLOCK_ROWS, Block, check_dtype
from ._bytes import Text
from ._columns import MISSING, TableColumns
from ._parsers import _NUMBER, _core
from ._text import TextStream

DELIMITERS = ",\t;|"
_SPACES = " \t\r\v\f"


class CSV(TextStream):
    """Rows of a delimited text, all numbers but the target.

    Memory is bounded by the block; nothing is read twice. Words, dates and gaps are read by
    :class:`kernelstream.columns.CellsCSV`.

    Parameters
    ----------
    source : path, "-" or binary file
        "-" is standard input. Content packed with gzip, bzip2 or zstd is unpacked on the way.
    target : str, int or None
        Column of y, by name or number (-1 is the last one); None for rows without a target.
    block : int, default=1024
        Rows per block.
    header : bool, optional
        Whether the first line holds names. By default it does if none of its fields is a number.
    delimiter : str, optional
        By default the most frequent of comma, tab, semicolon and bar in the first line.
    features, drop : list, optional
        Columns to use, or to leave out.
    labels : bool, optional
        Whether targets are labels (strings) rather than numbers. By default they are if the first one is not a number.
    missing : float, optional
        Number that takes the place of an empty field, NA, NaN, null or ?; without it such a row is bad.
    dtype : float64 or float32
    on_error : {"raise", "skip", "log"}
        What to do about a row that cannot be read.

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
        features: Sequence[Any] | None = None,
        drop: Sequence[Any] = (),
        labels: bool | None = None,
        missing: float | None = None,
        dtype: Any = np.float64,
        on_error: str = "raise",
    ):
        self.dtype = check_dtype(dtype)
        if missing is not None and not np.isfinite(missing):
            raise ValueError(f"missing must be a finite number, got {missing!r}")
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one ASCII character, got {delimiter!r}")
        self.text = source if isinstance(source, Text) else Text(source)
        super().__init__(self.text.bytes.name, block, on_error)
        self.missing, self.largest = missing, float(np.finfo(self.dtype).max)
        self._open(target, header, delimiter, features, drop)
        self.labels = labels
        self.n_features, self.feature_names = len(self.columns.features), self.columns.feature_names
        self.quoted = _core is None  # the compiled parser leaves quotes to Python's

    def _open(self, target: Any, header: bool | None, delimiter: str | None, features: Any, drop: Any) -> None:
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
        line = first.decode("utf-8", "replace").rstrip("\r\n")
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
        self.columns = TableColumns(names, target, features, drop, self.name)

    # ---------------------------------------------------------------- blocks
    def _next(self, n: int) -> Block | None:
        if self.labels is None and self.columns.target is not None:
            self.labels = not self._first_target_is_number()
        parts, wanted = [], n
        while wanted and self.text.fill():
            table, texts = self._slow(wanted) if self.quoted else self._fast(wanted)
            if len(table):
                parts.append((table, texts))
                wanted -= len(table)
            if self.eager and parts and not self.text.has_line:
                break
        if not parts:
            return None
        table = np.concatenate([table for table, _ in parts])
        place = {j: i for i, j in enumerate(self._numeric())}
        X = np.ascontiguousarray(table[:, [place[j] for j in self.columns.features]], self.dtype)
        if self.columns.target is None:
            return X, None
        if self.labels:
            return X, np.array([text for _, texts in parts for text in texts], dtype=str)
        return X, table[:, place[self.columns.target]].copy()

    def _numeric(self) -> list[int]:
        """Columns of numbers that are used, from left to right."""
        return sorted({*self.columns.features, *([] if self.labels else self.columns.used)})

    def _fast(self, wanted: int) -> tuple[np.ndarray, list[str]]:
        """Numbers (m, columns) and labels of up to ``wanted`` rows of the buffer, by the compiled parser."""
        text, numeric, target = self.text, self._numeric(), self.columns.target
        kinds = dict.fromkeys(range(len(self.columns.names)), "s") | dict.fromkeys(numeric, "n")
        if self.labels and target is not None:
            kinds[target] = "t"
        data, start = text.buffer, text.start
        rows, numbers, fields, lines, consumed, self.quoted, bad = _core.csv_parse(
            data, start, wanted, self.delimiter.encode(), "".join(kinds.values()).encode(), self.missing, self.largest
        )
        if self.on_error == "skip":
            self.skipped += len(bad)
            bad = []
        for line, offset, field, reason in bad:
            content = data[start + offset : data.index(b"\n", start + offset)].decode("utf-8", "replace")
            self._bad(text.line + line + 1, self._reason(reason, field, content.rstrip("\r").split(self.delimiter)))
        table = numbers.reshape(rows, len(numeric))
        places = (fields.reshape(-1, 2) + [start, 0]).tolist()
        texts = [_clean(data[a : a + n].decode("utf-8", "replace")) for a, n in places]
        missing = [row for row, label in enumerate(texts) if label in MISSING]
        for row in missing:
            self._bad(text.line + data.count(b"\n", start, places[row][0]) + 1, self._reason(5, target or 0, []))
        text.use(consumed, lines)
        if missing:
            good = np.setdiff1d(np.arange(rows), missing)
            return table[good], [texts[row] for row in good]
        return table, texts

    def _slow(self, wanted: int) -> tuple[np.ndarray, list[str]]:
        """As :meth:`_fast`, by Python's parser, which knows about quotes."""
        numeric, target = self._numeric(), self.columns.target if self.labels else None
        numbers: list[list[float]] = []
        texts: list[str] = []
        for line, fields in self._lines():
            fields = [field.strip(_SPACES) for field in fields]
            row = self._row(fields, numeric)
            if isinstance(row, str):
                self._bad(line, row)
            elif target is not None and fields[target] in MISSING:
                self._bad(line, self._reason(5, target, []))
            else:
                numbers.append(row)
                texts += [] if target is None else [fields[target]]
                if len(numbers) == wanted or (self.eager and not self.text.has_line):
                    break
        return np.array(numbers, np.float64).reshape(len(numbers), len(numeric)), texts

    def _lines(self, **options: Any) -> Iterator[tuple[int, list[str]]]:
        """The fields of each line by Python's parser, and its number; lines that it cannot read are bad rows."""
        reader = csv.reader(iter(self._decoded_line, ""), delimiter=self.delimiter, **options)
        while True:
            line = self.text.line + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._bad(line, str(error))
                continue
            if len(fields) > 1 or (fields and fields[0].strip(_SPACES)):
                yield line, fields

    def _decoded_line(self) -> str:
        return _clean(self.text.readline().decode("utf-8", "replace"))

    def _row(self, fields: list[str], numeric: list[int]) -> list[float] | str:
        """The numbers of the used columns, or what is wrong with the row."""
        if len(fields) != len(self.columns.names):
            return self._reason(0, len(fields), fields)
        row = []
        for j in numeric:
            if is_number(fields[j]):
                row.append(float(fields[j]))
                if not abs(row[-1]) <= self.largest:
                    return self._reason(3, j, fields)
            elif fields[j] not in MISSING:
                return self._reason(2, j, fields)
            elif self.missing is None:
                return self._reason(4, j, fields)
            else:
                row.append(float(self.missing))
        return row

    def _reason(self, code: int, field: int, fields: list[str]) -> str:
        """A sentence about a bad row; the codes are those of csv.hpp."""
        if code < 2:
            return f"{field} fields, but there are {len(self.columns.names)} columns"
        what = f"column {self.columns.names[field]!r}" + (" (the target)" if field == self.columns.target else "")
        if code == 5:  # not of csv.hpp: a missing label
            return f"{what} is missing"
        if code == 4:
            return f"{what} is missing (the option missing fills such fields)"
        found = fields[field].strip(_SPACES)
        if code == 3:
            return f"{what}: {found[:40]!r} is not finite"
        hint = "" if field == self.columns.target else " (kernelstream.columns.CellsCSV reads words and dates)"
        return f"{what}: {found[:40]!r} is not a number{hint}"

    def _plain(self, j: int, text: str) -> str:
        """A field of column j, a number as Python writes it."""
        return text

    def _first_target_is_number(self) -> bool:
        """Whether the target of the next row is a number; one that is missing counts as such."""
        content = self.text.peek().decode("utf-8", "replace")
        reader = csv.reader(map(_clean, content.splitlines(keepends=True)), delimiter=self.delimiter)
        with contextlib.suppress(csv.Error):  # a text that is not a table gives errors later, line by line
            for fields in reader:
                if len(fields) == len(self.columns.names):
                    field = fields[self.columns.target or 0].strip(_SPACES)
                    if field not in MISSING:
                        return is_number(self._plain(self.columns.target or 0, field))
        return True


def _clean(text: str) -> str:
    """A stray carriage return is a blank: lines end with a newline."""
    if "\r" not in text:
        return text
    end = "\n" * text.endswith("\n")
    return text.rstrip("\r\n").replace("\r", " ") + end


def is_number(text: str) -> bool:
    """Whether a field is a number as the compiled parser understands it."""
    return text.isascii() and _NUMBER.match(text.encode()) is not None
