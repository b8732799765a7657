"""One caller at a time, with one BLAS thread: the lock of every estimator, and the decorator that takes it.

A process that forks waits for its turn with every model first, as `logging` does with its locks: the child has only the
thread that forked, so a call of another thread would never end there, and its model would stay half changed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from .blas_threads import one_blas_thread

try:
    from .._core import Turns
except ImportError:  # installed without the compiled core

    class Turns:  # type: ignore[no-redef]
        """A lock whose callers take turns in the order in which they came; the thread that has it may take it again.

        BLAS keeps to one thread meanwhile. Python's own locks have no order: a thread that learns block after block
        would hardly ever let another one in.
        """

        def __init__(self) -> None:
            self.queue, self.lock, self.lost = threading.Lock(), threading.RLock(), False

        def take(self, seconds: float) -> bool:
            """Wait for some seconds at most; False where the turn has not come."""
            if self.lost or self.lock._is_owned():  # type: ignore[attr-defined]
                return not self.lost and self.lock.acquire()
            limit = -1 if seconds == math.inf else max(0.0, seconds)  # in each of two queues
            # held while waiting, so that a thread that has just left queues behind the others
            if not self.queue.acquire(timeout=limit):
                return False
            try:
                return self.lock.acquire(timeout=limit)
            finally:
                self.queue.release()

        def leave(self) -> None:
            self.lock.release()

        def forked(self) -> bool:
            """In a child: nobody stands in line. False where another thread had the turn, which never ends."""
            self.queue, self.lost = threading.Lock(), self.lost or not self.lock.acquire(blocking=False)
            if not self.lost:
                self.lock.release()
            return not self.lost

        def __enter__(self) -> None:
            if not self.take(math.inf):
                refuse()
            one_blas_thread.__enter__()

        def __exit__(self, *exc: Any) -> None:
            one_blas_thread.__exit__(*exc)
            self.leave()


def refuse() -> NoReturn:
    """The turn will never come."""
    raise RuntimeError(
        "a call of another thread was using this model when the process was forked, and may have left it half changed "
        "here: fork between two calls, or give the child a copy (copy.deepcopy, save) that was made before"
    )


_all: weakref.WeakValueDictionary[int, Turns] = weakref.WeakValueDictionary()  # by id; locks of all living objects


class OwnTurns:
    """Class attribute ``_turns`` of objects that threads may share: every instance has a lock of its own."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        turns = instance.__dict__.setdefault("_turns", Turns())  # one step: of two threads, both get the same lock
        _all[id(turns)] = turns
        return turns


def turns_of(obj: Any) -> contextlib.AbstractContextManager[Any]:
    """A context in which calls of an object from other threads wait; one that does nothing where it has no turns."""
    turns: contextlib.AbstractContextManager[Any] = getattr(obj, "_turns", contextlib.nullcontext())
    return turns


_F = TypeVar("_F", bound=Callable[..., Any])


def in_turn(method: _F) -> _F:
    """Decorator of a method of an estimator: while it runs, calls from other threads wait."""

    @functools.wraps(method)
    def taken(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._turns:
            return method(self, *args, **kwargs)

    return taken  # type: ignore[return-value]


PATIENCE = 5.0  # seconds that a fork waits for calls that are under way; whoever uses a longer one is told so
_own = threading.local()  # .taken are the turns that this thread, which forks, has taken


def _all_living() -> list[Turns]:
    return [turns for turns in (reference() for reference in _all.valuerefs()) if turns is not None]


def _before_fork() -> None:
    """Take the turns of all objects; none is kept while waiting for another, whose caller may want it."""
    end = time.monotonic() + PATIENCE
    awaited, taken = None, _own.__dict__.setdefault("taken", [])
    while True:
        late = time.monotonic() >= end
        for turns in sorted(_all_living(), key=lambda turns: turns is not awaited):
            if turns.take(end - time.monotonic() if turns is awaited else 0.0):
                taken.append(turns)
            elif not late:
                break
        else:
            return
        awaited = turns
        _after_fork()


def _after_fork() -> None:
    while _own.taken:
        _own.taken.pop().leave()


def _after_fork_in_child() -> None:
    for turns in _all_living():
        if not turns.forked():
            del _all[id(turns)]  # nobody need wait for it again
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
