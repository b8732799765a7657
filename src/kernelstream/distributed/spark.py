"""Parts on the executors of Spark: a job of ``mapInPandas`` gives a row of bytes for each part, and a tree of
``applyInPandas`` joins them, neighbours first, so that sums have the same order in every run."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..extras import needs
from .sums import Part, Parts, names_of_columns, rows_and_target

with needs("spark"):
    import pandas as pd
    from pyspark import StorageLevel, TaskContext
    from pyspark.sql import functions as F
    from pyspark.sql.types import NumericType

ARITY = 8  # of the tree of sums
FOUND = "i int, value binary"


class SparkParts(Parts):
    """The partitions of a DataFrame."""

    def __init__(self, frame: Any, target: Any):
        kinds = {kind.name: kind.dataType for kind in frame.schema.fields}
        self.columns = names_of_columns(kinds, target, lambda kind: isinstance(kind, NumericType))
        self.frame, self.target, self.count = frame, target, frame.rdd.getNumPartitions()

    def __len__(self) -> int:
        return self.count

    def map(self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        found = {row.i: _opened(row.value) for row in self._job(function, calls).collect()}
        nothing: Iterator[Any] = iter(())  # a partition without rows may not be visited at all
        return [
            found[i] if i in found else function(_part(i, nothing, self.target), *args) for i, args in calls.items()
        ]

    def total(self, absorb: Callable[..., Any], add: Callable[[Any, Any], Any], *given: Any) -> Any:
        def fold(frame: Any) -> Any:
            values = map(_opened, frame.sort_values("i")["value"].tolist())
            return _found(int(frame["i"].min()) // ARITY, lambda: functools.reduce(add, values))

        found = self._job(lambda part: absorb(part, None, *given), dict.fromkeys(range(self.count), ()))
        count = self.count
        while count > ARITY:
            found, count = found.groupBy((found.i / ARITY).cast("int")).applyInPandas(fold, FOUND), -(-count // ARITY)
        rows = sorted(found.collect(), key=lambda row: row.i)
        return functools.reduce(add, [_opened(row.value) for row in rows])

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        kept = self.frame.is_cached or self.frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield
        finally:
            if kept is not True:
                self.frame.unpersist()

    def check_memory(self, wanted: int, what: str) -> None:
        """The limits of executors are Spark's own affair."""

    def _job(self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]]) -> Any:
        """A frame of what the function makes of each partition that is called, by its number."""
        target, frame = self.target, self.frame

        def work(frames: Iterator[Any]) -> Iterator[Any]:
            i = TaskContext.get().partitionId()
            if i in calls:
                yield _found(i, lambda: function(_part(i, frames, target), *calls[i]))
            for _ in frames:  # a worker that leaves rows unread is not reused
                pass

        if len(calls) < self.count:  # rows that are not needed do not leave the JVM
            frame = frame.where(F.spark_partition_id().isin([*calls]))
        return frame.mapInPandas(work, FOUND)


def _part(i: int, frames: Iterator[Any], target: str) -> Part:
    return Part(f"partition {i}", (rows_and_target(frame, target) for frame in frames))


def _found(i: int, work: Callable[[], Any]) -> Any:
    """A row of bytes: what the work gives, or its error, which Spark would turn into a text."""
    try:
        value: Any = work()
    except ValueError as error:
        value = error
    return pd.DataFrame({"i": np.array([i], np.int32), "value": [pickle.dumps(value)]})


def _opened(value: Any) -> Any:
    found = pickle.loads(bytes(value))
    if isinstance(found, ValueError):
        raise found
    return found
