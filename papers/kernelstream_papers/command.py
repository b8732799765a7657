"""``reproduce``: the papers' tables and figures, and comparisons with other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import kernelstream_papers as papers
from kernelstream.cli.base import Run, UsageError, command, print_json, print_table

from ._arena_files import write_files
from ._experiment import Experiment
from .report import write

EXAMPLES = """examples:
  kernelstream reproduce --list
  kernelstream reproduce thesis-table-4-4 --data german --data spambase
  kernelstream reproduce --all --quick
  kernelstream reproduce streams-arena --files submissions
  kernelstream reproduce my-table.toml     (an experiment of your own, written as those in the package)
  kernelstream reproduce --page            (write the page again from what is there)
"""


@command("reproduce", "compute the papers' tables and figures again, beside other tools", examples=EXAMPLES)
def _reproduce(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments; --list shows them; or a file of your own, x.toml"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--all", action="store_true", help="run every experiment")
    parser.add_argument("--quick", action="store_true", help="few rows and repetitions: a test that everything runs")
    parser.add_argument("--page", action="store_true", help="only write the page, from existing results")
    parser.add_argument("--keep", action="store_true", help="afterwards, move the runs to their compact files")
    parser.add_argument("--results", metavar="DIR", help="where results are kept (results, or results-quick)")
    parser.add_argument("--data", action="append", metavar="NAME", help="only these data sets")
    parser.add_argument("--algorithm", action="append", metavar="LABEL", help="only these lines of the tables")
    parser.add_argument("--repeats", type=int, metavar="N", help="no more than so many repetitions this time")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="processes (one per core)")
    parser.add_argument("--files", metavar="DIR", help="write result files as the StreamArena board takes them")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bar")
    return _run


def _run(args: argparse.Namespace) -> None:
    folder = args.results or ("results-quick" if args.quick else "results")
    if args.list:
        found = [papers.load(name) for name in papers.names()]
        if args.json:
            print_json({e.name: {"source": e.source, "place": e.place, "title": e.title} for e in found})
        else:
            print_table("experiments", ("name", "source", "place", "title"),
                        [(e.name, e.source, e.place, e.title) for e in found])  # fmt: skip
        return
    if args.all and args.names:
        raise UsageError("give either names or --all")
    if args.page and (args.all or args.names):
        raise UsageError("--page runs nothing: it takes no names and no --all")
    if not (args.all or args.names or args.page):
        raise UsageError("which experiment? --list shows them, --all runs them all")
    names = papers.names() if args.all else args.names
    experiments = [papers.load(name) for name in names]
    known = {data.name for experiment in experiments for data in experiment.data}
    for name in args.data or ():
        if name not in known and experiments:
            raise UsageError(f"no data set {name!r} in what was asked for: {', '.join(sorted(known))}")
    lines = {algorithm.label for experiment in experiments for algorithm in experiment.algorithms}
    for label in args.algorithm or ():
        if label not in lines and experiments:
            raise UsageError(f"no algorithm {label!r} in what was asked for: {', '.join(sorted(lines))}")
    if args.files and not any(experiment.kind == "arena" for experiment in experiments):
        raise UsageError("--files goes with an experiment on whole streams, as streams-arena")
    summary = {}
    left_out = None
    for experiment in experiments:
        if args.repeats is not None:
            experiment = replace(experiment, repeats=min(args.repeats, experiment.repeats))
        asked = experiment.quick() if args.quick else experiment
        try:
            records = papers.run(
                experiment,
                folder,
                n_jobs=args.jobs,
                quick=args.quick,
                only=args.data,
                algorithms=args.algorithm,
                progress=False if args.quiet else None,
            )
        except papers.NoData as error:
            if len(experiments) == 1:
                raise
            print(f"kernelstream: left out: {error}", file=sys.stderr)
            left_out = error
            continue
        cells = papers.table(asked, records)
        summary[experiment.name] = {"cells": len(cells), "worse": len(papers.worse(asked, cells))}
        if not args.json:
            print(f"{experiment.name}: {len(cells)} cells, {summary[experiment.name]['worse']} behind the paper")
        if args.files and experiment.kind == "arena":
            summary[experiment.name]["files"] = _write_files(asked, records, args.files)
    if left_out is not None and not summary:
        raise left_out
    own = [e for e, name in zip(experiments, names, strict=True) if name.endswith(".toml")]
    page = write(folder, quick=args.quick, own=own)
    if args.keep:
        for name in dict.fromkeys([*papers.names(), *(experiment.name for experiment in experiments)]):
            records = papers.Records(folder, name)
            if records.path.exists():
                records.keep()
    if args.json:
        print_json({"experiments": summary, "page": str(page)})
    else:
        print(f"{page}")


def _write_files(experiment: Experiment, records: Iterable[dict[str, Any]], folder: str) -> int:
    """Result files of a board; returns how many."""
    paths, without = write_files(experiment, records, folder)
    print(f"kernelstream: {len(paths)} result files in {folder}", file=sys.stderr)
    if without:
        print(
            f"kernelstream: {without} runs are older and lack figures that the board asks for: run them again with "
            f"another folder, --results DIR",
            file=sys.stderr,
        )
    return len(paths)
