"""``train``: a model from a stream of rows, with checkpoints."""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ..files import descriptor, is_special
from ..progress import RowsBar, size_text
from ._stopping import Awake, Stopping, name_of
from .algorithms import add_algorithm, build, finds_novelties
from .base import Interrupted, Run, UsageError, command, inner, not_the_data, positive, print_json, wants_bar
from .mixed import CELL_OPTIONS, WrongCells, show_kinds, with_columns
from .reading import add_reading, expected_rows, fingerprint, open_data, reading
from .targets import find_task, targets_for

EXAMPLES = """examples:
  kernelstream train flights.csv --target delayed --model flights.ks
  kernelstream train prices.csv --target price --drop id --model prices.ks
  zcat clicks.gz | kernelstream train - --algorithm fogd --gamma 0.1 --model clicks.ks
  kernelstream train big.svm --model big.ks --checkpoint big.run --every 1_000_000 --resume
  kernelstream train sensors.csv --task novelty --drop time --model sensors.ks
  kernelstream train 'part-*.svm' --dask tcp://host:8786 --algorithm ridge --model big.ks
"""


@command(
    "train", "learn a model from files or standard input, in one pass",
    "DATA [DATA ...] --model FILE [--algorithm NAME] [options]", examples=EXAMPLES,
)  # fmt: skip
def _train(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("--model", "-m", metavar="FILE", help="file to write the model to")
    parser.add_argument(
        "--from", dest="start", metavar="MODEL", help="continue training this model instead of starting a new one"
    )
    group = parser.add_argument_group("checkpoints")
    group.add_argument("--checkpoint", metavar="FOLDER", help="folder for checkpoints")
    group.add_argument(
        "--every", type=positive, default=100_000, metavar="ROWS", help="rows between checkpoints (100,000)"
    )
    group.add_argument("--keep", type=positive, default=3, metavar="N", help="checkpoints to keep (3)")
    group.add_argument("--resume", action="store_true", help="resume from the latest checkpoint, if there is one")
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="train on the workers of this dask scheduler, which read the files; 'local': on processes of this machine",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bar, no messages")
    add_reading(parser)
    add_algorithm(parser, argv)
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import checkpoint, model_io
    from ..evaluate.runners import rows_learned

    if args.model is None and args.checkpoint is None:
        raise UsageError("--model is required: the file to write the model to")
    if args.resume and args.checkpoint is None:
        raise UsageError("--resume needs --checkpoint, the folder to resume from")
    if args.resume and args.start:
        raise UsageError("--resume continues from a checkpoint, --from from a model: choose one")
    _check_target(args.model)
    if args.model is not None:
        not_the_data("--model", args.model, args.data)
    if args.checkpoint is not None and os.path.exists(args.checkpoint) and not os.path.isdir(args.checkpoint):
        raise UsageError(f"--checkpoint: {args.checkpoint} is a file, but checkpoints need a folder")
    handler = logging.StreamHandler()
    handler.addFilter(logging.Filter("kernelstream"))  # not the messages of other libraries
    logging.basicConfig(format="kernelstream: %(message)s", level=logging.WARNING, handlers=[handler])
    warnings.simplefilter("once", RuntimeWarning)
    if args.dask is not None:
        from ._dask import train_on_workers

        train_on_workers(args)
        return
    started, notes = (model_io.read(args.start)) if args.start else (None, {})
    before = notes.get("rows", 0) if started is None or "rows" in notes else rows_learned(started)
    options = started_options(notes.get("reader", {}), reading(args))
    novelty = finds_novelties(args, notes)
    stream = open_data(args, options, needs_target=not novelty)
    if stream.peek() is None:
        raise ValueError(f"{stream.name} has no rows")
    found = checkpoint.Checkpoints(args.checkpoint).latest() if args.resume else None
    task = "novelty" if novelty else task_of_run(args, stream, found, notes)
    est = with_columns(build(args, task), stream, options) if started is None else started
    if not args.quiet and not args.json:
        show_kinds(stream)
    wrong = WrongCells(stream, est)
    args.algorithm = notes.get("algorithm", args.algorithm)
    model_io.to_bytes(est)  # a model that cannot be saved should fail now, not hours later
    notes = {
        "task": task,
        "algorithm": args.algorithm,
        "reader": kept(options, stream),
        "data": fingerprint(args.data),
    }
    if found is not None:
        before = found[1]["notes"].get("rows_before", 0)
    if before:
        notes["rows_before"] = before
    if found is not None and not args.quiet:
        print(f"resuming from row {found[1]['position']['rows']:,}", file=sys.stderr)
    metric = {"regression": "mse", "novelty": "novel"}.get(task, "mistakes")
    where = f"the checkpoint is in {args.checkpoint}: run the same command with --resume to continue"
    if args.checkpoint is None:
        where = f"{args.model} holds what was learned"

    def hold(model: bytes, rows: int, inside: dict[str, Any]) -> None:
        def rescue() -> str:
            if args.checkpoint is not None:
                checkpoint.Checkpoints(args.checkpoint, args.keep).save(pickle.loads(model), rows, inside)
            else:
                model_io.save(pickle.loads(model), args.model, notes | {"rows": before + rows, "finished": False})
            return f"stopped after {rows:,} rows, inside a block that takes long; {where}"

        asked.rescue = rescue

    with Stopping(keeps=hasattr(est, "learn")) as asked, RowsBar(wants_bar(args), args.algorithm, metric) as bar:

        def after_block(run: Any) -> None:
            wrong.note_lines()
            bar.rows(run.rows, run.value, expected_rows(stream), run.resumed)

        run = checkpoint.train(
            est,
            Awake(stream, asked),
            args.checkpoint,
            every=args.every,
            keep=args.keep,
            resume=args.resume,
            labels=targets_for(task, args.task, getattr(est if found is None else found[0], "classes_", ())),
            stop=asked,
            progress=after_block,
            hold=hold,
            notes=notes,
        )
    stream.close()
    notes |= {"rows": before + run.rows, "finished": run.finished, "error": {run.metric: run.value}}
    whole = run.finished or args.checkpoint is None
    if args.model is not None and whole and run.rows:
        model_io.save(est, args.model, notes)
    _report(args, run, est, task, whole)
    if not args.quiet:
        for sentence in wrong.report():
            print(f"kernelstream: {sentence}", file=sys.stderr)
    if not run.finished:
        where = where if run.rows or args.checkpoint else "there is no model"
        raise Interrupted(f"stopped after {run.rows:,} rows by {name_of(asked.number)}; {where}", asked.number)


def started_options(known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """How rows are read to continue a model: as its own were, unless the command line says otherwise."""
    if not known.get("mixed"):
        return {**({"mixed": False} if known else {}), **known, **given}
    dropped = [name for name in known.get("ignore", []) if name != given.get("target")]
    return {**known, **given, "ignore": dropped}


def _check_target(path: str | None) -> None:
    """UsageError if a model cannot be written: now, not hours later."""
    if path is None:
        return
    if is_special(path):
        if descriptor(path) is None and not os.access(path, os.W_OK):
            raise UsageError(f"--model: {path} cannot be written to")
        return
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"--model: {path}: {error.strerror}") from None
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path) or os.curdir
    if not os.path.isdir(folder):
        raise UsageError(f"--model: there is no folder {folder}")
    if os.path.isdir(path):
        raise UsageError(f"--model: {path} is a folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--model: the folder {folder} cannot be written to")


def task_of_run(args: argparse.Namespace, stream: Any, found: Any, notes: dict[str, Any]) -> str:
    known = notes.get("task") or (found[1]["notes"].get("task") if found is not None else None)
    if args.task != "auto":
        return args.task
    if known is not None:
        return known
    y = stream.peek()[1]
    if y is None:
        raise UsageError(f"--target: {stream.name} has no column to learn")
    task = find_task(y)
    if not args.quiet and not args.json:
        print(f"task: {task}, by the first {len(y):,} targets (--task overrides)", file=sys.stderr)
    return task


def kept(options: dict[str, Any], stream: Any) -> dict[str, Any]:
    """Options that a reader of other data for the same model needs."""
    reader = inner(stream)
    if reader.mixed:
        keep = {key: value for key, value in options.items() if key in ("format", "header", "delimiter", "strict")}
        keep |= {key: getattr(reader, key) for key in ("marks", "thousands") if hasattr(reader, key)}
        return keep | {
            "mixed": True, "target": reader.target, "ignore": list(options.get("drop", [])), "kinds": reader.kinds,
        }  # fmt: skip
    columns = getattr(reader, "columns", None)
    if columns is None:
        return {key: value for key, value in options.items() if key in ("format", "zero_based", "dtype", "target")}
    passing = ("drop", "encoding", "on_error", "block", "n_features", *CELL_OPTIONS)
    keep = {key: value for key, value in options.items() if key not in passing}
    return {**keep, "features": columns.feature_names, "target": reader.target}


def _report(args: argparse.Namespace, run: Any, est: Any, task: str, whole: bool) -> None:
    new = run.rows - run.resumed
    rate = new / max(run.seconds, 1e-9)
    about = {"algorithm": args.algorithm, "task": task, "finished": run.finished, "rows": run.rows}
    about |= {"skipped": run.skipped, "resumed_at": run.resumed, run.metric: run.value}
    about |= {"seconds": run.seconds, "rows_per_second": rate}
    line = f"{new:,} rows in {run.seconds:.1f} s ({rate:,.0f} rows/s), {run.metric.replace('_', ' ')} {run.value:.4g}"
    if run.skipped:
        line += f", {run.skipped:,} bad rows left out"
    report(args, est, about, line, whole)


def report(args: argparse.Namespace, est: Any, about: dict[str, Any], line: str, whole: bool = True) -> None:
    """Print what was done, and where a ``whole`` model was written, on standard output unless the model goes there."""
    from ..evaluate import model_bytes

    file = sys.stderr if args.model is not None and descriptor(args.model) == 1 else sys.stdout
    model = args.model if whole else None
    if args.json:
        features = getattr(getattr(est, "model_", est), "n_features_in_", None)
        print_json(about | {"model": model, "model_bytes": model_bytes(est), "features": features}, file)
    elif not args.quiet:
        written = "" if model is None else f"; {model}"
        written += "" if model is None or is_special(model) else f" ({size_text(os.path.getsize(model))})"
        print(line + written, file=file)
