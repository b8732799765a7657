"""One caller at a time, with one BLAS thread: the lock of every estimator, and the decorator that takes it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
            self.queue, self.lock = threading.Lock(), threading.RLock()

        def __enter__(self) -> None:
            if self.lock._is_owned():  # type: ignore[attr-defined]
                self.lock.acquire()
            else:
                with self.queue:  # held while waiting, so that a thread that has just left queues behind the others
                    self.lock.acquire()
            one_blas_thread.__enter__()

        def __exit__(self, *exc: Any) -> None:
            one_blas_thread.__exit__(*exc)
            self.lock.release()


class OwnTurns:
    """Class attribute ``_turns`` of objects that threads may share: every instance has a lock of its own."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault("_turns", Turns())  # one step: of two threads, both get the same lock


_F = TypeVar("_F", bound=Callable[..., Any])


def in_turn(method: _F) -> _F:
    """Decorator of a method of an estimator: while it runs, calls from other threads wait."""

    @functools.wraps(method)
    def taken(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._turns:
            return method(self, *args, **kwargs)

    return taken  # type: ignore[return-value]
