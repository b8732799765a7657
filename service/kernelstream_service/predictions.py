"""Predictions for rows, and what else a model says about them; answered in threads beside the event loop.

Short requests that wait for one model are answered together by one call of it; a long one is answered piece by piece,
in a thread of its own, so that others have their turns between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.exceptions import NotFittedError

from kernelstream.columns.stream import encoder_of
from kernelstream.next_row import answers_together, for_next_row

from .answers import View
from .learner import DurableLearner
from .problems import Problem, caught, encode, quiet
from .rows import Gaps, RowError, as_rows, check_names, checked_ids, gaps_of
from .schemas import Predict, Predictions

THREADS, THREADS_OF_LONG_ONES = 4, 2
PIECE = 64  # rows that are answered by one call of the model
MAX_WAITING_ROWS = 200_000  # that may wait, for all models

HALF_OF_ALL = np.sqrt(40.0 / 9.0)  # deviations on either side of the mean that hold nine targets in ten
USUAL_GAPS = 0.5  # of the learned rows had no value in a column: a gap there is nothing special


@dataclass(eq=False)
class Asked:
    """A pending request; its future gets the answer, or an error as its result."""

    request: Predict
    following: bool  # whether each row is the next one of the stream
    future: asyncio.Future[bytes | Exception]


@dataclass(eq=False)
class Line:
    """Short requests that wait for one model."""

    waiting: deque[Asked] = field(default_factory=deque)
    busy: bool = False

    def next(self) -> list[Asked]:
        """Those to answer by one call."""
        found = [self.waiting.popleft()]
        rows = len(found[0].request.rows)
        while self.waiting and self.waiting[0].following == found[0].following:
            rows += len(self.waiting[0].request.rows)
            if rows > PIECE:
                break
            found.append(self.waiting.popleft())
        return found


class Desk:
    """Answers requests for predictions; called from the event loop only.

    Parameters
    ----------
    opened : bool
        Whether rows may have columns that the model does not know.
    """

    def __init__(self, opened: bool = False):
        self.opened, self.waiting_rows = opened, 0
        self._threads = ThreadPoolExecutor(THREADS, "predictions")
        self._long = ThreadPoolExecutor(THREADS_OF_LONG_ONES, "long predictions")
        self._lines: WeakKeyDictionary[DurableLearner, Line] = WeakKeyDictionary()

    def ask(self, learner: DurableLearner, request: Predict, following: bool) -> asyncio.Future[bytes | Exception]:
        """Queue a request."""
        loop, n = asyncio.get_running_loop(), len(request.rows)
        if self.waiting_rows + n > MAX_WAITING_ROWS:
            limit = f"at most {MAX_WAITING_ROWS:,} may: try again later"
            raise Problem(503, f"{self.waiting_rows:,} rows are waiting, and {limit}", {"Retry-After": "1"})
        self.waiting_rows += n
        asked = Asked(request, following, loop.create_future())
        if n > PIECE:
            self._long.submit(self._answer_long, loop, learner, asked)
            return asked.future
        line = self._lines.get(learner)
        if line is None:
            line = self._lines[learner] = Line()
        line.waiting.append(asked)
        if not line.busy:
            self._turn(loop, learner, line)
        return asked.future

    def close(self) -> None:
        """Stop the threads."""
        for pool in (self._threads, self._long):
            pool.shutdown(wait=False, cancel_futures=True)

    def _turn(self, loop: Any, learner: DurableLearner, line: Line) -> None:
        line.busy = bool(line.waiting)
        if line.waiting:
            self._threads.submit(self._answer, loop, learner, line, line.next())

    def _answer(self, loop: Any, learner: DurableLearner, line: Line, batch: list[Asked]) -> None:
        requests, following = [asked.request for asked in batch], batch[0].following
        found = caught(answers, learner, learner.view, requests, following, self.opened)
        if isinstance(found, Exception):
            found = [found] * len(batch)
        loop.call_soon_threadsafe(self._answered, loop, learner, line, batch, found)

    def _answered(self, loop: Any, learner: DurableLearner, line: Line, batch: list[Asked], found: Any) -> None:
        self._turn(loop, learner, line)
        self._settle(batch, found)

    def _answer_long(self, loop: Any, learner: DurableLearner, asked: Asked) -> None:
        found = caught(long_answer, learner, asked, self.opened)
        loop.call_soon_threadsafe(self._settle, [asked], [found])

    def _settle(self, batch: list[Asked], found: Sequence[bytes | Exception]) -> None:
        for asked, answer in zip(batch, found):
            self.waiting_rows -= len(asked.request.rows)
            if not asked.future.done():
                asked.future.set_result(answer)


def answers(
    learner: DurableLearner, view: View, requests: list[Predict], following: bool, opened: bool
) -> list[bytes | Exception]:
    """The answers, in JSON, or errors of some requests, by one call of the model."""
    rows = requests[0].rows if len(requests) == 1 else [row for request in requests for row in request.rows]
    try:
        for request in requests:
            if request.ids is not None:
                checked_ids(request.ids, len(request.rows))
        X, found, gaps = _said(view, rows, following, opened)
    except Exception as error:
        if len(requests) == 1:
            return [quiet(error)]
        return [answers(learner, view, [request], following, opened)[0] for request in requests]  # one is at fault
    made, start = list[bytes | Exception](), 0
    for request in requests:
        stop = start + len(request.rows)
        if request.ids is not None:
            learner.remember(request.ids, X[start:stop])
        if len(requests) == 1:
            made.append(_encoded(view, found, gaps))
        else:
            part = {name: value[start:stop] for name, value in found.items()}
            made.append(_encoded(view, part, gaps.part(start, stop)))
        start = stop
    return made


def long_answer(learner: DurableLearner, asked: Asked, opened: bool) -> bytes:
    """The answer of a long request, piece by piece; given up when nobody waits for it any more."""
    view, rows, gaps, found = learner.view, asked.request.rows, Gaps(), dict[str, list[Any]]()
    kept = list[Any]()
    if asked.request.ids is not None:
        checked_ids(asked.request.ids, len(rows))
    for start in range(0, len(rows), PIECE):
        if asked.future.done():
            break
        try:
            X, part, more = _said(view, rows[start : start + PIECE], asked.following, opened)
        except RowError as error:
            raise error.moved(start) from None
        for name, value in part.items():
            found.setdefault(name, []).extend(value)
        gaps.extend(more, start)
        if asked.request.ids is not None:
            kept.append(X)
    else:
        if asked.request.ids is not None:
            joined = np.concatenate(kept) if isinstance(kept[0], np.ndarray) else [row for X in kept for row in X]
            learner.remember(asked.request.ids, joined)
    return _encoded(view, found, gaps)


def _said(view: View, rows: list[Any], following: bool, opened: bool) -> tuple[Any, dict[str, Any], Gaps]:
    """Rows as the model takes them, its answers as lists, and the gaps."""
    unknown = check_names(rows, view.model, view.columns, opened)
    X = as_rows(rows, view.model, view.columns)
    gaps = gaps_of(X, view.model)
    gaps.unknown = unknown
    found = predictions(view, X, gaps, following) if rows else {"predictions": []}
    return X, {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}, gaps


def _encoded(view: View, found: dict[str, Any], gaps: Gaps) -> bytes:
    classes = view.classes if "probabilities" in found else None
    return encode(Predictions(version=view.version, classes=classes, warnings=gaps.warnings() or None, **found))


def predictions(view: View, X: Any, gaps: Gaps, following: bool = False) -> dict[str, Any]:
    """Predictions for rows, and what else the model says about them: arrays or lists, each with an item per row.

    Parameters
    ----------
    view : View
    X : array (n, d), or list of n dictionaries
        What :func:`.rows.as_rows` made of the rows.
    gaps : Gaps
        Their cells without a value.
    following : bool
        Whether each row is the next one of the stream.
    """
    model, answer = view.model, {}
    try:
        if "predict_proba" in view.extras:
            labels, proba = answers_together(model, "predict_proba", X, following)
            answer = {"predictions": labels, "probabilities": np.asarray(proba)}
        elif "predict_interval" in view.extras:
            said, bounds = answers_together(model, "predict_interval", X, following)
            answer = {"predictions": said, "intervals": widened(np.column_stack(bounds), model, gaps)}
        else:
            answer = {"predictions": (for_next_row(model, "predict") if following else model.predict)(X)}
        if "predict_set" in view.extras:
            labels, sets_of = np.asarray(model.classes_).tolist(), getattr(model, "_sets_of", None)
            if sets_of is None:
                held = (for_next_row(model, "predict_set") if following else model.predict_set)(X)
            else:
                held = sets_of(answer["probabilities"])
            answer["sets"] = [[label for label, there in zip(labels, row) if there] for row in held.tolist()]
    except NotFittedError:
        raise Problem(409, "the model has not learned a row yet") from None
    return answer


def widened(intervals: np.ndarray, model: Any, gaps: Gaps) -> np.ndarray:
    """Intervals (n, 2) of 90 %, at least as wide as those of a model that knows no column, where a row has gaps.

    The widths of a model are those of the errors on the rows it has learned; for a row with fewer values they should
    be wider, by an unknown amount. What holds whatever the missing columns mean is the interval of all targets:
    mean ± sqrt(40/9) deviations holds nine in ten of any distribution with one peak (Vysochanskij and Petunin 1980).
    The interval of such a row reaches from the lower of both low ends to the higher of the high ends. A column that
    was missing in at least half of the learned rows does not count: its gaps are part of the measured errors, and the
    interval holds at least eight in ten of such rows.
    """
    encoder = encoder_of(model)
    cells = [*gaps.missing, *((i, name) for i, name, _ in gaps.wrong)]
    if not cells or encoder is None or (target := encoder.target_moments_) is None or intervals.shape[1] != 2:
        return intervals
    missing = encoder.missing_
    rows = sorted({i for i, name in cells if missing[name] < USUAL_GAPS})
    mean, deviation = target
    intervals = intervals.copy()
    intervals[rows, 0] = np.minimum(intervals[rows, 0], mean - HALF_OF_ALL * deviation)
    intervals[rows, 1] = np.maximum(intervals[rows, 1], mean + HALF_OF_ALL * deviation)
    return intervals
