"""Online kernel learning: nonlinear models of streams, one row at a time, in constant memory."""

from importlib import import_module
from typing import Any

from ._names import ESTIMATORS as _ESTIMATORS

__version__ = "0.1.0"

# Public names, and the module each lives in. They are imported at first use (PEP 562), so that `import kernelstream`
# costs next to nothing and a program pays only for what it uses.
_NAMES = dict.fromkeys(sorted(sum(_ESTIMATORS.values(), ())), "estimators")
_NAMES |= {"KernelForecaster": "forecast", "load": "model_io", "make_stream": "columns", "merge": "merging"}
_NAMES |= {"save": "model_io"}
_MODULES = (
    "budgets",
    "checkpoint",
    "columns",
    "copies",
    "datasets",
    "develop",
    "distributed",
    "drift",
    "engine",
    "estimators",
    "evaluate",
    "features",
    "forecast",
    "kernels",
    "losses",
    "merging",
    "model_io",
    "monitor",
    "onnx",
    "plots",
    "random",
    "river",
    "rows",
    "second_order",
    "settings",
    "solvers",
    "streams",
    "testing",
    "trust",
    "updates",
    "zoo",
)

# What `from kernelstream import *` brings: no module but the zoo, since `random`, `datasets` or `evaluate` would take
# the place of others' names.
__all__ = [*_NAMES, "zoo"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        try:
            return import_module(f"{__name__}.{name}")
        except ImportError as error:  # of an optional package: `help` and `inspect` go on without the module
            raise AttributeError(str(error)) from error
    if name in _NAMES:
        value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value  # the next access does not come here
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
