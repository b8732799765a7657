"""Settings of the library: what belongs to the machine, and not to a model.

- ``threads``: how many threads a learner may use. ``KERNELSTREAM_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, else
  the cores of this process.
- ``cache_bytes``: memory in which a doubly stochastic learner keeps frequencies that it would otherwise draw again.

No setting changes what is learned, beyond rounding.

>>> from kernelstream import settings
>>> settings.get()["cache_bytes"]
67108864
>>> with settings.using(threads=1, cache_bytes=0):
...     settings.get()
{'threads': 1, 'cache_bytes': 0}
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._checks import whole

MOST_THREADS = 256  # of one loop
CACHE_BYTES = 1 << 26

_threads: int | None = None
_cache_bytes = CACHE_BYTES


def get() -> dict[str, int]:
    """All settings."""
    return {"threads": threads(), "cache_bytes": _cache_bytes}


def change(**values: int | None) -> None:
    """Change settings of this process, by name; None returns to the default.

    >>> change(treads=2)
    Traceback (most recent call last):
        ...
    ValueError: there is no setting 'treads': known are cache_bytes, threads
    """
    global _threads, _cache_bytes
    for name, value in values.items():
        if name not in ("threads", "cache_bytes"):
            raise ValueError(f"there is no setting {name!r}: known are cache_bytes, threads")
        whole(name, value, least=1 if name == "threads" else 0, optional=True)
    if "threads" in values:
        _threads = values["threads"]
    if "cache_bytes" in values:
        given = values["cache_bytes"]
        _cache_bytes = CACHE_BYTES if given is None else given


@contextmanager
def using(**values: int | None) -> Iterator[None]:
    """Settings for the length of a ``with`` block."""
    before: dict[str, Any] = {"threads": _threads, "cache_bytes": _cache_bytes}
    change(**values)
    try:
        yield
    finally:
        change(**before)


def threads() -> int:
    """Threads a learner may use."""
    if _threads is not None:
        return _threads
    for name in ("KERNELSTREAM_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_bytes() -> int:
    """Bytes for frequencies that are kept."""
    return _cache_bytes
