"""What the entries of a state may be: shapes, types and ranges, declared by the part that keeps them.

A state may come from anywhere (a model file, a pickle), and compiled loops go through its arrays without checking
every index. A part of the library therefore says in a ``schema`` method what it keeps::

    {"alpha": Array((outputs, capacity), "float64"), "n_support": Count(0, capacity), "gamma": Number(POSITIVE)}

and :func:`check` refuses a state with anything else in it. Numbers are finite unless declared ``free``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import few

POSITIVE = 5e-324  # the least number above 0
MOST = 2**53  # rows, columns, steps: no count is larger, and all up to here are exact in a float
SEEDS = 2**128 - 1  # the largest seed


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an entry of a state may be; one that is ``optional`` need not be there."""

    optional: bool = False

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value, or None."""
        raise NotImplementedError


@dataclass(frozen=True)
class Array(Entry):
    """An array of one shape and type (or one of several types), its numbers in [low, high].

    ``rising``: no number is less than the one before it. ``free``: infinity is allowed, where nothing is computed from
    it. ``gaps``: NaN is allowed. ``any_order``: may be stored column by column, where no compiled loop goes through it.
    """

    shape: tuple[int, ...]
    dtype: str | tuple[str, ...] = "float64"
    low: float = -math.inf
    high: float = math.inf
    rising: bool = False
    free: bool = False
    gaps: bool = False
    any_order: bool = False

    def fault(self, value: Any) -> str | None:
        types = (self.dtype,) if isinstance(self.dtype, str) else self.dtype
        if not isinstance(value, np.ndarray) or value.shape != self.shape or value.dtype not in types:
            found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
            return f"must be an array of {' or '.join(types)} {self.shape}, got {found}"
        if not (self.any_order or value.flags.c_contiguous):
            return "must be C-contiguous"
        if self.gaps:
            value = value[~np.isnan(value)]
        if value.size == 0:
            return None
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            if np.isnan(value).any():
                return "holds NaN"
            if not self.free:
                return "holds infinity"
        least, most = value.min(), value.max()
        if least < self.low or most > self.high:
            return f"must be {_between(self.low, self.high)}, got {least if least < self.low else most}"
        if self.rising and (value[1:] < value[:-1]).any():
            return "must not decrease"
        return None


@dataclass(frozen=True)
class Count(Entry):
    """An integer in [low, high]."""

    low: int = 0
    high: int = MOST

    def fault(self, value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            return f"must be an integer, got {value!r}"
        if not self.low <= value <= self.high:
            return f"must be an integer {_between(self.low, self.high)}, got {value!r}"
        return None


@dataclass(frozen=True)
class Number(Entry):
    """A number in [low, high]; finite unless ``free``."""

    low: float = -math.inf
    high: float = math.inf
    free: bool = False

    def fault(self, value: Any) -> str | None:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            return f"must be a number, got {value!r}"
        number: Any = value
        finite = abs(number) <= sys.float_info.max  # integers that no float can hold are not
        allowed = self.free and isinstance(number, float) and not math.isnan(number)
        if not (finite or allowed) or not self.low <= number <= self.high:
            return f"must be a number {_between(self.low, self.high)}, got {value!r}"
        return None


@dataclass(frozen=True)
class Text(Entry):
    """One of a few words."""

    words: tuple[str, ...]

    def fault(self, value: Any) -> str | None:
        return None if value in self.words else f"must be {' or '.join(self.words)}, got {value!r}"


@dataclass(frozen=True)
class Anything(Entry):
    """Finite numbers or strings of any shape: an entry of a part that came from outside and has no schema."""

    optional: bool = True

    def fault(self, value: Any) -> str | None:
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biufUS":
                return f"must hold numbers or strings, got {value.dtype}"
            return None if value.dtype.kind != "f" or np.isfinite(value).all() else "must hold finite numbers"
        return None if isinstance(value, (bool, int, float, str, np.generic)) else f"cannot be {value!r}"


@dataclass(frozen=True)
class Inside(Entry):
    """A state inside the state, with a schema of its own."""

    schema: dict[str, Any]

    def fault(self, value: Any) -> str | None:
        return None if isinstance(value, dict) else "must be a state of its own"


@dataclass(frozen=True)
class Whole(Entry):
    """The state of a learner, which checks it itself."""

    def fault(self, value: Any) -> str | None:
        return None if isinstance(value, dict) else "must be a state of its own"


@dataclass(frozen=True)
class Members(Entry):
    """The states of some learners, which these check themselves."""

    n: int

    def fault(self, value: Any) -> str | None:
        return None if isinstance(value, list) and len(value) == self.n else f"must be the states of {self.n} learners"


Schema = dict[str, Entry]


class Superfluous(ValueError):
    """There are entries that nothing reads."""


def check(entries: dict[str, Any], schema: Schema, path: str = "", inside: bool = True) -> None:
    """ValueError unless the entries are those of the schema and each is as it says.

    Without ``inside``, states inside are not checked.
    """
    unknown = [path + name for name in entries if name not in schema]
    if unknown:
        raise Superfluous(f"state_ has entries that do not belong there: {few(map(repr, unknown))}")
    for name, entry in schema.items():
        if name not in entries:
            if entry.optional:
                continue
            raise ValueError(f"state_ lacks {path + name!r}")
        fault = entry.fault(entries[name])
        if fault is not None:
            raise ValueError(f"state_[{path + name!r}] {fault}")
        if inside and isinstance(entry, Inside):
            check(entries[name], entry.schema, f"{path}{name}/")


def length(entries: dict[str, Any], name: str, axis: int = 0) -> int:
    """Length of an axis of an entry that has not been checked; 0 where there is no such thing."""
    value = entries.get(name)
    shape = value.shape if isinstance(value, np.ndarray) else ()
    return shape[axis] if -len(shape) <= axis < len(shape) else 0


def prefixed(prefix: str, schema: Schema) -> Schema:
    """The same entries under names that begin with the prefix."""
    return {prefix + name: entry for name, entry in schema.items()}


def foreign(part: Any) -> bool:
    """Whether a part is of a class defined outside the library, which may keep entries of its own."""
    return type(part).__module__.split(".")[0] != __name__.split(".")[0]


def anything(names: Iterable[str]) -> Schema:
    """Entries about which nothing is known but their names."""
    return dict.fromkeys(names, Anything())


def _between(low: float, high: float) -> str:
    if math.isinf(high):
        return "finite" if math.isinf(low) else "> 0" if low == POSITIVE else f">= {low}"
    return f"<= {high}" if math.isinf(low) else f"from {low} to {high}"
