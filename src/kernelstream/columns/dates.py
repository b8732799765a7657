r"""Dates and times: seconds since 1970 in local time, and the cycles of day, week and year.

A date becomes the time elapsed, as a number, and sine and cosine of its place in the day, the week and the year::

    sin(2 pi s/86400), cos(2 pi s/86400), ...   with s the seconds since midnight, Monday, the first of January

An offset from UTC is ignored, because habits follow the local clock. A time without a date is one of 1970-01-01.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
from typing import Any

import numpy as np

DAY = 86400.0
WEEK = 7 * DAY
YEAR = 365 * DAY
CYCLES = ("day:sin", "day:cos", "week:sin", "week:cos", "year:sin", "year:cos")
_THURSDAY = 3  # the weekday of 1970-01-01, from Monday

_DATE = r"(?P<y>\d{4})(?:(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})|(?P<cm>\d{2})(?P<cd>\d{2}))"
_GERMAN = r"(?P<gd>\d{1,2})\.(?P<gm>\d{1,2})\.(?P<gy>\d{4})"
_MONTH = r"[A-Za-z]{3,9})\.?"
_NAMED = rf"(?P<nd>\d{{1,2}})[ -](?P<nm>{_MONTH}[ -](?P<ny>\d{{4}})|(?P<am>{_MONTH} (?P<ad>\d{{1,2}}), ?(?P<ay>\d{{4}})"
_HALF = r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
_SECOND = r"(?P<S>\d{2})(?P<f>[.,]\d{1,9})?"
_TIME = rf"(?P<H>\d{{2}}|\d(?=:)):?(?P<M>\d{{2}})(?::?{_SECOND})?{_HALF}\s*(?:Z|UTC|GMT|[+-]\d{{2}}(?::?\d{{2}})?)?"
_FULL = re.compile(rf"(?:{_DATE}|{_GERMAN}|{_NAMED})(?:[T ]{_TIME})?", re.ASCII)
_PARTS = tuple([form + part for form in ("", "g", "c", "n", "a")] for part in "ymd")  # year, month, day in each form
_CLOCK = re.compile(rf"(?P<H>\d{{1,2}}):(?P<M>\d{{2}})(?::{_SECOND})?{_HALF}", re.ASCII)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_EPOCH = datetime.datetime(1970, 1, 1)


def seconds(value: Any) -> float:
    """Seconds since 1970 of a date or time; NaN for anything else.

    Strings are read as 2024-05-01, 2024/5/1, 01.05.2024, 1 May 2024, 01-May-2024, May 1, 2024, each alone or with a
    time 13:30, 1:30 PM, 13:30:15 or 13:30:15.25, with a blank or a T between; as 20240501T133015; or as a time alone.

    >>> seconds("1970-01-02T00:00:30"), seconds("1.1.1970 01:00"), seconds("00:02"), seconds("May")
    (86430.0, 3600.0, 120.0, nan)
    """
    if isinstance(value, str):
        return _of_text(value.strip())
    if isinstance(value, np.datetime64):
        return math.nan if np.isnat(value) else float((value - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    if isinstance(value, datetime.datetime):
        if value != value:  # pandas' NaT
            return math.nan
        return (value.replace(tzinfo=None) - _EPOCH).total_seconds()
    if isinstance(value, datetime.date):
        return (value.toordinal() - _EPOCH.toordinal()) * DAY
    if isinstance(value, datetime.time):
        return value.hour * 3600.0 + value.minute * 60 + value.second + value.microsecond * 1e-6
    return math.nan


@functools.lru_cache(2**15)  # a cell is looked at to learn its kind, then read, and dates come again
def _of_text(text: str) -> float:
    found = _FULL.fullmatch(text)
    if found is not None and not (found["cm"] and found["H"] is None):  # 20240501 alone is a number
        known = found.groupdict()
        year, month, day = (next(filter(None, map(known.get, forms))) for forms in _PARTS)
        try:
            date = datetime.date(int(year), _month(month), int(day))
        except ValueError:
            return math.nan
        days = date.toordinal() - _EPOCH.toordinal()
    else:
        found, days = _CLOCK.fullmatch(text), 0
        if found is None:
            return math.nan
    hour, minute, second = (int(found[name] or 0) for name in "HMS")
    if hour > 24 or minute > 59 or second > 60 or (found["half"] and not 1 <= hour <= 12):
        return math.nan
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"] in "Pp")
    return days * DAY + hour * 3600 + minute * 60 + second + float((found["f"] or "0").replace(",", "."))


def _month(text: str) -> int:
    """The number of a month; ValueError for any other word. English names may be cut to three letters, or "Sept"."""
    if text.isdigit():
        return int(text)
    word = text.lower()
    found = [i for i, name in enumerate(_MONTHS, 1) if word in (name, name[:3]) or (word, i) == ("sept", 9)]
    if not found:
        raise ValueError(f"{text} is not a month")
    return found[0]


def all_seconds(values: Any) -> np.ndarray:
    """Seconds of many cells, (n,) float64; NaN where there is no date."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        out = (values - np.datetime64(0, "s")) / np.timedelta64(1, "s")
        return np.where(np.isnat(values), np.nan, out)
    return np.fromiter(map(seconds, values), np.float64, len(values))


def twice(cycles: np.ndarray) -> np.ndarray:
    """Sines, then cosines of twice the angles (n, 2k), of sines and cosines (n, 2k) in turn, see :func:`cycles`."""
    sin, cos = cycles[:, ::2], cycles[:, 1::2]
    return np.concatenate([2 * sin * cos, cos * cos - sin * sin], axis=1)


def cycles(s: np.ndarray) -> np.ndarray:
    """Sine and cosine of the place in the day, the week and the year, (n, 6); zeros where s (n,) is NaN."""
    known = ~np.isnan(s)
    whole = np.floor(np.where(known, s, 0.0) / DAY)
    within = np.where(known, s, 0.0) / DAY - whole
    days = whole.astype("int64").astype("datetime64[D]")
    year = days.astype("datetime64[Y]")
    start, end = year.astype("datetime64[D]"), (year + np.timedelta64(1, "Y")).astype("datetime64[D]")
    in_year, length = (days - start).astype(np.float64) + within, (end - start).astype(np.float64)
    parts = (within, ((whole + _THURSDAY) % 7 + within) / 7, in_year / length)
    out = np.stack([wave(2 * np.pi * part) for part in parts for wave in (np.sin, np.cos)], axis=1)
    return np.where(known[:, None], out, 0.0)
