"""One BLAS thread while calls of the library run.

The threads of BLAS round sums in another way for every number of them, and spin while they wait, which costs many times
what they gain where other processes are running. Work goes to the library's own threads instead
(:func:`kernelstream.core.threads.each`). Outside of calls BLAS has as many threads as before.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import ThreadpoolController

NAMES = {
    "openblas": ("openblas_get_num_threads", "openblas_set_num_threads"),
    "mkl": ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    "blis": ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
    "flexiblas": ("flexiblas_get_num_threads", "flexiblas_set_num_threads"),
}
OPENMP = ("omp_get_max_threads", "omp_set_num_threads")  # of OpenBLAS where it is built on OpenMP
AFFIXES = tuple(itertools.product(("", "scipy_"), ("", "64_", "_64")))  # of the names, in the builds of OpenBLAS


class Library(NamedTuple):
    """A BLAS library in this process."""

    get: Any  # () -> how many threads it may use
    set: Any  # sets that number
    per_thread: bool  # whether every thread of the process has a number of its own


@functools.cache
def libraries() -> tuple[Library, ...]:
    """Those that are loaded, looked for once.

    Their functions are called directly: threadpoolctl's own context describes all libraries first, which takes longer
    than some calls of ``learn``, and lets only one thread of a process change the number.
    """
    import scipy.linalg  # noqa: F401  # loads its BLAS, which may be another one than that of NumPy

    found = []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        per_thread = getattr(library, "threading_layer", "") == "openmp" and library.internal_api == "openblas"
        names = OPENMP if per_thread else NAMES.get(library.internal_api, ())
        for prefix, suffix in AFFIXES:
            functions = [getattr(library.dynlib, f"{prefix}{name}{suffix}", None) for name in names]
            if functions and None not in functions:
                found.append(Library(functions[0], functions[1], per_thread))
                break
    return tuple(found)


def addresses() -> list[tuple[int, int, bool]]:
    """The functions of the libraries as numbers, for the compiled core."""
    return [(_address(one.get), _address(one.set), one.per_thread) for one in libraries()]


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


try:
    from .._core import OneBlasThread
except ImportError:  # installed without the compiled core

    class OneBlasThread:  # type: ignore[no-redef]
        """Context in which BLAS keeps to the calling thread; the last thread that leaves puts the numbers back.

        See cpp/base/blas_threads.hpp.
        """

        def __init__(self) -> None:
            self.lock, self.calls = threading.RLock(), 0
            self.before: dict[int, int] = {}  # number of a library: how many threads to put back
            self.own = threading.local()  # depth of the calls of this thread, and its numbers to put back

        def __enter__(self) -> None:
            depth = self.own.depth = getattr(self.own, "depth", 0) + 1
            if depth > 1:
                return
            with self.lock:
                self.calls, self.own.before = self.calls + 1, {}
                for i, library in enumerate(libraries()):
                    count = library.get()
                    if count > 1:
                        (self.own.before if library.per_thread else self.before)[i] = count
                        library.set(1)

        def __exit__(self, *exc: Any) -> None:
            self.own.depth -= 1
            if self.own.depth:
                return
            with self.lock:
                self.calls -= 1
                self._put_back(self.own.before)
                if not self.calls:
                    self._put_back(self.before)

        def _put_back(self, before: dict[int, int]) -> None:
            for i, count in before.items():
                library = libraries()[i]
                if library.get() == 1:  # unless somebody else set it meanwhile
                    library.set(count)
            before.clear()

        def forked(self) -> None:
            """In a new process calls of other threads never end."""
            self.lock, self.calls = threading.RLock(), min(1, getattr(self.own, "depth", 0))
            if not self.calls:
                self._put_back(self.before)


one_blas_thread = OneBlasThread()

_F = TypeVar("_F", bound=Callable[..., Any])


def on_one_blas_thread(function: _F) -> _F:
    """Decorator of what may be called without an estimator, whose turn would do the same."""

    @functools.wraps(function)
    def kept(*args: Any, **kwargs: Any) -> Any:
        with one_blas_thread:
            return function(*args, **kwargs)

    return kept  # type: ignore[return-value]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_blas_thread.forked)
