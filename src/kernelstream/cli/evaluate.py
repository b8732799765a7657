"""``evaluate``: how good a model or an algorithm is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..progress import size_text
from .algorithms import add_algorithm, build, finds_novelties
from .base import Run, UsageError, command, csv_text, print_json, wants_bar
from .mixed import with_columns
from .reading import add_reading, open_data, reading
from .targets import as_labels, find_task, kind_of, targets_for, task_of

MAX_LABELS_SHOWN = 12  # labels that make a table of answers that can still be read

EXAMPLES = """examples:
  kernelstream evaluate test.csv --model prices.ks            held-out data, the model is not changed
  kernelstream evaluate stream.csv --target y -a nogd         prequential: predict each row, then learn it
"""


@command(
    "evaluate", "measure a model on held-out data, or an algorithm prequentially",
    "DATA [DATA ...] [--model FILE | --algorithm NAME] [options]", examples=EXAMPLES,
)  # fmt: skip
def _evaluate(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument(
        "--model", "-m", metavar="FILE", help="evaluate this model, unchanged; without it, an algorithm as it learns"
    )
    parser.add_argument(
        "--curve", metavar="FILE", help="write the running error of a prequential run (CSV, or a picture by its suffix)"
    )
    parser.add_argument(
        "--monitor",
        action="store_true",
        help="report the rows of a prequential run at which the loss or the inputs changed",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bar")
    add_reading(parser)
    add_algorithm(parser, argv)
    return lambda args: _held_out(args) if args.model else _prequential(args)


def _held_out(args: argparse.Namespace) -> None:
    from sklearn.base import is_classifier, is_outlier_detector

    from .. import model_io
    from ..evaluate.metrics import CRPS_LEVELS, crps_or_error, of_true_class
    from .predict import fitted, open_model_data

    for option in ("curve", "monitor"):
        if getattr(args, option):
            raise UsageError(f"--{option} is for prequential runs: leave out --model")
    est, notes = model_io.read(args.model)
    novelty, labels = is_outlier_detector(est), is_classifier(est)
    stream = open_model_data(args, notes, needs_target=not novelty, est=est)
    tally = _tally("novelty" if novelty else "classification" if labels else "regression", est)
    read, by_label = targets_for("multiclass" if labels else "regression"), _ByLabel()
    for X, y in stream:
        if y is None and not novelty:
            raise UsageError(f"--target: {stream.name} has no column to compare with")
        X = fitted(est, X)
        said, given = est.predict(X), None
        if novelty:
            by_label.add(y, said)
        else:
            y = read(y)
        if tally.needs_probability and labels:
            given = of_true_class(est.predict_proba(X), est.classes_, y)
        elif tally.needs_probability:
            given = crps_or_error(y, said, est.predict_quantiles(X, CRPS_LEVELS))
        tally.add(y, said, given)
    if not stream.rows:
        raise ValueError(f"{stream.name} has no rows")
    about = {"model": args.model, "data": args.data, "rows": stream.rows, "skipped": stream.skipped}
    _show(args, about | tally.result() | by_label.result(), tally)


def _tally(task: str, est: Any, points: int = 0) -> Any:
    """A tally of everything that a model can answer."""
    from ..evaluate import Tally

    names = {"classification": ["mistake_rate", "accuracy"], "regression": ["mse", "rmse", "mae"]}.get(task, [])
    if task == "classification" and hasattr(est, "predict_proba"):
        names.append("log_loss")
    elif task == "regression" and hasattr(est, "predict_quantiles"):
        names.append("crps")
    return Tally(task, names, points)


class _ByLabel:
    """The share of rows called novel, for every label if there are labels."""

    def __init__(self) -> None:
        self.tallies: dict[str, Any] = {}
        self.known: bool | None = None  # whether targets are labels

    def add(self, y: np.ndarray | None, said: np.ndarray) -> None:
        if y is not None and self.known is None:
            self.known = find_task(y) != "regression"
        if y is not None and self.known:
            y = as_labels(y)
            for label in np.unique(y):
                tally = self.tallies.setdefault(f"novelty_rate of {label}", _tally("novelty", None))
                tally.add(None, said[y == label])

    def result(self) -> dict[str, float]:
        return {name: tally.result()["novelty_rate"] for name, tally in self.tallies.items()}


def _prequential(args: argparse.Namespace) -> None:
    from ..evaluate import prequential

    if finds_novelties(args, {}):
        raise UsageError("novelties have no target to compare with: 'train' reports how many rows were novel")
    stream = open_data(args, reading(args))
    task = task_of(stream, args.task)
    est = with_columns(build(args, task), stream, reading(args))
    tally = _tally(kind_of(task), est, points=200)
    monitor = None
    if args.monitor:
        from ..monitor import Monitor

        monitor = Monitor()
    result = prequential(
        est,
        blocks_for(est, stream, task, args.task),
        metrics=tally,
        block_size=stream.block,
        name=args.algorithm,
        n_rows=stream.n_rows,
        progress=wants_bar(args),
        monitor=monitor,
    )
    if args.curve:
        _write_curve(args.curve, result)
    about = {"algorithm": args.algorithm, "task": task, "data": args.data}
    about |= {"rows": result.n_rows, "skipped": stream.skipped} | tally.result()
    about |= {name: getattr(result, name) for name in ("seconds", "rows_per_second", "model_bytes")}
    if monitor is not None:
        about["changes"] = [asdict(mark) for mark in result.marks]
    _show(args, about, tally)


def blocks_for(est: Any, stream: Any, task: str, given: str = "auto") -> Any:
    """Blocks for an evaluation; where rows get wider, the model does too."""
    from .predict import fitted

    read = targets_for(task, given)
    for X, y in stream:
        yield fitted(est, X), read(y)


def _write_curve(path: str, result: Any) -> None:
    if path.lower().endswith((".png", ".svg", ".pdf")):
        from .. import plots

        plots.curves(result, path)
        return
    name, curve = next(iter(result.curves.items()))
    with open(path, "w", encoding="utf-8") as file:
        file.write(csv_text([("rows", name), *zip(curve.rows.tolist(), curve.value.tolist(), strict=True)]))


def _show(args: argparse.Namespace, result: dict[str, Any], tally: Any) -> None:
    labels, counts = tally.table()
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
