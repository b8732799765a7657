"""``forecast``: the next rows of a series, after those of files or a pipe."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..progress import RowsBar
from ._stopping import Awake, Stopping, name_of
from .algorithms import SEED
from .base import Interrupted, Run, UsageError, command, csv_text, inner, not_the_data, positive, wants_bar
from .reading import DATASET, add_text, expected_rows, open_data, reading
from .training import check_writable
from .values import listed

BLOCK = 50  # rows between two looks for a signal
LISTS, PARAMETERS = ("target", "by", "known"), ("horizon", "size", "random_state")
EXAMPLES = """examples:
  kernelstream forecast load.csv --time date --target load --horizon 24 > next.csv
  kernelstream forecast load.csv --target load --known warmth --future weather.csv --output next.csv
  kernelstream forecast load.csv --target load --model load.ks > next.csv       learns the rows that are new
  tail -n +1 -f load.csv | kernelstream forecast - --target load --horizon 3 --follow
"""


@command(
    "forecast", "forecast the next rows of a series, with intervals",
    "DATA [DATA ...] [--time COLUMN] [--target COLUMN] [--horizon STEPS] [options]", examples=EXAMPLES,
)  # fmt: skip
def _forecast(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    add = parser.add_argument
    add("data", nargs="*", metavar="DATA", help="files (CSV, TSV, JSON lines, Parquet, Feather) or '-' (pipe)")
    add("--time", metavar="COLUMN", help="times of the rows (default: the column of dates)")
    abouts = ("to forecast (default: all numbers)", "that tell series apart", "known in advance: see --future")
    for name, about in zip(LISTS, abouts, strict=True):
        add(f"--{name}", type=listed, action="extend", metavar="A,B", help=f"columns {about}; may be repeated")
    add("--future", metavar="FILE", help="table of the next values of the columns --known, with their times and --by")
    add("--horizon", type=positive, metavar="STEPS", help="steps to forecast (24)")
    add("--coverage", type=float, default=0.9, metavar="SHARE", help="of the targets that intervals hold (0.9)")
    add("--size", choices=("small", "medium", "large"), help="of the model (medium)")
    add("--seed", type=int, metavar="N", dest="random_state", help=f"of the random numbers ({SEED})")
    add("--model", "-m", metavar="FILE", help="model to go on with, if the file exists, and to write")
    add("--follow", action="store_true", help="print a new forecast with every row, of the row's own series")
    add("--output", "-o", metavar="FILE", help="where forecasts go (standard output)")
    add_text(add)
    add("--on-error", choices=("raise", "skip", "log"), help="what to do with a row that cannot be read (raise)")
    add("--quiet", "-q", action="store_true", help="no progress bar, no messages")
    parser.set_defaults(limit=None, shuffle=None, block=BLOCK)
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import model_io
    from ..forecast.arrivals import TooFewRows

    _check(args)
    model, notes, latest = _read(args) if args.model and os.path.exists(args.model) else (None, {}, {})
    stream = _opened(args, args.data, notes.get("reader", {}))
    reader = {key: getattr(inner(stream), key) for key in ("marks", "thousands") if hasattr(inner(stream), key)}
    model = model or _begun(args, stream)
    if bool(model.known) != bool(args.future):
        raise UsageError("--future, a table of their next values, goes with columns --known in advance, and only then")
    later = list(_opened(args, [args.future], reader)) if args.future else []
    future = _frame(later[0][0].join([cells for cells, _ in later])) if later else None
    rows, shown = 0, False

    def keep(ended_by: Any, *rest: Any) -> None:
        """Write the model, unless the rows are at fault."""
        if args.model and rows and ended_by in (None, Interrupted, BrokenPipeError, TooFewRows):
            model_io.save(model, args.model, notes | {"reader": reader, "rows": notes.get("rows", 0) + rows})

    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(RowsBar(False if args.follow else wants_bar(args), "forecast", ""))
        asked = stack.enter_context(Stopping(keeps=True)) if args.model else None
        to_file = args.output not in (None, "-")
        out = stack.enter_context(open(args.output, "w", encoding="utf-8")) if to_file else sys.stdout
        stack.push(keep)
        for rows, key in _learned(args, model, stream if asked is None else Awake(stream, asked), latest):
            bar.rows(rows, math.nan, expected_rows(stream))
            with contextlib.suppress(TooFewRows):
                if args.follow:
                    out.write(_text(model.forecast(args.coverage, future), key, header=not shown))
                    out.flush()  # somebody waits for it
                    shown = True
            if asked is not None and asked():
                break
        if asked is not None and asked.number:
            where = f"{args.model} holds what was learned" if rows else "nothing was learned"
            raise Interrupted(f"stopped after {rows:,} rows by {name_of(asked.number)}; {where}", asked.number)
        if not shown:
            out.write(_text(model.forecast(args.coverage, future), [], header=True))
    if args.model and not args.quiet:
        print(f"kernelstream: {rows:,} new rows learned; {args.model}", file=sys.stderr)


def _check(args: argparse.Namespace) -> None:
    """UsageError for options that contradict each other, or files that cannot be written."""
    from ..trust.intervals import check_coverage

    if args.data and args.data[0].startswith(DATASET):
        raise UsageError("forecast reads files and pipes, not dataset:NAME")
    try:
        check_coverage(args.coverage)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    check_writable(args.model)
    read = [*args.data, args.future or ""]
    not_the_data("--model", args.model or "", read)
    not_the_data("--output", args.output or "", [*read, args.model or ""])


def _read(args: argparse.Namespace) -> tuple[Any, dict[str, Any], dict[str, float]]:
    """The model of a file, which must be what the command line says, its notes, and its latest time of each key."""
    from .. import KernelForecaster, model_io
    from ..forecast.arrivals import names_in

    model, notes = model_io.read(args.model)
    if not isinstance(model, KernelForecaster) or not hasattr(model, "state_"):
        raise UsageError(f"--model: {args.model} holds no forecaster that has learned rows")
    names = names_in(model.state_)
    held = {name: list(getattr(names, name)) for name in LISTS} | {"time": names.time or "none"}
    for name, value in (held | {name: getattr(model, name) for name in PARAMETERS}).items():
        if getattr(args, name) not in (None, value):
            option = "seed" if name == "random_state" else name
            text = ", ".join(value) or "none" if isinstance(value, list) else value
            raise UsageError(f"--{option}: the model in {args.model} has {text}: leave --{option} out")
    return model, notes, dict(zip(model.state_["keys"].tolist(), model.state_["latest"].tolist(), strict=True))


def _begun(args: argparse.Namespace, stream: Any) -> Any:
    """A new model, whose columns are named by the command line or found in the first rows."""
    from .. import KernelForecaster
    from ..forecast.frames import named, table

    if (first := stream.peek()) is None:
        raise ValueError(f"{stream.name} has no rows")
    try:
        names = named(table(_frame(first[0])), args.target, args.time, args.by, args.known)
    except ValueError as error:
        raise UsageError(f"{stream.name}: {error}") from None
    given = {name: getattr(args, name) for name in PARAMETERS if getattr(args, name) is not None}
    parts = {name: list(getattr(names, name)) or None for name in LISTS} | {"time": names.time or None}
    return KernelForecaster(**{"random_state": SEED} | given | parts)


def _opened(args: argparse.Namespace, paths: list[str], written: dict[str, Any]) -> Any:
    """The stream of the cells of files; the rows of a pipe come as they arrive where they are followed."""
    from ..streams.bytes import is_pipe

    eager = args.follow and bool(paths) and is_pipe(paths[0])
    options = written | reading(args) | {"eager": eager, "mixed": True, "target": None}
    stream = open_data(argparse.Namespace(**vars(args) | {"data": paths}), options, needs_target=False)
    inner(stream).eager = eager
    return stream


def _frame(cells: Any) -> dict[str, Any]:
    """Columns by name."""
    from ..streams.cells import listed

    return {name: listed(cells.get(name)) for name in cells.first_names()}


def _learned(args: argparse.Namespace, model: Any, stream: Any, latest: dict[str, float]) -> Iterator[tuple[int, Any]]:
    """Learn a stream, row by row where it is followed: rows so far, and the key of the last one.

    Rows that are not after the ``latest`` times, by key, of a model from a file are passed over.
    """
    from ..forecast.arrivals import names_in
    from ..forecast.frames import table

    rows = 0
    for cells, _ in stream:
        new, at, reader = np.arange(cells.n), 0, inner(stream)
        try:
            if latest and (times := (found := table(_frame(cells))).times(names := names_in(model.state_))) is not None:
                keys = found.keys(names)
                new = np.flatnonzero([t > latest.get(key, -math.inf) for t, key in zip(times, keys, strict=True)])
            for piece in new[:, None] if args.follow else [new] if len(new) else []:
                at, frame = int(piece[0]), _frame(cells.part(piece))
                model.learn(frame)
                rows += len(piece)
                yield rows, list(map(str, json.loads(table(frame).keys(names_in(model.state_))[-1])))
        except ValueError as error:
            raise ValueError(f"{stream.name}, from {reader.unit} {reader.lines[at]} on: {error}") from error


def _text(ahead: Any, key: list[Any], header: bool) -> str:
    """A forecast, all of it or that of one key, as lines of a CSV."""
    from ..forecast.frames import columns_of

    columns = {name: np.asarray(cells) for name, cells in columns_of(ahead).items()}
    for name, cells in columns.items():
        if cells.dtype.kind == "M":
            columns[name] = np.array([time.isoformat() for time in cells.astype("datetime64[us]").tolist()])
    rows = zip(*(cells.tolist() for cells in columns.values()), strict=True)
    return csv_text([*[list(columns)] * header, *(row for row in rows if list(map(str, row[: len(key)])) == key)])
