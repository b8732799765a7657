"""Rows in a DataFrame of Spark: the same sums, computed by jobs of Spark.

A job is ``mapInPandas`` over the partitions; what it finds is a row of bytes for each, and a tree of ``applyInPandas``
joins them, neighbours first, so that sums have the same order in every run.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import streams
from ..streams import Stream
from ._client import here, need
from ._data import ARITY, Data, Piece, check_numbers

FOUND = "i int, value binary"


@dataclass(frozen=True)
class Frames(Piece):
    """A partition, as an executor gets it: data frames that can be read once."""

    frames: Any
    column: str  # of the target
    block: int

    def stream(self) -> Stream:
        pairs = (
            (frame.drop(columns=self.column).to_numpy(np.float64, na_value=np.nan), frame[self.column].to_numpy())
            for frame in self.frames
        )
        return streams.Blocks(pairs, self.block)


@dataclass
class SparkData(Data):
    """The partitions of a DataFrame; ``pieces`` are their numbers.

    What a function gives is computed at once, by one job for all partitions, where dask's would be delayed.
    """

    frame: Any = None
    column: str = ""  # of the target
    block: int = 0

    @classmethod
    def of(cls, frame: Any, y: Any, block: int) -> SparkData:
        """Of a DataFrame and the name of its target."""
        if not isinstance(y, str) or y not in frame.columns:
            raise ValueError(f"y must name the target, a column of the frame ({', '.join(frame.columns)}), got {y!r}")
        kinds = need("pyspark.sql.types")
        others = [field for field in frame.schema.fields if field.name != y]
        check_numbers({f.name: f.dataType for f in others if not isinstance(f.dataType, kinds.NumericType)})
        count = frame.rdd.getNumPartitions()
        names = [f"partition {i}" for i in range(count)]
        return cls(names, list(range(count)), [field.name for field in others], frame, y, block)

    def some(self, function: Callable[..., Any], calls: dict[int, tuple[Any, ...]]) -> list[Any]:
        given = {i: tuple(map(here, args)) for i, args in calls.items()}  # arguments may be delayed
        rows = self._job(function, {self.pieces[i]: args for i, args in given.items()}).collect()
        found = {row.i: _opened(row.value) for row in rows}
        # a partition without rows may not be visited at all
        return [
            found[k] if (k := self.pieces[i]) in found else function(self._piece(k, iter(())), *args)
            for i, args in given.items()
        ]

    def accumulated(self, client: Any, start: Any, absorb: Callable[..., Any], join: Any, *given: Any) -> Any:
        more = tuple(map(here, given))
        found = self._job(lambda piece: absorb(start, piece, *more), dict.fromkeys(self.pieces, ()))
        return _joined(found, join, len(self))

    def kept(self, client: Any, make: Any, names: Any, union: Any, place: Any, *args: Any) -> Any:
        parts = self._job(lambda piece: make([piece], *args), dict.fromkeys(self.pieces, ())).persist()
        try:
            common = _joined(_each(parts, names), union, len(self))
            kept = SparkKept(_each(parts, lambda part: place(part, common)).persist(), len(self))
            kept.parts.count()
        finally:
            parts.unpersist()
        return kept, common

    def keep(self) -> None:
        self.frame.persist(need("pyspark").StorageLevel.MEMORY_AND_DISK)

    def close(self) -> None:
        self.frame.unpersist()

    def _piece(self, i: int, frames: Iterator[Any]) -> Frames:
        return Frames(f"partition {i}", frames, self.column, self.block)

    def _job(self, function: Callable[..., Any], calls: dict[int, tuple[Any, ...]]) -> Any:
        """A frame of what the function makes of each partition that is called, by its number."""
        light = replace(self, frame=None)

        def work(frames: Iterator[Any]) -> Iterator[Any]:
            i = need("pyspark").TaskContext.get().partitionId()
            if i in calls:
                yield _found(i, lambda: function(light._piece(i, frames), *calls[i]))
            for _ in frames:  # a worker that leaves rows unread is not reused
                pass

        frame = self.frame
        if len(calls) < len(self.names):  # rows that are not needed do not leave the JVM
            frame = frame.where(need("pyspark.sql.functions").spark_partition_id().isin([*calls]))
        return frame.mapInPandas(work, FOUND)


class SparkKept:
    """Parts in the executors' storage."""

    def __init__(self, parts: Any, count: int):
        self.parts, self.count = parts, count

    def total(self, work: Callable[..., Any], argument: np.ndarray, *more: Any) -> np.ndarray:
        """The sum of ``work(part, argument, *more)`` over all parts."""
        return _joined(_each(self.parts, lambda part: work(part, argument, *more)), np.add, self.count)

    def release(self) -> None:
        """Release the parts."""
        self.parts.unpersist()


def _each(found: Any, function: Callable[[Any], Any]) -> Any:
    """The function of every value of a frame."""

    def work(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            for i, value in zip(frame["i"].tolist(), frame["value"].tolist()):
                yield _found(i, functools.partial(_applied, function, value))

    return found.mapInPandas(work, FOUND)


def _applied(function: Callable[[Any], Any], value: Any) -> Any:
    return function(_opened(value))


def _joined(found: Any, join: Callable[[Any, Any], Any], count: int) -> Any:
    """One value from all, joined by neighbours on the executors until a few are left for the driver."""

    def fold(frame: Any) -> Any:
        values = frame.sort_values("i")["value"].tolist()
        return _found(int(frame["i"].min()) // ARITY, lambda: functools.reduce(join, map(_opened, values)))

    while count > ARITY:
        found, count = found.groupBy((found.i / ARITY).cast("int")).applyInPandas(fold, FOUND), -(-count // ARITY)
    rows = sorted(found.collect(), key=lambda row: row.i)
    return functools.reduce(join, [_opened(row.value) for row in rows])


def _found(i: int, work: Callable[[], Any]) -> Any:
    """A row of bytes: what the work gives, or its error, which Spark would turn into a text."""
    try:
        value: Any = work()
    except ValueError as error:
        value = error
    return need("pandas").DataFrame({"i": np.array([i], np.int32), "value": [pickle.dumps(value)]})


def _opened(value: Any) -> Any:
    found = pickle.loads(bytes(value))
    if isinstance(found, ValueError):
        raise found
    return found
