"""Live models: learners that lose no acknowledged row, behind HTTP and brokers, with a page to watch.

:class:`DurableLearner` is a model, an append-only log of the rows it was given, and snapshots. :class:`Store` keeps
many of them in one process. ``kernelstream serve`` and ``kernelstream consume`` are the two fronts, :class:`Client` and
:class:`AsyncClient` talk to the first.
"""

from typing import Any

from .answers import Busy, Learned, StoreError, UnknownId, View
from .learner import DurableLearner
from .log import Log, LogError
from .rows import RowError
from .store import Store

__all__ = [
    "AsyncClient", "Busy", "Client", "DurableLearner", "Learned", "Log", "LogError", "RequestError", "RowError",
    "Store", "StoreError", "UnknownId", "View",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("AsyncClient", "Client", "RequestError"):  # which need a package that nothing else here needs
        from . import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
