"""``train``: a model from a stream of rows, with checkpoints."""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..progress import RowsBar
from ._stopping import Awake, Stopping, name_of
from .algorithms import add_algorithm, build, finds_novelties
from .base import Interrupted, Run, UsageError, command, not_the_data, positive, wants_bar
from .mixed import WrongCells, show_kinds, with_columns
from .reading import add_reading, expected_rows, fingerprint, open_data, reading
from .targets import targets_for
from .training import check_writable, kept, report, task_of_run

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


class Begun(NamedTuple):
    """What a run of ``train`` starts with."""

    model: Any
    stream: Any
    checkpoint: Any  # the latest one, (model, what it holds), or None
    task: str
    notes: dict[str, Any]  # of the model file
    rows_before: int  # learned by runs before this one
    wrong: WrongCells


def _run(args: argparse.Namespace) -> None:
    _check(args)
    handler = logging.StreamHandler()
    handler.addFilter(logging.Filter("kernelstream"))  # not the messages of other libraries
    logging.basicConfig(format="kernelstream: %(message)s", level=logging.WARNING, handlers=[handler])
    warnings.simplefilter("once", RuntimeWarning)
    if args.dask is not None:
        from ._dask import train_on_workers

        train_on_workers(args)
        return
    begun = _begin(args)
    where = f"the checkpoint is in {args.checkpoint}: run the same command with --resume to continue"
    if args.checkpoint is None:
        where = f"{args.model} holds what was learned"
    run, stopped_by = _learn(args, begun, where)
    begun.stream.close()
    _end(args, begun, run)
    if not run.finished:
        where = where if run.rows or args.checkpoint else "there is no model"
        raise Interrupted(f"stopped after {run.rows:,} rows by {name_of(stopped_by)}; {where}", stopped_by)


def _check(args: argparse.Namespace) -> None:
    """UsageError for options that contradict each other, or files that cannot be written."""
    if args.model is None and args.checkpoint is None:
        raise UsageError("--model is required: the file to write the model to")
    if args.resume and args.checkpoint is None:
        raise UsageError("--resume needs --checkpoint, the folder to resume from")
    if args.resume and args.start:
        raise UsageError("--resume continues from a checkpoint, --from from a model: choose one")
    check_writable(args.model)
    if args.model is not None:
        not_the_data("--model", args.model, args.data)
    if args.checkpoint is not None and os.path.exists(args.checkpoint) and not os.path.isdir(args.checkpoint):
        raise UsageError(f"--checkpoint: {args.checkpoint} is a file, but checkpoints need a folder")


def _begin(args: argparse.Namespace) -> Begun:
    """Open the data, and make the model or read the one to go on with."""
    from .. import checkpoint, model_io
    from ..evaluate.runners import rows_learned

    started, notes = (model_io.read(args.start)) if args.start else (None, {})
    before = notes.get("rows", 0) if started is None or "rows" in notes else rows_learned(started)
    options = started_options(notes.get("reader", {}), reading(args))
    novelty = finds_novelties(args, notes)
    stream = open_data(args, options, needs_target=not novelty)
    if stream.peek() is None:
        raise ValueError(f"{stream.name} has no rows")
    found = checkpoint.Checkpoints(args.checkpoint).latest() if args.resume else None
    task = "novelty" if novelty else task_of_run(args, stream, found, notes)
    model = with_columns(build(args, task), stream, options) if started is None else started
    if not args.quiet and not args.json:
        show_kinds(stream)
    wrong = WrongCells(stream, model)
    args.algorithm = notes.get("algorithm", args.algorithm)
    model_io.to_bytes(model)  # a model that cannot be saved should fail now, not hours later
    notes = {"task": task, "algorithm": args.algorithm, "reader": kept(options, stream), "data": fingerprint(args.data)}
    if found is not None:
        before = found[1]["notes"].get("rows_before", 0)
        if not args.quiet:
            print(f"resuming from row {found[1]['position']['rows']:,}", file=sys.stderr)
    notes |= {"rows_before": before} if before else {}
    return Begun(model, stream, found, task, notes, before, wrong)


def _learn(args: argparse.Namespace, begun: Begun, where: str) -> tuple[Any, int]:
    """Learn the stream; returns the run, and the number of the signal that ended it."""
    from .. import checkpoint, model_io

    def hold(model: bytes, rows: int, inside: dict[str, Any]) -> None:
        def rescue() -> str:
            if args.checkpoint is not None:
                checkpoint.Checkpoints(args.checkpoint, args.keep).save(pickle.loads(model), rows, inside)
            else:
                notes = begun.notes | {"rows": begun.rows_before + rows, "finished": False}
                model_io.save(pickle.loads(model), args.model, notes)
            return f"stopped after {rows:,} rows, inside a block that takes long; {where}"

        asked.rescue = rescue

    def after_block(run: Any) -> None:
        begun.wrong.note_lines()
        bar.rows(run.rows, run.value, expected_rows(begun.stream), run.resumed)

    metric = {"regression": "mse", "novelty": "novel"}.get(begun.task, "mistakes")
    known = begun.model if begun.checkpoint is None else begun.checkpoint[0]
    keeps = hasattr(begun.model, "learn")
    with Stopping(keeps=keeps) as asked, RowsBar(wants_bar(args), args.algorithm, metric) as bar:
        run = checkpoint.train(
            begun.model,
            Awake(begun.stream, asked),
            args.checkpoint,
            every=args.every,
            keep=args.keep,
            resume=args.resume,
            labels=targets_for(begun.task, args.task, getattr(known, "classes_", ())),
            stop=asked,
            progress=after_block,
            hold=hold,
            notes=begun.notes,
        )
    return run, asked.number


def _end(args: argparse.Namespace, begun: Begun, run: Any) -> None:
    """Write the model, and print what was done."""
    from .. import model_io

    ended = {"rows": begun.rows_before + run.rows, "finished": run.finished, "error": {run.metric: run.value}}
    whole = run.finished or args.checkpoint is None
    if args.model is not None and whole and run.rows:
        model_io.save(begun.model, args.model, begun.notes | ended)
    _report(args, run, begun, whole)
    if not args.quiet:
        for sentence in begun.wrong.report():
            print(f"kernelstream: {sentence}", file=sys.stderr)


def started_options(known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """How rows are read to continue a model: as its own were, unless the command line says otherwise."""
    if not known.get("mixed"):
        return {**({"mixed": False} if known else {}), **known, **given}
    dropped = [name for name in known.get("ignore", []) if name != given.get("target")]
    return {**known, **given, "ignore": dropped}


def _report(args: argparse.Namespace, run: Any, begun: Begun, whole: bool) -> None:
    new = run.rows - run.resumed
    rate = new / max(run.seconds, 1e-9)
    about = {"algorithm": args.algorithm, "task": begun.task, "finished": run.finished, "rows": run.rows}
    about |= {"skipped": run.skipped, "resumed_at": run.resumed, run.metric: run.value}
    about |= {"seconds": run.seconds, "rows_per_second": rate}
    line = f"{new:,} rows in {run.seconds:.1f} s ({rate:,.0f} rows/s), {run.metric.replace('_', ' ')} {run.value:.4g}"
    if run.skipped:
        line += f", {run.skipped:,} bad rows left out"
    report(args, begun.model, about, line, whole)
