"""Kinds of columns, inferred from their first rows, for files, where every cell is a text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..streams.cells import Cells, is_missing, listed, number
from .dates import seconds
from .kinds import KINDS, MAX_CATEGORY_CHARACTERS, is_code, kind_of


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
    """Whether no cell of the columns is anything but a finite number."""

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
