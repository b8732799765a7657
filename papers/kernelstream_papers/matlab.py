"""Variables of a MATLAB file (version 5 to 7) that are arrays of numbers; scipy's reader trusts a file too much.

A file is a header of 128 bytes and elements: a type, a size and content. One of type 14 is a variable, made of elements
itself: flags, shape, name, and the numbers, of a sparse matrix after its row indices and the starts of its columns. One
of type 15 is another one, compressed.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelstream.streams import formats

NAME, MATRIX, COMPRESSED = 1, 14, 15
SPARSE, COMPLEX = 5, 0x800
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {SPARSE: "f8", 6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def rows_of(path: Any, name: str, whole: bool) -> tuple[Any, Any, np.ndarray | None]:
    """Rows, target and orders of a MATLAB file, as the authors of online learning toolboxes ship their data."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        found = variables(content)
    except NotImplementedError:
        raise ValueError(f"{name} is a MATLAB 7.3 (HDF5) file: save it with -v7") from None
    except ValueError as error:
        raise ValueError(f"{name} is damaged: {error}") from None
    tables = {
        key: value for key, value in found.items() if getattr(value, "ndim", 0) == 2 and value.dtype.kind in "biuf"
    }
    orders = {key: np.asarray(value, np.int64) - 1 for key, value in tables.items() if _are_orders(value)}
    tables = {key: value for key, value in tables.items() if key not in orders}
    target = next((tables.pop(key) for key in ("y", "Y", "label", "labels") if key in tables), None)
    key = next((key for key in ("data", "X", "x") if key in tables), min(tables) if len(tables) == 1 else None)
    if key is None:
        raise ValueError(
            f"{name} holds {', '.join(found) or 'nothing'}; it must hold X and y, or data, the target first"
        )
    rows = tables[key]
    if target is None and not whole:
        target, rows = rows[:, [0]], rows[:, 1:]
    if target is not None:
        target = (target.toarray() if sp.issparse(target) else np.asarray(target)).ravel()
    return rows, target, next((order for order in orders.values() if order.shape[1] == rows.shape[0]), None)


def _are_orders(table: Any) -> bool:
    """Whether each row of a table is a permutation of 1 ... n."""
    n = table.shape[1]
    return not sp.issparse(table) and n > 1 and bool((np.sort(table, axis=1) == np.arange(1, n + 1)).all())


def variables(content: bytes) -> dict[str, Any]:
    """Arrays (sparse ones as CSC) by name, and None for variables of any other kind.

    ValueError, struct.error or zlib.error for a damaged file; NotImplementedError for one of version 7.3.
    """
    order = "<" if content[126:128] == b"IM" else ">"
    if struct.unpack_from(f"{order}H", content, 124)[0] >> 8 == 2:
        raise NotImplementedError
    found = {}
    for kind, part in _elements(memoryview(content)[128:], order):
        if kind == COMPRESSED:
            kind, part = next(_elements(memoryview(zlib.decompress(part)), order), (0, part))
        if kind != MATRIX:
            raise ValueError(f"an element of type {kind} where a variable should be")
        name, value = _variable(list(_elements(part, order)), order)
        if name and not name.startswith("_"):
            found[name] = value
    return found


def _elements(part: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and contents of elements."""
    at = 0
    while at < len(part):
        kind, size = struct.unpack_from(f"{order}II", part, at)
        short = kind >> 16  # an element of at most four bytes, which lie where the size would be
        kind, size, start = (kind & 0xFFFF, short, at + 4) if short else (kind, size, at + 8)
        if start + size > len(part) or short > 4:
            raise ValueError(f"an element of {size} bytes where there are {len(part) - start}")
        yield kind, part[start : start + size]
        at = at + 8 if short else start + (size if kind == COMPRESSED else -(-size // 8) * 8)


def _variable(parts: list[tuple[int, memoryview]], order: str) -> tuple[str, Any]:
    """The name of a variable, and its value; None if it is not an array of real numbers."""
    if len(parts) < 3 or parts[2][0] != NAME:
        raise ValueError("a variable without flags, shape and name")
    flags = int(_numbers(parts[0], order)[0])
    shape = tuple(_numbers(parts[1], order).tolist())
    name = bytes(parts[2][1]).decode("latin-1")
    dtype = CLASSES.get(flags & 0xFF)
    if dtype is None or flags & COMPLEX:
        return name, None
    values = [_numbers(part, order) for part in parts[3:]]
    if len(values) != (3 if flags & 0xFF == SPARSE else 1) or len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"{name!r} has {len(values)} parts and the shape {shape}")
    with np.errstate(invalid="ignore"):  # of damaged numbers
        data = values[-1].astype(dtype)
    if flags & 0xFF == SPARSE:
        used = int(values[1][-1])
        return name, sp.csc_matrix((data[:used], values[0][:used], values[1]), shape=shape)
    if math.prod(shape) != len(data):
        raise ValueError(f"{name!r} has {len(data)} numbers and the shape {shape}")
    return name, data.reshape(shape, order="F")


def _numbers(part: tuple[int, memoryview], order: str) -> np.ndarray:
    kind, content = part
    if kind not in STORED:
        raise ValueError(f"numbers of type {kind}")
    return np.frombuffer(content, order + STORED[kind])


formats.READERS[formats.MATLAB] = rows_of
