"""How many threads may be used: ``KERNELSTREAM_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, else the cores of this
process; :func:`set_num_threads` overrides both.
"""

from __future__ import annotations

import os

MOST = 256  # threads of one loop

_count: int | None = None


def get_num_threads() -> int:
    """Threads a learner may use."""
    if _count is not None:
        return _count
    for name in ("KERNELSTREAM_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_num_threads(count: int | None) -> None:
    """Limit the threads of all learners of this process; None returns to the default."""
    global _count
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"the number of threads must be an integer >= 1 or None, got {count!r}")
    _count = count
