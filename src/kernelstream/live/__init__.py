"""Live models: learners that lose no row they have acknowledged, behind HTTP and brokers, with a page to watch.

:class:`DurableLearner` is a model, an append-only log of its calls, and snapshots. :class:`Store` keeps many of
them in one process. ``kernelstream serve`` and ``kernelstream consume`` are the two fronts.
"""

from .answers import Busy, Learned, StoreError, UnknownId, View
from .learner import DurableLearner
from .log import Log, LogError
from .rows import RowError
from .store import Store

__all__ = [
    "Busy", "DurableLearner", "Learned", "Log", "LogError", "RowError", "Store", "StoreError", "UnknownId", "View",
]  # fmt: skip
