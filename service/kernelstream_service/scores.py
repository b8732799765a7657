"""How well a learner performs: its answers before each row was learned, over all rows and over the last ones.

Everything follows from the rows in their order, so that a replay of the log gives the same numbers; all of it is a
small dict of numbers and lists that goes into the snapshots.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from typing import Any

import numpy as np

from kernelstream.evaluate.metrics import BASIC, errors, log_losses, of_true_class
from kernelstream.evaluate.runners import labels_of, probabilities_of
from kernelstream.innermost import innermost
from kernelstream.monitor import Adwin

RECENT_ROWS = 1000  # rows that count as recent
MAX_CURVE_POINTS = 400  # of a curve, at most; every second one goes when there are more
SHOWN_FORECASTS = 200  # forecasts that are kept beside the truth
CALIBRATION_BINS = 10  # of probabilities, for the calibration
MAX_MARKS = 100  # changes that are remembered
LARGEST_ERROR = 1e150  # that the detector takes: its square is a number
MAX_TIMES = 400  # at which rows were learned; when there are more, every other one is dropped
CALLS_COUNTED_TOGETHER = 64  # calls with few rows that are counted together

logger = logging.getLogger("kernelstream_service")


class Scores:
    """Errors of a model on the rows it has learned, each of them before it was learned.

    Parameters
    ----------
    task : str
        "classification": an error is a mistake, 0 or 1. "regression": it is the squared difference. "novelty": it is 1
        where a row was called novel.
    """

    def __init__(self, task: str):
        self.task = task
        self._rows, self.error, self.log_loss, self.rated = 0, 0.0, 0.0, 0
        self.last: deque[float] = deque(maxlen=RECENT_ROWS)
        self.last_log: deque[float] = deque(maxlen=RECENT_ROWS)
        self.every = 20  # rows from one point of the curves to the next
        self.curve: list[list[Any]] = []  # row; error, log-loss of the last and of all; members' weights
        self.pairs: deque[tuple[Any, Any]] = deque(maxlen=SHOWN_FORECASTS)
        self.bins = np.zeros((CALIBRATION_BINS, 3))  # rows, sum of probabilities, how often it came true
        self.change = Adwin()
        self._marks: list[int] = []
        self.lock = threading.Lock()  # one thread counts, others read
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []  # answers and targets not counted yet
        self._kept_of: tuple[Any, Any] = (None, None)  # the model, and the classes it knew

    @property
    def rows(self) -> int:
        """Rows counted."""
        with self.lock:
            self._count_kept()
            return self._rows

    @property
    def marks(self) -> list[int]:
        """Rows at which a change was detected."""
        with self.lock:
            self._count_kept()
            return list(self._marks)

    def add(self, model: Any, answer: np.ndarray, y: Any, probabilities: np.ndarray | None = None) -> None:
        """Count rows that a model has just learned.

        ``answer`` is what ``learn`` returned; ``probabilities`` (n, C) are there where the model was asked for them
        beforehand; otherwise they follow from the scores.
        """
        answer = np.asarray(answer)
        if not len(answer):
            return
        with self.lock:
            classes = model.classes_ if self.task == "classification" else None
            if self._keeps(model, answer, y, probabilities, classes):
                return
            self._count_kept()
            self._add(model, classes, answer, y, probabilities)

    def _keeps(self, model: Any, answer: np.ndarray, y: Any, probabilities: Any, classes: Any) -> bool:
        """Keep a few rows, to be counted together with others; the result is the same."""
        plain = (
            probabilities is None
            and answer.ndim == 1
            and len(answer) < CALLS_COUNTED_TOGETHER
            and isinstance(y, np.ndarray)
        )
        if not plain or self.task == "novelty" or hasattr(type(model), "weights_"):
            return False
        if self._kept and (self._kept_of[0] is not model or self._kept_of[1] is not classes):
            self._count_kept()
        self._kept.append((answer, y))
        self._kept_of = (model, classes)
        if len(self._kept) >= CALLS_COUNTED_TOGETHER:
            self._count_kept()
        return True

    def _count_kept(self) -> None:
        """Count the rows that were kept."""
        if self._kept:
            answers, targets = zip(*self._kept)
            self._kept = []
            try:
                self._add(*self._kept_of, np.concatenate(answers), np.concatenate(targets), None)
            except Exception:  # the error is not the reader's, who only looks at the scores
                logger.exception("%d answers cannot be scored", len(answers))

    def _add(self, model: Any, classes: Any, answer: np.ndarray, y: Any, chances: np.ndarray | None) -> None:
        losses_ = None
        if self.task == "novelty":
            predicted = truth = np.where(innermost(model).novel(answer), -1, 1)
        elif self.task == "regression":
            predicted, truth = answer, np.asarray(y, float)
        else:
            truth = np.asarray(y)
            predicted, chances = self._labels(model, classes, answer, chances)
            if chances is not None and chances.shape[1] == len(classes):
                losses_ = self._probabilities(chances, classes, truth, predicted)
        self._errors(errors(self.task, truth, predicted), losses_, model)
        if predicted.ndim == 1:
            shown = slice(-SHOWN_FORECASTS, None)
            self.pairs.extend(zip(predicted[shown].tolist(), truth[shown].tolist()))

    @staticmethod
    def _labels(model: Any, classes: Any, scores: np.ndarray, chances: Any) -> tuple[np.ndarray, np.ndarray | None]:
        if len(classes) == 1:
            return np.full(len(scores), classes[0]), None
        return labels_of(scores, classes), probabilities_of(model, scores) if chances is None else chances

    def _probabilities(self, table: np.ndarray, classes: Any, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Count the probabilities for the calibration; returns the log-loss of each row."""
        if table.shape[1] == 2:
            p, came = table[:, 1], truth == classes[1]
        else:
            p, came = table.max(axis=1), truth == predicted
        bins = np.minimum((p * CALIBRATION_BINS).astype(np.intp), CALIBRATION_BINS - 1)
        np.add.at(self.bins, bins, np.column_stack([np.ones(len(p)), p, came]))
        return log_losses(of_true_class(table, classes, truth))

    def _errors(self, errors: np.ndarray, losses_: np.ndarray | None, model: Any) -> None:
        """Add up row by row, so that the sums do not depend on how rows are grouped."""
        start = 0
        while start < len(errors):
            stop = min(len(errors), start + self.every - self._rows % self.every)
            part = errors[start:stop].tolist()
            self.error = _added(self.error, part)
            found = self.change.learn(np.fmin(part, LARGEST_ERROR))
            self._marks = [*self._marks, *(row for row, _ in found)][-MAX_MARKS:]
            self.last.extend(part)
            if losses_ is not None:
                part = losses_[start:stop].tolist()
                self.log_loss = _added(self.log_loss, part)
                self.rated += len(part)
                self.last_log.extend(part)
            self._rows += stop - start
            if self._rows % self.every == 0:
                self._point(model)
            start = stop

    def _point(self, model: Any) -> None:
        whole = self.log_loss / self.rated if self.rated else None
        values = [_mean(self.last), self.error / self._rows, _mean(self.last_log), whole, weights_of(model)]
        self.curve.append([self._rows, *values])
        if len(self.curve) > MAX_CURVE_POINTS:
            self.every *= 2
            self.curve = [point for point in self.curve if point[0] % self.every == 0]

    # ---------------------------------------------------------------- for others
    def summary(self) -> dict[str, Any]:
        """The error and log-loss of the last rows and of all."""
        with self.lock:
            self._count_kept()
            about: dict[str, Any] = {
                "metric": BASIC[self.task][0],
                "rows": self._rows,
                "whole": self.error / self._rows if self._rows else None,
                "recent": _mean(self.last),
                "window": len(self.last),
            }
            if self.rated:
                about |= {"log_loss_whole": self.log_loss / self.rated, "log_loss_recent": _mean(self.last_log)}
        return about

    def picture(self) -> dict[str, Any]:
        """What the page draws."""
        with self.lock:
            self._count_kept()
            return {
                "curve": list(self.curve),
                "pairs": [list(pair) for pair in self.pairs],
                "calibration": [[float(s / n), float(hits / n), int(n)] for n, s, hits in self.bins if n],
                "marks": list(self._marks),
            }

    def to_notes(self) -> dict[str, Any]:
        """Everything, for a snapshot."""
        with self.lock:
            self._count_kept()
        return {
            "task": self.task, "rows": self._rows, "error": self.error, "log_loss": self.log_loss, "rated": self.rated,
            "last": list(self.last), "last_log": list(self.last_log), "every": self.every,
            "curve": list(self.curve), "pairs": [list(pair) for pair in self.pairs], "bins": self.bins.tolist(),
            "marks": self._marks, "change": {name: value.tolist() for name, value in self.change.state.items()},
        }  # fmt: skip

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> Scores:
        """What :meth:`to_notes` gave."""
        made = cls(notes["task"])
        for name in ("error", "log_loss", "rated", "every"):
            setattr(made, name, notes[name])
        made._rows, made._marks = notes["rows"], list(notes["marks"])
        made.curve = [list(point) for point in notes["curve"]]
        made.last.extend(notes["last"])
        made.last_log.extend(notes["last_log"])
        made.pairs.extend(tuple(pair) for pair in notes["pairs"])
        made.bins = np.array(notes["bins"], float)
        change = {name: np.array(value) for name, value in notes["change"].items()}
        if change.keys() == made.change.state.keys():  # a folder may hold what another detector knew: it starts again
            made.change.state = change
        return made


class Clock:
    """Times (seconds since 1970) and how many rows had been learned by then.

    The log holds no times: rows that a restart learns again count as learned at the restart.
    """

    def __init__(self) -> None:
        self.every = 1.0  # least number of seconds between two times
        self.times: list[tuple[float, int]] = []

    def tick(self, rows: int) -> None:
        """Record that ``rows`` rows have been learned by now."""
        now = time.time()
        if self.times and (self.times[-1][1] == rows or now - self.times[-1][0] < self.every):
            return
        self.times.append((now, rows))
        if len(self.times) > MAX_TIMES:
            self.every, self.times = 2 * self.every, self.times[::2]

    def to_notes(self) -> dict[str, Any]:
        """Everything, for a snapshot."""
        return {"every": self.every, "times": [list(point) for point in self.times]}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> Clock:
        """What :meth:`to_notes` gave."""
        made = cls()
        made.every, made.times = notes["every"], [(at, rows) for at, rows in notes["times"]]
        return made


def weights_of(model: Any) -> list[float] | None:
    """Weights of a model's members, at most 20, if it has any."""
    try:
        weights = np.asarray(innermost(model).weights_, float).ravel()  # behind an encoder of columns
    except Exception:  # any error of a model that has no weights, or none yet
        return None
    return [float(w) for w in weights[:20]] if len(weights) and np.isfinite(weights).all() else None


def _added(total: float, values: list[float]) -> float:
    """A sum in order: Python's own depends on how many numbers are added in one call."""
    for value in values:
        total += value
    return total


def _mean(values: deque[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
