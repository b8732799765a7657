"""Kinds of columns, and which kind the first value of a column suggests."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np

from ..streams.cells import NUMBERS, SPANS, number
from .dates import seconds

KINDS = ("number", "integer", "category", "date", "text")
LARGEST_CODE = 10**6  # whole numbers up to here may be codes of something
MAX_CATEGORY_CHARACTERS = 100  # characters: a longer text is not a category

TIMES = (datetime.date, datetime.time, np.datetime64)


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
