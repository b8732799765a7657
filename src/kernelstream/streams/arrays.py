"""Arrays: in memory, or in .npy and .npz files, memory-mapped or read piece by piece."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..files import npy_header
from ..rows import canonical
from . import formats
from .base import BLOCK_ROWS, Block, Position, Stream, joined


class Arrays(Stream):
    """Rows of a matrix and its target.

    Parameters
    ----------
    X : array, CSR matrix, or path
        A path to a ``.npy`` file (memory-mapped), or to an ``.npz`` archive that holds ``X`` and ``y``, or a CSR matrix
        as ``X_data, X_indices, X_indptr, X_shape`` or in scipy's way (``sparse.save_npz``). Archives are memory-mapped
        or, where compressed, unpacked piece by piece.
    y : array, path, int or None
        Targets; an int is a column of X. None takes those of the archive, if it has any.
    block : int, default=1024
        Rows per block.
    on_error : {"raise", "skip", "log"}
        What to do with a row that holds NaN or infinity.

    Attributes
    ----------
    orders : ndarray (k, n) or None
        Orders of the rows that come with a file, counted from 0; in a ``.mat`` file they are a matrix of permutations
        of 1 ... n, one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.streams import Arrays
    >>> [X.shape for X, y in Arrays(np.ones((5, 3)), np.arange(5), block=2)]
    [(2, 3), (2, 3), (1, 3)]
    """

    unit = "row"
    orders: np.ndarray | None = None

    def __init__(self, X: Any, y: Any = None, block: int = BLOCK_ROWS, *, on_error: str = "raise"):
        name = os.fspath(X) if isinstance(X, (str, os.PathLike)) else "array"
        super().__init__(name, block, on_error)
        column = isinstance(y, (int, np.integer)) and not isinstance(y, bool)
        rows, target, *orders = (
            _opened(X, self.name, column) if isinstance(X, (str, os.PathLike)) else (_checked(X), None)
        )
        self.orders = orders[0] if orders else None
        self.column: int | None = None
        if column:
            if not -rows.shape[1] <= y < rows.shape[1]:
                raise ValueError(f"{self.name} has no column {y}: it has {rows.shape[1]}")
            self.column, target = int(y) % rows.shape[1], None
        elif isinstance(y, (str, os.PathLike)):
            target = np.load(y, mmap_mode="r", allow_pickle=False)
        elif y is not None:
            target = np.asarray(y)
        self.X, self.y = rows, target
        self.n_rows, self.n_features = rows.shape[0], rows.shape[1] - (self.column is not None)
        if target is not None and target.shape != (self.n_rows,):
            raise ValueError(f"{self.name} has {self.n_rows} rows but a target of shape {target.shape}")

    def _next(self, n: int) -> Block | None:
        parts: list[Block] = []
        while n:
            start = self.rows + self.skipped + sum(X.shape[0] for X, _ in parts)
            stop = min(start + n, self.n_rows or 0)
            if start >= stop:
                break
            X, y = self._cut(start, stop)
            bad = _unreadable(X, y)
            if bad.any():
                for i in np.flatnonzero(bad):
                    what = (
                        "the target" if y is not None and y.dtype.kind == "f" and not np.isfinite(y[i]) else "a value"
                    )
                    self._bad(start + int(i) + 1, f"{what} is NaN or infinite")
                X, y = X[~bad], None if y is None else y[~bad]
            n -= X.shape[0]
            if X.shape[0]:
                parts.append((X, y))
        return joined(parts)

    def _cut(self, start: int, stop: int) -> Block:
        X = self.X[start:stop]
        y = None if self.y is None else np.array(self.y[start:stop])
        if self.column is not None:
            X = np.asarray(X)
            return np.delete(X, self.column, axis=1), np.array(X[:, self.column])
        return (X if sp.issparse(X) else np.ascontiguousarray(X)), y

    def _where(self) -> Position:
        return {}

    def _seek(self, position: Position) -> None:
        if position["rows"] + position["skipped"] > (self.n_rows or 0):
            raise ValueError(f"{self.name} has {self.n_rows} rows, fewer than the position to resume from")


def _unreadable(X: Any, y: Any) -> np.ndarray:
    """Rows with a NaN or an infinity, (n,) bool."""
    values = X.data if sp.issparse(X) else X
    bad = np.zeros(X.shape[0], bool)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        if sp.issparse(X):
            bad[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[~np.isfinite(values)]] = True
        else:
            bad = ~np.isfinite(values).all(axis=1)
    if y is not None and y.dtype.kind == "f":
        bad |= ~np.isfinite(y)
    return bad


def _checked(X: Any) -> Any:
    X = canonical(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a two-dimensional array of numbers, got {X.dtype} of shape {X.shape}")
    return X


# -------------------------------------------------------------------- files
def _opened(path: Any, name: str, whole: bool) -> tuple[Any, ...]:
    """Rows and target of a file, and the orders of a MATLAB file, whose first column stays a column if ``whole``."""
    with open(path, "rb") as file:
        magic = file.read(6)
    with _damage(name):
        return _arrays_of(path, name, whole, magic)


@contextlib.contextmanager
def _damage(name: Any) -> Iterator[None]:
    """Context: errors of numpy, zipfile and zlib in the content of a file become ValueErrors."""
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        raise ValueError(f"{os.fspath(name)} is damaged: {error}") from None


_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, EOFError, OverflowError, RuntimeError)


def _arrays_of(path: Any, name: str, whole: bool, magic: bytes) -> tuple[Any, ...]:
    if magic == b"\x93NUMPY":
        return _checked(np.load(path, mmap_mode="r", allow_pickle=False)), None
    if magic == b"MATLAB":
        found, *others = formats.reader(formats.MATLAB)(path, name, whole)
        return _checked(found), *others
    if not magic.startswith(b"PK"):
        raise ValueError(f"{name} is neither a .npy nor an .npz nor a .mat file")
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if "kernelstream.json" in entries:
        raise ValueError(f"{name} is a model, not data")
    lacking = "it must hold X (and y), or X_data, X_indices, X_indptr and X_shape"
    for names in (("X_data", "X_indices", "X_indptr", "X_shape"), ("data", "indices", "indptr", "shape")):
        if all(entry in entries for entry in names):
            columns = [_Entry(path, entries[entry]) for entry in names[:3]]
            shape = np.ravel(_Entry(path, entries[names[3]])[:])
            if len(shape) != 2:
                raise ValueError(f"{name} holds a sparse matrix of shape {tuple(shape)}")
            rows: Any = _CSR(columns[0], columns[1], columns[2], (int(shape[0]), int(shape[1])), name)
            break
    else:
        if "X" not in entries:
            raise ValueError(f"{name} holds {', '.join(entries) or 'nothing'}; {lacking}")
        rows = _Entry(path, entries["X"])
        if len(rows.shape) != 2 or rows.dtype.kind not in "biuf":
            raise ValueError(f"{name}: X must be a two-dimensional array of numbers, got {rows.dtype} {rows.shape}")
    return rows, _Entry(path, entries["y"]) if "y" in entries else None


class _Entry:
    """An array of an archive that can be sliced along its first axis without being loaded."""

    def __init__(self, path: Any, info: zipfile.ZipInfo):
        self.path, self.info = path, info
        self.archive = zipfile.ZipFile(path)
        self.file = self.archive.open(info)
        self.shape, self.fortran, self.dtype = npy_header(self.file)
        self.header = self.file.tell()
        if self.dtype.hasobject:
            raise ValueError(f"{path}: {info.filename} holds Python objects")
        packed = info.compress_type != zipfile.ZIP_STORED
        if self.fortran and len(self.shape) > 1 and packed:
            raise ValueError(f"{path}: {info.filename} is stored by columns and compressed: save it by rows")
        self.mapped = None if packed else self._map()

    def _map(self) -> np.ndarray:
        """The entry as part of the mapped archive: its bytes are stored as they are."""
        with open(self.path, "rb") as raw:
            raw.seek(self.info.header_offset + 26)  # lengths of name and extra field in the local header
            extra = int.from_bytes(raw.read(2), "little") + int.from_bytes(raw.read(2), "little")
        offset = self.info.header_offset + 30 + extra + self.header
        if math.prod(self.shape) == 0:
            return np.empty(self.shape, self.dtype)
        order: Any = "F" if self.fortran else "C"
        return np.memmap(self.path, self.dtype, "r", offset, self.shape, order)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0]) if self.shape else (0, 1, 1)
        if self.mapped is not None:
            return np.array(self.mapped[start:stop] if self.shape else self.mapped)
        width = math.prod(self.shape[1:]) * self.dtype.itemsize
        with _damage(self.path):
            self.file.seek(self.header + start * width)  # unpacks what is between; to go back, from the start again
            data = self.file.read((stop - start) * width)
        if len(data) != (stop - start) * width:
            raise ValueError(f"{self.path}: {self.info.filename} is truncated")
        return np.frombuffer(data, self.dtype).reshape(stop - start, *self.shape[1:])


class _CSR:
    """A CSR matrix in three entries, sliced by rows."""

    def __init__(self, data: _Entry, indices: _Entry, indptr: _Entry, shape: tuple[int, int], name: str):
        self.data, self.indices, self.shape, self.name = data, indices, shape, name
        self.indptr = indptr[:]
        ends = self.indptr
        nnz = data.shape[0]
        if (
            len(ends) != shape[0] + 1
            or ends[0] != 0
            or ends[-1] != nnz
            or indices.shape[0] != nnz
            or (np.diff(ends) < 0).any()
        ):
            raise ValueError(f"{name} holds a CSR matrix whose parts do not fit together")

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        inner = slice(int(self.indptr[start]), int(self.indptr[stop]))
        ends = (self.indptr[start : stop + 1] - self.indptr[start]).astype(np.int32)
        indices = self.indices[inner]
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.shape[1]:
            raise ValueError(f"{self.name} holds a CSR matrix with a column outside 0 ... {self.shape[1] - 1}")
        indices = indices.astype(np.int32)
        return sp.csr_array((self.data[inner], indices, ends), shape=(stop - start, self.shape[1]))
