"""What the log of a learner holds: calls, as bytes that give the same rows again, to the last bit.

A record is one letter, the length of a JSON header, the header, and the bytes of the arrays it describes. Rows come as
arrays, as sparse matrices, or as what JSON knows (lists of dictionaries, with words and gaps); JSON's numbers are
written so that they are read back exactly.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import scipy.sparse as sp

LEARN, VOID, CHALLENGER, PROMOTE, ROLLBACK, POLICY = b"L", b"V", b"C", b"P", b"R", b"S"
FIELDS: dict[bytes, set[str]] = {LEARN: {"X", "y"}, VOID: {"numbers"}, CHALLENGER: set(), PROMOTE: {"back"},
                                 ROLLBACK: {"to"}, POLICY: {"share", "guard"}}  # fmt: skip

ROWS_PER_STEP = 32  # rows that are written in one step: about a millisecond

_LENGTH = struct.Struct("<I")
_PLAIN = b'{"X":{"shape":[%d,%d],"dtype":"<f8"},"y":{"shape":[%d],"dtype":"%b"}}'


def pack(kind: bytes, header: dict[str, Any], parts: tuple[bytes, ...] = ()) -> bytes:
    """The bytes of a record."""
    text = _json(header).encode()
    return b"".join((kind, _LENGTH.pack(len(text)), text, *parts))


def _json(value: Any) -> str:
    """A header as JSON; long lists in steps, since the encoder blocks all other threads."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{_json(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list) and len(value) > ROWS_PER_STEP:
        steps = (value[i : i + ROWS_PER_STEP] for i in range(0, len(value), ROWS_PER_STEP))
        return "[" + ",".join(_json(step)[1:-1] for step in steps) + "]"
    return json.dumps(value, separators=(",", ":"))


def unpack(payload: bytes) -> tuple[bytes, dict[str, Any], memoryview]:
    """Kind, header and the bytes after it; ValueError for anything that :func:`pack` of this version does not write."""
    kind, start = payload[:1], 1 + _LENGTH.size
    try:
        (length,) = _LENGTH.unpack_from(payload, 1)
        header = json.loads(payload[start : start + length])
        known = kind in FIELDS and header.keys() >= FIELDS[kind]
    except (struct.error, ValueError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"its kind {kind!r} and its header are not known: another version may have written it")
    return kind, header, memoryview(payload)[start + length :]


def pack_learn(X: Any, y: Any, ids: list[Any] | None, more: dict[str, Any] | None = None) -> bytes:
    """A call of ``learn``; ``more`` goes into the header: names of columns, positions of sources."""
    plain = type(X) is type(y) is np.ndarray and ids is None and X.dtype.str == "<f8" and y.dtype.kind in "bif"
    if plain and not any(value is not None for value in (more or {}).values()):  # by far the most frequent call
        text = _PLAIN % (*X.shape, len(y), y.dtype.str.encode())
        return b"".join((LEARN, _LENGTH.pack(len(text)), text, X.tobytes(), y.tobytes()))
    parts: list[bytes] = []
    header = {"X": _describe(X, parts), "y": None if y is None else _describe(y, parts)}
    header |= {name: value for name, value in (more or {}).items() if value is not None}
    if ids is not None:
        header["ids"] = ids
    return pack(LEARN, header, tuple(parts))


def unpack_learn(header: dict[str, Any], content: memoryview) -> tuple[Any, Any, list[Any] | None]:
    """Rows, targets and names of a call of ``learn``."""
    X, rest = _restore(header["X"], content)
    y, _ = (None, rest) if header["y"] is None else _restore(header["y"], rest)
    return X, y, header.get("ids")


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
