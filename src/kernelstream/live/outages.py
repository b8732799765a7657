"""Outages that pass: a broker that restarts, a disk that is full."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable

from .log import LogError
from .sources import Unavailable

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0  # seconds to wait, at first and at most
STOP_SECONDS = 0.1  # seconds after which a request to stop is seen

logger = logging.getLogger("kernelstream.live")


def passes(error: OSError) -> bool:
    """Whether the same may well succeed later."""
    return isinstance(error, (Unavailable, LogError)) or error.errno in (errno.ENOSPC, errno.EDQUOT)


class Outage:
    """Waits longer and longer, until something works again or it is asked to stop; logs when an outage begins and ends.

    Attributes
    ----------
    pause : float
        Seconds of the last wait; 0 while all is well.
    """

    def __init__(self, stop: Callable[[], bool]):
        self.stop, self.pause, self.since = stop, 0.0, 0.0

    def wait(self, error: OSError) -> None:
        """Wait before the next try."""
        if not self.pause:
            self.since = time.monotonic()
            logger.warning("%s; trying again until it works", error)
        self.pause = min(LONGEST_PAUSE, 2 * self.pause or FIRST_PAUSE)
        until = time.monotonic() + self.pause
        while (left := until - time.monotonic()) > 0 and not self.stop():
            time.sleep(min(STOP_SECONDS, left))

    def over(self) -> None:
        """Note that it works again."""
        if self.pause:
            logger.warning("it works again, after %.1f s", time.monotonic() - self.since)
            self.pause = 0.0
