"""``predict``: a model's answers to rows."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._base import Run, UsageError, command
from ._reading import DATASET, add_reading, open_data, reading

EXAMPLES = """examples:
  kernelstream predict prices.ks new.csv --out predicted.txt
  head -1000 new.svm | kernelstream predict clicks.ks - --what probability
"""


@command("predict", "write a model's predictions, one line per row")
def _predict(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.usage = "kernelstream predict [--model] FILE DATA [DATA ...] [--out FILE] [options]"
    parser.add_argument(
        "--model", "-m", metavar="FILE", help="file that 'kernelstream train' wrote (the first argument)"
    )
    parser.add_argument("--out", "-o", metavar="FILE", help="where predictions go (standard output)")
    parser.add_argument(
        "--what", choices=("label", "score", "probability"), default="label",
        help="labels (-1: a novelty) or predicted numbers; scores; or probabilities, labels in the first line (label)",
    )  # fmt: skip
    parser.add_argument("--quiet", "-q", action="store_true", help="no remarks")
    add_reading(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import model_io

    if args.model is None:
        if len(args.data) < 2:
            raise UsageError("predict needs a model file and data ('-' for a pipe): kernelstream predict MODEL DATA")
        args.model = args.data.pop(0)
    est, notes = model_io.read(args.model)
    stream = open_model_data(args, notes, needs_target=False)
    if args.what == "probability" and not hasattr(est, "predict_proba"):
        hint = " (train with --loss logistic)" if hasattr(est, "classes_") else ""
        raise UsageError(f"--what probability: {args.model} has none{hint}")
    if args.what == "score" and not hasattr(est, "decision_function"):
        raise UsageError(f"--what score: {args.model} predicts numbers, which are its scores: leave --what out")
    with contextlib.ExitStack() as stack:
        out = sys.stdout if args.out in (None, "-") else stack.enter_context(open(args.out, "w", encoding="utf-8"))
        if args.what == "probability":
            out.write("\t".join(map(str, est.classes_)) + "\n")
        for X, _ in stream:
            out.write("".join(f"{line}\n" for line in _lines(est, fitted(est, X), args.what)))
    if stream.skipped and not args.quiet:
        print(f"kernelstream: {stream.skipped:,} bad rows left out", file=sys.stderr)


def open_model_data(args: argparse.Namespace, notes: dict[str, Any], needs_target: bool) -> Any:
    """The stream of the files on the command line, read as the model's own data were."""
    known, given = dict(notes.get("reader", {})), reading(args)
    if args.data and args.data[0].startswith(DATASET):
        return open_data(args, given, needs_target)
    if known.get("mixed"):
        names = [*known.get("ignore", []), *([] if needs_target else [known["target"]])]
        target = {"target": given.get("target", known["target"])} if needs_target else {}
        options = {key: value for key, value in known.items() if key != "target"} | given | target
        return open_data(args, options | {"ignore": names, "eager": True}, needs_target)
    options = {**known, **given}
    if not needs_target and "target" not in given and "features" in options:
        options["target"] = None  # rows to predict need not have one
    # data in another format than the model's: its columns count by their place
    otherwise = given | {key: known[key] for key in ("dtype",) if key in known}
    return open_data(args, options, needs_target, otherwise)


def fitted(est: Any, X: Any) -> Any:
    """Rows of the width the model knows; the model follows where rows are wider."""
    width = getattr(est, "n_features_in_", None)
    if width is None:  # it takes rows as they come
        return X
    if X.shape[1] > width:
        est.widen(X.shape[1])
    elif X.shape[1] < width and hasattr(X, "indptr"):  # columns that did not occur are zero
        X.resize(X.shape[0], width)
    return X


def _lines(est: Any, X: Any, what: str) -> Any:
    if what == "probability":
        return ["\t".join(map(repr, row)) for row in est.predict_proba(X).tolist()]
    answer = est.decision_function(X) if what == "score" else est.predict(X)
    if np.ndim(answer) == 2:
        return ["\t".join(map(repr, row)) for row in answer.tolist()]
    values = answer.tolist()
    return values if answer.dtype.kind in "US" else map(repr, values)
