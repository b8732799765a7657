"""Parts that a name stands for, and parameters that have moved into such a part.

An estimator says both in two class attributes:

``_named_parts``
    For a parameter, the part that each of its names stands for: ``{"schedule": {"auto": DoublySchedule}}``.
``_moved_parameters``
    Parameters of earlier versions and the parameter whose part has them now: ``{"batch_size": "schedule"}``. For one
    version the old spelling works, in the constructor, in ``set_params`` and as an attribute, with a FutureWarning;
    model files and pickles with the old spelling load without one.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, clone

from .names import did_you_mean


class WithParameters(BaseEstimator):
    """scikit-learn's base of objects with parameters, which reads the signature of a class once.

    ``get_params``, and with it every ``clone``, would otherwise inspect the constructor of every part anew. A parameter
    that does not exist is an error that names the one that may have been meant.
    """

    def __new__(cls, *args: Any, **given: Any) -> Any:
        strange = cls._strange(given) if given else None
        if strange is not None:
            raise TypeError(f"got an unexpected keyword argument {strange}")
        return super().__new__(cls)

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
            if name not in known and name not in getattr(cls, "_moved_parameters", ()):
                return f"{name!r} for {cls.__name__}: {did_you_mean(name, known)}it has {', '.join(known)}"
        return None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        found: list[str] | None = cls.__dict__.get("_names_of_parameters")
        if found is None:
            found = super()._get_param_names()
            cls._names_of_parameters = found
        return found


class MovedParameters:
    """Base of estimators some of whose parameters have moved into a part."""

    _named_parts: ClassVar[dict[str, dict[str, Callable[[], Any]]]] = {}
    _moved_parameters: ClassVar[dict[str, str]] = {}

    @classmethod
    def _successor(cls, given: dict[str, Any]) -> tuple[type, dict[str, Any]] | None:
        """Class and parameters that an object of these parameters has become; None where it is what it was."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" not in cls.__dict__:
            return
        if "_successor" in cls.__dict__:
            _follow_successor(cls)
        if not cls._moved_parameters:
            return
        own: Any = cls.__init__
        defaults = default_parameters(cls)

        @functools.wraps(own)
        def __init__(self: Any, *args: Any, **given: Any) -> None:
            if not cls._moved_parameters.keys().isdisjoint(given):
                positional = dict(zip(defaults, args, strict=False))
                given = without_moved(type(self), positional | given, defaults, warn=3)
                args = ()
            own(self, *args, **given)

        cls.__init__ = __init__  # type: ignore[method-assign]
        for name, home in cls._moved_parameters.items():
            setattr(cls, name, property(functools.partial(_read, name=name, home=home), doc=f"Now in ``{home}``."))


def _follow_successor(cls: type) -> None:
    """Let the constructor make an object of the class that has taken over, and say so."""
    own: Any = cls.__init__  # type: ignore[misc]
    names = list(default_parameters(cls))

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **given: Any) -> None:
        found = cls._successor(dict(zip(names, args, strict=False)) | given)  # type: ignore[attr-defined]
        if found is None:
            own(self, *args, **given)
            return
        kind, params = found
        warnings.warn(f"{cls.__name__} with these parameters is now {kind.__name__}", FutureWarning, stacklevel=2)
        self.__class__ = kind
        self.__init__(**params)

    cls.__init__ = __init__  # type: ignore[misc]


def default_parameters(cls: type) -> dict[str, Any]:
    """Parameters of a class and their defaults, in order."""
    found = inspect.signature(cls).parameters.values()
    return {one.name: one.default for one in found}


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


def without_moved(cls: type, given: dict[str, Any], own: dict[str, Any], warn: int = 0) -> dict[str, Any]:
    """``given`` with parameters that have moved put into their parts.

    ``own`` has the parameters not given; ``warn`` is the depth of the caller to warn, 0 for no warning.
    """
    moved: dict[str, str] = getattr(cls, "_moved_parameters", {})
    found = {name: value for name, value in given.items() if name not in moved}
    for name, value in given.items():
        if name not in moved:
            continue
        home = moved[name]
        named = cls._named_parts[home]  # type: ignore[attr-defined]
        part = found.get(home, own.get(home))
        if warn:
            kind = type(next(iter(named.values()))()).__name__
            text = f"{cls.__name__}({name}=…) is now {home}={kind}({name}=…), or set_params({home}__{name}=…)"
            warnings.warn(text, FutureWarning, stacklevel=warn)
        if isinstance(part, str):
            if part not in named:  # a choice that never used this parameter
                continue
            part = named[part]()
        if not isinstance(part, BaseEstimator):
            raise ValueError(f"{cls.__name__}: {home} must be a part that has {name}, got {part!r}")
        found[home] = clone(part).set_params(**{name: value})
    return found


def _read(est: BaseEstimator, name: str, home: str) -> Any:
    text = f"{type(est).__name__}.{name} is now the {name} of its {home}"
    warnings.warn(text, FutureWarning, stacklevel=2)
    part = getattr(est, home)
    named = est._named_parts[home]
    if isinstance(part, str):
        part = named.get(part, next(iter(named.values())))()
    return getattr(part, name)
