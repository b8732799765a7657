"""The writer's thread: calls wait in a queue, are logged together, applied in their order, and answered."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelstream.copies import copied

from . import records
from .answers import Busy, StoreError, View
from .log import Log
from .snapshots import Snapshots

EXTRA_METHODS = ("predict_proba", "predict_interval", "predict_set")
MAX_WAITING_CALLS = 10_000  # calls that may wait for the writer
CALLS_PER_FSYNC = 256  # calls that share one fsync
COPY_SHARE = 10  # copies for the readers take at most one part in COPY_SHARE of the writer's time
PACE_SECONDS = 5.0  # over which the rows a second are counted
IDLE_SECONDS = 5.0  # seconds after which the writer's thread ends


@dataclass
class Call:
    """A call on its way to the writer."""

    payload: bytes
    apply: Callable[[], Any]
    rows: int = 0
    before: Callable[[], Any] | None = None  # what must be on the disk before the record is
    snapshot: bool = False  # whether a snapshot is written before the answer
    future: Future[Any] = field(default_factory=Future[Any])


class Writer(Snapshots):
    """The one thread that changes the models, and the copy that readers see."""

    view: View  # the model as readers see it
    _rival_view: View | None = None  # of the challenger, where it answers a share of the requests

    def __init__(self, folder: Path, log: Log, remembered: int, snapshot_rows: int, swap: float):
        super().__init__(folder, log, remembered)
        self.snapshot_rows, self.swap = snapshot_rows, swap
        self._condition = threading.Condition()
        self._queue: deque[Call] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._voids: list[int] = []
        self._pace: deque[tuple[float, int]] = deque(maxlen=1000)  # times, and how many rows had been learned by then

    def health(self) -> dict[str, Any]:
        """Whether all is well: {"status": "ok" or "degraded", "problems": {...}, "waiting": calls, "lost": calls}."""
        problems = dict(self.problems)
        status = "degraded" if problems else "ok"
        return {"status": status, "problems": problems, "waiting": len(self._queue), "lost": self.losses.calls}

    def rows_per_second(self) -> float:
        """Rows learned per second in the recent past."""
        now, total = time.monotonic(), self.total
        then = next(((at, rows) for at, rows in list(self._pace) if at >= now - PACE_SECONDS), None)
        return 0.0 if then is None or now - then[0] < 0.05 else (total - then[1]) / (now - then[0])

    def _send(self, call: Call) -> Future[Any]:
        call.future.set_running_or_notify_cancel()  # the rows are learned even if the caller stops waiting
        with self._condition:
            if self._closed:
                raise StoreError("the learner has been closed")
            if len(self._queue) >= MAX_WAITING_CALLS:
                raise Busy(f"{len(self._queue):,} calls are waiting: try again later")
            self._queue.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"learner {self.folder.name}", daemon=True)
                self._thread.start()
            else:
                self._condition.notify()
        return call.future

    def _work(self) -> None:
        idle_since = time.monotonic()
        while True:
            with self._condition:
                while not self._queue and not self._closed:
                    now = time.monotonic()
                    waits = [idle_since + IDLE_SECONDS - now]
                    if self._stale:
                        waits.append(self._swapped + self._pause - now)
                    if (due := self.log.due()) is not None:
                        waits.append(due)
                    if min(waits) <= 0:
                        break
                    self._condition.wait(min(waits))
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), CALLS_PER_FSYNC))]
                if not batch and (self._closed or time.monotonic() >= idle_since + IDLE_SECONDS):
                    if self._stale:
                        self._publish()
                    if self.log.due() is None or self._closed:
                        self._thread = None
                        return
            try:
                if batch:
                    self._serve(batch)
                    idle_since = time.monotonic()
                self._look_after()
            except Exception as error:  # for example a lack of memory: the next calls may succeed
                self._complain("writer", f"{type(error).__name__}: {error}")
                for call in batch:
                    if not call.future.done():
                        call.future.set_exception(error)

    def _serve(self, batch: list[Call]) -> None:
        """Calls in their order; neighbours that need nothing else share a write to the log."""
        group: list[Call] = []
        for call in batch:
            if call.payload and call.before is None:
                group.append(call)
                continue
            self._commit(group)
            group = []
            self._commit([call])
        self._commit(group)

    def _commit(self, group: list[Call]) -> None:
        """Log, learn, answer."""
        if not group:
            return
        try:
            for call in group:
                if call.before is not None:
                    call.before()
            payloads = [call.payload for call in group if call.payload]
            first = self.log.next
            if payloads or self._voids:
                voids = [records.pack(records.VOID, {"numbers": self._voids})] if self._voids else []
                first = self.log.append([*voids, *payloads]) + len(voids)
                self._voids = []
                self.problems.pop("log", None)
        except Exception as error:
            if isinstance(error, OSError):
                self._complain("log", f"{error.strerror or error}; nothing is learned until it can be written again")
            for call in group:
                call.future.set_exception(error)
            return
        answers: list[tuple[Call, Any, BaseException | None]] = []
        for i, call in enumerate(group):
            try:
                answers.append((call, call.apply(), None))
            except Exception as error:
                if call.payload:
                    self._voids.append(first + i)
                answers.append((call, None, error))
            self.rows_since_snapshot += call.rows
        if self._voids:
            with contextlib.suppress(OSError):  # on failure they go with the next record
                self.log.append([records.pack(records.VOID, {"numbers": self._voids})])
                self._voids = []
        replaced = any(call.snapshot for call in group)
        if replaced:
            with contextlib.suppress(Exception):  # a snapshot that fails is reported in `problems`
                self._snapshot(wait=True)
        first_rows = self.total and not self.view.rows  # a prediction may follow at once
        if first_rows or replaced:
            self._publish()  # else after the answers: none of them waits for it
        for call, answer, failure in answers:
            if failure is None:
                call.future.set_result(answer)
            else:
                call.future.set_exception(failure)

    def _look_after(self) -> None:
        """Do what is due between calls: a copy for the readers, an fsync, a snapshot."""
        if self._stale and time.monotonic() - self._swapped >= self._pause:
            self._publish()
        try:
            self.log.flush_if_due()
        except OSError as error:
            self._complain("log", f"{error.strerror or error}; a snapshot is tried instead")
            with contextlib.suppress(Exception):
                self._snapshot(wait=True)
        if self._guard_speaks():
            message = "the champion's loss was more than %g times that of the previous champion, which is back"
            self._complain("rollback", message % self.policy["guard"])
            self._commit([self._promotion(back=True)])
        if self.rows_since_snapshot >= self.snapshot_rows and (self._saver is None or not self._saver.is_alive()):
            with contextlib.suppress(Exception):
                self._snapshot(wait=False)

    def _promotion(self, back: bool = False) -> Call:
        """The call that makes the challenger the champion."""
        return Call(
            records.pack(records.PROMOTE, {"back": back}),
            lambda: self._promote(back),
            before=self._before_promote,
            snapshot=True,
        )

    def _publish(self) -> None:
        """Make a new copy for the readers; where there is no memory for it, they keep the one they have."""
        started, rival = time.monotonic(), None
        try:
            model = copied(self.champion.model, self._example)
            if self.challenger is not None and self.policy["share"]:
                rival = copied(self.challenger.model, self._example)
        except MemoryError:
            if not hasattr(self, "view"):
                raise
            self._complain("readers", "there is not enough memory for a new copy of the model")
            self._swapped = time.monotonic()
            return
        self.problems.pop("readers", None)
        self.view, self._rival_view = self._view_of(model), None if rival is None else self._view_of(rival, True)
        self._swapped, self._stale = time.monotonic(), False
        self.clock.tick(self.total)
        if not self._pace or started - self._pace[-1][0] > 0.1:
            self._pace.append((started, self.total))
        self._pause = max(self.swap, COPY_SHARE * (self._swapped - started))

    def _view_of(self, model: Any, challenger: bool = False) -> View:
        columns = getattr(model, "feature_names_in_", self.columns)
        names = None if columns is None else tuple(map(str, columns))
        extras = tuple(name for name in EXTRA_METHODS if hasattr(model, name))
        return View(model, self.version, self.total, names, self.champion.scores.task, extras, challenger)
