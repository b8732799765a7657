"""Files of words, dates and gaps on the command line: how they are opened, shown and learned."""

from __future__ import annotations

import sys
from typing import Any

from ._base import UsageError

NUMBERS_ONLY = ("hashed", "one_hot", "missing")  # options of readers that give numbers
COLUMNS = ("columns", "strict", "mixed", "ignore", "eager", "kinds")  # options of readers that give cells
_SHARED = ("target", "header", "delimiter", "features", "drop", "labels", "block", "on_error", "ignore", "eager")
_LOOK = 1 << 16  # bytes from which the kind of a file is judged


def open_cells(path: str, options: dict[str, Any]) -> Any:
    """A stream of cells, if the rows of the file are not all numbers; else the source, to be opened by another reader.

    A pipe cannot be opened twice, so a source that had to be read comes back as a text at its start.
    """
    from ..streams._bytes import Text, is_pipe, name_of
    from ..streams._open import _NUMBERS_BY_NAME, _suffix

    forced = options.get("mixed") or "columns" in options or options.get("strict") or options.get("format") == "jsonl"
    given = options.get("format")
    if given in ("libsvm", "arrays") or options.get("mixed") is False:
        return path
    if not forced and any(key in options for key in NUMBERS_ONLY):
        return path
    if given is None and _suffix(name_of(path)) in _NUMBERS_BY_NAME:
        return path
    from ..columns.files import format_of

    source: Any = path
    format = given or (format_of(path, b"") if "." in name_of(path) and _known_suffix(path) else None)
    if format is None or format in ("csv", "jsonl"):
        source = Text(path)
        first = source.peek() if options.get("eager") else source.peek_bytes(_LOOK)
        if not first:
            return source
        format = format or format_of(path if path != "-" else "", first)
    elif is_pipe(path):
        return path
    if format is None:  # the content shows numbers only
        if forced:
            raise UsageError(f"{name_of(path)} holds numbers only: --columns and --strict are for tables")
        return _reopened(source, path)
    return _judged(path, source, format, options, bool(forced))


def _known_suffix(path: str) -> bool:
    from ..columns.files import _BY_NAME
    from ..streams._open import _BY_NAME as _NUMBERS
    from ..streams._open import _suffix

    return _suffix(path) in _BY_NAME or _suffix(path) in _NUMBERS


def _reopened(source: Any, path: str) -> Any:
    """A text that was looked into, or its path where it is a file of another kind."""
    from ..streams._bytes import Text, is_pipe

    if isinstance(source, Text) and not is_pipe(path):
        source.bytes.close()
        return path
    return source


def _judged(path: str, source: Any, format: str, options: dict[str, Any], forced: bool) -> Any:
    from ..columns.files import FORMATS
    from ..columns.guess import all_numbers, guess

    strict = bool(options.get("strict"))
    passed = {key: value for key, value in options.items() if key in _SHARED and value is not None}
    passed.setdefault("on_error", "raise" if strict else "skip")
    if format != "csv":
        passed.pop("header", None)
        passed.pop("delimiter", None)
    if format == "arrow":
        passed.pop("labels", None)
    stream = FORMATS[format](source, **passed)
    stream.kinds = dict(options.get("kinds") or {})
    if options.get("mixed"):  # the model knows
        return stream
    sample = stream.sample()
    names = list(stream.feature_names or dict.fromkeys(key for row in getattr(sample, "rows", ()) for key in row))
    if not forced and format != "jsonl" and all_numbers(sample, names):
        if format == "arrow":
            return path
        source.seek({"byte": 0, "line": 0})
        return source
    useless = [key for key in ("dtype", "n_features", "zero_based") if key in options]
    if useless:
        raise UsageError(f"--{useless[0].replace('_', '-')} has no meaning for columns of words, dates and gaps")
    given = options.get("columns") or {}
    strange = [name for name in given if name not in names]
    if strange:
        from ..registry.names import did_you_mean

        raise UsageError(
            f"--columns: there is no column {strange[0]!r}: {did_you_mean(strange[0], names)}it has {names}"
        )
    found = guess(sample, names)
    stream.kinds = {name: given.get(name) or found[name] for name in names if name in given or name in found}
    return stream


def with_columns(est: Any, stream: Any, options: dict[str, Any]) -> Any:
    """The estimator for the rows of a stream: with an encoder in front, where they are not all numbers."""
    from ._reading import inner

    reader = inner(stream)
    if not getattr(reader, "mixed", False):
        return est
    from ..columns import Columns, make_stream
    from ..estimators._contract.hooks import Hooks

    later = reader.feature_names is None or any(name not in reader.kinds for name in reader.feature_names)
    fixed = getattr(type(est), "_widen", None) is Hooks._widen
    return make_stream(
        Columns(kinds=reader.kinds or None, strict=bool(options.get("strict"))), est, room=64 if later and fixed else 0
    )


def show_kinds(stream: Any) -> None:
    """Say how the columns are read."""
    from ._reading import inner

    reader = inner(stream)
    if not getattr(reader, "mixed", False):
        return
    words = {"text": "ignored (long texts)", "integer": "integer, also as a category"}
    names = reader.feature_names or list(reader.kinds)
    print(f"columns of {reader.name} (--columns overrides):", file=sys.stderr)
    width = max(map(len, names), default=0)
    for name in names:
        kind = reader.kinds.get(name)
        print(f"  {name:{width}}  {words.get(kind, kind) if kind else 'empty so far'}", file=sys.stderr)


class WrongCells:
    """Cells that did not fit their column's kind, with the line of the first."""

    def __init__(self, stream: Any, est: Any):
        self.stream, self.est, self.lines = stream, est, {}  # type: ignore[var-annotated]
        self.offset = None if not hasattr(est, "columns_") else est.columns_._store.t

    def note_lines(self) -> None:
        """Note the lines of cells in the block that was learned last."""
        columns = getattr(self.est, "columns_", None)
        if columns is None:
            return
        from ._reading import inner

        lines = getattr(inner(self.stream), "lines", [])
        before = columns._store.t - len(lines)
        for name, (_, first) in columns.wrong_.items():
            if name not in self.lines and 0 < first - before <= len(lines):
                self.lines[name] = lines[first - before - 1]

    def report(self) -> list[str]:
        """A sentence for every column that had some, and one about rows of another length."""
        columns = getattr(self.est, "columns_", None)
        if columns is None:
            return []
        from ._reading import inner

        said = []
        for name, (count, _) in columns.wrong_.items():
            kind = {"integer": "number"}.get(columns.kinds_[name], columns.kinds_[name])
            where = f", the first in line {self.lines[name]}" if name in self.lines else ""
            cells = "cell that is" if count == 1 else "cells that are"
            said.append(f"column {name!r}: {count:,} {cells} no {kind}, taken as missing{where} (--strict: an error)")
        ragged = getattr(inner(self.stream), "ragged", 0)
        if ragged:
            said.append(f"{ragged:,} rows with too few or too many fields, filled up or cut off")
        return said
