"""Where predictions wait and are made, in threads beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from kernelstream.columns.stream import encoder_of
from kernelstream.next_row import answers_together, for_next_row

from .answers import View
from .learner import DurableLearner, checked_ids
from .requests import Predict
from .responses import Problem, encode
from .rows import Gaps, RowError, as_rows, check_names, gaps_of
from .store import Store

DESK_THREADS = 4
TURN_SECONDS = 0.04  # seconds of a processor that a turn of one model should take: nothing else waits for longer
MIN_TURN_ROWS, MAX_TURN_ROWS = 16, 4096  # rows of a turn
MAX_WAITING_ROWS = 200_000  # rows of a model that may wait

HALF_OF_ALL = np.sqrt(40.0 / 9.0)  # deviations on either side of the mean that hold nine targets in ten
USUAL_GAPS = 0.5  # of the learned rows had no value in a column: a gap there is nothing special


@dataclass(eq=False)
class Asked:
    """A pending request: its rows, and what has been answered so far."""

    request: Predict
    future: asyncio.Future[bytes]
    following: bool = False  # whether each row is the next one of the stream
    view: View | None = None  # the model that answers all of it
    at: int = 0  # rows answered
    parts: dict[str, list[bytes]] = field(default_factory=dict)  # of the answer: lists in JSON, without their brackets
    gaps: Gaps = field(default_factory=Gaps)
    kept: list[Any] = field(default_factory=list)  # rows that wait for their targets

    def take(self, part: dict[str, Any], gaps: Gaps, rows: int) -> None:
        """The answer for the next rows."""
        for name, value in part.items():
            self.parts.setdefault(name, []).append(encode(value)[1:-1])
        self.gaps.extend(gaps, self.at)
        self.at += rows

    def answer(self) -> bytes:
        """The whole answer as JSON."""
        view: Any = self.view
        more: dict[str, Any] = {"version": view.version} | ({"challenger": True} if view.challenger else {})
        if "probabilities" in self.parts:
            more = {"classes": view.classes} | more
        if warnings := self.gaps.warnings():
            more["warnings"] = warnings
        lists: dict[str, list[bytes]] = self.parts or {"predictions": []}
        found = [b'"' + name.encode() + b'":[' + b",".join(parts) + b"]" for name, parts in lists.items()]
        return b"{" + b",".join([*found, encode(more)[1:]])


@dataclass(eq=False)
class Line:
    """Requests that wait for one model: new ones, and long ones of which a part has been answered."""

    new: deque[Asked] = field(default_factory=deque)
    begun: deque[Asked] = field(default_factory=deque)
    rows: int = 0  # that wait
    size: int = 64  # rows of a turn: as many as take about TURN_SECONDS
    busy: bool = False  # whether a thread is at it, or will be
    last_new: bool = False  # whether the last turn was of new requests

    def next(self) -> list[Asked]:
        """Requests to answer in the next turn, in one call; every second turn goes to a long one alone."""
        for waiting in (self.new, self.begun):
            for asked in [one for one in waiting if one.future.done()]:  # its client has left or given up
                waiting.remove(asked)
                self.rows -= len(asked.request.rows) - asked.at
        self.last_new = bool(self.new) and not (self.begun and self.last_new)
        if not self.last_new:
            return [self.begun.popleft()] if self.begun else []
        found, rows = [self.new.popleft()], 0
        while self.new and (rows := rows + len(found[-1].request.rows)) + len(self.new[0].request.rows) <= self.size:
            found.append(self.new.popleft())
        return found

    def timed(self, rows: int, seconds: float) -> None:
        """Adjust the rows of a turn by the time that the last one took."""
        if seconds > TURN_SECONDS:
            self.size = max(MIN_TURN_ROWS, min(self.size, rows) // 2)
        elif rows >= self.size and seconds < TURN_SECONDS / 2:
            self.size = min(MAX_TURN_ROWS, 2 * self.size)


class Desk:
    """Predictions off the event loop.

    The requests for one model wait in a line. A turn answers some rows of it in one call that takes about
    ``TURN_SECONDS``: short requests that have arrived by then are answered together, a long one piece by piece. Between
    two turns other models, and other requests for the same one, have theirs, so that a long request delays no other.

    Parameters
    ----------
    store : Store
    opened : bool
        Whether rows may have columns that the model does not know.
    """

    def __init__(self, store: Store, opened: bool = False):
        self.store, self.opened = store, opened
        self.pool = ThreadPoolExecutor(DESK_THREADS, "desk")
        self._lines: dict[str, Line] = {}
        self._lock = threading.Lock()

    async def run(self, call: Callable[..., Any], *args: Any) -> Any:
        """The result of a short call, made in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, call, *args)

    def ask(self, name: str, request: Predict, following: bool = False) -> Asked:
        """Queue a request for a model, ``following`` as in :func:`predictions`; its future will have the answer."""
        asked, n = Asked(request, asyncio.get_running_loop().create_future(), following), len(request.rows)
        with self._lock:
            line = self._lines.setdefault(name, Line())
            if line.rows + n > MAX_WAITING_ROWS:
                limit = f"at most {MAX_WAITING_ROWS:,} may: try again later"
                raise Problem(503, f"{line.rows:,} rows are waiting for this model, and {limit}", {"Retry-After": "1"})
            line.rows += n
            line.new.append(asked)
            start, line.busy = not line.busy, True
        if start:
            self.pool.submit(self._turn, name, line)
        return asked

    def waiting_rows(self) -> int:
        """Rows that wait, for all models."""
        with self._lock:
            return sum(line.rows for line in self._lines.values())

    def close(self) -> None:
        """Stop the threads."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _turn(self, name: str, line: Line) -> None:
        with self._lock:
            batch = line.next()
            if not batch:
                line.busy = False
                return
        done: list[tuple[Asked, bytes | Exception]] = []
        before, started = sum(asked.at for asked in batch), time.thread_time()
        try:
            with self.store.use(name) as learner:
                done = self._answer(learner, batch, line.size)
        except KeyError:
            done = [(asked, Problem(404, f"there is no model {name[:80]!r}")) for asked in batch]
        except Exception as error:
            done = [(asked, error) for asked in batch]
        rows = sum(asked.at for asked in batch) - before
        ended = {asked for asked, _ in done}
        with self._lock:
            line.timed(rows, time.thread_time() - started)
            line.rows -= rows + sum(len(asked.request.rows) - asked.at for asked in ended)
            line.begun.extend(asked for asked in batch if asked not in ended)
        if done:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                batch[0].future.get_loop().call_soon_threadsafe(_settle, done)
        with contextlib.suppress(RuntimeError):  # the pool has been closed
            self.pool.submit(self._turn, name, line)

    def _answer(self, learner: DurableLearner, batch: list[Asked], most: int) -> list[tuple[Asked, bytes | Exception]]:
        """Answer the next rows of some requests; returns those that are complete or have failed."""
        groups: dict[tuple[int, bool], list[Asked]] = {}
        for asked in batch:
            asked.view = asked.view or learner.next_view()
            groups.setdefault((id(asked.view), asked.following), []).append(asked)
        if len(groups) > 1:
            return [found for group in groups.values() for found in self._answer(learner, group, most)]
        try:
            self._together(batch, most)
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0], error.moved(batch[0].at) if isinstance(error, RowError) else error)]
            return [
                found for asked in batch for found in self._answer(learner, [asked], most)
            ]  # only one of them is at fault
        return [(asked, self._finished(learner, asked)) for asked in batch if asked.at == len(asked.request.rows)]

    def _together(self, batch: list[Asked], most: int) -> None:
        """Answer the next rows of some requests by one call of the model; only one alone may have more of them."""
        view: Any = batch[0].view  # and that of the others
        tables = [asked.request.rows[asked.at : asked.at + most] for asked in batch]
        for asked in batch:
            if asked.request.ids is not None:
                checked_ids(asked.request.ids, len(asked.request.rows))
        rows = tables[0] if len(tables) == 1 else [row for table in tables for row in table]
        unknown = check_names(rows, view.model, view.columns, self.opened)
        X = as_rows(rows, view.model, view.columns)
        gaps = gaps_of(X, view.model)
        found = predictions(view, X, gaps, batch[0].following) if rows else {}
        answer = {name: _listed(part) for name, part in found.items()}
        gaps.unknown, start = unknown, 0
        for asked, table in zip(batch, tables):
            stop = start + len(table)
            if asked.request.ids is not None:
                asked.kept.append(X[start:stop])
            asked.take({name: value[start:stop] for name, value in answer.items()}, gaps.part(start, stop), len(table))
            start = stop

    @staticmethod
    def _finished(learner: DurableLearner, asked: Asked) -> bytes | Exception:
        try:
            if asked.request.ids is not None:
                learner.remember(asked.request.ids, _joined(asked.kept))
            return asked.answer()
        except Exception as error:
            return error


def _joined(tables: list[Any]) -> Any:
    """Rows of several calls as those of one."""
    if not tables or isinstance(tables[0], list):
        return [row for table in tables for row in table]
    return np.concatenate(tables)


def _listed(part: Any) -> Any:
    return part.tolist() if isinstance(part, np.ndarray) else part


def _settle(done: list[tuple[Asked, bytes | Exception]]) -> None:
    for asked, answer in done:
        if not asked.future.done():
            if isinstance(answer, Exception):
                asked.future.set_exception(answer)
            else:
                asked.future.set_result(answer)


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
