"""Prequential evaluation: every row is a test row first and a training row afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..innermost import innermost
from ..progress import RowsBar
from ..rows import canonical
from ._result import Recorder, Result, model_bytes
from ._tally import HELD_ROWS, Tally
from .metrics import errors
from .runners import Answer, BatchRunner, Runner, StreamRunner, task_of

Block = tuple[Any, np.ndarray]

BLOCK_ROWS = HELD_ROWS


def prequential(
    est: Any,
    X: Any,
    y: Any = None,
    *,
    block_size: int | None = None,
    metrics: Any = None,
    classes: Any = None,
    delay: int = 0,
    progress: bool | Callable[[int, int | None, float], Any] | None = None,
    curve_points: int = 200,
    n_rows: int | None = None,
    name: str | None = None,
    clock: Callable[[], float] | None = None,
    monitor: Any = None,
) -> Result:
    """Predict each row, then learn it, over a whole stream.

    Parameters
    ----------
    est : estimator
        It is trained in place. One with ``learn`` (all of kernelstream) is evaluated exactly row by row, whatever the
        block size. One with only ``predict`` and ``partial_fit`` (scikit-learn) predicts a block and then fits it, so
        its rows lag by up to a block unless ``block_size=1``; before its first fit it predicts the first class. In
        regression, rows count from the first one that was predicted by a model that had learned one.
    X : array, CSR matrix, data frame (n, d), or iterable of blocks (X, y)
        Blocks longer than ``block_size`` are cut.
    y : array (n,), optional
        Labels or targets; None when X is an iterable of blocks.
    block_size : int, default=256
        Rows per call of the estimator. With ``delay`` the default is 1.
    metrics : str, callable, Metric or a sequence of them, or a Tally, optional
        Names: "mistake_rate", "accuracy", "log_loss", "mse", "rmse", "mae", "crps". A callable ``(y, predicted)``
        returns one value per row or one for the block, so scikit-learn's functions work (as a mean over blocks). The
        first is the one shown while running. The mistake rate, or mse and mae, are measured in any case.
    classes : array, optional
        All labels that can occur; for arrays the default is ``np.unique(y)``.
    delay : int, default=0
        The label of row i is learned only after row i + delay has been predicted. A ``block_size`` above 1 makes
        that faster, and labels up to ``block_size - 1`` rows later. All labels have been learned at the end.
    progress : bool, callable or None
        A bar on stderr: None shows it on a terminal when the run is not over within a moment; True and False force it.
        A callable gets (rows so far, rows in all or None, running value of the first metric) now and then.
    curve_points : int, default=200
        About how many points the curves have (up to twice as many).
    n_rows : int, optional
        Number of rows an iterable will give, if known: only the progress bar uses it.
    name : str, optional
        Label for tables and plots; the class name by default.
    clock : callable, optional
        Clock of the ``seconds`` inside the estimator; ``time.process_time`` leaves out those of other programs.
    monitor : :class:`~kernelstream.monitor.Monitor`, optional
        Watches the rows and the losses (mistakes, or squared errors), each loss when its label has come; the changes it
        marks are in the result, and its ``react`` is called at the end of the block in which one was found.

    Returns
    -------
    Result

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from kernelstream import drift
    >>> from kernelstream.evaluate import prequential
    >>> blocks = drift.generate(5000, block=500, random_state=0)
    >>> result = prequential(SGDClassifier(random_state=0), blocks, classes=[-1, 1])
    >>> result.n_rows
    5000
    """
    if delay < 0 or int(delay) != delay:
        raise ValueError(f"delay must be an integer >= 0, got {delay}")
    size = (1 if delay else BLOCK_ROWS) if block_size is None else block_size
    if size < 1 or int(size) != size:
        raise ValueError(f"block_size must be an integer >= 1, got {block_size}")
    blocks, total = _open(X, y, int(size))
    first = next(blocks, None)
    task = task_of(est, np.empty(0) if first is None else first[1])
    tally = metrics if isinstance(metrics, Tally) else Tally(task, metrics, curve_points, detailed=False)
    if classes is None and y is not None and task == "classification":
        classes = np.unique(np.asarray(y))
    runner = _runner(est, task, classes, tally.needs_probability)
    runner.clock = runner.clock if clock is None else clock
    label, time = name or type(est).__name__, Recorder(curve_points)
    total, rows = n_rows if total is None else total, 0
    watch = None if monitor is None else _MonitorFeed(monitor, est, task, int(delay))

    def tick() -> None:
        new = tally.n - time.n
        time.add((runner.seconds - time.sum) / max(new, 1), new)
        bar.rows(tally.n, tally.value(), total)

    with RowsBar(False if callable(progress) else progress, label, tally.metrics[0].name) as bar:
        for X_block, y_block, answer in _late(runner, chain([] if first is None else [first], blocks), int(delay)):
            rows, known = rows + len(y_block), slice(runner.unknown, None)
            predicted, p = answer[0][known], None if answer[1] is None else answer[1][known]
            if watch is not None:
                watch.add(X_block, y_block[known], predicted)
            if tally.add(y_block[known], predicted, p):
                tick()
                if callable(progress):
                    progress(tally.n, total, tally.value())
        tally.flush()
        tick()
    return Result(
        name=label,
        task=task,
        n_rows=rows,
        seconds=runner.seconds,
        model_bytes=model_bytes(est),
        metrics={metric.name: tally.value(metric.name) for metric in tally.metrics},
        curves={metric.name: tally.recorders[metric.name].curve(metric.finish) for metric in tally.metrics},
        mistakes=round(tally.recorders["mistake_rate"].sum) if task == "classification" else None,
        marks=() if watch is None else tuple(watch.marks),
        time=time.curve(float),
    )


class _MonitorFeed:
    """Shows rows and losses to a monitor and collects its marks; their row numbers are those of the stream."""

    def __init__(self, monitor: Any, est: Any, task: str, delay: int) -> None:
        self.monitor, self.est, self.task, self.delay = monitor, est, task, delay
        self.waiting = np.zeros(0)
        self.unknown = 0  # rows at the beginning that have no loss
        self.marks: list[Any] = []

    def add(self, X: Any, y: np.ndarray, predicted: np.ndarray) -> None:
        """Show a block X (n, d) that has been answered, and its last targets, those that there are forecasts of."""
        self.unknown += X.shape[0] - len(y)
        self.waiting = np.concatenate([self.waiting, errors(self.task, y, predicted)])
        due = max(len(self.waiting) - self.delay, 0)
        found = self.monitor.learn(X=X.to_numpy(np.float64) if hasattr(X, "to_numpy") else X)
        late = self.monitor.learn(self.waiting[:due])
        found += [replace(mark, row=mark.row + self.delay + self.unknown) for mark in late]
        self.waiting = self.waiting[due:]
        self.marks += found
        if self.monitor.react is not None:
            for mark in found:
                self.monitor.react(self.est, mark)


def _runner(est: Any, task: str, classes: Any, probability: bool) -> Runner:
    if hasattr(est, "learn"):
        return StreamRunner(est, task, classes, probability)
    if hasattr(est, "partial_fit") and hasattr(est, "predict"):
        return BatchRunner(est, task, classes, probability)
    name = type(innermost(est)).__name__
    raise ValueError(f"{name} cannot learn from a stream: it has neither learn nor partial_fit and predict")


def _late(runner: Runner, blocks: Iterable[Block], delay: int) -> Iterator[tuple[Any, np.ndarray, Answer]]:
    """Rows, targets and answers of each block; labels reach the learner ``delay`` rows late."""
    if not delay:
        for X, y in blocks:
            yield X, y, runner.answer_then_learn(X, y)
        return
    waiting: deque[Block] = deque()
    surplus = -delay  # rows waiting beyond the delay, i.e. whose label is due
    for X, y in blocks:
        yield X, y, runner.answer(X, y)
        waiting.append((X, y))
        surplus += len(y)
        while surplus > 0:
            X_due, y_due = waiting.popleft()
            m = min(surplus, len(y_due))
            runner.learn(X_due[:m], y_due[:m])
            if m < len(y_due):
                waiting.appendleft((X_due[m:], y_due[m:]))
            surplus -= m
    for X_due, y_due in waiting:
        runner.learn(X_due, y_due)


def _open(X: Any, y: Any, size: int) -> tuple[Iterator[Block], int | None]:
    """Blocks of at most ``size`` rows, and the number of rows if it is known."""
    if y is not None:
        y = np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y must have one value per row, got shape {y.shape}")
        X = _rows(X)
        if X.shape[0] != len(y):
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)}")
        return _cut(X, y, size), len(y)
    if hasattr(X, "shape") or not isinstance(X, Iterable):
        raise ValueError("y is missing: pass X and y, or an iterable of blocks (X, y)")
    return _from_iterable(X, size), None


def _from_iterable(blocks: Iterable[Any], size: int) -> Iterator[Block]:
    for block in blocks:
        if not isinstance(block, (tuple, list)) or len(block) != 2:
            raise ValueError(f"an iterable must give blocks (X, y), not {type(block).__name__}")
        X, y = _rows(block[0]), np.asarray(block[1])
        if y.ndim != 1 or X.shape[0] != len(y):
            raise ValueError(f"X and y of a block do not match: their shapes are {X.shape} and {y.shape}")
        yield from _cut(X, y, size)


def _cut(X: Any, y: np.ndarray, size: int) -> Iterator[Block]:
    rows = X.iloc if hasattr(X, "iloc") else X
    for start in range(0, len(y), size):
        yield rows[start : start + size], y[start : start + size]


def _rows(X: Any) -> Any:
    """Something with a shape whose rows can be sliced."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
    return canonical(X) if sp.issparse(X) else X
