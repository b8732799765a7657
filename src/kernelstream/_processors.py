"""Processors that a process really has."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path


def processors() -> int:
    """Those that this process may run on, as far as its control groups grant time on them; at least one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = granted()
    return allowed if share >= allowed else max(1, math.ceil(share))


@functools.cache
def granted(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> float:
    """Processors by the time that control groups grant: the least of all groups around this process, versions 1 and 2.

    Infinity where nothing limits it. Read once, because that takes longer than some calls of ``learn``.
    """
    try:
        lines = Path(groups).read_text().splitlines()
    except OSError:  # not Linux
        return math.inf
    least = math.inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for name in {controllers, "cpu"} if controllers else ("", "unified"):
            folder = base = Path(root, name)
            folder = folder / path.lstrip("/")
            while folder != base.parent:
                least = min(least, _share(folder))
                folder = folder.parent
    return least


def _share(folder: Path) -> float:
    """What one group grants: time in a period, by that period."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return int(quota) / int(period) if quota not in ("max", "-1") else math.inf
    except (OSError, ValueError, ZeroDivisionError):  # a group without limits has no such file
        return math.inf
