"""``evaluate``: how good a model or an algorithm is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from .._progress import size_text
from ._algorithms import add_algorithm, build, finds_novelties
from ._base import Run, UsageError, answers_a_file, command, csv_text, print_json, wants_bar
from ._mixed import with_columns
from ._reading import add_reading, open_data, reading
from ._targets import Peeked, as_labels, find_task, targets_for

MAX_LABELS_SHOWN = 12  # labels that make a table of answers that can still be read

EXAMPLES = """examples:
  kernelstream evaluate test.csv --model prices.ks            held-out data, the model stays as it is
  kernelstream evaluate stream.csv --target y -a nogd         prequential: predict each row, then learn it
"""


@command(
    "evaluate", "measure a model on held-out data, or an algorithm prequentially",
    "DATA [DATA ...] [--model FILE | --algorithm NAME] [options]", examples=EXAMPLES,
)  # fmt: skip
def _evaluate(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument(
        "--model", "-m", metavar="FILE", help="evaluate this model as it is; without it, an algorithm as it learns"
    )
    parser.add_argument(
        "--curve", metavar="FILE", help="write the running error of a prequential run (CSV, or a picture by its suffix)"
    )
    parser.add_argument(
        "--monitor", action="store_true", help="say at which rows of a prequential run the loss or the inputs changed"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bar")
    add_reading(parser)
    add_algorithm(parser, argv)
    return lambda args: _held_out(args) if args.model else _prequential(args)


def _held_out(args: argparse.Namespace) -> None:
    from sklearn.base import is_classifier, is_outlier_detector

    from .. import model_io
    from ..evaluate._metrics import CRPS_LEVELS, crps_or_error, of_true_class
    from ..evaluate._tallies import LabelTally, NumberTally
    from .predict import fitted, open_model_data

    if args.curve:
        raise UsageError("--curve is for prequential runs: without --model")
    if args.monitor:
        raise UsageError("--monitor is for prequential runs: without --model")
    est, notes = model_io.read(args.model)
    answers_a_file(est)
    novelty = is_outlier_detector(est)
    stream = open_model_data(args, notes, needs_target=not novelty, est=est)
    labels = is_classifier(est)
    tally: Any = _Novelties(est) if novelty else LabelTally() if labels else NumberTally()
    read = targets_for("multiclass" if labels else "regression")
    for X, y in stream:
        if y is None and not novelty:
            raise UsageError(f"--target: {stream.name} has no column to compare with")
        X = fitted(est, X)
        if novelty:
            tally.add(X, y)
            continue
        y = read(y)
        said, given = est.predict(X), None
        if labels and hasattr(est, "predict_proba"):
            given = of_true_class(est.predict_proba(X), est.classes_, y)
        elif not labels and hasattr(est, "predict_quantiles"):
            given = crps_or_error(y, said, est.predict_quantiles(X, CRPS_LEVELS))
        tally.add(y, said, given)
    if not stream.rows:
        raise ValueError(f"{stream.name} has no rows")
    about = {"model": args.model, "data": args.data, "rows": stream.rows, "skipped": stream.skipped, **tally.result()}
    _show(args, about, tally if labels else None)


class _Novelties:
    """The share of rows called novel: of all, and of every label where there are some."""

    def __init__(self, est: Any):
        self.est = est
        self.counts: dict[str, tuple[int, int]] = {}
        self.by_label: bool | None = None

    def add(self, X: Any, y: np.ndarray | None) -> None:
        novel = self.est.predict(X) < 0
        groups = {}
        if y is not None and self.by_label is None:
            self.by_label = find_task(y) != "regression"
        if y is not None and self.by_label:
            y = as_labels(y)
            groups = {f"novelty_rate of {label}": y == label for label in np.unique(y)}
        for name, rows in {"novelty_rate": np.ones(len(novel), bool), **groups}.items():
            seen, found = self.counts.get(name, (0, 0))
            self.counts[name] = (seen + int(np.count_nonzero(rows)), found + int(np.count_nonzero(novel[rows])))

    def result(self) -> dict[str, float]:
        return {name: found / seen for name, (seen, found) in self.counts.items()}


def _prequential(args: argparse.Namespace) -> None:
    from ..evaluate import prequential
    from ..evaluate._metrics import BASIC
    from ..evaluate._tallies import LabelTally, NumberTally

    if finds_novelties(args, {}):
        raise UsageError("novelties have no target to compare with: 'train' says how many rows were novel on the way")
    stream = Peeked(open_data(args, reading(args)))
    if stream.first is None:
        raise ValueError(f"{stream.name} has no rows")
    task = find_task(stream.first[1]) if args.task == "auto" else args.task
    est = with_columns(build(args, task), stream, reading(args))
    tally: Any = NumberTally() if task == "regression" else LabelTally()
    sure = hasattr(est, "predict_quantiles" if task == "regression" else "predict_proba")
    monitor = None
    if args.monitor:
        from ..monitor import Monitor

        monitor = Monitor()
    result = prequential(
        est,
        blocks_for(est, stream, task, args.task),
        metrics=[BASIC[_kind(task)][0], _watching(tally, sure)],
        block_size=stream.block,
        name=args.algorithm,
        n_rows=stream.n_rows,
        progress=wants_bar(args),
        monitor=monitor,
    )
    if args.curve:
        _write_curve(args.curve, result)
    about = {
        "algorithm": args.algorithm,
        "task": task,
        "data": args.data,
        "rows": result.n_rows,
        "skipped": stream.skipped,
    }
    about |= {
        **tally.result(),
        "seconds": result.seconds,
        "rows_per_second": result.rows_per_second,
        "model_bytes": result.model_bytes,
    }
    if monitor is not None:
        about["changes"] = [asdict(mark) for mark in result.marks]
    _show(args, about, None if task == "regression" else tally)


def _kind(task: str) -> str:
    return "regression" if task == "regression" else "classification"


def _watching(tally: Any, sure: bool) -> Any:
    """A metric that hands the answers of a prequential run to a tally."""

    from ..evaluate._metrics import Metric

    def rows(y: np.ndarray, answer: np.ndarray, p: Any) -> float:
        tally.add(y, answer, p)
        return 0.0

    return Metric("tally", rows, needs_probability=sure)


def blocks_for(est: Any, stream: Any, task: str, given: str) -> Any:
    """Blocks for an evaluation; where rows get wider, the model does too."""
    read = targets_for(task, given)
    for X, y in stream:
        width = getattr(est, "n_features_in_", None)
        if width is not None and X.shape[1] > width:
            est.widen(X.shape[1])
        yield X, read(y)


def _write_curve(path: str, result: Any) -> None:
    if path.lower().endswith((".png", ".svg", ".pdf")):
        from .. import plots

        plots.curves(result, path)
        return
    name, curve = next(iter(result.curves.items()))
    with open(path, "w", encoding="utf-8") as file:
        file.write(csv_text([("rows", name), *zip(curve.rows.tolist(), curve.value.tolist(), strict=True)]))


def _show(args: argparse.Namespace, result: dict[str, Any], tally: Any = None) -> None:
    labels, counts = tally.table() if tally is not None else ([], np.zeros((0, 0), int))
    if args.json:
        confusion = {"confusion": {"labels": labels, "counts": counts}} if labels else {}
        print_json(result | confusion)
        return
    skip = ("data", "algorithm", "model", "skipped")
    for key, value in result.items():
        if key in skip and not (key == "skipped" and value):
            continue
        shown = f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
        if key == "model_bytes":
            shown = size_text(value)
        if key == "changes":
            shown = ", ".join(f"{mark['what']} at row {mark['row']:,}" for mark in value) or "none"
        print(f"{key.replace('_', ' '):16} {shown}")
    if 0 < len(labels) <= MAX_LABELS_SHOWN:
        rows = [[label, *(f"{count:,}" for count in line)] for label, line in zip(labels, counts.tolist(), strict=True)]
        headings = ["label \\ answer", *labels]
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            _, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
