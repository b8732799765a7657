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
IDLE_SECONDS = 5.0  # seconds after which the thread ends


class Writer:
    """A queue and its thread, which is there only while it has something to do.

    Parameters
    ----------
    name : str
    keeper : Keeper
        What the thread does, and between calls, and when.
    """

    def __init__(self, name: str, keeper: Keeper):
        self.keeper, self.name, self._queue = keeper, name, SimpleQueue[Asked | None]()  # None wakes the thread
        self._thread: threading.Thread | None = None
        self._lock, self._closed = threading.Lock(), False

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
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
        return asked.answer

    def close(self) -> bool:
        """Serve what waits, and end; whether that had not been done before."""
        with self._lock:
            first, self._closed, thread = not self._closed, True, self._thread
        self._queue.put(None)
        if thread is not None:
            thread.join()
        return first

    def _work(self) -> None:
        while True:
            batch, due = list[Asked](), self.keeper.due()
            wait = IDLE_SECONDS if due is None else max(0.0, due)
            with contextlib.suppress(Empty):
                asked = self._queue.get(timeout=0.0 if self._closed else wait)
                while True:
                    if asked is not None:
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
            if not batch and (due is None or self._closed):
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return
