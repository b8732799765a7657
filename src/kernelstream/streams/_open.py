"""The stream for a source, by the kind of the source."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

from ..checks import one_of
from ._table import Table
from .arrays import Arrays
from .base import Stream
from .bytes import SUFFIXES, LineBuffer, is_pipe, name_of
from .csv import CSV
from .iterators import Blocks
from .jsonl import JSONLines
from .libsvm import LibSVM
from .tables import Arrow, Frame

FORMATS: dict[str, type[Stream]] = {
    "libsvm": LibSVM, "csv": CSV, "jsonl": JSONLines, "arrow": Arrow, "arrays": Arrays,
}  # fmt: skip
TEXTS = ("libsvm", "csv", "jsonl")

_BY_NAME = {
    ".csv": "csv", ".tsv": "csv", ".arff": "csv", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
    ".npy": "arrays", ".npz": "arrays", ".mat": "arrays", ".parquet": "arrow", ".feather": "arrow",
    ".arrow": "arrow", ".ipc": "arrow", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
BINARY = {b"\x93NUMPY": "arrays", b"PK\x03\x04": "arrays", b"MATLAB": "arrays", b"PAR1": "arrow", b"ARROW1": "arrow"}
# A label and at least one index:value.
_LIBSVM = re.compile(rb"\s*[^\s,;|:]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?$")
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")


def open(source: Any, format: str | None = None, **options: Any) -> Stream:
    """Open a file, a pipe, a frame, a pair of arrays or an iterable as a stream of blocks.

    Parameters
    ----------
    source : path, "-", binary file, data frame, (X, y), or iterable of pairs (X, y)
        "-" is standard input.
    format : {"libsvm", "csv", "jsonl", "arrow", "arrays"}, optional
        Of a file; by default it is inferred from the name, then from the first bytes.
    **options
        Of the reader: see :class:`LibSVM`, :class:`CSV`, :class:`JSONLines`, :class:`Arrow`, :class:`Arrays`,
        :class:`Frame`. With ``mixed=True`` tables are read as they are: blocks (cells, y) of words, dates and gaps.

    Examples
    --------
    >>> import io
    >>> from kernelstream import streams
    >>> streams.open(io.BytesIO(b"1 1:0.5\\n"))
    <LibSVM 'BytesIO', 0 rows read>
    >>> cells, y = streams.open(io.BytesIO(b'{"a": 1, "b": "x", "y": 2.5}\\n'), target="y", mixed=True).read()
    >>> cells.get("b"), y.tolist()
    (['x'], [2.5])
    """
    if format is not None:
        one_of("format", format, FORMATS)
    if isinstance(source, Stream):
        return source
    if not isinstance(source, (str, os.PathLike, LineBuffer)) and not hasattr(source, "read"):
        return _in_memory(source, options)
    format, source = recognized(source, format, options.get("encoding"))
    kind = FORMATS[format]
    if kind is JSONLines:
        options = {"mixed": False, **options}
    return kind(source, **fitting(kind, options))


def recognized(source: Any, format: str | None = None, encoding: str | None = None) -> tuple[str, Any]:
    """Format and source of a path or a file object, of a text as a :class:`LineBuffer`: a pipe is opened once."""
    format = format or format_by_name(name_of(source))
    if format is None or format in TEXTS:
        source = source if isinstance(source, LineBuffer) else LineBuffer(source, encoding=encoding)
        format = format or format_by_content(source.peek(), source.bytes.name)
        if format not in TEXTS:
            source.bytes.close()
            source = source.source
    if format not in TEXTS and (is_pipe(source) or not isinstance(source, (str, os.PathLike))):
        raise ValueError(f"{name_of(source)}: {FORMATS[format].__name__} streams are read from files, not from pipes")
    return format, source


class NoSuchOption(ValueError):
    """A reader does not have the option ``name``."""

    def __init__(self, kind: type[Stream], name: str):
        super().__init__(f"{name!r} is not an option of {kind.__name__} streams")
        self.name = name


def _in_memory(source: Any, options: dict[str, Any]) -> Stream:
    if isinstance(source, tuple) and len(source) == 2:
        return Arrays(*source, **fitting(Arrays, options))
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return Frame(source, **fitting(Frame, options))
    if hasattr(source, "shape"):
        return Arrays(source, **fitting(Arrays, options))
    return Blocks(source, **fitting(Blocks, options))


def format_by_name(name: str) -> str | None:
    """The format of a file by the end of its name, or None."""
    stem, suffix = os.path.splitext(name.lower())
    return _BY_NAME.get(os.path.splitext(stem)[1] if suffix in SUFFIXES else suffix)


def format_by_content(first: bytes, name: str) -> str:
    """The format of a file, from its first bytes."""
    for magic, format in BINARY.items():
        if first.startswith(magic):
            return format
    if not first:
        raise ValueError(f"{name} is empty")
    if b"\0" in first[:4096]:
        raise ValueError(
            f"{name} has an unknown format: set format= (--format in the shell) to one of {', '.join(FORMATS)}"
        )
    if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    if _ARRAY.match(first):
        raise ValueError(f"{name} is a single JSON array: put each object on a line of its own (jq -c '.[]')")
    lines = [line for line in first.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    return "libsvm" if lines and _LIBSVM.match(lines[0]) else "csv"


def known_options(kind: type[Stream]) -> set[str]:
    """Names of the options of a reader: its own and, where it passes others on, those of all tables."""
    _, *own = inspect.signature(kind).parameters.values()  # the first is the source
    _, *shared = inspect.signature(Table).parameters.values()
    passes_on = own[-1].kind is inspect.Parameter.VAR_KEYWORD
    return {option.name for option in (own[:-1] + shared if passes_on else own)}


def fitting(kind: type[Stream], options: dict[str, Any]) -> dict[str, Any]:
    """Options of the reader; one that it does not have is an error, unless it is None."""
    known = known_options(kind)
    if kind is Arrays and "target" in options:
        options = {("y" if key == "target" else key): value for key, value in options.items()}
    for key, value in options.items():
        if key not in known and value is not None:
            raise NoSuchOption(kind, key)
    return {key: value for key, value in options.items() if key in known}
