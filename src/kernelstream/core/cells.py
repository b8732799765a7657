"""The cell functions in use outside a learner: compiled where the core was built, else the specification."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

_engine = "native" if find_spec("kernelstream._core") is not None else "python"
ops: ModuleType = import_module(f"kernelstream.core.cells_{_engine}")
