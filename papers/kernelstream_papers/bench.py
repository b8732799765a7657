"""``bench``: algorithms compared on the same rows, in one order or in many."""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelstream.cli.algorithms import SEED, made, options_of, recipe_of, switched_off
from kernelstream.cli.base import Around, Interrupted, Run, UsageError, command, inner, positive, wants_bar
from kernelstream.cli.evaluate import blocks_for
from kernelstream.cli.mixed import with_columns
from kernelstream.cli.reading import add_reading, open_data, reading
from kernelstream.cli.targets import kind_of, targets_for, task_of
from kernelstream.cli.values import listed, pair, parameter
from kernelstream.streams.base import joined

ALGORITHMS = ("auto", "fogd", "ridge", "column_cells", "window", "bsgd_merge")  # one of each sort
BASELINES = {"regression": ("mean so far", "last value")}
LABEL_BASELINES = ("majority so far", "last label")
TUNING_ORDER = 1000  # the order on which parameters are chosen; those of the table count from 0

EXAMPLES = """examples:
  kernelstream bench flights.csv --target delayed             a handful of learners and two trivial baselines
  kernelstream bench flights.csv --target delayed --algorithms auto,fogd --set gamma=0.1 --seconds 60
  kernelstream bench a9a --test a9a.t --repeat 20 --algorithms perceptron,ogd,rbp,forgetron,fogd,nogd \\
      --set budget=500 --tune eta=0.02,0.2,2 --table latex --curve a9a.svg
"""


@command(
    "bench", "compare algorithms on the same rows: error, speed, size",
    "[DATA ...] [--test FILE] [--repeat N] [--algorithms A,B,C] [options]", examples=EXAMPLES,
)  # fmt: skip
def _bench(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    add = parser.add_argument
    add("--algorithms", type=listed, metavar="A,B,C",
        help=f"names, or 'all' that support the task (those of {','.join(ALGORITHMS)} that do)")  # fmt: skip
    add("--task", choices=("auto", "binary", "multiclass", "regression"), default="auto",
        help="what is learned (default: by the first rows)")  # fmt: skip
    add("--test", metavar="FILE", help="rows to predict after learning: the table also has the error on them")
    add("--repeat", type=positive, metavar="N",
        help="mean and deviation over N random orders, of rows held in memory (the file as it is, once)")  # fmt: skip
    add("--set", type=pair, action="append", default=[], metavar="NAME=VALUE", dest="assignments",
        help="a parameter, for every algorithm that has it, as an option of 'train'")  # fmt: skip
    add("--tune", type=pair, action="append", default=[], metavar="NAME=A,B,C",
        help="choose a parameter, for every algorithm that has it, on a separate order of the rows")  # fmt: skip
    add("--folds", type=positive, metavar="K", help="choose parameters by K-fold cross validation instead")
    add("--seconds", type=positive, help="time limit; the table then shows what was finished")
    add("--rows", type=positive, default=10_000, help="rows of the drifting stream that is used without data (10,000)")
    add("--table", choices=("text", "markdown", "latex", "csv"), default="text", help="how the table is written (text)")
    add(
        "--curve",
        metavar="FILE",
        help="error against rows and seconds: a picture by its suffix (png, svg, pdf), or CSV",
    )
    add("--json", action="store_true", help="print the results as JSON")
    add("--quiet", "-q", action="store_true", help="no progress bars")
    add_reading(parser)
    return _run


class _Held:
    """All rows of a stream.

    Parameters
    ----------
    stream : stream
        It is read to its end; what it says of columns and blocks holds for the orders too.
    """

    def __init__(self, stream: Any):
        self.stream = stream
        self.X, self.y = joined(list(stream))  # type: ignore[misc]
        orders = getattr(inner(stream), "orders", None)
        self.given = orders if orders is not None and orders.shape[1] == len(self.y) else np.empty((0, 0), np.int64)

    def order(self, number: int) -> np.ndarray:
        """A permutation of the rows: one of those in the file, if it has that many, otherwise a random one."""
        if number < len(self.given):
            return self.given[number]
        return np.random.default_rng(number).permutation(len(self.y))

    def rows(self, numbers: np.ndarray) -> _InOrder:
        """A stream of some rows, by their numbers."""
        return _InOrder(self, numbers)


class _InOrder(Around):
    """Blocks of held rows; all else is as in the stream that they came from."""

    def __init__(self, held: _Held, numbers: np.ndarray):
        super().__init__(held.stream)
        self.held, self.numbers, self.n_rows = held, numbers, len(numbers)

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        for start in range(0, self.n_rows, self.block):
            some = self.numbers[start : start + self.block]
            yield self.held.X.part(some) if hasattr(self.held.X, "part") else self.held.X[some], self.held.y[some]


@dataclass
class _Data:
    """What all algorithms learn."""

    args: argparse.Namespace
    task: str
    held: _Held | None  # all rows, where they are needed in other orders than that of the file
    test: argparse.Namespace | None
    notes: dict[str, Any]  # how the file was read: so is the one to test on

    @property
    def classes(self) -> Any:
        """All labels, where they are known before the first row: it then has an answer that may be wrong."""
        if self.held is None or self.task == "regression":
            return None
        return np.unique(targets_for(self.task)(self.held.y))

    def stream(self, order: int) -> Any:
        return _open(self.args) if self.held is None else self.held.rows(self.held.order(order))


@dataclass
class _Line:
    """An algorithm in the table: a result for each order, the errors of held-out rows, what was chosen."""

    name: str
    results: list[Any] = field(default_factory=list)
    tests: list[float] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)
    chosen: dict[str, Any] = field(default_factory=dict)


def _run(args: argparse.Namespace) -> None:
    from kernelstream import zoo
    from kernelstream.cli.training import kept
    from kernelstream.streams.bytes import is_pipe, name_of

    from .bench_table import show

    once = [path for path in args.data if is_pipe(path)]
    if once:
        raise UsageError(f"bench reads its data once for every algorithm, but {name_of(once[0])} can only be read once")
    if args.folds and (args.folds < 2 or not args.tune):
        raise UsageError("--folds chooses among the values of --tune: give --tune, and at least 2 folds")
    stream = _open(args)
    task = task_of(stream, args.task)
    every = args.algorithms == ["all"]
    asked = zoo.names(task) if every else args.algorithms or [name for name in ALGORITHMS if name in zoo.names(task)]
    recipes = {name: recipe_of(name) for name in asked}
    given = {name: parameter(text) for name, text in args.assignments}
    grid = {name: [parameter(word) for word in listed(text)] for name, text in args.tune}
    _check_parameters(recipes, task, given, grid)
    test = None
    if args.test is not None:
        test = copy.copy(args)
        test.data = [args.test]
    notes = {"reader": kept(reading(args), stream)} if args.data else {}
    data = _Data(args, task, _Held(stream) if args.repeat or grid else None, test, notes)
    deadline = time.monotonic() + args.seconds if args.seconds else float("inf")
    lines: list[_Line] = []
    failed, left = [], []
    asked_to_stop = False
    for name, recipe in recipes.items():
        if asked_to_stop or time.monotonic() > deadline:
            left.append(name)
            continue
        try:
            found = _one(data, recipe, given, grid, deadline, every)
        except KeyboardInterrupt:
            asked_to_stop = True
            left.append(name)
        except Exception as error:
            if args.debug:
                raise
            failed.append(name)
            print(f"kernelstream: {name}: {error or type(error).__name__}", file=sys.stderr)
        else:
            lines += [] if found is None else [found]
    show(args, task, _baselines(data), lines)
    if left:
        print(f"kernelstream: not started or finished: {', '.join(left)}", file=sys.stderr)
    if asked_to_stop:
        raise Interrupted("interrupted; the table shows what was finished")
    if failed and args.algorithms and not every:
        raise ValueError(f"{', '.join(failed)} failed")


def _open(args: argparse.Namespace) -> Any:
    from kernelstream import drift, streams

    if args.data:
        return open_data(args, reading(args))
    return streams.Blocks(drift.generate(args.rows, block=1000, random_state=0), n_rows=args.rows)


def _check_parameters(recipes: dict[str, Any], task: str, given: dict[str, Any], grid: dict[str, Any]) -> None:
    """UsageError for a parameter that no algorithm has; print which do not use one that would make them another."""
    for option, names in (("--set", given), ("--tune", grid)):
        for name in names:
            if not any(_has(recipe, task, name) for recipe in recipes.values()):
                raise UsageError(f"{option}: none of the algorithms has {name!r}")
            without = [recipe.name for recipe in recipes.values() if name in switched_off(recipe)]
            if without:
                said = f"have no {name} and are" if len(without) > 1 else f"has no {name} and is"
                print(f"kernelstream: {option} {name}: {', '.join(without)} {said} left unchanged", file=sys.stderr)


def _has(recipe: Any, task: str, name: str) -> bool:
    if name in options_of(recipe):
        return True
    known = task in recipe.tasks and name in recipe.build(task=task).get_params()
    return known and name not in switched_off(recipe)


def _one(
    data: _Data, recipe: Any, given: dict[str, Any], grid: dict[str, list[Any]], deadline: float, every: bool
) -> _Line | None:
    """One algorithm, up to the deadline; None for one that cannot learn row by row."""
    from kernelstream.evaluate import model_size

    given = {name: value for name, value in given.items() if _has(recipe, data.task, name)}
    if every and not hasattr(made(recipe, data.task, given), "partial_fit"):
        return None  # it learns all rows at once, so it cannot be evaluated row by row
    line = _Line(recipe.name)
    mine = {name: values for name, values in grid.items() if _has(recipe, data.task, name)}
    if mine:
        line.chosen = _chosen(data, recipe, given, mine)
    for order in range(data.args.repeat or 1):
        if line.results and time.monotonic() > deadline:
            break
        stream = data.stream(order)
        est = made(recipe, data.task, given | line.chosen, order if data.args.repeat else SEED)
        est, result = _learned(data, est, stream, recipe.name, deadline)
        if line.results and result.n_rows < line.results[0].n_rows:
            break  # cut short
        line.results.append(result)
        line.sizes.append(model_size(est))
        if data.test is not None:
            line.tests.append(_error_on_test(data, est))
    return line


def _learned(data: _Data, est: Any, stream: Any, name: str, deadline: float = float("inf")) -> tuple[Any, Any]:
    """The estimator after a pass over a stream, and the result on the way."""
    from kernelstream.evaluate import prequential

    est = with_columns(est, stream, reading(data.args))
    blocks = _until(deadline, blocks_for(est, stream, data.task, data.args.task))
    options = {"classes": data.classes, "n_rows": stream.n_rows, "progress": wants_bar(data.args)}
    return est, prequential(est, blocks, block_size=stream.block, name=name, **options)


def _chosen(data: _Data, recipe: Any, given: dict[str, Any], grid: dict[str, list[Any]]) -> dict[str, Any]:
    """The best of a grid: by the error on the way through one order, or by that of folds; a setting may fail."""
    assert data.held is not None
    order, folds = data.held.order(TUNING_ORDER), data.args.folds
    errors: dict[int, float] = {}
    candidates = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    for number, candidate in enumerate(candidates):
        try:
            if folds is None:
                est = made(recipe, data.task, given | candidate, TUNING_ORDER)
                _, result = _learned(data, est, data.held.rows(order), recipe.name)
                errors[number] = next(iter(result.metrics.values()))
                continue
            wrong = 0.0
            for fold in range(folds):
                out = np.arange(len(order)) % folds == fold
                est = made(recipe, data.task, given | candidate, TUNING_ORDER)
                est, _ = _learned(data, est, data.held.rows(order[~out]), recipe.name)
                wrong += _error(data, est, data.held.rows(order[out])) * np.count_nonzero(out)
            errors[number] = wrong / len(order)
        except (ValueError, FloatingPointError) as error:
            print(f"kernelstream: {recipe.name}: {candidate}: {error}", file=sys.stderr)
    if not errors:
        raise ValueError("no value of --tune could be used")
    return candidates[min(errors, key=errors.__getitem__)]


def _error_on_test(data: _Data, est: Any) -> float:
    from kernelstream.cli.predict import open_model_data

    return _error(data, est, open_model_data(data.test, data.notes, needs_target=True, est=est))  # type: ignore[arg-type]


def _error(data: _Data, est: Any, stream: Any) -> float:
    """Share of wrong answers, or the mean squared error, of rows that are not learned."""
    from kernelstream.evaluate import Tally

    tally = Tally(kind_of(data.task), detailed=False)
    for X, y in blocks_for(est, stream, data.task):
        tally.add(y, est.predict(X))
    tally.flush()
    if not tally.n:
        raise ValueError(f"{stream.name} has no rows")
    return tally.value()


def _until(deadline: float, blocks: Iterator[Any]) -> Iterator[Any]:
    """Blocks until the deadline, but at least one."""
    for block in blocks:
        yield block
        if time.monotonic() > deadline:
            return


def _baselines(data: _Data) -> list[dict[str, Any]]:
    """Answers that use no columns: the mean or the commonest label so far, and the target of the row before."""
    read, numbers = targets_for(data.task, data.args.task), data.task == "regression"
    errors = []
    for order in range(data.args.repeat or 1):
        seen: Counter[Any] = Counter()
        total, n, last = 0.0, 0, None
        loss = np.zeros(2)
        for _, y in data.stream(order):
            for value in read(y).tolist():
                if numbers:
                    loss += np.square([value - (total / n if n else 0.0), value - (last or 0.0)])
                    total += value
                else:
                    common = max(seen, key=seen.__getitem__) if seen else None
                    loss += [value != common, value != last]
                    seen[value] += 1
                last, n = value, n + 1
        errors.append(loss / n)
    names = BASELINES.get(data.task, LABEL_BASELINES)
    return [
        {"algorithm": name, "errors": list(x), "rows": n} for name, x in zip(names, np.transpose(errors), strict=True)
    ]
