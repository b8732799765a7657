"""The demonstration behind ``kernelstream demo``: the default learner and common tools, on two streams."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from . import datasets, drift, plots
from .engine import has_native
from .estimators import KernelClassifier
from .evaluate import Result, prequential
from .progress import size_text

__all__ = ["run"]

STREAM_ROWS, STREAM_ROWS_IN_PYTHON = 5_000, 2_000  # of a stream, with and without the compiled core
STRETCHES = 20  # of which the mistake rate is drawn


@dataclass(frozen=True)
class Stage:
    """A stream of rows X (n, d) with labels y (n,), and whether a learner may know the label of the row before."""

    title: str
    X: np.ndarray
    y: np.ndarray
    last_label: bool

    @property
    def columns(self) -> np.ndarray:
        """What a learner without a memory of labels gets: X, with the label before as a column where it is known."""
        return np.column_stack([self.X, np.append(self.y.max(), self.y[:-1])]) if self.last_label else self.X


def run(
    out: str | Path = "kernelstream-demo.png", n_rows: int | None = None, console: Console | None = None
) -> list[Result]:
    """Run the demonstration: tables on the console, the curves in a picture.

    Parameters
    ----------
    out : str or Path
        File of the picture.
    n_rows : int, optional
        Rows of each stream: 5,000, or 2,000 where the compiled core is missing.
    console : rich Console, optional

    Returns
    -------
    list of Result
        In the order of the tables.
    """
    console = console or Console()
    fast = has_native()
    if not fast:
        console.print("The compiled core is not installed: fewer rows, to stay under a minute.", highlight=False)
    n_rows = n_rows or (STREAM_ROWS if fast else STREAM_ROWS_IN_PYTHON)
    started = time.perf_counter()
    stages = _stages(n_rows)
    figure, axes = plots.figure(columns=len(stages), width=4.8, height=5.0)  # a missing matplotlib is reported at once
    console.print("Every learner predicts each row and then learns it, one row at a time; this takes about a minute.")
    results = []
    for stage, ax in zip(stages, axes, strict=True):
        with threadpool_limits(1):  # products of single rows: more threads only wait for each other
            runs = [_row_by_row(est, X, stage.y, name) for name, est, X in _learners(stage, console)]
        console.print(_table(stage, runs))
        labels = {f"{result.name}: {result.mistake_rate:.1%}": result for result in runs}
        plots.curves(labels, ax=ax, windows=STRETCHES)
        ax.set_title(stage.title)
        ax.legend(
            frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12)
        )  # the labels are long: one below another
        results += runs
    path = plots.save(figure, out)
    console.print(f"Curves: {path.resolve()}   ({time.perf_counter() - started:.0f} s in all)", highlight=False)
    return results


def _row_by_row(est: Any, X: np.ndarray, y: np.ndarray, name: str) -> Result:
    """Predict a row, then learn it: what has ``learn`` does so in blocks of any size."""
    return prequential(est, X, y, block_size=None if hasattr(est, "learn") else 1, name=name)


def _table(stage: Stage, results: list[Result]) -> Table:
    table = Table(title=f"{stage.title}, {len(stage.y):,} rows", title_justify="left")
    table.add_column("learner")
    for heading in ("mistake rate", "rows/s", "model size"):
        table.add_column(heading, justify="right")
    best = min(result.mistakes or 0 for result in results)
    for result in results:
        style = "bold" if result.mistakes == best else None
        rate = f"{result.mistake_rate:.2%}"
        table.add_row(result.name, rate, f"{result.rows_per_second:,.0f}", size_text(result.model_bytes), style=style)
    return table


def _stages(n_rows: int) -> list[Stage]:
    """Prices of electricity, up or down, in their own order, and generated hills that move."""
    X, y = datasets.load("electricity", return_X_y=True)
    X, y = X[:n_rows], y[:n_rows]
    blocks = list(drift.generate(n_rows, block=1000, kind="abrupt", random_state=0))
    hills, sides = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return [
        Stage("electricity, the columns alone", X, y, last_label=False),
        Stage("electricity, the last label known", X, y, last_label=True),
        Stage("moving hills, abrupt drift", hills, sides, last_label=False),
    ]


def _learners(stage: Stage, console: Console) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, learner and rows of each line of a stage; ours remembers labels by itself, the others get a column."""
    columns = stage.columns
    scaled = scaled_by_rows_so_far(columns)
    sampler = RBFSampler(gamma=1.0 / columns.shape[1], n_components=500, random_state=0)
    yield "KernelClassifier", KernelClassifier(size="small", recent=stage.last_label, random_state=0), stage.X
    yield "SGDClassifier", SGDClassifier(loss="log_loss", random_state=0), scaled
    yield "RBFSampler, SGDClassifier", SGDClassifier(loss="log_loss", random_state=0), sampler.fit_transform(scaled)
    try:
        yield "River's ARFClassifier", _Forest(), columns
    except ImportError:
        console.print("River is not installed: the adaptive random forest is left out (pip install river).")
    yield "the last label", _LastLabel(), columns


def scaled_by_rows_so_far(X: np.ndarray) -> np.ndarray:
    """Each row of X (n, d) as a StandardScaler scales it that has learned the rows up to it by ``partial_fit``."""
    n = np.arange(1, len(X) + 1)[:, None]
    X = X - X[0]  # sums of squares lose digits where a column is far from zero
    mean = np.cumsum(X, axis=0) / n
    deviation = np.sqrt(np.maximum(np.cumsum(X**2, axis=0) / n - mean**2, 0.0))
    return (X - mean) / np.where(deviation > 1e-9, deviation, 1.0)


class _LastLabel:
    """The label of the row before, the least that a learner of a stream has to beat."""

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.label = y[-1]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.label)


class _Forest:
    """River's adaptive random forest (Gomes et al. 2017), which takes one dict at a time."""

    def __init__(self) -> None:
        from river.forest import ARFClassifier

        self.model = ARFClassifier(seed=0)

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), label)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in X.tolist()])
