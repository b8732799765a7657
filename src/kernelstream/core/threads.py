"""Threads: how many may be used, a block of work prepared while the one before is consumed, and work side by side.

The number is a setting of the library (:mod:`kernelstream.settings`).
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController

from .. import settings

get_num_threads = settings.threads
_pool: ThreadPoolExecutor | None = None
_workers: ThreadPoolExecutor | None = None
_helper = threading.Lock()  # held by the caller that the one thread of _pool works for
_inside = threading.local()  # .each is True in threads that `each` keeps busy


def set_num_threads(count: int | None) -> None:
    """Limit the threads of all learners of this process; None returns to the default."""
    settings.change(threads=count)


def cuts(n: int, block: int, first: int = 0) -> list[slice]:
    """Slices of at most ``block`` rows that cover ``n`` rows; the first is shorter where ``first`` > 0 says so."""
    starts = range(first, n, block) if first else range(0, n, block)
    head = [slice(0, min(first, n))] if first else []
    return [*head, *(slice(start, min(start + block, n)) for start in starts)]


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries once


def one_blas_thread() -> Any:
    """Context in which BLAS keeps to the calling thread: on small blocks its own threads spin more than they work."""
    return _controller().limit(limits=1, user_api="blas")


def prefetch(work: Callable[[Any], Any], items: Sequence[Any], threaded: bool) -> Iterator[tuple[Any, Any]]:
    """``(item, work(item))`` in order; if ``threaded``, the next item's work runs while this one's is consumed."""
    if len(items) < 4 or getattr(_inside, "each", False):
        for item in items:
            yield item, work(item)
        return
    with one_blas_thread():
        # The helping thread has buffers for one caller: who comes while it is taken prepares its blocks itself.
        if not threaded or get_num_threads() < 2 or not _helper.acquire(blocking=False):
            for item in items:
                yield item, work(item)
            return
        try:
            pool = _the_pool()
            pending = pool.submit(work, items[0])
            for item, following in zip(items, [*items[1:], None], strict=True):
                done = pending.result()
                if following is not None:
                    pending = pool.submit(work, following)
                yield item, done
        finally:
            pending.exception()  # a caller that stops early must not leave work behind that writes to the buffers
            _helper.release()


def each(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """``work(item)`` for all items, which must not depend on each other, on as many threads as may be used.

    Those that take long had better come first.
    """
    global _workers
    count = min(get_num_threads(), len(items))
    if count < 2:
        for item in items:
            work(item)
        return

    waiting = deque(items)  # who is done takes the next one

    def run() -> None:
        _inside.each = True  # all threads are busy already: nothing is worth preparing ahead
        try:
            while waiting:
                try:
                    item = waiting.popleft()
                except IndexError:  # somebody was quicker
                    return
                work(item)
        finally:
            _inside.each = False

    if _workers is None or _workers._max_workers < count - 1:
        _workers = ThreadPoolExecutor(count - 1, thread_name_prefix="kernelstream-each")
    others: list[Future[Any]] = []
    with one_blas_thread():
        try:
            for _ in range(1, count):
                others.append(_workers.submit(run))
            run()
        finally:
            for other in others:  # nobody may go on working for a caller who has given up
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
