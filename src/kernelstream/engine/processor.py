"""The engines of the processor: ``native`` where the core was compiled, and ``python``."""

from __future__ import annotations

import functools
import warnings
from importlib.util import find_spec
from types import ModuleType

from . import python


def has_native() -> bool:
    """Whether the compiled core is installed."""
    return find_spec("kernelstream._core") is not None


def engine(name: str = "auto") -> ModuleType:
    """The module of "auto", "native" or "python"."""
    if name == "auto":
        return _pick()
    if name == "python":
        return python
    if not has_native():
        raise ValueError(
            "engine='native' needs the compiled core, which this installation lacks; "
            "reinstall kernelstream where a C++17 compiler is available, or use engine='python'"
        )
    from . import native

    return native


@functools.cache
def _pick() -> ModuleType:
    """The engine of "auto"; a warning says so once where it is not compiled."""
    if has_native():
        return engine("native")
    warnings.warn(
        "kernelstream was installed without its compiled core: using the pure Python engine, which gives the same "
        "results many times slower",
        RuntimeWarning,
        stacklevel=5,
    )
    return python
