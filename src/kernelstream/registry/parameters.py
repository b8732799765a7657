"""Parameters of estimators and parts, and the parts that a name stands for.

The class attribute ``_named_parts`` of an estimator gives, for a parameter, the part that each of its names stands for:
``{"schedule": {"auto": DoublySchedule}}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import BaseEstimator

from .names import did_you_mean


class WithParameters(BaseEstimator):
    """scikit-learn's base of objects with parameters, which reads the signature of a class once.

    ``get_params``, and with it every ``clone``, would otherwise inspect the constructor of every part each time. The
    error about an unknown parameter suggests the one that may have been meant.
    """

    def __new__(cls, *args: Any, **given: Any) -> Any:
        strange = cls._strange(given) if given else None
        if strange is not None:
            raise TypeError(f"got an unexpected keyword argument {strange}")
        made = super().__new__(cls)
        getattr(made, "_turns", None)  # an object that threads may share is made with its lock
        return made

    def set_params(self, **params: Any) -> Any:
        strange = self._strange(name.partition("__")[0] for name in params)
        if strange is not None:
            raise ValueError(f"Invalid parameter {strange}")
        return super().set_params(**params)

    @classmethod
    def _strange(cls, names: Iterable[str]) -> str | None:
        """The first name that is not a parameter, with what may have been meant; None where there is none."""
        known = cls._get_param_names()
        for name in names:
            if name not in known:
                return f"{name!r} for {cls.__name__}: {did_you_mean(name, known)}it has {', '.join(known)}"
        return None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        found: list[str] | None = cls.__dict__.get("_names_of_parameters")
        if found is None:
            found = super()._get_param_names()
            cls._names_of_parameters = found
        return found


def named_part(kind: Any, name: str, value: Any) -> Any:
    """The part that is the value of parameter ``name`` of a class of estimators, or that a name as value stands for."""
    named = kind._named_parts[name]
    if isinstance(value, str) and value in named:
        return named[value]()
    kinds = {type(make()) for make in named.values()}
    if isinstance(value, tuple(kinds)):
        return value
    words = [repr(known) for known in named] + [f"a {kind.__name__}" for kind in kinds]
    raise ValueError(f"{name} must be {' or '.join(words)}, got {value!r}")
