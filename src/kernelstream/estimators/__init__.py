"""Estimators: scikit-learn's contract, plus ``learn``."""

from importlib import import_module
from typing import Any

from .. import _names

_HOMES = {name: home for table in (_names.ESTIMATORS, _names.PARTS) for home, names in table.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)  # a family is imported when it is first used
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
