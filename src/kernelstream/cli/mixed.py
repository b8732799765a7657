"""Files of words, dates and gaps on the command line: how they are opened, shown and learned."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from .base import UsageError, inner

MARK_OPTIONS = ("decimal", "thousands")
# options of readers of cells
CELL_OPTIONS = ("columns", "strict", "mixed", "ignore", "eager", "kinds", "marks", *MARK_OPTIONS)
TABLES = ("csv", "jsonl", "arrow")  # formats that may hold words, dates and gaps
_OF_NUMBERS = ("missing", "dtype")  # options of readers of numbers only


def open_file(path: str, options: dict[str, Any], otherwise: dict[str, Any] | None = None) -> Any:
    """The stream of a file or a pipe, which is opened once: of cells, if its rows are not all numbers.

    ``otherwise`` are other options, for files of a format that does not know the first.
    """
    from ..streams._open import FORMATS, NoSuchOption, fitting, recognized

    forced = options.get("mixed") or options.get("strict") or any(key in options for key in ("columns", *MARK_OPTIONS))
    format, source = recognized(path, options.get("format"), options.get("encoding"))
    kind: Any = FORMATS[format]
    if format in TABLES and options.get("mixed") is not False and (forced or "missing" not in options):
        return _judged(kind, source, format, options, bool(forced))
    if forced:
        raise UsageError(f"{path} holds numbers only: --columns, --strict, --decimal and --thousands are for tables")
    try:
        known = fitting(kind, _plain(options))
    except NoSuchOption as error:
        if otherwise is None:
            flag = f"--{error.name.replace('_', '-')}"
            raise UsageError(f"{flag} is not an option of {format} files such as {path} (see --format)") from None
        known = fitting(kind, _plain(otherwise))
    return kind(source, **known)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options of readers of numbers."""
    return {key: value for key, value in options.items() if key not in ("format", *CELL_OPTIONS)}


def _judged(kind: Any, source: Any, format: str, options: dict[str, Any], forced: bool) -> Any:
    from ..columns.kinds import all_numbers, guess
    from ..streams._open import fitting, known_options
    from ..streams.base import check_dtype

    known = known_options(kind) - {*_OF_NUMBERS, "marks", "thousands"}
    passed = {key: value for key, value in options.items() if key in known and value is not None}
    stream = kind(source, **passed | {"mixed": True})
    stream.kinds = dict(options.get("kinds") or {})
    stream.examples = _marked(stream, options) if format == "csv" else {}
    if options.get("mixed"):  # the model knows
        return stream
    sample = stream.sample()
    names = list(stream.feature_names or dict.fromkeys(key for row in getattr(sample, "rows", ()) for key in row))
    if not forced and format != "jsonl" and not stream.examples and all_numbers(sample, names):
        stream.mixed, stream.dtype = False, check_dtype(fitting(kind, _plain(options)).get("dtype", "float64"))
        return stream
    useless = [key for key in ("dtype", "n_features", "zero_based") if key in options]
    if useless:
        raise UsageError(f"--{useless[0].replace('_', '-')} has no meaning for columns of words, dates and gaps")
    given = options.get("columns") or {}
    unknown = [name for name in given if name not in names]
    if unknown:
        from ..registry.names import did_you_mean

        raise UsageError(
            f"--columns: {stream.name} has no column {unknown[0]!r}: {did_you_mean(unknown[0], names)}"
            f"it has {', '.join(names)}"
        )
    found = guess(sample, names)
    stream.kinds = {name: given.get(name) or found[name] for name in names if name in given or name in found}
    return stream


def _marked(stream: Any, options: dict[str, Any]) -> dict[str, str]:
    """Determine how numbers and dates of a text are written: by the command line, the model, or the first rows.

    Returns an example for every column where it matters, if that was found out here.
    """
    from ..streams.marks import OTHER

    decimal, thousands = (options.get(key) for key in MARK_OPTIONS)
    if decimal or thousands:
        if not options.get("eager"):
            stream.look_for_marks()
        dates = {name: mark for name, mark in stream.marks.items() if mark not in OTHER}
        decimal = decimal or OTHER.get(str(thousands), ".")
        stream.set_marks(dict.fromkeys(stream.columns.names, decimal) | dates, thousands)
    elif "marks" in options:
        stream.set_marks(options["marks"], options.get("thousands"))
    elif not options.get("eager"):  # looking at the first rows would wait for them
        return stream.look_for_marks()
    return {}


def with_columns(est: Any, stream: Any, options: dict[str, Any]) -> Any:
    """The estimator for the rows of a stream, with an encoder in front if they are not all numbers."""
    reader = inner(stream)
    if not reader.mixed:
        return est
    from ..columns import Columns, make_stream
    from ..estimators._contract.base import has_fixed_width

    later = reader.feature_names is None or any(name not in reader.kinds for name in reader.feature_names)
    fixed, given = has_fixed_width(est), options.get("columns") or {}
    odd = _odd_columns(stream)  # kinds that nobody gave: the encoder may leave these columns out
    kinds = {name: kind for name, kind in reader.kinds.items() if name in given or name not in odd}
    return make_stream(
        Columns(kinds=kinds or None, strict=bool(options.get("strict"))), est, room=64 if later and fixed else 0
    )


def show_kinds(stream: Any) -> None:
    """Print how the columns are read, and which of them look useless."""
    reader = inner(stream)
    odd = _odd_columns(stream)
    if not reader.mixed:
        for name, what in odd.items():
            print(f"column {name!r}: {what} (--drop leaves it out)", file=sys.stderr)
        return
    words = {
        "ignored": "not used",
        "integer": "integer, also as a category",
        None: "empty so far",
    }
    said = {name: words.get(kind := reader.kinds.get(name), kind) for name in reader.feature_names or reader.kinds}
    said |= {name: "the target, a number" for name in reader.examples if name not in said}
    options = ["--columns"] + ["--decimal", "--thousands"] * bool(reader.examples) + ["--drop"] * bool(odd)
    print(f"columns of {reader.name} ({', '.join(options)} override{'s' * (len(options) < 2)}):", file=sys.stderr)
    width = max(map(len, said), default=0)
    for name, kind in said.items():
        more = [f"{text!r} is {reader.plain(name, text)}" for text in [reader.examples.get(name)] if text is not None]
        more += [odd[name]] if name in odd else []
        print(f"  {name:{width}}  {'; '.join([kind, *more])}", file=sys.stderr)


def _odd_columns(stream: Any) -> dict[str, str]:
    """What is noted about columns of the first rows of a stream."""
    reader = inner(stream)
    dates = [name for name, kind in reader.kinds.items() if kind == "date"] if reader.mixed else []
    return notes_of(stream.peek()[0], reader.feature_names, dates)


def notes_of(rows: Any, names: list[str] | None, dates: list[str]) -> dict[str, str]:
    """What the encoder notes about columns of the first rows that never change, or only name the rows.

    It guesses their kinds, and warns where it cannot tell; ``dates`` are known, whatever their first cell holds.
    """
    from ..columns import Columns
    from ..streams import Cells

    if not isinstance(rows, Cells):
        if names is None or hasattr(rows, "indptr"):
            return {}
        rows = Cells({name: rows[:, j] for j, name in enumerate(names)}, len(rows))
    return (
        Columns(kinds=dict.fromkeys(dates, "date") or None, max_columns=max(rows.shape[1], 1)).partial_fit(rows).notes_
    )


class WrongCells:
    """Cells that did not fit their column's kind, with the line of the first."""

    def __init__(self, stream: Any, est: Any):
        warnings.filterwarnings("ignore", "column .* holds cells that are not a")  # the report says it
        self.stream, self.est, self.lines = stream, est, dict[str, int]()

    @property
    def columns(self) -> Any:
        """The encoder; None where all rows are numbers, or none has been learned."""
        from ..columns.stream import encoder_of

        return encoder_of(self.est)

    def note_lines(self) -> None:
        """Note the lines of cells in the block that was learned last."""
        lines = getattr(inner(self.stream), "lines", [])
        if (columns := self.columns) is not None:
            before = columns.n_samples_seen_ - len(lines)
            for name, (_, first) in columns.wrong_.items():
                if name not in self.lines and 0 < first - before <= len(lines):
                    self.lines[name] = lines[first - before - 1]

    def report(self) -> list[str]:
        """A sentence for every column that had some."""
        said = []
        if (columns := self.columns) is not None:
            for name, (count, _) in columns.wrong_.items():
                kind = columns.kinds_[name].replace("integer", "number")
                where = f", the first in line {self.lines[name]}" if name in self.lines else ""
                cells = "cell that is" if count == 1 else "cells that are"
                taken = f"taken as missing{where} (--strict makes it an error)"
                said.append(f"column {name!r}: {count:,} {cells} not a {kind}, {taken}")
        return said
