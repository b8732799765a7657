"""Categories: their names, the table of those a column has had, and the columns in which they show."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ..streams.cells import NUMBERS, is_missing
from .kinds import TIMES

MAX_NAME_CHARACTERS = 64  # characters of a category's name; of a longer one the start and a digest are kept
PLACES = 3
_DRAWS = struct.Struct(f"<{PLACES}I").unpack
_TYPES = (str, bool, np.bool_, bytes, *NUMBERS, *TIMES)


def word(value: Any) -> str | None:
    """The name of a category; "" if the cell is missing, None if it cannot be a category.

    A whole number has the same name however it comes: 3, 3.0 and "3" are one category.

    >>> [word(value) for value in ("red", 3.0, "3", True, None, [1])]
    ['red', '3', '3', 'True', '', None]
    """
    if type(value) is not str:
        if is_missing(value):
            return ""
        if not isinstance(value, _TYPES):
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, (float, np.floating)):
            value = str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
        else:
            value = str(value)
    if is_missing(value):
        return ""
    if len(value) > MAX_NAME_CHARACTERS:
        value = f"{value[: MAX_NAME_CHARACTERS - 16]}{_digest(value, 8).hex()}"
    return value


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def pattern(name: str, slots: int) -> list[tuple[int, float]]:
    """Slots in which a category without one of its own shows, and what it shows there: three signs over root three.

    The same on every machine and in every run. Fewer than three slots make a pattern of as many signs.
    """
    free, out = list(range(slots)), []
    many = min(PLACES, slots)
    amount = 1.0 / math.sqrt(many) if many else 0.0
    for draw in _DRAWS(_digest(name, 4 * PLACES))[:many]:
        out.append((free.pop((draw >> 1) % len(free)), amount if draw & 1 else -amount))
    return out


class CategoryTable:
    """The categories that a column has had, by name, and the code of each; ``own`` of them have a slot of their own.

    Names are strings, in a column of integers numbers; the missing cell is "" in both.
    """

    __slots__ = ("codes", "own")

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.own = 0

    def copy(self) -> CategoryTable:
        made = CategoryTable()
        made.codes, made.own = dict(self.codes), self.own
        return made

    def look_up(
        self, cells: list[Any], name: Callable[[Any], Any], enter: Callable[[Any], int], most: int | None
    ) -> tuple[list[int], int | None]:
        """Codes of cells, and the place of the first one for which there is no room, or None.

        A cell that is not found is looked up by its ``name``; if that is new it gets a code from ``enter``, unless
        there are ``most`` names already.
        """
        get = self.codes.get
        found = [get(cell, -1) for cell in cells]
        if -1 in found:
            for i, code in enumerate(found):
                if code < 0:
                    code = get(cells[i], -1)  # it may have been entered a few cells ago
                if code < 0:
                    key = name(cells[i])
                    code = get(key, -1)
                    if code < 0:
                        if most is not None and len(self.codes) >= most:
                            return found[:i], i
                        code = enter(key)
                found[i] = code
        return found, None
