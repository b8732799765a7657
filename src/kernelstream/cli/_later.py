"""Modules that are imported when they are first used.

scikit-learn's base classes import scipy.stats, narwhals, asyncio and others, which take three quarters of the time that
a command needs to start and which most commands never use. Inside :func:`imports_later` such a module is there by name
only; the first use of something in it executes it, and from then on it is like any other. (The loader of the standard
library, ``importlib.util.LazyLoader``, executes a package as soon as it is imported twice or a module in it is.)
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

LATER_MODULES = (
    "asyncio",
    "narwhals",
    "narwhals.stable",
    "narwhals.stable.v2",
    "numpy.f2py",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.testing",
    "scipy.special",
    "scipy.stats",
    "sklearn.callback",
)
_lock = threading.RLock()


class _Later(types.ModuleType):
    """A module whose code runs when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        _execute(self)
        try:
            return self.__dict__[name]
        except KeyError:  # its code is running and has not defined the name yet, or it makes names on request
            make = self.__dict__.get("__getattr__")
            if make is None:
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
            return make(name)


class _Loader:
    """Makes modules whose code has not run yet; ``real`` is the loader that runs it."""

    def __init__(self, real: Any):
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """An ordinary module, to begin with."""

    def exec_module(self, module: types.ModuleType) -> None:
        module.__class__ = _Later


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name not in LATER_MODULES:
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _execute(module: types.ModuleType) -> None:
    """Run the code of a module that has not run yet, after that of its packages."""
    with _lock:
        spec: Any = module.__spec__
        parent = sys.modules.get(spec.name.rpartition(".")[0])
        if type(parent) is _Later:
            _execute(parent)  # it may use this one
        loader = spec.loader
        if not isinstance(loader, _Loader):
            return  # it has run, or its own code asks for a name that is not defined yet
        spec.loader = module.__loader__ = loader.real
        loader.real.exec_module(module)
        module.__class__ = types.ModuleType


@contextlib.contextmanager
def imports_later() -> Iterator[None]:
    """While inside, modules of :data:`LATER_MODULES` are imported by name only, and pandas is not found."""
    finder, pandas = _Finder(), "pandas" in sys.modules
    sys.meta_path.insert(0, finder)
    if not pandas:
        sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if not pandas:
            del sys.modules["pandas"]
