"""``bench``: algorithms compared on the same rows."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._algorithms import SEED, options_of
from ._base import Interrupted, Run, UsageError, command, positive, print_json, print_table, size_text, wants_bar
from ._mixed import with_columns
from ._reading import add_reading, open_data, reading
from ._targets import Peeked, find_task, targets_for
from ._values import listed, pair, parameter
from .evaluate import blocks_for

HANDFUL = ("auto", "fogd", "ridge", "column_cells", "window", "bsgd_merge")  # one of each sort
BASELINES = {"regression": ("mean so far", "last value")}
LABEL_BASELINES = ("majority so far", "last label")

EXAMPLES = """examples:
  kernelstream bench flights.csv --target delayed             a handful of learners, beside two that know nothing
  kernelstream bench flights.csv --target delayed --algorithms auto,fogd --set gamma=0.1 --seconds 60
"""


@command("bench", "compare algorithms on the same rows: error, speed, size")
def _bench(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.usage = "kernelstream bench [DATA ...] [--algorithms A,B,C] [options]"
    parser.add_argument(
        "--algorithms", type=listed, metavar="A,B,C",
        help=f"which: names, or 'all' that serve the task ({','.join(HANDFUL)}, as far as they do)",
    )  # fmt: skip
    parser.add_argument("--task", choices=("auto", "binary", "multiclass", "regression"), default="auto",
                        help="what is learned (default: by the first rows)")  # fmt: skip
    parser.add_argument("--set", type=pair, action="append", default=[], metavar="NAME=VALUE", dest="assignments",
                        help="a parameter, for every algorithm that has it, as an option of 'train'")  # fmt: skip
    parser.add_argument("--seconds", type=positive, help="time limit; the table then shows what is done")
    parser.add_argument(
        "--rows", type=positive, default=10_000, help="rows of the drifting stream, where no data are given (10,000)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress bars")
    add_reading(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    from .. import zoo
    from ..streams._bytes import is_pipe, name_of

    once = [path for path in args.data if is_pipe(path)]
    if once:
        raise UsageError(f"bench reads its data once for every algorithm, but {name_of(once[0])} can be read only once")
    first = Peeked(_open(args)).first
    if first is None:
        raise ValueError(f"{' '.join(args.data)} has no rows")
    task = find_task(first[1]) if args.task == "auto" else args.task
    every = args.algorithms == ["all"]
    asked = zoo.names(task) if every else args.algorithms or [name for name in HANDFUL if name in zoo.names(task)]
    recipes = {name: zoo.get(name) for name in asked}
    given = {name: parameter(text) for name, text in args.assignments}
    unused = [name for name in given if not any(_has(recipe, task, name) for recipe in recipes.values())]
    if unused:
        raise UsageError(f"--set: none of the algorithms has {unused[0]!r}")
    deadline = time.monotonic() + args.seconds if args.seconds else float("inf")
    results, failed, left = _baselines(args, task), [], []
    asked_to_stop = False
    for name in recipes:
        if asked_to_stop or time.monotonic() > deadline:
            left.append(name)
            continue
        try:
            found = _one(args, name, task, given, deadline, every)
        except KeyboardInterrupt:
            asked_to_stop = True
            left.append(name)
        except Exception as error:
            if args.debug:
                raise
            failed.append(name)
            print(f"kernelstream: {name}: {error or type(error).__name__}", file=sys.stderr)
        else:
            results += [] if found is None else [found]
    _show(args, task, results)
    if left:
        print(f"kernelstream: not begun or not finished: {', '.join(left)}", file=sys.stderr)
    if asked_to_stop:
        raise Interrupted("interrupted; the table has what was finished")
    if failed and args.algorithms and not every:
        raise ValueError(f"{', '.join(failed)} failed")


def _open(args: argparse.Namespace) -> Any:
    from .. import drift

    if args.data:
        return open_data(args, reading(args))
    return _Plain(drift.generate(args.rows, block=1000, random_state=0), args.rows)


def _has(recipe: Any, task: str, name: str) -> bool:
    if name in options_of(recipe):
        return True
    return task in recipe.tasks and name in recipe.build(task=task).get_params()


def _made(recipe: Any, task: str, given: dict[str, Any]) -> Any:
    """The estimator of a recipe, with what was given of its own parameters."""
    from .. import zoo

    options = options_of(recipe)
    params = {"random_state": SEED} if "random_state" in options else {}
    params |= {name: value for name, value in given.items() if name in options}
    est = zoo.make(recipe.name, task, **params)
    rest = {name: value for name, value in given.items() if name not in options and name in est.get_params()}
    return est.set_params(**rest) if rest else est


def _one(
    args: argparse.Namespace, name: str, task: str, given: dict[str, Any], deadline: float, every: bool
) -> dict[str, Any] | None:
    """The result of one algorithm, on the rows up to the deadline; None for one that has no row-by-row learning."""
    from .. import zoo
    from ..evaluate import prequential

    est = _made(zoo.get(name), task, given)
    if every and not hasattr(est, "partial_fit"):
        return None  # it learns all rows at once, so it cannot be evaluated row by row
    stream = _open(args)
    est = with_columns(est, stream, reading(args))
    result = prequential(
        est,
        _until(deadline, blocks_for(est, stream, task, args.task)),
        block_size=stream.block,
        name=name,
        n_rows=stream.n_rows,
        progress=wants_bar(args),
    )
    return {
        "algorithm": name,
        **result.metrics,
        "rows": result.n_rows,
        "rows_per_second": result.rows_per_second,
        "model_bytes": result.model_bytes,
    }


def _until(deadline: float, blocks: Iterator[Any]) -> Iterator[Any]:
    """Blocks, at least one, as long as there is time."""
    for block in blocks:
        yield block
        if time.monotonic() > deadline:
            return


def _baselines(args: argparse.Namespace, task: str) -> list[dict[str, Any]]:
    """Answers that use no columns: the mean or the commonest label so far, and the target of the row before."""
    read, numbers = targets_for(task, args.task), task == "regression"
    names = BASELINES.get(task, LABEL_BASELINES)
    seen: Counter[Any] = Counter()
    total, n, last = 0.0, 0, None
    loss = np.zeros(2)
    for _, y in _open(args):
        for value in read(y).tolist():
            if numbers:
                loss += np.square([value - (total / n if n else 0.0), value - (last or 0.0)])
                total += value
            else:
                common = max(seen, key=seen.__getitem__) if seen else None
                loss += [value != common, value != last]
                seen[value] += 1
            last, n = value, n + 1
    metric = "mse" if numbers else "mistake_rate"
    return [
        {"algorithm": name, metric: float(x) / n, "rows": n, "rows_per_second": None, "model_bytes": 0}
        for name, x in zip(names, loss, strict=True)
    ]


def _show(args: argparse.Namespace, task: str, results: list[dict[str, Any]]) -> None:
    metric = "mse" if task == "regression" else "mistake_rate"
    results = sorted(results, key=lambda found: found[metric])
    rows = max(found["rows"] for found in results)
    if args.json:
        print_json({"task": task, "rows": rows, "results": results})
        return
    table = [
        (
            r["algorithm"] + ("" if r["rows"] == rows else f" (first {r['rows']:,} rows)"),
            f"{r[metric]:.4g}",
            "" if r["rows_per_second"] is None else f"{r['rows_per_second']:,.0f}",
            size_text(r["model_bytes"]) if r["model_bytes"] else "",
        )
        for r in results
    ]
    headings = ("algorithm", metric.replace("_", " "), "rows/s", "model")
    print_table(f"{task}, {rows:,} rows", headings, table, right=headings[1:])


class _Plain:
    """Generated blocks as a stream."""

    skipped, block = 0, 1024

    def __init__(self, blocks: Any, n_rows: int):
        self.blocks, self.n_rows, self.name = iter(blocks), n_rows, "drifting stream"

    def read(self) -> Any:
        return next(self.blocks, None)

    def __iter__(self) -> Any:
        return self.blocks
