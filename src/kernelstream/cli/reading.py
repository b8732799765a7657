"""Options that say how data are read, shared by all commands that read some."""

from __future__ import annotations

import argparse
import hashlib
import os
from typing import Any

from ..checks import few
from .base import UsageError, inner, positive
from .mixed import open_file
from .values import kinds, listed, mark

DATASET = "dataset:"
_OPTIONS = (
    *("format", "target", "header", "delimiter", "encoding", "drop", "missing"),
    *("n_features", "zero_based", "dtype", "on_error", "block", "columns", "strict", "decimal", "thousands"),
)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument ``data`` and the options of readers."""
    parser.add_argument(
        "data", nargs="*", metavar="DATA",
        help="files (CSV, TSV, JSON lines, LIBSVM, Parquet, Feather, npy, npz), '-' (pipe), or dataset:NAME",
    )  # fmt: skip
    group = parser.add_argument_group("reading")
    add = group.add_argument
    add(
        "--format",
        choices=("libsvm", "csv", "jsonl", "arrow", "arrays"),
        help="format of the files (default: by their names and content)",
    )
    add("--target", metavar="COLUMN", help="column to learn, by name or number (-1: the last)")
    add_text(add)
    add("--drop", type=listed, action="extend", metavar="A,B", help="columns to leave out; may be repeated")
    add(
        "--columns",
        type=kinds,
        action="append",
        metavar="A=KIND,B=KIND",
        help="kinds of columns (default: by the first rows): number, integer, category, date, ignore; 'auto' for all",
    )
    add(
        "--strict",
        action="store_true",
        default=None,
        help="a cell that does not fit its column is an error; otherwise it is missing, counted and reported",
    )
    add("--missing", type=float, metavar="NUMBER", help="replaces empty fields, which are errors otherwise")
    add("--n-features", type=positive, metavar="N", help="columns of a LIBSVM file (default: as many as appear)")
    add("--zero-based", action="store_true", default=None, help="a LIBSVM file numbers its columns from 0")
    add("--dtype", choices=("float64", "float32"), help="of the rows (float64); float32 is faster")
    add("--on-error", choices=("raise", "skip", "log"), help="what to do with a row that cannot be read (raise)")
    add("--block", type=positive, metavar="ROWS", help="rows read at a time (1024)")
    add("--limit", type=positive, metavar="ROWS", help="stop after this many rows")
    add("--shuffle", type=int, metavar="SEED", help="shuffle the rows of a dataset:NAME")


def add_text(add: Any) -> None:
    """Add the options that say how a CSV is written, by the ``add_argument`` of a parser or a group."""
    add(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of a CSV holds names (default: detected)",
    )
    add("--delimiter", help="of a CSV (default: detected); 'tab' for a tab")
    add("--encoding", metavar="NAME", help="of a CSV or of JSON lines, such as latin-1, cp1252 or utf-16 (utf-8)")
    add("--decimal", type=mark, metavar="MARK", help="decimal mark of a CSV, '.' or ',' (default: by the first rows)")
    add("--thousands", type=mark, metavar="MARK", help="mark between thousands: '.', ',', \"'\" or 'space' (detected)")


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as readers take them."""
    options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name, None) is not None}
    if options.get("delimiter") in ("tab", "\\t"):
        options["delimiter"] = "\t"
    if "columns" in options:
        options["columns"] = {name: kind for given in options["columns"] for name, kind in given.items()}
        if "missing" in options:
            raise UsageError("--columns reads gaps by itself: leave out --missing")
    return options


def open_data(
    args: argparse.Namespace,
    options: dict[str, Any],
    needs_target: bool = True,
    otherwise: dict[str, Any] | None = None,
) -> Any:
    """The stream of the files on the command line; each is opened once, since it may be a pipe.

    ``otherwise`` are other options, for files of a format that does not know the first.
    """
    from .. import streams
    from ..streams._table import Table

    settled: dict[str, Any] = {}  # by the first of several files

    def opened(path: str) -> Any:
        stream = open_file(path, options | settled, otherwise)
        if stream.mixed and not settled:
            settled.update(mixed=True, kinds=stream.kinds, marks=getattr(stream, "marks", {}))
        return stream

    if not args.data:
        raise UsageError(
            "no data: name a file, '-' for standard input, or dataset:NAME ('kernelstream datasets' lists them)"
        )
    if args.data[0].startswith(DATASET):
        stream = _dataset(args, options)
    else:
        if args.shuffle is not None:
            raise UsageError("--shuffle works on a dataset:NAME only: a stream cannot be shuffled")
        if args.data.count("-") and len(args.data) > 1:
            raise UsageError("'-' (standard input) cannot be mixed with other files")
        if args.data[0] == "-" and os.isatty(0):
            raise UsageError("standard input is a terminal: pipe some data in")
        stream = opened(args.data[0]) if len(args.data) == 1 else streams.Chain(args.data, opened)
    stream.limit, reader = args.limit, inner(stream)
    if needs_target and isinstance(reader, Table) and reader.target is None:
        stream.close()
        if reader.columns is None:
            raise UsageError(f"--target: name the key of {stream.name} that is to be learned")
        raise UsageError(
            f"--target: name the column of {stream.name} that is to be learned; it has {few(reader.columns.names, 12)}"
        )
    return stream


def expected_rows(stream: Any) -> float | None:
    """Rows of a stream in all: known, or estimated from the share of the source that has been read."""
    estimate = max(stream.rows, stream.rows / stream.fraction) if stream.fraction else None
    known = [n for n in (estimate if stream.n_rows is None else stream.n_rows, stream.limit) if n is not None]
    return min(known, default=None)


def _dataset(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    import numpy as np

    from .. import datasets, streams

    if len(args.data) > 1:
        raise UsageError("one dataset:NAME at a time")
    useless = [f"--{key.replace('_', '-')}" for key in options if key not in ("block", "dtype", "on_error")]
    if useless:
        raise UsageError(f"{', '.join(useless)} cannot be used with dataset:NAME, which is read as it is")
    bunch = datasets.load(args.data[0].removeprefix(DATASET))
    X, y, orders = bunch.X, bunch.y, bunch.get("perm")
    if args.shuffle is not None:
        order = np.random.default_rng(args.shuffle).permutation(X.shape[0])
        X, y, orders = X[order], y[order], None
    if "dtype" in options:
        X = X.astype(options["dtype"])
    stream = streams.Arrays(X, y, options.get("block", 1024), on_error=options.get("on_error", "raise"))
    stream.name, stream.orders = args.data[0], orders
    return stream


def fingerprint(paths: list[str]) -> list[Any]:
    """Enough about files to tell whether they are the same ones, wherever they are now; None for pipes.

    Of text that is how the file begins: lines may be added to it, and readers compare what they have read before.
    Tables in other formats are written at once, so all of the file counts. Opening a pipe again would take bytes away
    from its reader.
    """
    from ..streams._open import BINARY
    from ..streams.bytes import is_pipe

    found = []
    for path in paths:
        if path.startswith(DATASET):
            found.append(path)
            continue
        if is_pipe(path):
            found.append("-")
            continue
        with open(path, "rb") as file:
            start = file.read(4096)
            known = hashlib.sha256(start)
            while start.startswith(tuple(BINARY)) and (piece := file.read(1 << 20)):
                known.update(piece)
        found.append(known.hexdigest()[:16])
    return found
