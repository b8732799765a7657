"""Delimited text: CSV, TSV and their relatives."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._base import BLOCK, Block, check_dtype
from ._bytes import Text
from ._columns import MISSING, Columns, as_target
from ._parsers import _NUMBER, _core
from ._text import TextStream

DELIMITERS = ",\t;|"
_SPACES = " \t\r\v\f"


class CSV(TextStream):
    """Rows of a delimited text; one column may be the target, and columns of categories are declared.

    Every other column must hold numbers. Memory is bounded by the block; nothing is read twice.

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
    hashed : list, or dict of column: buckets
        Columns of categories, each value of which goes to one of ``buckets`` columns (1024) by a hash; X becomes CSR.
    one_hot : dict of column: values
        Columns of categories with a column of X for each declared value.
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
    >>> text = b"size,colour,price\\n1,red,10\\n2,blue,20.5\\n"
    >>> X, y = CSV(io.BytesIO(text), "price", one_hot={"colour": ["red", "blue"]}).read()
    >>> X.tolist(), y.tolist()
    ([[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]], [10.0, 20.5])
    """

    def __init__(
        self,
        source: Any,
        target: str | int | None = None,
        block: int = BLOCK,
        *,
        header: bool | None = None,
        delimiter: str | None = None,
        features: Sequence[Any] | None = None,
        drop: Sequence[Any] = (),
        hashed: Any = (),
        one_hot: dict[Any, Sequence[Any]] | None = None,
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
        self._open(target, header, delimiter, features, drop, hashed, one_hot)
        self.labels = labels
        self.n_features, self.feature_names = self.columns.width, self.columns.feature_names
        self.quoted = _core is None  # the compiled parser leaves quotes to Python's

    def _open(self, target: Any, header: bool | None, delimiter: str | None, *columns: Any) -> None:
        """Read the header, or make one from the first row."""
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
        features, drop, hashed, one_hot = columns
        self.columns = Columns(names, target, features, drop, hashed, one_hot, self.name)

    # ---------------------------------------------------------------- blocks
    def _next(self, n: int) -> Block | None:
        if self.labels is None and self.columns.target is not None:
            self.labels = not self._first_target_is_number()
        parts, wanted = [], n
        while wanted and self.text.fill():
            rows, numbers, texts = self._slow(wanted) if self.quoted else self._fast(wanted)
            if rows:
                parts.append((rows, numbers, texts))
                wanted -= rows
            if self.eager and parts and not self.text.has_line:
                break
        if not parts:
            return None
        rows = n - wanted
        numbers = {j: np.concatenate([part[1][j] for part in parts]) for j in parts[0][1]}
        texts = {j: [text for part in parts for text in part[2][j]] for j in parts[0][2]}
        X = self.columns.encode(numbers, texts, rows, self.dtype)
        target = self.columns.target
        if target is None:
            return X, None
        return X, as_target(texts[target]) if self.labels else numbers[target]

    def _kinds(self) -> list[str]:
        """For each column: a number, a text, or skipped."""
        used = {*self.columns.features, self.columns.target}
        textual = self.columns.textual | ({self.columns.target} if self.labels else set())
        return ["t" if j in textual else "n" if j in used else "s" for j in range(len(self.columns.names))]

    def _fast(self, wanted: int) -> tuple[int, dict[int, np.ndarray], dict[int, list[str]]]:
        """Up to ``wanted`` rows of the buffer by the compiled parser."""
        text, kinds = self.text, self._kinds()
        data, start = text.buffer, text.start
        rows, numbers, fields, lines, consumed, self.quoted, bad = _core.csv_parse(
            data, start, wanted, self.delimiter.encode(), "".join(kinds).encode(), self.missing, self.largest
        )
        numeric = [j for j, kind in enumerate(kinds) if kind == "n"]
        textual = [j for j, kind in enumerate(kinds) if kind == "t"]
        if self.on_error == "skip":
            self.skipped += len(bad)
            bad = []
        for line, offset, field, reason in bad:
            content = data[start + offset : data.index(b"\n", start + offset)].decode("utf-8", "replace")
            self._bad(text.line + line + 1, self._reason(reason, field, content.rstrip("\r").split(self.delimiter)))
        table = numbers.reshape(rows, len(numeric))
        places = fields.reshape(rows, len(textual), 2) + [start, 0]
        texts = {
            j: [_clean(data[a : a + n].decode("utf-8", "replace")) for a, n in places[:, i].tolist()]
            for i, j in enumerate(textual)
        }
        good = self._check_texts(texts, rows, lambda row: self._line_of(data, start, int(places[row, 0, 0])))
        text.use(consumed, lines)
        found = {j: table[:, i] for i, j in enumerate(numeric)}
        if good is not None:
            found = {j: column[good] for j, column in found.items()}
            texts = {j: [column[row] for row in good] for j, column in texts.items()}
            rows = len(good)
        return rows, found, texts

    def _line_of(self, data: bytes, start: int, place: int) -> int:
        return self.text.line + data.count(b"\n", start, place) + 1

    def _check_texts(self, texts: dict[int, list[str]], rows: int, line_of: Any) -> list[int] | None:
        """Rows whose categories are all allowed, or None if that is all of them."""
        wrong: dict[int, str] = {}
        for j, column in texts.items():
            if j == self.columns.target:
                odd = {text for text in set(column) if text in MISSING}
                reasons = dict.fromkeys(odd, f"column {self.columns.names[j]!r} (the target) is missing")
            else:
                found = {text: self.columns.check_text(j, text) for text in set(column)}
                reasons = {text: reason for text, reason in found.items() if reason}
            if reasons:
                wrong |= {row: reasons[text] for row, text in enumerate(column) if text in reasons}
        if not wrong:
            return None
        for row in sorted(wrong):
            self._bad(line_of(row), wrong[row])
        return [row for row in range(rows) if row not in wrong]

    def _slow(self, wanted: int) -> tuple[int, dict[int, np.ndarray], dict[int, list[str]]]:
        """Up to ``wanted`` rows by Python's parser, which knows about quotes."""
        kinds = self._kinds()
        numbers: dict[int, list[float]] = {j: [] for j, kind in enumerate(kinds) if kind == "n"}
        texts: dict[int, list[str]] = {j: [] for j, kind in enumerate(kinds) if kind == "t"}
        rows = 0
        reader = csv.reader(iter(self._decoded_line, ""), delimiter=self.delimiter)
        while rows < wanted:
            line = self.text.line + 1
            try:
                fields = [field.strip(_SPACES) for field in next(reader)]
            except StopIteration:
                break
            except csv.Error as error:
                self._bad(line, str(error))
                continue
            if not any(fields) and len(fields) < 2:
                continue
            row = self._row(fields, kinds)
            if isinstance(row, str):
                self._bad(line, row)
                continue
            for j, value in row.items():
                (texts if kinds[j] == "t" else numbers)[j].append(value)
            rows += 1
            if self.eager and not self.text.has_line:
                break
        return rows, {j: np.array(column, np.float64) for j, column in numbers.items()}, texts

    def _decoded_line(self) -> str:
        return _clean(self.text.readline().decode("utf-8", "replace"))

    def _row(self, fields: list[str], kinds: list[str]) -> dict[int, Any] | str:
        """Values of the used columns, or what is wrong with the row."""
        if len(fields) != len(kinds):
            return self._reason(0 if len(fields) < len(kinds) else 1, len(fields), fields)
        row: dict[int, Any] = {}
        for j, (field, kind) in enumerate(zip(fields, kinds, strict=True)):
            if kind == "n":
                if is_number(field):
                    row[j] = float(field)
                    if not abs(row[j]) <= self.largest:
                        return self._reason(3, j, fields)
                elif field in MISSING:
                    if self.missing is None:
                        return self._reason(4, j, fields)
                    row[j] = float(self.missing)
                else:
                    return self._reason(2, j, fields)
            elif kind == "t":
                row[j] = field
        wrong = None
        for j in row:
            if kinds[j] == "t":
                missing = j == self.columns.target and row[j] in MISSING
                name = self.columns.names[j]
                wrong = wrong or (f"column {name!r} (the target) is missing" if missing else None)
                wrong = wrong or (None if j == self.columns.target else self.columns.check_text(j, row[j]))
        return wrong or row

    def _reason(self, code: int, field: int, fields: list[str]) -> str:
        """A sentence about a bad row; the codes are those of csv.hpp."""
        if code < 2:
            return f"{field} fields, but there are {len(self.columns.names)} columns"
        name, found = self.columns.names[field], fields[field].strip(_SPACES)
        what = f"column {name!r}" + (" (the target)" if field == self.columns.target else "")
        if code == 4:
            return f"{what} is missing (the option missing fills such fields)"
        if code == 3:
            return f"{what}: {found[:40]!r} is not finite"
        hint = "" if field == self.columns.target else " (if it holds categories, declare it: hashed or one_hot)"
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
