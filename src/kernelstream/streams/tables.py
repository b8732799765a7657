"""Tables with typed columns: Parquet, Arrow and Feather files, and data frames."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..extras import needs
from ._table import Raw, Table
from .base import BLOCK_ROWS, Position
from .cells import NUMBERS, Cells, cells_of


class TypedTable(Table):
    """What tables share: typed columns, of which one may be the target; the others hold numbers, unless ``mixed``.

    Targets that are numbers stay numbers, anything else becomes strings.
    """

    unit = "row"

    def __init__(self, name: str, names: Sequence[str], target: Any, block: int, **options: Any):
        super().__init__(name, block, target=target, **options)
        self._choose(names)
        self.pieces: Iterator[Any] | None = None
        self.piece: Cells | None = None  # rows that are being cut
        self.at = 0  # row of the table where the unused part of the piece starts

    def _pieces(self, start: int) -> Iterator[Any]:
        """Parts of the table from row ``start`` on, of any length."""
        raise NotImplementedError

    def _raw(self, n: int) -> Raw | None:
        if self.piece is None:
            self.pieces = self._pieces(self.at) if self.pieces is None else self.pieces
            piece = next(self.pieces, None)
            if piece is None:
                return None
            self.piece = self._used(piece)
        cells, left = self.piece[:n], self.piece[n:]
        self.piece = left if len(left) else None
        lines = list(range(self.at + 1, self.at + cells.n + 1))
        self.at += cells.n
        return cells, lines, {}

    def _used(self, rows: Any) -> Cells:
        found = cells_of(rows)
        chosen = sorted(self.columns.used)
        return Cells({name: found.get(name) for name in (self.columns.names[j] for j in chosen)}, found.n, found.hints)

    def _number(self, value: Any) -> float | None:
        if value is None:
            return math.nan
        return float(value) if isinstance(value, (*NUMBERS, np.bool_)) else None

    def _no_number(self, name: str, value: Any) -> str:
        raise ValueError(
            f"{self.name}: column {name!r} holds no numbers: drop it, or encode the rows (kernelstream.columns.Columns)"
        )

    def _where(self) -> Position:
        return {"at": self.at}

    def _seek(self, position: Position) -> None:
        self.at = position["at"]
        self.pieces = self.piece = None


class Arrow(TypedTable):
    """Rows of a Parquet, Feather or Arrow file, read a record batch at a time.

    Parameters
    ----------
    source : path
        The format is inferred from its first bytes.
    target : str, int or None
        Column of y; None for rows without a target. Numbers stay numbers, anything else becomes strings.
    block : int, default=1024
        Rows per block.
    **options
        ``mixed``, ``features``, ``drop``, ``ignore``, ``missing``, ``dtype``, ``on_error`` as for :class:`CSV`.
    """

    def __init__(self, source: Any, target: Any = None, block: int = BLOCK_ROWS, **options: Any):
        with needs("parquet"):
            import pyarrow
        self.pyarrow = pyarrow
        with open(source, "rb") as file:
            magic = file.read(6)
        try:
            self._open(source, magic)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{os.fspath(source)} is not a Parquet, Feather or Arrow file: {error}") from None
        super().__init__(os.fspath(source), self.schema.names, target, block, **options)

    def _open(self, source: Any, magic: bytes) -> None:
        self.parquet: Any = None
        self.source = source
        if magic.startswith(b"PAR1"):
            import pyarrow.parquet

            self.parquet = pyarrow.parquet.ParquetFile(source, memory_map=True)
            self.schema = self.parquet.schema_arrow
            self.n_rows = self.parquet.metadata.num_rows
            return
        import pyarrow.ipc

        self.streamed = not magic.startswith(b"ARROW1")
        with self._ipc() as reader:
            self.schema = reader.schema

    def _ipc(self) -> Any:
        source = self.pyarrow.memory_map(os.fspath(self.source))
        return self.pyarrow.ipc.open_stream(source) if self.streamed else self.pyarrow.ipc.open_file(source)

    def _pieces(self, start: int) -> Iterator[Any]:
        try:
            yield from self._batches(start)
        except (self.pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{self.name} is damaged: {error}") from None

    def _batches(self, start: int) -> Iterator[Any]:
        used = [self.columns.names[j] for j in self.columns.used]
        if self.parquet is not None:
            meta, first = self.parquet.metadata, 0
            while first < meta.num_row_groups and meta.row_group(first).num_rows <= start:
                start -= meta.row_group(first).num_rows
                first += 1
            groups = list(range(first, meta.num_row_groups))
            batches = self.parquet.iter_batches(max(self.block, 1 << 14), row_groups=groups, columns=used)
        else:
            reader = self._ipc()
            batches = reader if self.streamed else map(reader.get_batch, range(reader.num_record_batches))
        for batch in batches:
            if self.parquet is None:
                batch.validate(full=True)  # it is used where it lies: wrong offsets would lead anywhere
            if start < batch.num_rows:
                yield batch.slice(start)
                start = 0
            else:
                start -= batch.num_rows

    def sample(self) -> Cells:
        """The first rows, without consuming them."""
        first = next(self._pieces(0), None)
        return Cells({}, 0) if first is None else self._used(first[:1000]).without(self.target)


class Frame(TypedTable):
    """Rows of a data frame (pandas, polars, pyarrow, or any other that narwhals knows), or of an iterable of them.

    Parameters
    ----------
    frames : data frame, or iterable of data frames
        An iterable, such as ``pandas.read_csv(..., chunksize=...)``, is read one frame at a time.
    target : str, int or None
        Column of y; None for rows without a target. Numbers stay numbers, anything else becomes strings.
    block : int, default=1024
        Rows per block.
    **options
        ``mixed``, ``features``, ``drop``, ``ignore``, ``missing``, ``dtype``, ``on_error`` as for :class:`CSV`.

    Examples
    --------
    >>> import pandas
    >>> from kernelstream.streams import Frame
    >>> X, y = Frame(pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}), target="b").read()
    >>> X.tolist(), y.tolist()
    ([[1.0], [2.0]], ['x', 'y'])
    """

    def __init__(self, frames: Any, target: Any = None, block: int = BLOCK_ROWS, **options: Any):
        with needs("frames"):
            import narwhals
        self.narwhals = narwhals
        whole = narwhals.from_native(frames, eager_only=True, pass_through=True)
        self.whole = whole if isinstance(whole, narwhals.DataFrame) else None
        self.n_rows = None if self.whole is None else len(self.whole)
        self.rest: Iterator[Any] = iter(() if self.whole is not None else frames)
        self.first: Any = self.whole
        if self.whole is None:
            self.first = next(self.rest, None)
            if self.first is None:
                raise ValueError("there is no data frame to read")
            self.first = self._frame(self.first)
        super().__init__("data frame", [str(name) for name in self.first.columns], target, block, **options)

    def _frame(self, frame: Any) -> Any:
        try:
            found = self.narwhals.from_native(frame, eager_only=True)
        except TypeError:
            raise ValueError(f"{type(frame).__name__} is not a data frame") from None
        for name, first in zip(found.columns, self.columns.names if self.columns else (), strict=False):
            if str(name) != first:
                raise ValueError(f"a data frame has the column {name!r} where the first had {first!r}")
        return found

    def _pieces(self, start: int) -> Iterator[Any]:
        if self.whole is not None:
            yield self.whole[start:]
            return
        if self.first is None:
            raise ValueError("an iterable of data frames can be read only once")
        piece, self.first = self.first, None
        while piece is not None:
            yield piece[start:]
            start = max(0, start - len(piece))
            piece = next(self.rest, None)
            piece = None if piece is None else self._frame(piece)
