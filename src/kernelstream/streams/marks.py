"""Numbers and dates as people write them: decimal commas, thousands separators, currencies, day or month first.

``1.234,5`` and ``1,234.5`` are the same number. Which form a column has follows from all of its cells or, where those
are ambiguous, from the other columns and the delimiter of the file. ``31/12/2024`` and ``12/31/2024`` are the same day:
a number above 12 in some cell of a column is the day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..checks import one_of
from .cells import is_missing

SIGNS = "$€£¥₹%"
CURRENCIES = frozenset(
    ("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KRW")
    + ("MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "RUB", "SEK", "SGD", "THB", "TRY", "UAH", "USD", "VND", "ZAR")
)
BLANKS = " \u00a0\u2009\u202f"  # also those that do not break a line
QUOTES = "'\u2019"
OTHER = {".": ",", ",": "."}


class NumberMarks:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}
        The mark in front of the decimals.
    thousands : str, optional
        The mark between groups of three digits; by default the other one of dot and comma, a blank or an apostrophe.

    Examples
    --------
    >>> [NumberMarks(",")(text) for text in ("1.234,5", "€ 12 000", "2,5 %", "2.5", "9,90 EUR", "word")]
    ['1234.5', '12000', '2.5', '2.5', '9.90', 'word']
    >>> NumberMarks(".")("-$1,234.50")
    '-1234.50'
    """

    def __init__(self, decimal: str = ".", thousands: str | None = None):
        if decimal not in OTHER:
            raise ValueError(f"the decimal mark must be '.' or ',', got {decimal!r}")
        if thousands == decimal or thousands not in (None, *OTHER, *BLANKS, *QUOTES):
            raise ValueError(f"the mark between thousands must be another of . , ' and a blank, got {thousands!r}")
        between = OTHER[decimal] + BLANKS + QUOTES if thousands is None else thousands
        between = next((family for family in (BLANKS, QUOTES) if between in family), between)
        groups = rf"[1-9]\d{{0,2}}([{re.escape(between)}])\d{{3}}(?:\1\d{{3}})*"
        digits = rf"(?:{groups}|\d+)(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+"
        self._number = re.compile(rf"(?:{digits})(?:[eE][+-]?\d+)?", re.ASCII)
        self._between = dict.fromkeys(map(ord, between)) | {ord(decimal): "."}

    def read(self, text: str) -> str | None:
        """A number in the form that Python reads; None for a text that is not a number written with these marks."""
        bare = text.strip()
        sign = ""
        for _ in range(2):  # -$5 and $-5
            if not sign and bare[:1] in ("-", "+", "\u2212"):
                sign, bare = "-" if bare[0] != "+" else "", bare[1:]
            bare = bare.strip(SIGNS + BLANKS)
            bare = (bare[3:] if bare[:3] in CURRENCIES else bare[:-3] if bare[-3:] in CURRENCIES else bare).strip(
                BLANKS
            )
        return sign + bare.translate(self._between) if self._number.fullmatch(bare) else None

    def __call__(self, text: str) -> str:
        """The number in the form that Python reads; any other text unchanged."""
        found = self.read(text)
        return text if found is None else found


class DayAndMonth:
    """How the dates of a column are written.

    Parameters
    ----------
    order : {"d/m", "m/d"}
        What comes first, the day or the month.

    Examples
    --------
    >>> [DayAndMonth("m/d")(text) for text in ("12/31/2024", "1-2-2024 3:15 PM", "2024-12-31", "soon")]
    ['2024-12-31', '2024-01-02 3:15 PM', '2024-12-31', 'soon']
    """

    def __init__(self, order: str):
        one_of("the order of day and month", order, ORDERS)
        self._day, self._month = ORDERS[order]

    def __call__(self, text: str) -> str:
        """A date with the year first; any other text unchanged."""
        found = DATE.fullmatch(text.strip())
        if found is None:
            return text
        return f"{found[4]}-{found[self._month]:0>2}-{found[self._day]:0>2}{found[5]}"


ORDERS = {"d/m": (1, 3), "m/d": (3, 1)}  # groups of the day and of the month
DATE = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4})((?:[T ].*)?)", re.ASCII)


def find_dates(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The order of day and month in columns of dates that show it, by a number beyond 12.

    >>> find_dates({"a": ["1/2/2024", "1/13/2024"], "b": ["1/2/2024", "2/2/2024"], "c": ["13-2-2024", ""]})
    {'a': 'm/d', 'c': 'd/m'}
    """
    found = {}
    for name, texts in columns.items():
        dates = [DATE.fullmatch(text.strip()) for text in texts if not is_missing(text)]
        known = [date for date in dates if date is not None]
        beyond = [any(int(date[place]) > 12 for date in known) for place in (1, 3)]
        if 2 * len(known) > len(dates) and beyond[0] != beyond[1]:
            found[name] = "d/m" if beyond[0] else "m/d"
    return found


def find_marks(columns: Mapping[str, Sequence[str]], delimiter: str) -> tuple[dict[str, str], dict[str, str]]:
    """Decimal marks of the columns of a file that hold numbers, and an example of every column that needs to know its.

    >>> find_marks({"size": ["2,5", "3"], "price": ["1.234", "900"], "town": ["Rome", "Oslo"]}, ";")
    ({'size': ',', 'price': ','}, {'size': '2,5', 'price': '1.234'})
    """
    cells = {name: [text for text in texts if not is_missing(text)] for name, texts in columns.items()}
    read = {
        name: (len(texts), _read(BOTH_MARKS["."], texts), _read(BOTH_MARKS[","], texts))
        for name, texts in cells.items()
    }
    found = decimal_marks(read)
    if delimiter == ";" and not any(point != comma for name, (_, point, comma) in read.items() if name in found):
        found = dict.fromkeys(found, "," if any("," in text for name in found for text in cells[name]) else ".")
    needed = {name: _example(BOTH_MARKS[mark], cells[name]) for name, mark in found.items()}
    return found, {name: text for name, text in needed.items() if text is not None}


def decimal_marks(read: Mapping[str, tuple[int, int, int]]) -> dict[str, str]:
    """The decimal marks of columns of numbers, the one that reads more of the cells.

    Columns that leave it open have the mark of the others: a comma where one of them has it, otherwise a point.

    Parameters
    ----------
    read : dict of name: (cells, read with a point, read with a comma)

    >>> decimal_marks({"size": (3, 1, 3), "price": (2, 2, 2), "town": (3, 0, 0)})
    {'size': ',', 'price': ','}
    """
    numeric = {name: comma - point for name, (cells, point, comma) in read.items() if 2 * max(point, comma) > cells}
    usual = "," if any(more > 0 for more in numeric.values()) else "."
    return {name: usual if not more else "," if more > 0 else "." for name, more in numeric.items()}


def _read(marks: NumberMarks, texts: Iterable[str]) -> int:
    """How many of the texts are numbers."""
    return sum(marks.read(text) is not None for text in texts)


def _example(marks: NumberMarks, texts: Iterable[str]) -> str | None:
    """The first number that Python would not read, or would read as another."""
    for text in texts:
        found = marks.read(text)
        if found is not None and not _same(text, found):
            return text
    return None


def _same(text: str, found: str) -> bool:
    try:
        return float(text) == float(found)
    except ValueError:
        return False


BOTH_MARKS = {decimal: NumberMarks(decimal) for decimal in OTHER}
