"""Threads: how many may be used, a block of work prepared while the one before is consumed, and work side by side.

The number is a setting of the library (:mod:`kernelstream.settings`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .. import settings
from ..state.blas_threads import one_blas_thread

_pool: ThreadPoolExecutor | None = None
_workers: ThreadPoolExecutor | None = None
_helper = threading.Lock()  # held by the caller that the one thread of _pool works for
_inside = threading.local()  # .each is True in threads that `each` keeps busy


def get_num_threads() -> int:
    """Threads that a computation may use now: those of the settings, one where `each` keeps them busy already."""
    return 1 if getattr(_inside, "each", False) else settings.threads()


def second() -> bool:
    """Whether a compiled pass may use a second thread."""
    return get_num_threads() > 1


def cuts(n: int, block: int, first: int = 0) -> list[slice]:
    """Slices of at most ``block`` rows (at least one) that cover ``n``; the first is shorter where ``first`` > 0."""
    block, head = max(1, block), [slice(0, min(first, n))] if first else []
    return [*head, *(slice(start, min(start + block, n)) for start in range(first, n, block))]


AHEAD = 2  # items that may be made beyond the one that is consumed; a caller that keeps buffers needs one more
BUFFERS = AHEAD + 1
WORTH_A_THREAD = 4  # with fewer items a second thread is not worth starting
WORTH = 1.5e8  # products in a call, some milliseconds, from which a second thread gains more than handing over costs


def prefetch(work: Callable[[Any], Any], items: Sequence[Any], threaded: bool) -> Iterator[tuple[Any, Any]]:
    """``(item, work(item))`` in order; if ``threaded``, a second thread makes the next ones while one is consumed.

    If that thread falls behind, the consumer makes some too instead of waiting. At most :data:`BUFFERS` results of work
    in one thread are alive at the same time, those of consecutive items.
    """
    # The helping thread has buffers for one caller: one that finds it busy prepares its blocks itself.
    alone = len(items) < WORTH_A_THREAD or not threaded or get_num_threads() < 2
    if alone or not _helper.acquire(blocking=False):
        for item in items:
            yield item, work(item)
        return
    shared = _Ahead(work, items)
    try:
        for i, item in enumerate(items):
            yield item, shared.take(i)
    finally:
        shared.end()  # no work that writes to the buffers may outlive a caller that stops early
        _helper.release()


class _Ahead:
    """Results for items in order, made by two threads; the second never waits: it ends, and is called again."""

    def __init__(self, work: Callable[[Any], Any], items: Sequence[Any]):
        self.work, self.items = work, items
        self.turn = threading.Condition()
        self.next = self.at = 0  # the next item to make, and the one that is consumed
        self.made: dict[int, tuple[Any, BaseException | None]] = {}
        self.helping: Future[None] | None = None
        self.idle = True  # whether the second thread has nothing to do

    def _claim(self) -> int | None:
        """An item to make, unless that would be too far ahead; the lock is held."""
        if self.next == len(self.items) or self.next > self.at + AHEAD:
            return None
        self.next += 1
        return self.next - 1

    def _make(self, i: int) -> None:
        result: tuple[Any, BaseException | None]
        try:
            with one_blas_thread:
                result = self.work(self.items[i]), None
        except BaseException as error:
            result = None, error
        with self.turn:
            self.made[i] = result
            self.turn.notify_all()

    def help(self) -> None:
        """The work of the second thread: make all items that may be made now."""
        while True:
            with self.turn:
                i = self._claim()
                if i is None:
                    self.idle = True
                    return
            self._make(i)

    def take(self, i: int) -> Any:
        """The result for item i; all before it have been consumed."""
        with self.turn:
            self.at = i
            if self.idle and self.next < len(self.items):
                self.idle = False
                self.helping = _the_pool().submit(self.help)
        while True:
            with self.turn:
                j = None if i in self.made else self._claim()
                if j is None:
                    self.turn.wait_for(lambda: i in self.made)
                    result, error = self.made.pop(i)
                    break
            self._make(j)
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        """Stop; returns when no thread is working any more."""
        with self.turn:
            self.next = len(self.items)
        if self.helping is not None:
            self.helping.exception()


@contextlib.contextmanager
def without_others() -> Iterator[None]:
    """Context in which this thread has no others to help it: all of them are busy already."""
    before, _inside.each = getattr(_inside, "each", False), True
    try:
        yield
    finally:
        _inside.each = before


def each(work: Callable[[Any], Any], items: Sequence[Any], threaded: bool = True) -> None:
    """``work(item)`` for all items, which must be independent, on as many threads as allowed.

    Items that take long should come first. Inside such work all threads are busy, so nested calls run in one thread, as
    do calls that are not ``threaded``.
    """
    global _workers
    count = min(get_num_threads(), len(items)) if threaded else 1
    if count < 2:
        for item in items:
            work(item)
        return

    waiting = deque(items)  # a thread that is done takes the next one

    def run() -> None:
        with without_others(), one_blas_thread:
            while waiting:
                try:
                    item = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                work(item)

    if _workers is None or _workers._max_workers < count - 1:
        _workers = ThreadPoolExecutor(count - 1, thread_name_prefix="kernelstream-each")
    others: list[Future[Any]] = []
    try:
        for _ in range(1, count):
            others.append(_workers.submit(run))
        run()
    finally:
        for other in others:  # no thread may go on working after the caller has given up
            other.exception()
    for other in others:
        other.result()


def _the_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(1, thread_name_prefix="kernelstream")
    return _pool


def _forget_pools() -> None:
    global _pool, _workers, _helper
    _pool = _workers = None
    _helper = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)  # threads do not survive a fork
