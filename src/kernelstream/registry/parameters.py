"""Parameters of estimators and parts, and the parts that a name stands for.

The class attribute ``_named_parts`` of an estimator gives, for a parameter, the part that each of its names stands for:
``{"schedule": {"auto": DoublySchedule}}``.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator


class WithParameters(BaseEstimator):
    """scikit-learn's base of objects with parameters, which reads the signature of a class once.

    ``get_params``, and with it every ``clone``, would otherwise inspect the constructor of every part anew.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        found: list[str] | None = cls.__dict__.get("_names_of_parameters")
        if found is None:
            found = super()._get_param_names()
            cls._names_of_parameters = found
        return found


def named_part(est: Any, name: str) -> Any:
    """The part that parameter ``name`` of an estimator holds, or that its name stands for."""
    value, named = getattr(est, name), est._named_parts[name]
    if isinstance(value, str) and value in named:
        return named[value]()
    kinds = {type(make()) for make in named.values()}
    if isinstance(value, tuple(kinds)):
        return value
    words = [repr(known) for known in named] + [f"a {kind.__name__}" for kind in kinds]
    raise ValueError(f"{name} must be {' or '.join(words)}, got {value!r}")
