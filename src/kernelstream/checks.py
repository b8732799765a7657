"""Checks of user parameters: they return a valid value or raise a ValueError that says what it must be.

>>> positive("eta", 0.5), whole("budget", 100), fraction("share", 0.0, zero=True)
(0.5, 100, 0.0)
>>> whole("budget", 1.5)
Traceback (most recent call last):
    ...
ValueError: budget must be an integer >= 1, got 1.5
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np


def few(names: Iterable[Any], most: int = 5) -> str:
    """The first of some names, for a message.

    >>> few("abcd"), few("abcd", 2)
    ('a, b, c, d', 'a, b, ... (4 in all)')
    """
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")


def is_number(value: Any) -> bool:
    """Whether a value is a real number; True and False are not, though Python counts them among the integers."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, and neither True nor False."""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def is_flag(value: Any) -> bool:
    """Whether a value is True or False."""
    return isinstance(value, (bool, np.bool_))


def number(name: str, value: Any) -> float:
    """``value`` as a finite float."""
    if not is_number(value) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def positive(name: str, value: Any, *, zero: bool = False, infinite: bool = False) -> float:
    """``value`` as a float > 0 (or >= 0 with ``zero``); infinity only where ``infinite`` allows it."""
    ok = is_number(value) and (value > 0 or (value == 0 and zero))
    if not (ok and (value <= sys.float_info.max or (infinite and value == math.inf))):
        raise ValueError(f"{name} must be a number {'>= 0' if zero else '> 0'}, got {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int = 1, optional: bool = False) -> int:
    """``value`` as an int >= ``least``. With ``optional``, None is allowed and returned as it is."""
    if optional and value is None:
        return value  # type: ignore[return-value]
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}{' or None' * optional}, got {value!r}")
    return int(value)


def fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """``value`` as a float between 0 and 1, the ends included where ``zero`` and ``one`` say so."""
    ok = is_number(value) and 0 <= value <= 1 and (value != 0 or zero) and (value != 1 or one)
    if not ok:
        bounds = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ValueError(f"{name} must be a number in {bounds}, got {value!r}")
    return float(value)


def flag(name: str, value: Any) -> None:
    """ValueError unless the value is True or False."""
    if not is_flag(value):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def one_of(name: str, value: Any, known: Collection[str]) -> None:
    """ValueError unless the value is one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
