"""The calls that change a learner, and their bytes in the journal, which give the same rows again, to the last bit.

A record is one letter, the length of a JSON header, the header, and the bytes of the arrays it describes. Rows come as
arrays, as sparse matrices, or as what JSON knows (lists of dictionaries, with words and gaps); JSON's numbers are
written so that they are read back exactly.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Learn:
    """Rows with their targets; names of the rows, names of columns, positions of sources after them."""

    X: Any
    y: Any
    ids: list[Any] | None = None
    columns: list[str] | None = None
    positions: dict[str, int | str] | None = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.X) if isinstance(self.X, list) else int(self.X.shape[0])


@dataclass(frozen=True, eq=False)
class Challenge:
    """A challenger as a model file; empty where there is to be none."""

    content: bytes


@dataclass(frozen=True)
class Promote:
    """The challenger becomes the champion."""


@dataclass(frozen=True)
class Rollback:
    """A former champion becomes the champion."""

    to: int


@dataclass(frozen=True)
class Void:
    """A call that was refused after it had been written."""


Call = Learn | Challenge | Promote | Rollback | Void
KINDS: dict[bytes, type[Any]] = {b"L": Learn, b"C": Challenge, b"P": Promote, b"R": Rollback, b"V": Void}
_LETTERS = {kind: letter for letter, kind in KINDS.items()}


def pack(call: Call) -> bytes:
    """The bytes of a call."""
    parts: list[bytes] = []
    if isinstance(call, Learn):
        more = {"ids": call.ids, "columns": call.columns, "positions": call.positions}
        header = {"X": _describe(call.X, parts), "y": None if call.y is None else _describe(call.y, parts)}
        header |= {name: value for name, value in more.items() if value is not None}
    elif isinstance(call, Challenge):
        header, parts = {}, [call.content]
    else:
        header = vars(call)
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join((_LETTERS[type(call)], _LENGTH.pack(len(text)), text, *parts))


def unpack(content: bytes) -> Call:
    """The call of some bytes; ValueError for anything that :func:`pack` of this version does not write."""
    letter, start = content[:1], 1 + _LENGTH.size
    try:
        kind = KINDS[letter]
        (length,) = _LENGTH.unpack_from(content, 1)
        header, rest = json.loads(content[start : start + length]), memoryview(content)[start + length :]
        if not isinstance(header, dict):
            raise TypeError
        if kind is Challenge:
            return Challenge(bytes(rest))
        if kind is Learn:
            X, rest = _restore(header.pop("X"), rest)
            y = header.pop("y")
            return Learn(X, None if y is None else _restore(y, rest)[0], **header)
        return kind(**{field.name: header[field.name] for field in fields(kind)})
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"its kind {letter!r} and its header are not known: another version may have written it"
        ) from None


def _describe(value: Any, parts: list[bytes]) -> Any:
    """JSON that describes rows or targets; the bytes of arrays are added to ``parts``."""
    if sp.issparse(value):
        arrays = [_describe(part, parts) for part in (value.data, value.indices, value.indptr)]
        return {"shape": list(value.shape), "csr": arrays}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUS":
        parts.append(value.tobytes())
        return {"shape": list(value.shape), "dtype": value.dtype.str}
    return {"json": value.tolist() if isinstance(value, np.ndarray) else value}


def _restore(about: Any, content: memoryview) -> tuple[Any, memoryview]:
    if "json" in about:
        return about["json"], content
    if "csr" in about:
        arrays = []
        for part in about["csr"]:
            array, content = _restore(part, content)
            arrays.append(array)
        return sp.csr_array(tuple(arrays), shape=tuple(about["shape"])), content
    dtype = np.dtype(about["dtype"])
    size = int(np.prod(about["shape"], dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(content[:size], dtype).reshape(about["shape"]).copy(), content[size:]
