"""The demonstration behind ``kernelstream demo``: the default learner and common tools, on two streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from . import datasets, drift, plots, zoo
from ._progress import size_text
from .engine import has_native
from .estimators import KernelClassifier
from .evaluate import Result, prequential

__all__ = ["run"]

STREAM_ROWS, STREAM_ROWS_IN_PYTHON = 20_000, 2_000  # of a stream, with and without the compiled core
STRETCHES = 40  # of which the mistake rate is drawn
BLOCK_ROWS = 50  # rows that scikit-learn's models learn at a time; they lag by as many


@dataclass(frozen=True)
class Stage:
    """A stream, and the learners that run over it."""

    title: str
    n_rows: int
    classes: np.ndarray
    blocks: Callable[[], Iterable[tuple[Any, Any]]]  # a fresh pass over the same rows
    learners: dict[str, Any]


def run(
    out: str | Path = "kernelstream-demo.png", n_rows: int | None = None, console: Console | None = None
) -> list[Result]:
    """Run the demonstration: a table on the console, the curves in a picture.

    Parameters
    ----------
    out : str or Path
        File of the picture.
    n_rows : int, optional
        Rows of each stream: 20,000, or 2,000 where the compiled core is missing.
    console : rich Console, optional

    Returns
    -------
    list of Result
        In the order of the table.
    """
    console = console or Console()
    fast = has_native()
    if not fast:
        console.print("The compiled core is not installed: fewer rows, to stay under a minute.", highlight=False)
    n_rows = n_rows or (STREAM_ROWS if fast else STREAM_ROWS_IN_PYTHON)
    started = time.perf_counter()
    figure, axes = plots.figure(columns=2)  # first, so that a missing matplotlib is reported before the work
    results = []
    for stage, ax in zip([_real(n_rows), _drifting(n_rows)], axes, strict=True):
        with threadpool_limits(1):  # products of small blocks: more threads only wait for each other
            runs = _run_stage(stage)
        console.print(_table(stage, runs))
        plots.curves(runs, ax=ax, windows=STRETCHES, title=stage.title)
        results += runs
    path = plots.save(figure, out)
    console.print(f"Curves: {path.resolve()}   ({time.perf_counter() - started:.0f} s in all)", highlight=False)
    return results


def _run_stage(stage: Stage) -> list[Result]:
    results = []
    for label, est in stage.learners.items():
        size = None if hasattr(est, "learn") else BLOCK_ROWS
        results.append(
            prequential(est, stage.blocks(), block_size=size, classes=stage.classes, n_rows=stage.n_rows, name=label)
        )
    return results


def _table(stage: Stage, results: list[Result]) -> Table:
    table = Table(
        title=f"{stage.title}, {stage.n_rows:,} rows",
        title_justify="left",
        caption=f"scikit-learn's models learn {BLOCK_ROWS} rows at a time, the others row by row",
        caption_justify="left",
    )
    table.add_column("learner")
    for heading in ("mistake rate", "rows/s", "model size"):
        table.add_column(heading, justify="right")
    best = min(result.mistakes or 0 for result in results)
    for result in results:
        style = "bold" if result.mistakes == best else None
        rate = f"{result.mistake_rate:.2%}"
        table.add_row(result.name, rate, f"{result.rows_per_second:,.0f}", size_text(result.model_bytes), style=style)
    return table


def _real(n_rows: int) -> Stage:
    """Prices of electricity, up or down: a stream in its own order."""
    X, y = datasets.load("electricity", return_X_y=True)
    X, y = X[:n_rows], y[:n_rows]
    return Stage(
        title="electricity (real, in its own order)",
        n_rows=len(y),
        classes=np.unique(y),
        blocks=lambda: [(X, y)],
        learners=_learners(X[:1000]),
    )


def _drifting(n_rows: int) -> Stage:
    def blocks() -> Iterable[tuple[Any, Any]]:
        return drift.generate(n_rows, block=1000, kind="abrupt", random_state=0)

    return Stage(
        title="moving hills (abrupt drift)",
        n_rows=n_rows,
        classes=np.array([-1, 1]),
        blocks=blocks,
        learners=_learners(next(iter(blocks()))[0]),
    )


class _Pipeline:
    """A usual pipeline: columns scaled and mapped by statistics of the first rows, then a linear streaming model."""

    def __init__(self, first: np.ndarray, *steps: Any):
        self.front = make_pipeline(StandardScaler(), *steps).fit(first)
        self.model = SGDClassifier(random_state=0)

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray | None = None) -> _Pipeline:
        self.model.partial_fit(self.front.transform(X), y, classes=classes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(self.front.transform(X))


def _learners(first: np.ndarray) -> dict[str, Any]:
    """The learners of a stage; scikit-learn's are scaled by the first rows, which they then see again."""
    sampler = RBFSampler(gamma=1.0 / first.shape[1], n_components=500, random_state=0)
    return {
        "linear (SGDClassifier)": _Pipeline(first),
        "RBFSampler + SGDClassifier": _Pipeline(first, sampler),
        "fogd, 500 frequencies": zoo.make("fogd", n_components=500, standardize=True, random_state=0),
        "KernelClassifier, no choices": KernelClassifier(size="small", random_state=0),
    }
