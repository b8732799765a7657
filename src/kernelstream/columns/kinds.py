"""Kinds of columns, inferred from their first value, or in files, where all cells are texts, from their first rows."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np

from ..streams.cells import NUMBERS, SPANS, Cells, is_missing, listed, number
from .dates import seconds

KINDS = ("number", "integer", "category", "date", "text")
LARGEST_CODE = 10**6  # whole numbers up to here may be codes of something
MAX_CATEGORY_CHARACTERS = 100  # characters: a longer text is not a category

TIMES = (datetime.date, datetime.time, np.datetime64)


def kind_of(value: Any) -> str:
    """The kind of a column whose first value this is.

    Truth values and words are categories; whole numbers of moderate size are integers, which may be codes as well; any
    other number is a number, in a string too; dates and times are dates, in a string too; long texts and anything else
    are ignored.

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


def guess(sample: Cells, names: list[str]) -> dict[str, str]:
    """The kind of most cells of each column; the kind of a column without a value is left to its first one.

    >>> guess(Cells({"a": ["1", "x", "2.5", ""], "b": ["u", "1", "v", "w"]}, 4), ["a", "b"])
    {'a': 'number', 'b': 'category'}
    """
    found = {}
    for name in names:
        values = [value for value in listed(sample.get(name)) if not is_missing(value)]
        if values:
            found[name] = sample.hints.get(name) or _kind(values)
    return found


def all_numbers(sample: Cells, names: list[str]) -> bool:
    """Whether all cells of the columns are finite numbers."""

    def plain(value: Any) -> bool:
        x = None if isinstance(value, (bool, np.bool_)) else number(value)
        return x is not None and not math.isnan(x)

    return all(all(map(plain, listed(sample.get(name)))) for name in names)


def _kind(values: list[Any]) -> str:
    half = len(values) / 2
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) <= half:
        kinds = [kind_of(value) for value in values if not isinstance(value, str)]
        most = max(KINDS, key=kinds.count)
        return "number" if most == "integer" and "number" in kinds else most
    numbers = [x for x in map(number, texts) if x is not None and not math.isnan(x)]
    if len(numbers) > half:
        return "integer" if all(map(is_code, numbers)) else "number"
    if sum(not math.isnan(seconds(text)) for text in texts) > half:
        return "date"
    return "text" if sum(map(len, texts)) / len(texts) > MAX_CATEGORY_CHARACTERS else "category"
