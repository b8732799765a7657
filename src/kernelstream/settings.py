"""Settings of the library: what belongs to the machine, and not to a model.

- ``threads``: how many threads a learner may use. ``KERNELSTREAM_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, else
  the processors that this process really has: those it may run on, as far as its control group (of a container, say)
  grants time on them.
- ``background``: 1 if what takes long and is not needed at once is computed beside the rows, on one more thread for all
  models; 0 if the row that needs it computes it.
- ``cache_bytes``: memory in which a doubly stochastic learner keeps frequencies that it would otherwise draw again.

No setting changes what is learned, beyond rounding, and ``background`` not even that. Threads are our own, and sleep
while they wait; BLAS has one thread in every call and while rows are solved beside, and as many as before outside.

>>> from kernelstream import settings
>>> settings.get()["cache_bytes"]
67108864
>>> with settings.using(threads=1, background=0, cache_bytes=0):
...     settings.get()
{'threads': 1, 'background': 0, 'cache_bytes': 0}
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ._processors import processors
from .checks import whole

MOST_THREADS = 256  # of one loop
CACHE_BYTES = 1 << 26

_given: dict[str, int | None] = {"threads": None, "background": None, "cache_bytes": None}  # None: the default


def get() -> dict[str, int]:
    """All settings."""
    return {"threads": threads(), "background": background(), "cache_bytes": cache_bytes()}


def change(**values: int | None) -> None:
    """Change settings of this process, by name; None returns to the default.

    >>> change(treads=2)
    Traceback (most recent call last):
        ...
    ValueError: there is no setting 'treads': known are background, cache_bytes, threads
    """
    for name, value in values.items():
        if name not in _given:
            raise ValueError(f"there is no setting {name!r}: known are {', '.join(sorted(_given))}")
        whole(name, value, least=1 if name == "threads" else 0, optional=True)
    _given.update(values)


@contextmanager
def using(**values: int | None) -> Iterator[None]:
    """Settings for the length of a ``with`` block."""
    before = dict(_given)
    change(**values)
    try:
        yield
    finally:
        _given.update(before)


def threads() -> int:
    """Threads a learner may use."""
    if _given["threads"] is not None:
        return _given["threads"]
    for name in ("KERNELSTREAM_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return processors()


def background() -> int:
    """Threads for what is computed beside the rows: one, or none."""
    given = _given["background"]
    return 1 if given is None else min(given, 1)


def cache_bytes() -> int:
    """Bytes for frequencies that are kept."""
    given = _given["cache_bytes"]
    return CACHE_BYTES if given is None else given
