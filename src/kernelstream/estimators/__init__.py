"""Estimators: scikit-learn's contract, plus ``learn``."""

from importlib import import_module
from typing import Any, TypeVar

from .. import _names
from ..registry.names import Catalogue

_HOMES = {name: home for table in (_names.ESTIMATORS, _names.PARTS) for home, names in table.items() for name in names}

__all__ = [*sorted(_HOMES), "register"]

CATALOGUE = Catalogue("estimator", object)  # those of other packages
_T = TypeVar("_T", bound=type)


def register(cls: _T) -> _T:
    """Class decorator for an estimator of another package: model files name it by the name of its class."""
    CATALOGUE.enter(cls.__name__, cls)
    return cls


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)  # a family is imported when it is first used
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
