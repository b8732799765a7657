"""The one thread of a learner that changes it: calls wait in a queue, and are served in their order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from . import records
from .answers import Busy, Dead, StoreError

MAX_WAITING_CALLS = 10_000  # calls that may wait
CALLS_TOGETHER = 256  # calls that share a transaction


@dataclass(frozen=True, eq=False)
class Asked:
    """What the writer is asked for: a call to write and apply, or work that needs no record; and its answer to come."""

    call: records.Call | None = None
    work: Callable[[], Any] | None = None
    dead: Sequence[Dead] = ()
    content: bytes = b""  # of the call
    answer: Future[Any] = field(default_factory=Future)

    @property
    def alone(self) -> bool:
        """Whether it shares no transaction with others; a snapshot is then written before the answer."""
        return not isinstance(self.call, records.Learn)

    def settle(self, answer: Any) -> None:
        """Give the answer, or an error without its frames, which would keep models alive."""
        if isinstance(answer, Exception):
            self.answer.set_exception(answer.with_traceback(None))
        else:
            self.answer.set_result(answer)


class Writer:
    """A queue and its thread, which begins with the first call.

    Parameters
    ----------
    name : str
    serve : callable
        Called with what waits; it settles all of that.
    look_after : callable
        Called after each batch, and when ``due`` says so.
    due : callable
        Seconds until ``look_after`` has something to do; None if nothing is waiting.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[list[Asked]], None],
        look_after: Callable[[], None],
        due: Callable[[], float | None],
    ):
        self.serve, self.look_after, self.due = serve, look_after, due
        self._queue: SimpleQueue[Asked | None] = SimpleQueue()  # None ends the thread
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._lock, self._begun, self._closed = threading.Lock(), False, False

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return self._queue.qsize()

    def send(self, asked: Asked) -> Future[Any]:
        """Queue a call; returns the future of its answer."""
        asked.answer.set_running_or_notify_cancel()  # the rows are learned even if the caller stops waiting
        with self._lock:
            if self._closed:
                raise StoreError("the learner has been closed")
            if self.waiting >= MAX_WAITING_CALLS:
                raise Busy(f"{self.waiting:,} calls are waiting: try again later")
            self._queue.put(asked)
            if not self._begun:
                self._begun = True
                self._thread.start()
        return asked.answer

    def close(self) -> bool:
        """Serve what waits, and end; whether that had not been done before."""
        with self._lock:
            first, self._closed = not self._closed, True
        self._queue.put(None)
        if self._begun:
            self._thread.join()
        return first

    def _work(self) -> None:
        asked: Asked | None = Asked()
        while asked is not None:
            batch = list[Asked]()
            with contextlib.suppress(Empty):
                wait = self.due()
                asked = self._queue.get(timeout=None if wait is None else max(0.0, wait))
                while asked is not None:
                    batch.append(asked)
                    if len(batch) == CALLS_TOGETHER:
                        break
                    asked = self._queue.get_nowait()
            if batch:
                self._served(batch)
            self.look_after()

    def _served(self, batch: list[Asked]) -> None:
        try:
            self.serve(batch)
        except Exception as error:  # for example a lack of memory: the next calls may succeed
            for asked in batch:
                if not asked.answer.done():
                    asked.settle(error)
