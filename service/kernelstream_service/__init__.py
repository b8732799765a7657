"""Live models: learners that lose no acknowledged row, behind HTTP and brokers, with a page to watch.

:class:`DurableLearner` is a model, a journal of the rows it was given, and snapshots. :class:`Store` keeps many of them
in one process. ``kernelstream serve`` and ``kernelstream consume`` are the two fronts, :class:`Client` talks to the
first. :mod:`.keyed` has a model for every key, :mod:`.spark` the operator that runs them on streams of Spark.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names, and the module each lives in, which is imported at first use: commands start in a fraction of the time.
_HOMES = {
    "answers": ("Busy", "Dead", "Learned", "StoreError", "UnknownId", "View"),
    "client": ("Client", "RequestError"),
    "journal": ("LogError",),
    "learner": ("DurableLearner",),
    "rows": ("RowError",),
    "store": ("Store",),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
