"""Engines: the same functions, written to be read (``python``), to be fast (``native``), or for a GPU (``torch``).

>>> from kernelstream import engine
>>> engine.get("python").NAME
'python'
"""

from __future__ import annotations

from typing import Any

from ..core import threads as threads
from . import processor
from .device import TorchEngine as TorchEngine
from .device import is_torch as is_torch
from .device import usable as usable
from .processor import has_native as has_native

ENGINES = ("auto", "native", "python", "torch")


def get(name: str | TorchEngine = "auto") -> Any:
    """The engine of a name or a :class:`TorchEngine`; "auto" is native where it was built, else python."""
    if isinstance(name, TorchEngine):
        return name.ops()
    if isinstance(name, str) and name == "torch":
        return TorchEngine().ops()
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    return processor.engine(name)


def check(name: str | TorchEngine, on_device: bool, who: str) -> None:
    """ValueError for an engine that is not available here, or not for this family of learners (``on_device``)."""
    if is_torch(name) and not on_device:
        raise ValueError(f"{who} has no torch engine; engine='auto' uses the CPU")
    get(name)


def of_processor(name: str | TorchEngine) -> str | TorchEngine:
    """The engine for what always runs on the CPU."""
    return "auto" if is_torch(name) else name
