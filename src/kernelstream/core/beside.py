"""Work beside the rows of a stream, on one thread for all models of a process.

The result of a work depends on nothing but the work, so that it is the same whoever computes it: the thread, or the
caller who asks for it before the thread has begun. Who asks later waits. A fork waits until the thread is between two
works, and the process at its end until the last one is done. :mod:`kernelstream.settings` can switch the thread off.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .. import settings
from ..state.turns import OwnTurns
from . import threads

_thread: OneThread | None = None


class OneThread:
    """The thread, which is started by the first work."""

    _turns = OwnTurns()  # taken as long as it works: a fork waits for these

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "kernelstream-beside", initializer=_behind_others)

    def begin(self, work: Callable[[], Any]) -> Future[Any] | None:
        with contextlib.suppress(RuntimeError):  # the interpreter ends
            return self.pool.submit(self._run, work)
        return None

    def _run(self, work: Callable[[], Any]) -> Any:
        with self._turns, threads.without_others():
            return work()


class Beside:
    """What ``work()`` returns, which must depend on nothing that may change meanwhile."""

    def __init__(self, work: Callable[[], Any]):
        self.work, self.thread = work, _the_thread() if settings.background() else None
        self.future = None if self.thread is None else self.thread.begin(work)

    def result(self) -> Any:
        """Compute it here, or wait for it."""
        if self._cancelled():
            return self.work()
        try:
            return self.future.result()  # type: ignore[union-attr]
        except Exception:
            return self.work()  # which raises the error where it belongs, unless it was one of the thread

    def __del__(self) -> None:
        self._cancelled()  # nobody will ask for it

    def _cancelled(self) -> bool:
        """Whether the thread will not compute it, and has not; it may be that of a process that has forked."""
        return self.future is None or self.thread is not _thread or self.future.cancel()


def _the_thread() -> OneThread:
    global _thread
    if _thread is None:
        _thread = OneThread()
    return _thread


def _behind_others() -> None:
    """Rows that come go first. A lower priority would be theirs, too, as soon as one waits for the result."""
    with contextlib.suppress(AttributeError, OSError):  # other systems than Linux, or not allowed
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _forget_thread() -> None:
    global _thread
    _thread = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_thread)  # threads do not survive a fork
