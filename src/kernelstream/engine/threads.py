"""Threads: how many may be used, and a block of work prepared while the one before is consumed.

The number is ``KERNELSTREAM_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, else the cores this process may use;
:func:`set_num_threads` overrides both.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController

from .._cores import get_num_threads as get_num_threads
from .._cores import set_num_threads as set_num_threads

_pool: ThreadPoolExecutor | None = None


def cuts(n: int, block: int) -> list[slice]:
    """Slices of at most ``block`` rows that cover ``n`` rows."""
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries once


def one_blas_thread() -> Any:
    """Context in which BLAS keeps to the calling thread: on small blocks its own threads spin more than they work."""
    return _controller().limit(limits=1, user_api="blas")


def prefetch(work: Callable[[Any], Any], items: Sequence[Any], threaded: bool) -> Iterator[tuple[Any, Any]]:
    """``(item, work(item))`` in order; if ``threaded``, the next item's work runs while this one's is consumed."""
    if len(items) < 4:
        for item in items:
            yield item, work(item)
        return
    with one_blas_thread():
        if not threaded or get_num_threads() < 2:
            for item in items:
                yield item, work(item)
            return
        pool = _the_pool()
        pending = pool.submit(work, items[0])
        for item, following in zip(items, [*items[1:], None], strict=True):
            done = pending.result()
            if following is not None:
                pending = pool.submit(work, following)
            yield item, done


def _the_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(1, thread_name_prefix="kernelstream")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_pool)
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None
