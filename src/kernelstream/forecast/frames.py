"""Rows of series as they come, frames, dictionaries or arrays, and forecasts as frames of the same kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import few
from ..columns.dates import all_seconds
from ..columns.kinds import guess
from ..extras import needs
from ..registry.names import did_you_mean
from ..rows import is_pandas, is_series
from ..streams.cells import Cells, cells_of, listed, numbers

INDEX, STEP = "time", "step"  # names of times in the index of a frame, and where there are none


@dataclass(frozen=True)
class Names:
    """Which column is what. ``time`` is "" without times; ``indexed`` tells whether they are the index of a frame."""

    target: tuple[str, ...]
    time: str
    by: tuple[str, ...]
    known: tuple[str, ...]
    indexed: bool
    dates: bool
    container: str


@dataclass(frozen=True)
class SeriesTable:
    """A frame by column, the times of its index, and the package that it comes from."""

    cells: Cells
    index: np.ndarray | None
    index_name: str
    container: str

    def column(self, name: str, what: str) -> Any:
        """The cells of a column; ValueError where there is none."""
        if not self.cells.has(name):
            names = self.cells.first_names()
            raise ValueError(
                f"there is no column {name!r} ({what}): {did_you_mean(name, names)}there are {few(names, 9)}"
            )
        return self.cells.get(name)

    def times(self, names: Names) -> np.ndarray | None:
        """Times (n,) in seconds of the wall clock, or numbers; None for rows without times."""
        if names.indexed:
            if self.index is None:
                raise ValueError("the frame has no DatetimeIndex, which the rows before had")
            times = self.index
        elif not names.time:
            return None
        else:
            cells = self.column(names.time, "time")
            times = all_seconds(cells) if names.dates else numbers(cells)[0]
        if np.isnan(times).any():
            raise ValueError(
                f"row {int(np.isnan(times).argmax())} has no time that can be read: remove it, or repair it"
            )
        return times

    def keys(self, names: Names) -> list[str]:
        """The key of each row."""
        columns = [listed(self.column(name, "by")) for name in names.by]
        if not columns:
            return ["[]"] * self.cells.n
        return [json.dumps([_plain(cell) for cell in row], ensure_ascii=False) for row in zip(*columns, strict=True)]

    def values(self, names: Names) -> np.ndarray:
        """The targets (n, m), NaN where one is missing."""
        out = np.empty((self.cells.n, len(names.target)))
        for j, name in enumerate(names.target):
            cells = self.column(name, "target")
            out[:, j], wrong = numbers(cells)
            if wrong:
                raise ValueError(
                    f"{name!r} is {listed(cells)[wrong[0]]!r} in row {wrong[0]}: it must be a number or missing"
                )
        return out

    def known(self, names: Names) -> Cells:
        """The columns known in advance."""
        return Cells({name: self.column(name, "known") for name in names.known}, self.cells.n)


def table(frame: Any) -> SeriesTable:
    """Rows of any kind."""
    if is_series(frame):
        frame = frame.to_frame(frame.name or "y") if is_pandas(frame) else frame.to_frame()
    index, index_name, container = None, INDEX, "arrays"
    if is_pandas(frame):
        container = "pandas"
        if frame.index.dtype.kind == "M":
            index_name = str(frame.index.name or INDEX)
            index = all_seconds(frame.index.tz_localize(None).to_numpy())
    elif hasattr(frame, "columns") or hasattr(frame, "column_names"):
        container = type(frame).__module__.partition(".")[0]
    if isinstance(frame, np.ndarray) and frame.ndim == 1 and not frame.dtype.names:
        frame = frame[:, None]
    if isinstance(frame, Mapping) and any(isinstance(cells, (np.ndarray, list, tuple)) for cells in frame.values()):
        columns = {str(name): cells if isinstance(cells, list) else np.asarray(cells) for name, cells in frame.items()}
        lengths = {name: len(cells) for name, cells in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns have different lengths: {few(f'{name} {n}' for name, n in lengths.items())}")
        return SeriesTable(Cells(columns, next(iter(lengths.values()))), None, INDEX, container)
    return SeriesTable(cells_of(frame), index, index_name, container)


def named(found: SeriesTable, target: Any, time: Any, by: Any, known: Any) -> Names:
    """What the columns of the first rows are, by the parameters of a forecaster."""
    by, known = names_of("by", by), names_of("known", known)
    cells, columns = found.cells, found.cells.first_names()
    for name, what in [*((name, "by") for name in by), *((name, "known") for name in known)]:
        found.column(name, what)
    rest = [name for name in columns if name not in by + known]
    kinds = guess(cells, rest)
    dates = [name for name in rest if kinds.get(name) == "date"]
    if time is None and found.index is None and len(dates) > 1:
        raise ValueError(f"there are several columns of dates ({few(dates)}): say which is the time, time={dates[0]!r}")
    name = str(time) if time is not None else found.index_name if found.index is not None else (dates or [""])[0]
    if time is not None:
        found.column(name, "time")
    targets = names_of("target", target)
    if not targets:
        targets = tuple(other for other in rest if other != name and kinds.get(other) in ("number", "integer"))
    for other in targets:
        found.column(other, "target")
    if not targets:
        raise ValueError(f"there is no column of numbers to forecast among {few(columns)}: name one with target=")
    if len(set(targets + by + known + (name,))) < len(targets + by + known) + 1:
        raise ValueError("target, time, by and known must name different columns")
    indexed = time is None and found.index is not None
    return Names(targets, name, by, known, indexed, indexed or name in dates, found.container)


def names_of(parameter: str, value: Any) -> tuple[str, ...]:
    """The names that a parameter gives: none, one, or a list of them."""
    if value is None:
        return ()
    listed_names = [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else [None]
    if not all(isinstance(name, str) for name in listed_names):
        raise ValueError(f"{parameter} must be the name of a column or a list of names, got {value!r}")
    if len(set(listed_names)) < len(listed_names):
        raise ValueError(f"{parameter} names a column twice: {value!r}")
    return tuple(listed_names)


def made(names: Names, columns: dict[str, Any]) -> Any:
    """A frame of the kind that was learned; a dictionary of arrays where none was."""
    if names.dates:
        columns = columns | {names.time: dates_of(columns[names.time])}
    if names.container == "arrays":
        return columns
    with needs("frames"):
        import narwhals
    backend: Any = names.container
    return narwhals.from_dict(columns, backend=backend).to_native()


def dates_of(seconds: np.ndarray) -> np.ndarray:
    """Seconds since 1970 as datetime64."""
    return np.rint(seconds * 1e6).astype("int64").astype("datetime64[us]")


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)


def columns_of(frame: Any) -> dict[str, Any]:
    """Rows of any kind as a dictionary of columns, the times of an index among them."""
    found = table(frame)
    columns = {name: found.cells.get(name) for name in found.cells.first_names()}
    return columns if found.index is None else {found.index_name: dates_of(found.index)} | columns
