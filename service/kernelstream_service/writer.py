"""The one thread of a learner that changes it: calls wait in a queue, and are served in their order."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from .answers import Busy, StoreError
from .keeper import Asked, Keeper

MAX_WAITING_CALLS = 10_000  # calls that may wait
CALLS_TOGETHER = 256  # calls that share a transaction


class Writer:
    """A queue and its thread, which begins with the first call.

    Parameters
    ----------
    name : str
    keeper : Keeper
        What the thread does, and between calls, and when.
    """

    def __init__(self, name: str, keeper: Keeper):
        self.keeper = keeper
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
                wait = self.keeper.due()
                asked = self._queue.get(timeout=None if wait is None else max(0.0, wait))
                while asked is not None:
                    batch.append(asked)
                    if len(batch) == CALLS_TOGETHER:
                        break
                    asked = self._queue.get_nowait()
            try:
                self.keeper.serve(batch)
            except Exception as error:  # for example a lack of memory: the next calls may succeed
                for one in batch:
                    if not one.answer.done():
                        one.settle(error)
            self.keeper.look_after()
