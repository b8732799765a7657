"""Rows in partitions: dask arrays, dask frames, or files that the workers read by :mod:`kernelstream.streams`.

On the client a partition is a name and something to compute it from; on a worker it is a :class:`File` or
:class:`Rows`, which are streams of blocks that know how to name a row that is wrong.
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import streams
from ..streams import BadRowError, Stream
from ..streams.base import BLOCK_ROWS
from ._client import call_each, compute, is_spark, need, release, slots, spread

ARITY = 8  # of the tree of sums of a round
TRIES = 3  # to send what a round needs
LARGE_BYTES = 1 << 20  # of an argument
CHAINS = 2  # for each thread: a lost or slow worker holds up half of its share at most


class BadPartitionError(ValueError):
    """A partition that cannot be used; the message names its file and row.

    Attributes
    ----------
    partition : str
        Path of a file, or the name of a part of a dask collection.
    row : int
        Line of a text, or row of anything else, counted from 1; the first of the block if it is not known.
    reason : str
    """

    def __init__(self, partition: str, row: int, reason: str, unit: str = "row"):
        super().__init__(f"{partition}, {unit} {row}: {reason}")
        self.partition, self.row, self.reason, self.unit = partition, row, reason, unit

    def __reduce__(self) -> Any:
        return type(self), (self.partition, self.row, self.reason, self.unit)


@dataclass(frozen=True)
class Piece:
    """What a worker is given: a source of blocks."""

    name: str

    def stream(self) -> Stream:
        """The rows from the first on."""
        raise NotImplementedError

    def blocks(self, use: Callable[[Any, Any], Any], stop: int | None = None) -> Iterator[Any]:
        """``use(X, y)`` of every block; an error in reading or in ``use`` names this partition and the row.

        Parameters
        ----------
        use : callable
        stop : int, optional
            Rows after which to end.
        """
        with self.stream() as stream:
            yield from self.follow(stream, use, stop)

    def follow(self, stream: Stream, use: Callable[[Any, Any], Any], stop: int | None = None) -> Iterator[Any]:
        """:meth:`blocks` of a stream that is already open; it ends after ``stop`` more rows."""
        left = np.inf if stop is None else stop
        while left > 0:
            before = stream.rows + stream.skipped
            try:
                block = stream.read(None if left == np.inf else int(left))
            except BadRowError as error:
                raise BadPartitionError(self.name, error.line, error.reason, stream.unit) from None
            except (ValueError, OSError) as error:
                raise BadPartitionError(self.name, before + 1, str(error)) from None
            if block is None:
                return
            X, y = block
            left -= X.shape[0]
            try:
                result = use(X, self.target(y))
            except ValueError as error:
                reason = f"in the block of {X.shape[0]} rows that starts here: {error}"
                raise BadPartitionError(self.name, before + 1, reason) from None
            yield result

    def target(self, y: Any) -> Any:
        """Targets as the learner takes them."""
        return y


@dataclass(frozen=True)
class File(Piece):
    """A file, read by the worker."""

    options: dict[str, Any] = field(default_factory=dict, hash=False)
    labels: Any = None  # callable applied to targets
    width: int | None = None  # of LIBSVM files, which do not say it themselves

    def stream(self) -> Stream:
        try:
            stream = streams.open(self.name, **self.options)
            if self.width is not None and self.says_no_width(stream):
                stream.close()
                stream = streams.open(self.name, **{**self.options, "n_features": self.width})
        except FileNotFoundError:
            raise BadPartitionError(self.name, 1, "there is no such file where the worker runs") from None
        except (ValueError, OSError) as error:
            raise BadPartitionError(self.name, 1, str(error)) from None
        return stream

    def says_no_width(self, stream: Stream) -> bool:
        """Whether the width is known only after the file has been read."""
        return isinstance(stream, streams.LibSVM) and self.options.get("n_features") is None

    def target(self, y: Any) -> Any:
        return y if self.labels is None or y is None else self.labels(y)


@dataclass(frozen=True)
class Rows(Piece):
    """A part of a dask collection, in the worker's memory."""

    X: Any = None
    y: Any = None
    block: int = BLOCK_ROWS

    def __sizeof__(self) -> int:
        return nbytes(self.X, self.y)

    def stream(self) -> Stream:
        try:
            X, y = self.X, self.y
            if hasattr(X, "columns"):
                if isinstance(y, str):
                    X, y = X.drop(columns=y), X[y]
                X = X.to_numpy(dtype=np.float64, na_value=np.nan)
            if len(X.shape) != 2:
                raise ValueError(f"X must have two dimensions, got shape {X.shape}")
            return streams.Arrays(X, None if y is None else np.asarray(y), self.block)
        except ValueError as error:
            raise BadPartitionError(self.name, 1, str(error)) from None


def nbytes(*parts: Any) -> int:
    """Bytes of arrays, CSR matrices and frames, by which dask decides whether to move them or the work."""
    total = 64
    for part in parts:
        if hasattr(part, "indptr"):
            total += part.data.nbytes + part.indices.nbytes + part.indptr.nbytes
        elif hasattr(part, "memory_usage"):
            total += int(np.sum(part.memory_usage()))
        else:
            total += getattr(part, "nbytes", 0)
    return total


class Kept:
    """Parts in the workers' memory, one for each thread: a round takes as long as the slowest."""

    def __init__(self, client: Any, parts: list[Any]):
        self.client, self.parts = client, parts

    def total(self, work: Callable[..., Any], argument: np.ndarray, *more: Any) -> np.ndarray:
        """The sum of ``work(part, argument, *more)`` over all parts."""
        delayed = need("dask").delayed
        for attempt in range(TRIES):
            large = argument.nbytes > LARGE_BYTES  # goes to the workers directly instead of through the scheduler
            sent: Any = self.client.scatter(argument, broadcast=True, hash=False) if large else argument
            try:
                if len(self.parts) <= ARITY:  # the client adds so few by itself: no graph, less waiting
                    calls = [(part, sent, *more) for part in self.parts]
                    return functools.reduce(np.add, call_each(self.client, work, calls))
                task, given = delayed(work, pure=False), sent if large else delayed(sent, pure=False)
                return compute(self.client, tree([task(part, given, *more) for part in self.parts], np.add, ARITY))
            except CancelledError:  # the only worker with the argument has died: send it again
                if attempt + 1 == TRIES:
                    raise
            finally:
                if large:
                    sent.release()
        raise AssertionError

    def release(self) -> None:
        """Release the parts."""
        release(self.client, *self.parts)


def _same(value: Any) -> Any:
    return value


@dataclass
class Data:
    """Partitions in order.

    Attributes
    ----------
    names : list of str
    pieces : list
        For each partition a ``Piece``, or something delayed that becomes one on a worker.
    feature_names : list of str or None
    """

    names: list[str]
    pieces: list[Any]
    feature_names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.pieces)

    def with_rows(self, counts: Iterable[int]) -> Data:
        """The partitions that are not empty, given how many rows each has."""
        some = [i for i, n in enumerate(counts) if n]
        return replace(self, names=[self.names[i] for i in some], pieces=[self.pieces[i] for i in some])

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """``function(piece, *args)`` of every partition, delayed."""
        return self.some(function, dict.fromkeys(range(len(self)), args))

    # ---------------------------------------------------------------- what Spark does in its own way
    def some(self, function: Callable[..., Any], calls: dict[int, tuple[Any, ...]]) -> list[Any]:
        """``function(piece, *args)`` of the partitions whose numbers are given with their args, delayed."""
        work = need("dask").delayed(function, pure=False)
        return [work(self.pieces[i], *args) for i, args in calls.items()]

    def accumulated(self, client: Any, start: Any, absorb: Callable[..., Any], join: Any, *given: Any) -> Any:
        """What ``absorb(learned, piece, *given)`` makes of ``start`` over all partitions: chains joined by a tree.

        ``given`` may be delayed objects, which travel once.
        """
        work = need("dask").delayed(absorb, pure=False)
        chains = []
        for run in runs(len(self), CHAINS * slots(client)):
            learned = start
            for i in run:
                learned = work(learned, self.pieces[i], *given)
            chains.append(learned)
        futures = spread(client, chains)
        try:
            return compute(client, tree(futures, join))
        finally:
            release(client, *futures)

    def kept(
        self, client: Any, make: Callable[..., Any], names: Any, union: Any, place: Any, *args: Any
    ) -> tuple[Kept, Any]:
        """Parts ``make(pieces, *args)`` that the workers keep, placed among what they have in common.

        That is the ``union`` of the ``names`` of all parts, the second value; ``place(part, union)`` are kept.
        """
        library = need("dask")
        work, put = (library.delayed(function, pure=False) for function in (make, place))
        found = [work([self.pieces[i] for i in run], *args) for run in runs(len(self), slots(client))]
        parts = spread(client, found)
        common = client.compute(tree([library.delayed(names, pure=False)(part) for part in parts], union))
        kept = Kept(client, client.compute([put(part, common) for part in parts]))
        try:
            shared = compute(client, library.delayed(_same, pure=False)(common))
            need("distributed").wait(kept.parts)
            for future in kept.parts:
                if future.status == "error":
                    future.result()
        except BaseException:
            kept.release()
            raise
        finally:
            release(client, common, *parts)
        return kept, shared

    def keep(self) -> None:
        """Make sure that the rows have the same numbers whenever they are asked for."""

    def close(self) -> None:
        """Release the rows."""


def partitions(
    X: Any,
    y: Any = None,
    *,
    block: int = BLOCK_ROWS,
    client: Any = None,
    labels: Any = None,
    width: int | None = None,
    **reader: Any,
) -> Data:
    """Rows for the workers, as partitions; no row is sent to the client.

    Parameters
    ----------
    X : dask array, dask frame, Spark DataFrame, path, glob or list of these paths
        Files are read by the workers, which must find them under the same names. Each is one partition.
    y : dask array, dask series, or str
        Targets, or the name of their column of a frame; None for files.
    block : int, default=1024
        Rows a worker handles at a time.
    client : distributed.Client, optional
        To compare the columns of files; LIBSVM files whose width is not given are read once to find it.
    labels : callable, optional
        Applied to the targets of files.
    width : int, optional
        Columns of LIBSVM files, as the option ``n_features`` of their reader.
    **reader
        Of :func:`kernelstream.streams.open`: ``target``, ``format``, ``n_features``, …

    Returns
    -------
    Data
    """
    if isinstance(X, Data):
        return X
    if is_spark(X):
        from ._spark import SparkData

        return SparkData.of(X, y, block)
    if isinstance(X, (str, os.PathLike)) or _is_paths(X):
        return _files(X, y, {"block": block, **reader}, client, labels, width)
    if reader:
        raise ValueError(f"unknown option {', '.join(map(repr, reader))}: only files have options of a reader")
    if not hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"X must be a dask array, a dask frame, or names of files, got {type(X).__name__}: "
            f"rows in this process's memory are learned by the estimator's own fit"
        )
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        return _frame(X, y, block)
    return _array(X, y, block)


def _is_paths(X: Any) -> bool:
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(path, (str, os.PathLike)) for path in X)


def _files(X: Any, y: Any, options: dict[str, Any], client: Any, labels: Any, width: int | None) -> Data:
    if y is not None:
        raise ValueError("files hold their targets: name the column with target=, and leave y out")
    paths = expanded([X] if isinstance(X, (str, os.PathLike)) else X)
    data = Data(paths, [File(path, options, labels, width) for path in paths])
    if client is not None:
        _compare(data, compute(client, need("dask").delayed(list)(data.map(_about))))
    return data


def expanded(names: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Paths, and those that match patterns, in order; ValueError for a pattern that nothing matches."""
    paths: list[str] = []
    for name in names:
        pattern = os.fspath(name)
        found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
        if not found:
            raise ValueError(f"no file matches {pattern!r}")
        paths += found
    return paths


def _about(file: File) -> tuple[list[str] | None, int]:
    """Names of the columns, where a file has them, and the width, where it takes reading the file to know it, or 0."""
    with file.stream() as stream:
        if file.width is not None or not file.says_no_width(stream):
            return stream.feature_names, 0
        for _ in file.follow(stream, lambda X, y: None):
            pass
        return None, int(stream.n_features or 0)


def _compare(data: Data, found: list[tuple[list[str] | None, int]]) -> None:
    """Give LIBSVM files the width of the widest; files whose columns are not named like the first one's are bad."""
    names, first = found[0][0], data.names[0]
    for path, (others, _) in zip(data.names, found):
        if others != names:
            raise BadPartitionError(path, 1, f"its columns are {others}, those of {first} are {names}")
    width = max(width for _, width in found)
    if width:
        data.pieces = [replace(piece, width=width) for piece in data.pieces]


def _array(X: Any, y: Any, block: int) -> Data:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}")
    if X.shape[1] != X.shape[1]:  # NaN
        raise ValueError("the number of columns of X is not known")
    X = X.rechunk({1: -1})
    sizes = X.chunks[0]
    if y is not None:
        if isinstance(y, str):
            raise ValueError("y names a column, which only a frame has")
        if not hasattr(y, "to_delayed") or getattr(y, "ndim", 1) != 1:
            raise ValueError("y must be a dask array of one dimension")
        if np.isnan(sizes).any():
            if len(y.chunks[0]) != len(sizes):
                raise ValueError(f"X has {len(sizes)} chunks of rows, y has {len(y.chunks[0])}")
        elif np.isnan(y.shape[0]) or y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, y has {y.shape[0]}")
        else:
            y = y.rechunk((sizes,))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    names = [
        f"partition {i}" if np.isnan(starts[i + 1]) else f"X[{int(a)}:{int(b)}]"
        for i, (a, b) in enumerate(pairwise(starts))
    ]
    return _delayed(names, X.to_delayed().ravel(), None if y is None else y.to_delayed().ravel(), block)


def _frame(X: Any, y: Any, block: int) -> Data:
    parts = X.to_delayed()
    names = [f"partition {i}" for i in range(len(parts))]
    columns = [str(name) for name in X.columns if not (isinstance(y, str) and name == y)]
    if isinstance(y, str) and y not in X.columns:
        raise ValueError(f"the frame has no column {y!r}")
    numeric = need("pandas").api.types.is_numeric_dtype
    check_numbers({name: kind for name, kind in X.dtypes.items() if name in columns and not numeric(kind)})
    if y is None or isinstance(y, str):
        data = _delayed(names, parts, [y] * len(parts), block)
    else:
        targets = list(y.to_delayed()) if hasattr(y, "to_delayed") else []
        if len(targets) != len(parts):
            raise ValueError(f"X has {len(parts)} partitions, y has {len(targets)}: they must be cut alike")
        data = _delayed(names, parts, targets, block)
    data.feature_names = columns
    return data


def check_numbers(others: dict[Any, Any]) -> None:
    """ValueError where there are columns, given with their types, that hold no numbers."""
    for name, kind in others.items():
        raise ValueError(f"column {name!r} holds no numbers ({kind}): drop or encode it, or name it as the target y")


def _delayed(names: list[str], X: Any, y: Any, block: int) -> Data:
    make = need("dask").delayed(Rows, pure=False)
    return Data(names, [make(name, X[i], None if y is None else y[i], block) for i, name in enumerate(names)])


def tree(values: list[Any], join: Callable[[Any, Any], Any], arity: int = 2) -> Any:
    """One delayed value from many, joined by neighbours: the depth is the logarithm of their number."""
    if not values:
        raise ValueError("there are no partitions")
    work = need("dask").delayed(functools.reduce, pure=False)
    while len(values) > 1:
        values = [work(join, values[i : i + arity]) for i in range(0, len(values), arity)]
    return values[0]


def runs(count: int, groups: int) -> list[range]:
    """At most ``groups`` runs of neighbouring partitions, about as many in each."""
    groups = min(groups, count)
    cuts = [round(i * count / groups) for i in range(groups + 1)]
    return [range(a, b) for a, b in pairwise(cuts)]
