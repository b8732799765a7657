"""The demonstration behind ``kernelstream demo``: a few learners, a real data set and a drifting stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from . import datasets, drift, plots, zoo
from .engine import has_native
from .evaluate import Result, prequential
from .evaluate._result import show_bytes

__all__ = ["run"]

ROWS, ROWS_IN_PYTHON = 200_000, 20_000  # of the drifting stream, with and without the compiled core


@dataclass(frozen=True)
class Stage:
    """A stream, and the learners that run over it."""

    title: str
    n_rows: int
    classes: np.ndarray
    blocks: Callable[[], Iterable[tuple[Any, Any]]]  # a fresh pass over the same rows
    learners: dict[str, Any]
    windows: int | None = None  # draw stretches instead of the running rate


def run(
    out: str | Path = "kernelstream-demo.png", n_rows: int | None = None, console: Console | None = None
) -> list[Result]:
    """Run the demonstration: a table on the console, the curves in a picture.

    Parameters
    ----------
    out : str or Path
        File of the picture.
    n_rows : int, optional
        Length of the drifting stream: 200,000, or 20,000 where the compiled core is missing.
    console : rich Console, optional

    Returns
    -------
    list of Result
        In the order of the table.
    """
    console = console or Console()
    fast = has_native()
    if not fast:
        console.print("Without the compiled core: less data, to stay under a minute.", highlight=False)
    n_rows = n_rows or (ROWS if fast else ROWS_IN_PYTHON)
    started = time.perf_counter()
    figure, axes = plots.figure(columns=2)  # first, so that a missing matplotlib shows before the work
    results = []
    for stage, ax in zip([_real(fast), _drifting(n_rows)], axes, strict=True):
        with threadpool_limits(1):  # products of small blocks: more threads only wait for each other
            runs = _run_stage(stage, console)
        console.print(_table(stage, runs))
        plots.curves(runs, ax=ax, windows=stage.windows, title=stage.title)
        results += runs
    path = plots.save(figure, out)
    console.print(f"Curves: {path.resolve()}   ({time.perf_counter() - started:.0f} s in all)", highlight=False)
    return results


def _run_stage(stage: Stage, console: Console) -> list[Result]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    results = []
    with Progress(*columns, console=console, transient=True) as progress:
        for label, est in stage.learners.items():
            task = progress.add_task(label, total=stage.n_rows, state="")
            begun = time.perf_counter()

            def show(rows: int, _: Any, rate: float, task: Any = task, begun: float = begun) -> None:
                speed = rows / max(time.perf_counter() - begun, 1e-9)
                progress.update(task, completed=rows, state=f"{rate:.1%} mistakes, {speed:,.0f} rows/s")

            size = None if hasattr(est, "learn") else _linear_block(stage)
            results.append(
                prequential(est, stage.blocks(), block_size=size, classes=stage.classes, progress=show, name=label)
            )
            progress.update(task, completed=stage.n_rows)
    return results


def _linear_block(stage: Stage) -> int:
    """Rows per block of the linear model, which lags by a block: few where few rows have to do."""
    return 10 if stage.n_rows < 10_000 else 100


def _table(stage: Stage, results: list[Result]) -> Table:
    table = Table(
        title=f"{stage.title}, {stage.n_rows:,} rows",
        title_justify="left",
        caption=f"SGDClassifier learns {_linear_block(stage)} rows at a time, the others one by one",
        caption_justify="left",
    )
    table.add_column("learner")
    for heading in ("mistake rate", "rows/s", "model size"):
        table.add_column(heading, justify="right")
    best = min(result.mistakes or 0 for result in results)
    for result in results:
        style = "bold" if result.mistakes == best else None
        rate = f"{result.mistake_rate:.2%}"
        table.add_row(result.name, rate, f"{result.rows_per_second:,.0f}", show_bytes(result.model_bytes), style=style)
    return table


def _real(fast: bool) -> Stage:
    """The larger data set if it is there, shuffled: many files are sorted by class."""
    name = "ijcnn1" if fast and "ijcnn1" in datasets.names() else "digits"
    data = datasets.load(name, scale="standard")
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y = data.X[order], data.y[order]
    return Stage(
        title=name,
        n_rows=len(y),
        classes=np.unique(y),
        blocks=lambda: [(X, y)],
        learners=_learners(data.task, gamma="scale"),
    )


def _drifting(n_rows: int) -> Stage:
    return Stage(
        title="moving hills (abrupt drift)",
        n_rows=n_rows,
        classes=np.array([-1, 1]),
        blocks=lambda: drift.generate(n_rows, block=1000, kind="abrupt", random_state=0),
        learners=_learners("binary", gamma=0.5),
        windows=80,
    )


def _learners(task: str, gamma: Any) -> dict[str, Any]:
    return {
        "linear (SGDClassifier)": SGDClassifier(random_state=0),
        "fogd, 200 frequencies": zoo.make("fogd", task=task, n_components=200, gamma=gamma, random_state=0),
        "fogd, 1000 frequencies": zoo.make("fogd", task=task, n_components=1000, gamma=gamma, random_state=0),
        "nogd, 100 landmarks": zoo.make("nogd", task=task, budget=100, rank=100, gamma=gamma, random_state=0),
    }
