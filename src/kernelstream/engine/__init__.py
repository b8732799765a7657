"""Engines: the same functions, written to be read (``python``), to be fast (``native``), or for a GPU (``torch``).

>>> from kernelstream import engine
>>> engine.get("python").NAME
'python'
"""

from __future__ import annotations

import functools
import warnings
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..core import threads as threads
from . import python
from .device import TorchEngine as TorchEngine
from .device import is_torch as is_torch
from .device import usable as usable

ENGINES = ("auto", "native", "python", "torch")


def has_native() -> bool:
    """Whether the compiled core is installed."""
    return find_spec("kernelstream._core") is not None


def get(name: str | TorchEngine = "auto") -> Any:
    """The engine of a name or a :class:`TorchEngine`; "auto" is native where it was built, else python."""
    if isinstance(name, TorchEngine):
        return name.ops()
    if isinstance(name, str) and name == "torch":
        return TorchEngine().ops()
    if name == "auto":
        return _pick()
    if name == "python":
        return python
    if name != "native":
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    if not has_native():
        raise ValueError(
            "engine='native' needs the compiled core, which this installation lacks; "
            "reinstall kernelstream where a C++17 compiler is available, or use engine='python'"
        )
    from . import native

    return native


def check(name: str | TorchEngine, on_device: bool, who: str) -> None:
    """ValueError for an engine that is not available here, or not for this family of learners (``on_device``)."""
    if is_torch(name) and not on_device:
        raise ValueError(f"{who} has no torch engine; engine='auto' uses the CPU")
    get(name)


def of_processor(name: str | TorchEngine) -> str | TorchEngine:
    """The engine for what always runs on the CPU."""
    return "auto" if is_torch(name) else name


@functools.cache
def _pick() -> ModuleType:
    """The engine of "auto"; a warning says so once where it is not compiled."""
    if has_native():
        return get("native")
    warnings.warn(
        "kernelstream was installed without its compiled core: using the pure Python engine, which gives the same "
        "results many times slower",
        RuntimeWarning,
        stacklevel=4,
    )
    return python
