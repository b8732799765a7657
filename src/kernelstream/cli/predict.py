"""``predict``: a model's answers to rows."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import few
from .base import Run, UsageError, command, csv_text, inner, not_the_data
from .reading import DATASET, add_reading, open_data, reading

EXAMPLES = """examples:
  kernelstream predict prices.ks new.csv --out predicted.txt
  head -1000 new.svm | kernelstream predict clicks.ks - --what probability
  kernelstream predict flights.ks new.csv --csv --id flight --out answers.csv
  tail -n +1 -f new.csv | kernelstream predict flights.ks -
"""


@command(
    "predict", "write a model's predictions, one line per row",
    "[--model] FILE DATA [DATA ...] [--out FILE] [options]", examples=EXAMPLES,
)  # fmt: skip
def _predict(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument(
        "--model", "-m", metavar="FILE", help="file that 'kernelstream train' wrote (the first argument)"
    )
    parser.add_argument("--out", "-o", metavar="FILE", help="where predictions go (standard output)")
    parser.add_argument(
        "--what", choices=("label", "score", "probability"), default="label",
        help="labels (-1: a novelty) or predicted numbers; scores; or probabilities, after a line of labels (label)",
    )  # fmt: skip
    parser.add_argument("--csv", action="store_true", help="write CSV with a header, and probabilities if any")
    parser.add_argument("--id", metavar="COLUMN", help="column of the rows to write in front of each prediction (CSV)")
    parser.add_argument("--quiet", "-q", action="store_true", help="no messages")
    add_reading(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import model_io

    if args.model is None:
        if len(args.data) < 2:
            raise UsageError("predict needs a model file and data ('-' for a pipe): kernelstream predict MODEL DATA")
        if args.data[1].endswith(".ks") and not args.data[0].endswith(".ks"):
            raise UsageError("the model comes first: kernelstream predict MODEL DATA")
        args.model = args.data.pop(0)
    if args.out is not None:
        not_the_data("--out", args.out, [args.model, *args.data])
    est, notes = model_io.read(args.model)
    if not hasattr(est, "predict"):
        raise UsageError(f"{args.model} forecasts series: kernelstream forecast DATA --model {args.model}")
    stream = open_model_data(args, notes, needs_target=False, est=est)
    if args.what == "probability" and not hasattr(est, "predict_proba"):
        hint = " (train with --loss logistic)" if hasattr(est, "classes_") else ""
        raise UsageError(f"--what probability: the model in {args.model} has none{hint}")
    if args.what == "score" and not hasattr(est, "decision_function"):
        raise UsageError(f"--what score: {args.model} predicts numbers, which are its scores: leave out --what")
    written = CSVAnswers(est, args.what, args.id) if args.csv or args.id else Lines(est, args.what)
    with contextlib.ExitStack() as stack:
        out = sys.stdout if args.out in (None, "-") else stack.enter_context(open(args.out, "w", encoding="utf-8"))
        out.write(written.header())
        for X, ids, bad in answerable(args, notes, stream, est):
            out.write(written.none() * bad)
            if X is not None:
                out.write(written.rows(X if hasattr(X, "columns") else fitted(est, X), ids))
            if stream.eager:
                out.flush()  # the program at the other end of the pipe may wait for the answer
    if stream.skipped and not args.quiet:
        print(f"kernelstream: {stream.skipped:,} bad rows have no prediction", file=sys.stderr)


def answerable(args: argparse.Namespace, notes: dict[str, Any], stream: Any, est: Any) -> Any:
    """Blocks of rows, their ids, and how many rows before each block cannot be answered."""
    from ..streams.cells import numbers

    reader = notes.get("reader", {})
    if stream.on_error != "raise":
        inner(stream).block = 1  # row by row, so that a bad row leaves its place empty
    skipped = stream.skipped
    while True:
        block = stream.read()
        bad, skipped = stream.skipped - skipped, stream.skipped
        if block is None:
            if bad:
                yield None, None, bad
            return
        rows, ids = block[0], None
        if args.id is not None:
            ids = _column(rows, args.id, "--id: ", stream)
            if reader.get("mixed"):
                rows = rows if args.id in est.columns_.kinds_ else rows.without(args.id)
            else:  # a model of numbers
                columns = [numbers(_column(rows, name, "", stream))[0] for name in reader["features"]]
                rows = np.column_stack(columns).astype(reader.get("dtype", "float64"))
                if not np.isfinite(rows).all():
                    row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
                    raise ValueError(f"{stream.name}: row {stream.rows - len(rows) + row + 1} lacks a number")
        yield rows, ids, bad


def _column(rows: Any, name: str, option: str, stream: Any) -> Any:
    found = rows.get(name)
    if found is None:
        raise UsageError(f"{option}{stream.name} has no column {name!r}: it has {few(rows.first_names(), 20)}")
    return found


class Lines:
    """One line per row: a label, a number, or numbers separated by tabs; empty for a row without an answer."""

    def __init__(self, est: Any, what: str):
        self.est, self.what = est, what

    def header(self) -> str:
        return "\t".join(map(str, self.est.classes_)) + "\n" if self.what == "probability" else ""

    def none(self) -> str:
        return "\n"

    def rows(self, X: Any, ids: Any) -> str:
        ask = {"probability": "predict_proba", "score": "decision_function", "label": "predict"}[self.what]
        answer = getattr(self.est, ask)(X)
        if answer.ndim == 2:
            lines = ["\t".join(map(repr, row)) for row in answer.tolist()]
        else:
            lines = answer.tolist() if answer.dtype.kind in "US" else list(map(repr, answer.tolist()))
        return "".join(f"{line}\n" for line in lines)


class CSVAnswers:
    """CSV: an id if there is one, the prediction, and the probability of each label where there are some."""

    def __init__(self, est: Any, what: str, name: str | None):
        self.est, self.name = est, name
        self.proba = hasattr(est, "predict_proba")
        self.score = what == "score"
        names = [] if name is None else [name]
        names += ["score" if self.score else "prediction"]
        names += [f"p({label})" for label in est.classes_.tolist()] if self.proba and not self.score else []
        self.names = names

    def header(self) -> str:
        return csv_text([self.names])

    def none(self) -> str:
        return csv_text([[""] * len(self.names)])

    def rows(self, X: Any, ids: Any) -> str:
        answer = self.est.decision_function(X) if self.score else self.est.predict(X)
        columns = [] if ids is None else [["" if value is None else value for value in ids]]
        columns += [answer.tolist() if answer.ndim == 1 else ["|".join(map(repr, row)) for row in answer.tolist()]]
        if self.proba and not self.score:
            columns += self.est.predict_proba(X).T.tolist()
        return csv_text(zip(*columns, strict=True))


def open_model_data(args: argparse.Namespace, notes: dict[str, Any], needs_target: bool, est: Any = None) -> Any:
    """The stream of the files on the command line, read as the model's own data were."""
    known, given = dict(notes.get("reader", {})), reading(args)
    if args.data and args.data[0].startswith(DATASET):
        return open_data(args, given, needs_target)
    wanted = getattr(args, "id", None)
    if known.get("mixed") or hasattr(est, "columns_") or wanted is not None:
        if not known.get("mixed") and wanted is not None and "features" not in known:
            raise UsageError(f"--id: the model does not say by which columns {args.data[0]} is to be read")
        target = given.get("target", known.get("target"))
        left_out = {*known.get("ignore", []), *([] if needs_target or target is None else [target])} - {wanted}
        options = {key: value for key, value in known.items() if key not in ("target", "features", "dtype")} | given
        options |= {"target": target} if needs_target else {}
        return _open_eagerly(args, options | {"ignore": sorted(left_out), "mixed": True}, needs_target)
    options = {**known, **given, "mixed": False}
    if not needs_target and "target" not in given and "features" in options:
        options["target"] = None  # rows to predict need not have one
    # data in another format than the model's: columns are matched by their place
    otherwise = given | {key: known[key] for key in ("dtype",) if key in known}
    return _open_eagerly(args, options, needs_target, otherwise)


def _open_eagerly(args: argparse.Namespace, options: dict[str, Any], *rest: Any) -> Any:
    """A stream that gives the rows of a pipe as they come."""
    from ..streams.bytes import is_pipe

    eager = bool(args.data) and is_pipe(args.data[0])
    stream = open_data(args, options | ({"eager": True} if eager and options["mixed"] else {}), *rest)
    inner(stream).eager = eager
    return stream


def fitted(est: Any, X: Any) -> Any:
    """Rows of the model's width; the model is widened where they are wider."""
    width = getattr(est, "n_features_in_", None)
    if width is None:  # it takes rows as they come
        return X
    if X.shape[1] > width:
        est.widen(X.shape[1])
    elif X.shape[1] < width and hasattr(X, "indptr"):  # columns that did not occur are zero
        X.resize(X.shape[0], width)
    return X
