"""Predictions for rows, and what else a model says about them.

Requests that wait for one model are answered together, by one call of it for a piece of at most 64 rows; a long request
waits for its turn again after each piece. Where a call takes less than its way to another thread and back, it is
made in the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.exceptions import NotFittedError

from kernelstream.columns.stream import encoder_of
from kernelstream.next_row import answers_together, for_next_row

from .answers import View
from .learner import DurableLearner
from .problems import Problem, encode, quiet
from .rows import Gap, RowError, as_rows, checked_ids, gaps_in, warnings
from .schemas import Predict, Predictions

THREADS = 3
PIECE = 64  # rows that are answered by one call of the model
MAX_WAITING_ROWS = 200_000  # that may wait, for all models
LOOP_SECONDS = 0.001  # of processor time that a call of a model may take in the event loop

HALF_OF_ALL = np.sqrt(40.0 / 9.0)  # deviations on either side of the mean that hold nine targets in ten
USUAL_GAPS = 0.5  # of the learned rows had no value in a column: a gap there is nothing special

_ROWS = attrgetter("rows")

Answer = tuple[Any, dict[str, list[Any]], list[Gap]]  # rows as the model takes them, what it says of each, their gaps


@dataclass(eq=False)
class Asked:
    """A piece of a request; its future gets the answer, or an error as its result."""

    view: View
    rows: list[Any]
    following: bool  # whether each row is the next one of the stream
    future: asyncio.Future[Answer | Exception]


class Line:
    """Pieces that wait for one model; used by the event loop only."""

    def __init__(self, loop: Any, threads: ThreadPoolExecutor, opened: bool):
        self.loop, self.threads, self.opened = loop, threads, opened
        self.waiting: deque[Asked] = deque()
        self.busy = False
        self.rows, self.seconds = 1, LOOP_SECONDS  # of the last call; nothing is known of the first one

    def ask(self, view: View, rows: list[Any], following: bool) -> asyncio.Future[Answer | Exception]:
        """Queue a piece; requests that arrive together are answered together."""
        future = self.loop.create_future()
        self.waiting.append(Asked(view, rows, following, future))
        if not self.busy:
            self.busy = True
            self.loop.call_soon(self.turn)
        return future

    def next(self) -> tuple[list[Asked], int]:
        """Pieces to answer by one call, of the same copy and kind, and how many rows; unless nobody waits for them."""
        found, rows = list[Asked](), 0
        while self.waiting:
            first = self.waiting[0]
            if not first.future.done():
                more = rows + len(first.rows)
                if found and (more > PIECE or first.view is not found[0].view or first.following != found[0].following):
                    break
                found.append(first)
                rows = more
            self.waiting.popleft()
        return found, rows

    def turn(self) -> None:
        """Answer the next ones: here, if the call is short, or in another thread."""
        batch, rows = self.next()
        self.busy = bool(batch)
        if not batch:
            return
        if self.seconds * max(1.0, rows / self.rows) < LOOP_SECONDS:
            self.settle(batch, rows, *timed(batch, self.opened))
        else:
            self.threads.submit(self._aside, batch, rows)

    def _aside(self, batch: list[Asked], rows: int) -> None:
        self.loop.call_soon_threadsafe(self.settle, batch, rows, *timed(batch, self.opened))

    def settle(self, batch: list[Asked], rows: int, found: list[Answer | Exception], seconds: float) -> None:
        """Give the answers, and note how long they took."""
        self.rows, self.seconds, self.busy = max(1, rows), seconds, bool(self.waiting)
        for asked, answer in zip(batch, found):
            if not asked.future.done():
                asked.future.set_result(answer)
        if self.waiting:
            self.loop.call_soon(self.turn)


class Desk:
    """Answers requests for predictions; used by the event loop only.

    Parameters
    ----------
    opened : bool
        Whether rows may have columns that the model does not know.
    seconds : float
        Longest time for a request.
    """

    def __init__(self, opened: bool, seconds: float):
        self.opened, self.seconds, self.waiting_rows = opened, seconds, 0
        self._threads = ThreadPoolExecutor(THREADS, "predictions")
        self._lines: WeakKeyDictionary[DurableLearner, Line] = WeakKeyDictionary()

    async def answer(
        self, learner: DurableLearner, request: Predict, following: bool, left: Callable[[], Awaitable[bool]]
    ) -> bytes | Exception:
        """The answer in JSON, or an error; ``left`` says whether the client has, and nobody waits any more."""
        rows, ids, view, parts = request.rows, request.ids, learner.view, list[Answer]()
        if self.waiting_rows + len(rows) > MAX_WAITING_ROWS:
            limit = f"at most {MAX_WAITING_ROWS:,} may: try again later"
            return Problem(503, f"{self.waiting_rows:,} rows are waiting, and {limit}", {"Retry-After": "1"})
        if ids is not None:
            ids = checked_ids(ids, len(rows))
        line = self._lines.get(learner)
        if line is None:
            line = self._lines[learner] = Line(asyncio.get_running_loop(), self._threads, self.opened)
        self.waiting_rows += len(rows)
        try:
            async with asyncio.timeout(self.seconds):
                for start in range(0, len(rows) or 1, PIECE):
                    if start and await left():
                        return Problem(400, "the client has left")
                    part = await line.ask(view, rows[start : start + PIECE], following)
                    if isinstance(part, Exception):
                        return part.moved(start) if isinstance(part, RowError) else part
                    parts.append(part)
        except TimeoutError:
            late = f"the prediction took more than {self.seconds:g} seconds: send fewer rows, or try again later"
            return Problem(503, late, {"Retry-After": "1"})
        finally:
            self.waiting_rows -= len(rows)
        X, found, gaps = parts[0] if len(parts) == 1 else _joined(parts)
        if ids is not None:
            learner.remember(ids, X)
        classes = view.classes if "probabilities" in found else None
        said = warnings(gaps) if gaps else None
        return encode(Predictions(version=view.version, classes=classes, warnings=said, **found))

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _joined(parts: list[Answer]) -> Answer:
    found = {name: [one for part in parts for one in part[1][name]] for name in parts[0][1]}
    gaps = [gap._replace(row=gap.row + i * PIECE) for i, part in enumerate(parts) for gap in part[2]]
    tables = [X for X, *_ in parts]
    X = np.concatenate(tables) if isinstance(tables[0], np.ndarray) else list(chain.from_iterable(tables))
    return X, found, gaps


def timed(batch: list[Asked], opened: bool) -> tuple[list[Answer | Exception], float]:
    """The answers to pieces, and the processor time they took."""
    started, first = time.thread_time(), batch[0]
    found = answers(first.view, list(map(_ROWS, batch)), first.following, opened)
    return found, time.thread_time() - started


def answers(view: View, tables: list[list[Any]], following: bool, opened: bool) -> list[Answer | Exception]:
    """The answers to tables of rows, or errors of some, by one call of the model."""
    try:
        rows = tables[0] if len(tables) == 1 else list(chain.from_iterable(tables))
        gaps = gaps_in(rows, view, opened)
        X = as_rows(rows, view.model, view.columns)
        found = predictions(view, X, gaps, following) if rows else {"predictions": []}
    except Exception as error:
        if len(tables) == 1:
            return [quiet(error)]
        return [answers(view, [table], following, opened)[0] for table in tables]  # one is at fault
    for name, value in found.items():
        if isinstance(value, np.ndarray):
            found[name] = value.tolist()
    if len(tables) == 1:
        return [(X, found, gaps)]
    made, start = list[Answer | Exception](), 0
    for table in tables:
        stop = start + len(table)
        part = {name: value[start:stop] for name, value in found.items()}
        own = [gap._replace(row=gap.row - start) for gap in gaps if start <= gap.row < stop] if gaps else gaps
        made.append((X[start:stop], part, own))
        start = stop
    return made


def predictions(view: View, X: Any, gaps: list[Gap], following: bool = False) -> dict[str, Any]:
    """Predictions for rows, and what else the model says about them: arrays or lists, each with an item per row.

    Parameters
    ----------
    view : View
    X : array (n, d), or list of n dictionaries
        What :func:`.rows.as_rows` made of the rows.
    gaps : list of Gap
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
            answer["sets"] = [list(compress(labels, row)) for row in held.tolist()]
    except NotFittedError:
        raise Problem(409, "the model has not learned a row yet") from None
    return answer


def widened(intervals: np.ndarray, model: Any, gaps: list[Gap]) -> np.ndarray:
    """Intervals (n, 2) of 90 %, at least as wide as those of a model that knows no column, where a row has gaps.

    The widths of a model are those of the errors on the rows it has learned; for a row with fewer values they should
    be wider, by an unknown amount. What holds whatever the missing columns mean is the interval of all targets:
    mean ± sqrt(40/9) deviations holds nine in ten of any distribution with one peak (Vysochanskij and Petunin 1980).
    The interval of such a row reaches from the lower of both low ends to the higher of the high ends. A column that
    was missing in at least half of the learned rows does not count: its gaps are part of the measured errors, and the
    interval holds at least eight in ten of such rows.
    """
    encoder = encoder_of(model)
    if not gaps or encoder is None or (target := encoder.target_moments_) is None or intervals.shape[1] != 2:
        return intervals
    missing = encoder.missing_
    rows = sorted({gap.row for gap in gaps if gap.why != "unknown" and missing[gap.column] < USUAL_GAPS})
    mean, deviation = target
    intervals = intervals.copy()
    intervals[rows, 0] = np.minimum(intervals[rows, 0], mean - HALF_OF_ALL * deviation)
    intervals[rows, 1] = np.maximum(intervals[rows, 1], mean + HALF_OF_ALL * deviation)
    return intervals
