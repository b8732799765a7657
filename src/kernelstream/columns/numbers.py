"""Cells of a column of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import engine as engines
from ..streams._columns import MISSING
from .kinds import LARGEST_NUMBER, number

_PLAIN = {float, int, bool, type(None)}


def numbers(values: Any) -> tuple[np.ndarray, list[int]]:
    """Cells as float64 (n,), NaN where one is missing or wrong; and the rows of those that are wrong.

    >>> numbers([1, "2.5", None, "abc"])
    (array([1. , 2.5, nan, nan]), [3])
    """
    x = _quick(values)
    if x is not None and not (np.abs(x) > LARGEST_NUMBER).any():
        return x, []
    x = np.empty(len(values))
    wrong = []
    for i, value in enumerate(values):
        found = number(value)
        if found is None:
            wrong.append(i)
        x[i] = np.nan if found is None else found
    return x, wrong


def _quick(values: Any) -> np.ndarray | None:
    """Cells as numbers where all of them are plain; None where they must be read one by one."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64) if values.dtype.kind in "fiub" else None
    types = set(map(type, values))
    try:
        if types <= _PLAIN:
            return np.array(values, np.float64)
        if types == {str}:
            return _of_texts(values)
    except (ValueError, OverflowError):
        pass
    return None


def _of_texts(values: list[str]) -> np.ndarray:
    """Texts as numbers, gaps as NaN; ValueError if one is neither."""
    if engines.has_native():
        from .. import _core

        x = np.empty(len(values))
        if _core.numbers_of_texts(values, x):
            return x
    try:
        return np.array(list(map(float, values)))
    except ValueError:
        return np.array([math.nan if text in MISSING else float(text) for text in values])
