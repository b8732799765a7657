"""The one thread of a learner that changes it: calls wait in a queue, and are served in their order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from .answers import Busy, StoreError

MAX_WAITING_CALLS = 10_000  # calls that may wait
CALLS_TOGETHER = 256  # calls that share a transaction
IDLE_SECONDS = 5.0  # seconds after which the thread ends

T = TypeVar("T")


class Writer(Generic[T]):
    """A queue and its thread, which is there only while it has something to do.

    Parameters
    ----------
    name : str
    serve : callable
        Called with the calls that wait, and their futures, which it settles.
    look_after : callable
        Called between calls, and when ``due`` says so; returns whether the thread may end.
    due : callable
        Seconds until ``look_after`` has something to do; None if nothing is waiting.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[list[tuple[T, Future[Any]]]], None],
        look_after: Callable[[], None],
        due: Callable[[], float | None],
    ):
        self.name, self.serve, self.look_after, self.due = name, serve, look_after, due
        self._condition = threading.Condition()
        self._queue: deque[tuple[T, Future[Any]]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return len(self._queue)

    def send(self, call: T) -> Future[Any]:
        """Queue a call; the future will have its answer."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # the rows are learned even if the caller stops waiting
        with self._condition:
            if self._closed:
                raise StoreError("the learner has been closed")
            if len(self._queue) >= MAX_WAITING_CALLS:
                raise Busy(f"{len(self._queue):,} calls are waiting: try again later")
            self._queue.append((call, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            else:
                self._condition.notify()
        return future

    def close(self) -> bool:
        """Serve what waits, and end; whether that had not been done before."""
        with self._condition:
            first, self._closed = not self._closed, True
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        return first

    def _work(self) -> None:
        idle_since = time.monotonic()
        while True:
            with self._condition:
                while not self._queue and not self._closed:
                    due = self.due()
                    wait = min(idle_since + IDLE_SECONDS - time.monotonic(), IDLE_SECONDS if due is None else due)
                    if wait <= 0:
                        break
                    self._condition.wait(wait)
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), CALLS_TOGETHER))]
                over = not batch and self.due() is None and time.monotonic() >= idle_since + IDLE_SECONDS
                if over or (not batch and self._closed):
                    self._thread = None
                    return
            if batch:
                try:
                    self.serve(batch)
                except Exception as error:  # for example a lack of memory: the next calls may succeed
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                idle_since = time.monotonic()
            self.look_after()
