"""Tables with typed columns: Parquet, Arrow and Feather files, and data frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._extra import needs
from ._base import BLOCK_ROWS, Block, Position, Stream, check_dtype
from ._columns import TableColumns


class TypedTable(Stream):
    """What tables share: typed columns, of which one may be the target; the others hold numbers.

    Parameters
    ----------
    target : str, int or None
        Column of y; None for rows without a target. Numbers stay numbers, anything else becomes strings.
    features, drop, missing, dtype, on_error
        See :class:`CSV`.
    """

    unit = "row"

    def _begin(self, names: Sequence[str], target: Any, options: dict[str, Any]) -> None:
        self.dtype = check_dtype(options.pop("dtype", np.float64))
        self.missing = options.pop("missing", None)
        self.columns = TableColumns(names, target, where=self.name, **options)
        self.n_features, self.feature_names = len(self.columns.features), self.columns.feature_names
        self.pieces: Iterator[Any] | None = None
        self.piece: Any = None  # columns that are being cut
        self.at = 0  # row of the table where the unused part of the piece starts

    # ---------------------------------------------------------------- for readers
    def _pieces(self, start: int) -> Iterator[Any]:
        """Parts of the table from row ``start`` on, of any length."""
        raise NotImplementedError

    def _length(self, piece: Any) -> int:
        raise NotImplementedError

    def _slice(self, piece: Any, start: int, n: int) -> Any:
        raise NotImplementedError

    def _column(self, piece: Any, j: int) -> np.ndarray:
        """A column as float64, NaN where it is missing, or as strings, None where it is missing."""
        raise NotImplementedError

    # ---------------------------------------------------------------- blocks
    def _next_rows(self, most: int) -> tuple[Any, int]:
        """At most ``most`` rows of the table, in its own form, and how many; 0 at its end."""
        if self.piece is None:
            if self.pieces is None:
                self.pieces = self._pieces(self.at)
            self.piece = next(self.pieces, None)
            if self.piece is None:
                return None, 0
        size = min(most, self._length(self.piece))
        taken, left = self._slice(self.piece, 0, size), self._length(self.piece) - size
        self.piece = self._slice(self.piece, size, left) if left else None
        return taken, size

    def _next(self, n: int) -> Block | None:
        parts: list[Any] = []
        wanted = n
        while wanted:
            taken, size = self._next_rows(wanted)
            if not size:
                break
            part, good = self._good(taken, size)
            self.at += size
            if good:
                parts.append(part)
                wanted -= good
        return self._joined(parts) if parts else None

    def _joined(self, parts: list[dict[int, np.ndarray]]) -> Block:
        """A block of what :meth:`_good` gave."""
        columns = {j: np.concatenate([part[j] for part in parts]) for j in parts[0]}
        X = np.column_stack([columns[j] for j in self.columns.features]).astype(self.dtype, copy=False)
        if self.columns.target is None:
            return X, None
        y = columns[self.columns.target]
        return X, y if y.dtype.kind == "f" else np.array(y, dtype=str)

    def _good(self, taken: Any, size: int) -> tuple[Any, int]:
        """Columns of the rows that can be used, and how many these are."""
        columns: dict[int, np.ndarray] = {}
        wrong: dict[int, str] = {}
        largest = float(np.finfo(self.dtype).max)
        for j in self.columns.used:
            name, is_target = self.columns.names[j], j == self.columns.target
            column = self._column(taken, j)
            if column.dtype.kind == "f":
                if self.missing is not None and not is_target:
                    column = np.where(np.isnan(column), self.missing, column)
                bad = np.flatnonzero(~(np.abs(column) <= largest))
                odd = {int(row): "is missing" if np.isnan(column[row]) else "is not finite" for row in bad}
            elif is_target:
                odd = {row: "is missing" for row, text in enumerate(column) if text is None}
            else:
                raise ValueError(
                    f"{self.name}: column {name!r} holds no numbers: drop it, or encode the rows "
                    f"(kernelstream.columns.Columns)"
                )
            columns[j] = column
            for row, reason in odd.items():
                wrong.setdefault(row, f"column {name!r}{' (the target)' * is_target} {reason}")
        for row in sorted(wrong):
            self._bad(self.at + row + 1, wrong[row])
        if wrong:
            keep = np.array([row not in wrong for row in range(size)])
            columns = {j: column[keep] for j, column in columns.items()}
        return columns, size - len(wrong)

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
    on_error : {"raise", "skip", "log"}
        What to do about a row with a missing or infinite value.
    **options
        ``features``, ``drop``, ``missing``, ``dtype`` as for :class:`CSV`.
    """

    def __init__(
        self, source: Any, target: Any = None, block: int = BLOCK_ROWS, *, on_error: str = "raise", **options: Any
    ):
        super().__init__(os.fspath(source), block, on_error)
        with needs("parquet"):
            import pyarrow
        self.pyarrow = pyarrow
        with open(source, "rb") as file:
            magic = file.read(6)
        try:
            self._open(source, magic)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"{self.name} is not a Parquet, Feather or Arrow file: {error}") from None
        self._begin(self.schema.names, target, options)

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
            if start < batch.num_rows:
                yield batch.slice(start)
                start = 0
            else:
                start -= batch.num_rows

    def _length(self, piece: Any) -> int:
        return piece.num_rows

    def _slice(self, piece: Any, start: int, n: int) -> Any:
        return piece.slice(start, n)

    def _column(self, piece: Any, j: int) -> np.ndarray:
        column = piece.column(self.columns.names[j])
        types = self.pyarrow.types
        kind = column.type
        if types.is_boolean(kind):
            column, kind = column.cast("int8"), None
        if kind is None or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return _as_text(np.array(column.to_pylist(), dtype=object))


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
    on_error : {"raise", "skip", "log"}
        What to do about a row with a missing or infinite value.
    **options
        ``features``, ``drop``, ``missing``, ``dtype`` as for :class:`CSV`.

    Examples
    --------
    >>> import pandas
    >>> from kernelstream.streams import Frame
    >>> X, y = Frame(pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}), target="b").read()
    >>> X.tolist(), y.tolist()
    ([[1.0], [2.0]], ['x', 'y'])
    """

    def __init__(
        self, frames: Any, target: Any = None, block: int = BLOCK_ROWS, *, on_error: str = "raise", **options: Any
    ):
        super().__init__("data frame", block, on_error)
        with needs("frames"):
            import narwhals
        self.narwhals = narwhals
        whole = narwhals.from_native(frames, eager_only=True, pass_through=True)
        self.whole = whole if isinstance(whole, narwhals.DataFrame) else None
        self.rest: Iterator[Any] | None = None
        if self.whole is None:
            self.rest = iter(frames)
            try:
                first = next(self.rest)
            except StopIteration:
                raise ValueError("there is no data frame to read") from None
            self.first: Any = self._frame(first)
            names = self.first.columns
        else:
            self.n_rows, names = len(self.whole), self.whole.columns
        self._begin([str(name) for name in names], target, options)

    def _frame(self, frame: Any) -> Any:
        try:
            return self.narwhals.from_native(frame, eager_only=True)
        except TypeError:
            raise ValueError(f"{type(frame).__name__} is not a data frame") from None

    def _pieces(self, start: int) -> Iterator[Any]:
        if self.whole is not None:
            yield self.whole[start:]
            return
        if self.first is None:
            raise ValueError("an iterable of data frames can be read only once")
        piece, self.first = self.first, None
        while piece is not None:
            if start < len(piece):
                yield piece[start:]
            start = max(0, start - len(piece))
            piece = next(self.rest, None)  # type: ignore[arg-type]
            piece = None if piece is None else self._frame(piece)

    def _length(self, piece: Any) -> int:
        return len(piece)

    def _slice(self, piece: Any, start: int, n: int) -> Any:
        return piece[start : start + n]

    def _column(self, piece: Any, j: int) -> np.ndarray:
        name = piece.columns[j]
        if str(name) != self.columns.names[j]:
            raise ValueError(f"a data frame has the column {name!r} where the first had {self.columns.names[j]!r}")
        column = piece[name]
        kind = column.dtype
        if kind.is_numeric() or kind == self.narwhals.Boolean:
            return np.array(
                [np.nan if value is None else value for value in column.to_list()]
                if column.is_null().any()
                else column.to_numpy(),
                dtype=np.float64,
            )
        return _as_text(np.array(column.to_list(), dtype=object))


def _as_text(column: np.ndarray) -> np.ndarray:
    """Strings, None where missing."""
    missing = [value is None or value != value for value in column]  # NaN differs from itself
    return np.array([None if m else str(v) for v, m in zip(column, missing, strict=True)], dtype=object)
