"""ARFF, the text format of Weka, as a delimited text: each line becomes the line of a CSV with the same number."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from kernelstream.streams import formats

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+)\s+(.+)", re.I)
_FIELD = re.compile(rf"\s*({_QUOTED}|[^,]*?)\s*(,|$)")
_PAIR = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,]*?)\s*(?:,|$)")
_LINES = 1 << 12  # translated at a time


class AsCSV:
    """A binary file whose content is that of an ARFF file as a CSV.

    Names of attributes become the header; comments and the lines before it become empty lines, so that line numbers in
    messages are those of the file. Sparse rows ``{3 1.5, 7 'a b'}`` are completed with 0, or with the first value of a
    nominal attribute, as ARFF defines it.
    """

    def __init__(self, file: Any, name: str):
        self.lines, self.name = _lines(file), name
        self.held = self._header()

    def _header(self) -> bytes:
        names: list[str] = []
        self.absent: list[str] = []  # what an attribute is where a sparse row does not name it
        for before, line in enumerate(self.lines):
            text = line.decode("utf-8", "replace").strip()
            if text.lower().startswith("@data"):
                if not names:
                    break
                return b"\n" * before + _written(names)
            found = _ATTRIBUTE.match(text)
            if found:
                names.append(_bare(found[1]))
                nominal = found[2].strip().startswith("{")
                self.absent.append(_fields(found[2].strip()[1:].rstrip("}"))[0] if nominal else "0")
            elif text and not text.startswith("%") and not text.lower().startswith("@relation"):
                raise ValueError(f"{self.name}, line {before + 1}: {text[:40]!r} is not a line of an ARFF header")
        raise ValueError(f"{self.name} is not an ARFF file: it needs lines @attribute, then @data")

    def _row(self, line: bytes) -> bytes:
        if b"'" not in line and b"\\" not in line and not line.lstrip().startswith((b"{", b"%")):
            return line  # as in a CSV
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("%"):
            return b"\n"
        if not text.startswith("{"):
            return _written(_fields(text))
        row, pairs, at = list(self.absent), text[1:].rstrip("} "), 0
        while at < len(pairs):
            pair = _PAIR.match(pairs, at)
            if pair is None or int(pair[1]) >= len(row):
                return _written([text])  # too few fields: a bad row, which the reader knows how to deal with
            row[int(pair[1])], at = _bare(pair[2]), pair.end()
        return _written(row)

    def read(self, n: int = -1) -> bytes:
        """Up to n bytes, or the rest; none at the end."""
        while n < 0 or not self.held:
            rows = [self._row(line) for _, line in zip(range(_LINES), self.lines, strict=False)]
            if not rows:
                break
            self.held += b"".join(rows)
        taken, self.held = (self.held, b"") if n < 0 else (self.held[:n], self.held[n:])
        return taken


def _lines(file: Any) -> Any:
    """Lines of a file that has ``read`` only, each with its end."""
    rest = b""
    while piece := file.read(1 << 16):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _fields(text: str) -> list[str]:
    found = []
    for field in _FIELD.finditer(text):
        found.append(_bare(field[1]))
        if not field[2]:
            break
    return found


def _bare(text: str) -> str:
    """A value without its quotes."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if quoted else text


def _written(fields: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(fields)
    return out.getvalue().encode()


formats.READERS[formats.ARFF] = AsCSV
