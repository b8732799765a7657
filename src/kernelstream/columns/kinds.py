"""Kinds of columns, and which kind the first value of a column suggests."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from typing import Any

import numpy as np

from ..streams._columns import MISSING
from .dates import seconds

KINDS = ("number", "integer", "category", "date", "text")
LARGEST_NUMBER = 1e100  # larger numbers are not measurements, and their squares would overflow
LARGEST_CODE = 10**6  # whole numbers up to here may be codes of something
MAX_CATEGORY_CHARACTERS = 100  # characters: a longer text is not a category

NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal, fractions.Fraction)
TIMES = (datetime.date, datetime.time, np.datetime64)
SPANS = (datetime.timedelta, np.timedelta64)


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT, pandas' NA, an empty string or what stands for it (NA, ?, ...).

    >>> [is_missing(value) for value in (None, float("nan"), "", " ", "NA", 0, "0", False)]
    [True, True, True, True, True, False, False, False]
    """
    if value is None:
        return True
    if isinstance(value, str):
        return value in MISSING or value.strip() in MISSING
    if type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except Exception:  # an array, or another object that cannot be compared with itself
        return False


def kind_of(value: Any) -> str:
    """The kind of a column whose first value this is.

    Truth values and words are categories; whole numbers of moderate size are integers, which may be codes as well; any
    other number is a number, in a string too; dates and times are dates, in a string too; long texts and anything else
    are not used.

    >>> [kind_of(value) for value in (True, 3, 2.5, "7", "red", "2024-05-01", [1])]
    ['category', 'integer', 'number', 'integer', 'category', 'date', 'text']
    """
    if isinstance(value, (bool, np.bool_)):
        return "category"
    if isinstance(value, SPANS):
        return "number"
    if isinstance(value, TIMES):
        return "date"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (*NUMBERS, str)):
        x = number(value)
        if x is not None:
            return "integer" if is_code(x) else "number"
    if isinstance(value, NUMBERS):
        return "number"  # too large to be used, but its column holds numbers
    if isinstance(value, str):
        if not math.isnan(seconds(value)):
            return "date"
        return "text" if len(value) > MAX_CATEGORY_CHARACTERS else "category"
    return "text"


def is_code(x: float) -> bool:
    """Whether a number may be the code of something: whole, and of moderate size."""
    return x.is_integer() and -LARGEST_CODE <= x <= LARGEST_CODE


def number(value: Any) -> float | None:
    """A cell as a number; None if it is not a number, or too large, and NaN if it is missing.

    >>> number("1e3"), number("abc"), number(None), number(10**400)
    (1000.0, None, nan, None)
    """
    if isinstance(value, SPANS):
        value = np.timedelta64(value) / np.timedelta64(1, "s")
    elif isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, (*NUMBERS, str, np.bool_)):
        return math.nan if is_missing(value) else None
    try:
        x = float(value)
    except (ValueError, OverflowError, ArithmeticError):
        return math.nan if is_missing(value) else None
    return x if -LARGEST_NUMBER <= x <= LARGEST_NUMBER or x != x else None
