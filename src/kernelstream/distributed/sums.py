r"""Sums over rows that lie in parts on several machines: map the parts, add the sums.

.. math:: \sum_t s(x_t, y_t) = \sum_k \sum_{t \in \text{part } k} s(x_t, y_t)
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .. import streams
from ..streams import BadRowError, Stream


class Parts(Protocol):
    """Rows in parts, in order; what a backend of :func:`~kernelstream.distributed.fit` implements.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns, of a data frame.
    """

    columns: list[str] | None

    def __len__(self) -> int:
        """Number of parts."""
        ...

    def map(self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        """``function(part, *args)`` of the parts whose numbers are given with their args."""
        ...

    def total(self, absorb: Callable[..., Any], add: Callable[[Any, Any], Any], *given: Any) -> Any:
        """The sum over all parts: ``absorb(part, sums or None, *given)`` adds those of a part, ``add`` joins."""
        ...

    def kept(self) -> AbstractContextManager[Any]:
        """Context: the rows have the same numbers whenever they are asked for."""
        return nullcontext()

    def check_memory(self, wanted: int, what: str) -> None:
        """ValueError, before anything is computed, if a worker has less memory than ``wanted`` bytes for a thread."""


class BadPartitionError(ValueError):
    """A part of the rows that cannot be used; the message names it and the row.

    Attributes
    ----------
    partition : str
        Path of a file, or the name of a part of a collection.
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
class Part:
    """Some of the rows, as a worker gets them: anything that :func:`kernelstream.streams.open` takes."""

    name: str
    source: Any
    options: dict[str, Any] = field(default_factory=dict)
    labels: Callable[[Any], Any] | None = None  # applied to the targets

    def stream(self) -> Stream:
        """The rows from the first on."""
        try:
            return streams.open(self.source, **self.options)
        except FileNotFoundError:
            raise BadPartitionError(self.name, 1, "there is no such file where the worker runs") from None
        except (ValueError, OSError) as error:
            raise BadPartitionError(self.name, 1, str(error)) from None

    def blocks(self, use: Callable[[Any, Any], Any], stop: float = np.inf) -> Iterator[Any]:
        """``use(X, y)`` of every block of the first ``stop`` rows; an error names the part and the row."""
        at, block = 0, ""
        with self.stream() as stream:
            try:
                while at < stop and (found := stream.read(None if stop == np.inf else int(stop) - at)) is not None:
                    X, y = found
                    block = f"in the block of {X.shape[0]} rows that starts here: "
                    result = use(X, y if self.labels is None or y is None else self.labels(y))
                    block, at = "", stream.rows + stream.skipped
                    yield result
            except BadRowError as error:
                raise BadPartitionError(self.name, error.line, error.reason, error.unit) from None
            except (ValueError, OSError) as error:
                raise BadPartitionError(self.name, at + 1, f"{block}{error}") from None

    def columns(self) -> list[str] | None:
        """Names of the columns, where a file has them."""
        with self.stream() as stream:
            return stream.feature_names


def files(
    names: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    labels: Callable[[Any], Any] | None = None,
    **reader: Any,
) -> list[Part]:
    """Files as parts of the rows, for the workers of Dask, which must find them under the same names.

    Parameters
    ----------
    names : path, glob or list of these
    labels : callable, optional
        Applied to the targets.
    **reader
        ``target``, ``n_features`` (of LIBSVM files, which do not say it all alike), …: see
        :func:`kernelstream.streams.open`.
    """
    found: list[str] = []
    for name in [names] if isinstance(names, (str, os.PathLike)) else names:
        pattern = os.fspath(name)
        matches = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
        if not matches:
            raise ValueError(f"no file matches {pattern!r}")
        found += matches
    return [Part(path, path, reader, labels) for path in found]


def check_columns(parts: Sequence[Part], columns: Sequence[list[str] | None]) -> None:
    """BadPartitionError unless the columns of all files have the names of the first one's."""
    for part, names in zip(parts, columns):
        if names != columns[0]:
            reason = f"its columns are {names}, those of {parts[0].name} are {columns[0]}"
            raise BadPartitionError(part.name, 1, reason)


def rows_and_target(frame: Any, target: str) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a pandas frame as numbers (n, d), and that of the target (n,)."""
    return frame.drop(columns=target).to_numpy(np.float64, na_value=np.nan), frame[target].to_numpy()


def names_of_columns(kinds: Mapping[str, Any], target: Any, is_number: Callable[[Any], bool]) -> list[str]:
    """The columns of a frame, given with their types, without the target; ValueError unless all hold numbers."""
    if not isinstance(target, str) or target not in kinds:
        raise ValueError(f"y must name the target, a column of the frame ({', '.join(kinds)}), got {target!r}")
    names = [name for name in kinds if name != target]
    for name in names:
        if not is_number(kinds[name]):
            raise ValueError(f"column {name!r} holds no numbers ({kinds[name]}): drop or encode it")
    return names
