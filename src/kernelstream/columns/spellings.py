"""Categories that are spellings of each other: ``Zürich``, ``zurich``, ``ZH-Zürich``.

Two words are near if the pairs of letters that both have are at least half of those that one of them has. Where half of
the words of a column are near another one, they are read as texts as well: spellings share their pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

LEAST_WORDS, MOST_WORDS = 30, 128  # different ones, from which it can be told, and that are compared
LEAST_LETTERS = 4
NEAR, SHARE = 0.5, 0.5


def misspelt(words: Iterable[Any]) -> bool:
    """Whether half of the words are near another one; those that differ in digits, blanks and marks alone are the same.

    >>> towns = ["London", "Londn", "Lodnon", "Berlin", "Berln", "Brelin", "Madrid", "Mdrid", "Madird", "Lisbon"]
    >>> endings = ("", "n", "e", "st", "ea")
    >>> misspelt(town + end for town in towns for end in endings), misspelt(f"customer {i}" for i in range(100))
    (True, False)
    """
    letters = ("".join(filter(str.isalpha, word)).lower() for word in words if isinstance(word, str))
    different = list(dict.fromkeys(word for word in letters if len(word) >= LEAST_LETTERS))[:MOST_WORDS]
    if len(different) < LEAST_WORDS:
        return False
    pairs = [set(pairwise(f" {word} ")) for word in different]
    near = [
        any(len(a & b) >= NEAR * len(a | b) for j, b in enumerate(pairs) if j != i)
        for i, a in enumerate(pairs)
    ]  # fmt: skip
    return sum(near) >= SHARE * len(near)
