"""Kinds of columns: what most of their first cells are.

Each cell votes for what it is; the kind that more than half of the votes name is that of the column, but for whole
numbers among words, which may be codes ("1034", "A77") and need more than nine tenths::

    kind = number if n_number > n/2 or n_number + n_integer > 9n/10, date if n_date > n/2, ignored if n_ignored > n/2,
           otherwise text if n_text > n/2 and the cells vary, otherwise category

A cell votes for text if it has five words or more, or over a hundred characters. Cells vary if more than half of them
differ; those of a column of texts, if there are more different words and pairs of words than a quarter of the rows.

with n the cells that are not missing, of which n_integer are whole numbers and n_number other ones. All rows of a table
vote. In a stream the votes are counted again after 1, 2, 4, 8, ... rows, for as long as a column had fewer than
``DECIDING_CELLS`` cells: what a row is taken for depends on the rows before it alone, however they were cut into calls.
A number above 12 says whether day or month comes first; the decimal mark is the one that reads more of the cells
(:mod:`kernelstream.streams.marks`).
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any

import numpy as np

from ..streams.cells import LARGEST_NUMBER, NUMBERS, SPANS, Cells, is_missing, listed, number, plain_numbers
from ..streams.marks import BOTH_MARKS, DATE, decimal_marks
from .dates import seconds

KINDS = ("number", "integer", "category", "date", "ignored", "text")
LARGEST_CODE = 10**6  # whole numbers up to here may be codes of something
MAX_CATEGORY_CHARACTERS = 100  # characters: a longer text is not a category
MIN_TEXT_WORDS = 5  # words from which a cell votes for a text
MIN_CELLS_REPEATED = 16  # cells of a text after which it may prove to be a category
DECIDING_CELLS = 256  # cells of a column after which its kind stays

TIMES = (datetime.date, datetime.time, np.datetime64)
# What cells vote for: a kind (`KINDS`), a date with the year last; the decimal mark that reads it; what comes first.
_NUMBER, _INTEGER, _CATEGORY, _DATE, _IGNORED, _TEXT, _SLASHED, _POINT, _COMMA, _DAY_FIRST, _MONTH_FIRST = range(11)
VOTES = 11
_CELLS = slice(0, _SLASHED + 1)  # of these each cell gives exactly one

Reading = tuple[str, str]  # kind, and how it is written: the decimal mark, or the order of day and month ("", "d/m")


def kind_of(value: Any) -> str:
    """The kind of a column that holds this value alone.

    Truth values and words are categories; whole numbers of moderate size are integers, which may be codes as well; any
    other number is a number, in a string too; dates and times are dates, in a string too; several words are a text, and
    anything else is ignored.

    >>> [kind_of(value) for value in (True, 3, 2.5, "7", "12.5 %", "red", "2024-05-01", [1])]
    ['category', 'integer', 'number', 'integer', 'number', 'category', 'date', 'ignored']
    >>> kind_of("Thanks, it works well now")
    'text'
    """
    return reading(votes_of([value]), ".")[0]


def is_code(x: float) -> bool:
    """Whether a number may be the code of something: whole, and of moderate size."""
    return x.is_integer() and -LARGEST_CODE <= x <= LARGEST_CODE


def votes_of(values: Any, hint: str | None = None) -> np.ndarray:
    """What the cells of a column vote for, (VOTES,) int64; a ``hint``, of a typed column, is the vote of every cell."""
    votes = np.zeros(VOTES, np.int64)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        x = values[~np.isnan(values)].astype(np.float64)
        codes = np.count_nonzero((np.floor(x) == x) & (np.abs(x) <= LARGEST_CODE))
        votes[[_NUMBER, _INTEGER, _POINT, _COMMA]] = len(x) - codes, codes, len(x), len(x)
        return votes
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        votes[_DATE] = np.count_nonzero(~np.isnat(values))
        return votes
    cells = [value for value in listed(values) if not is_missing(value)]
    if hint is not None:
        votes[KINDS.index(hint)] = len(cells)
        return votes
    plain = plain_numbers(cells) if len(cells) > 1 and type(cells[0]) is str else None
    if plain is not None and set(map(type, cells)) == {str} and (np.abs(plain) <= LARGEST_NUMBER).all():
        votes += votes_of(plain)
        grouped = [text for text in cells if "." not in (text[-2:-1], text[-3:-2])]  # 1.5 and 1.25 have no thousands
        votes[_COMMA] = sum(text.isdigit() or BOTH_MARKS[","].read(text) is not None for text in grouped)
        return votes
    try:  # each value is looked at once; 1, 1.0 and True are different
        counted: Any = Counter(zip(map(type, cells), cells, strict=True)).items()
    except TypeError:
        counted = [((type(value), value), 1) for value in cells]
    for (_, value), count in counted:
        votes[_votes_of_cell(value)] += count
    return votes


def _votes_of_cell(value: Any) -> list[int]:
    if isinstance(value, (bool, np.bool_)):
        return [_CATEGORY]
    if isinstance(value, SPANS):
        return [_NUMBER, _POINT, _COMMA]
    if isinstance(value, TIMES):
        return [_DATE]
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, NUMBERS):
        x = number(value)  # None where it is too large to be used
        return [_INTEGER if x is not None and is_code(x) else _NUMBER, _POINT, _COMMA]
    if not isinstance(value, str):
        return [_IGNORED]
    if not math.isnan(seconds(value)):
        return [_DATE]
    point, comma = as_number(value, "."), BOTH_MARKS[","].read(value)
    if point is not None or comma is not None:
        x = float(comma or 0) if point is None else point
        return [_INTEGER if is_code(x) else _NUMBER, *[_POINT] * (point is not None), *[_COMMA] * (comma is not None)]
    if (found := DATE.fullmatch(value.strip())) is not None:
        return [_SLASHED, *[_DAY_FIRST] * (int(found[1]) > 12), *[_MONTH_FIRST] * (int(found[3]) > 12)]
    words = len(value.split(None, MIN_TEXT_WORDS - 1))
    return [_TEXT if len(value) > MAX_CATEGORY_CHARACTERS or words >= MIN_TEXT_WORDS else _CATEGORY]


def as_number(value: Any, mark: str) -> float | None:
    """A cell as a number, in a string with a decimal mark; None if it is none or too large, NaN if it is missing.

    >>> [as_number("1.234", mark) for mark in ".,"], as_number("CHF 12.30", "."), as_number("-", ".")
    ([1.234, 1234.0], 12.3, nan)
    """
    if isinstance(value, str) and (mark == "," or number(value) is None):
        value = BOTH_MARKS[mark](value)
    return number(value)


def reading(
    votes: np.ndarray, mark: str, now: str | None = None, given: str | None = None, varied: bool = True
) -> Reading:
    """The kind of a column and how it is written.

    Parameters
    ----------
    votes : (VOTES,) int64
    mark : {".", ","}
        The decimal mark, if it is a column of numbers.
    now : str, optional
        The kind so far; another one needs more than half of the votes.
    given : str, optional
        The kind where it is known.
    varied : bool
        Whether the cells vary as texts do.
    """
    cells = votes_cast(votes)
    order = {(True, False): "d/m", (False, True): "m/d"}.get((votes[_DAY_FIRST] > 0, votes[_MONTH_FIRST] > 0), "")
    dates = votes[_DATE] + (votes[_SLASHED] if order else 0)
    kind = given
    measured, numbers = 2 * votes[_NUMBER], votes[_NUMBER] + votes[_INTEGER]
    if kind is None and (measured > cells or (now == "number" and measured == cells) or 10 * numbers > 9 * cells):
        kind = now if now in ("number", "integer") else "number" if votes[_NUMBER] else "integer"
    elif kind is None and 2 * dates > cells:
        kind = "date"
    elif kind is None:
        words = votes[_CATEGORY] + votes[_SLASHED] - (dates - votes[_DATE])
        text = (3 if now == "text" else 2) * votes[_TEXT] > cells and varied
        word = 2 * (words + votes[_TEXT]) > cells
        kind = "text" if text else now if now not in (None, "number", "integer") and not word else "category"
        kind = "ignored" if 2 * votes[_IGNORED] > cells else kind
    return kind, mark if kind in ("number", "integer") else order if kind == "date" else ""


def readings(
    votes: dict[str, np.ndarray], now: dict[str, str], given: dict[str, str], repeated: frozenset[str] = frozenset()
) -> dict[str, Reading]:
    """The readings of columns, by name; decimal marks that their own cells leave open are those of the others.

    The cells of ``repeated`` columns do not vary.
    """
    marks = decimal_marks({name: (votes_cast(own), int(own[_POINT]), int(own[_COMMA])) for name, own in votes.items()})
    return {
        name: reading(own, marks.get(name, "."), now.get(name), given.get(name), name not in repeated)
        for name, own in votes.items()
        if votes_cast(own)
    }


def repeats(cells: Any) -> bool:
    """Whether at most half of the cells that are not missing, of several, differ."""
    texts = [value for value in listed(cells) if isinstance(value, str) and not is_missing(value)]
    return len(texts) > 1 and 2 * len(set(texts)) <= len(texts)


def votes_cast(votes: np.ndarray) -> int:
    """Cells that have voted."""
    return int(votes[_CELLS].sum())


def guess(sample: Cells, names: list[str]) -> dict[str, str]:
    """The kind of most cells of each column; the kind of a column without a value is left to its first ones.

    Whole numbers among words are codes unless they are more than nine tenths of the cells; numbers with a fraction are
    measurements where they are more than half.

    >>> codes, ages = [str(code) for code in range(1000, 1009)], [str(age) for age in range(20, 39)]
    >>> columns = {"part": [*codes, "A77"], "age": [*ages, "unknown"], "length": ["1.5", "0.25", "", "short"]}
    >>> {name: guess(Cells({name: cells}, len(cells)), [name])[name] for name, cells in columns.items()}
    {'part': 'category', 'age': 'integer', 'length': 'number'}
    """
    votes = {name: votes_of(sample.get(name), sample.hints.get(name)) for name in names}
    few = {name for name in names if repeats(sample.get(name))}
    return {name: kind for name, (kind, _) in readings(votes, {}, {}, frozenset(few)).items()}


def all_numbers(sample: Cells, names: list[str]) -> bool:
    """Whether all cells of the columns are finite numbers."""

    def plain(value: Any) -> bool:
        x = None if isinstance(value, (bool, np.bool_)) else number(value)
        return x is not None and not math.isnan(x)

    return all(all(map(plain, listed(sample.get(name)))) for name in names)
