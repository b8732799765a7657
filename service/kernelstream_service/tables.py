"""Bodies that are tables of rows: lines of JSON, and Arrow's streams.

Where JSON's bodies have ``y`` and ``ids``, a table has columns for them, which the query names:
``/models/NAME/learn?target=price&id=key``. All other columns are the row.
"""

from __future__ import annotations

import struct
from typing import Any

from .extras import needs
from .problems import Problem
from .schemas import Id, Learn, Row, Target, decoded

with needs("serve"):
    import msgspec

MAX_SHARED_TEXT = 16 << 20  # characters that a column of Arrow's dictionaries may have when it is written out

Query = dict[str, list[str]]


def from_lines(body: bytes, kind: type[Any], query: Query, most: int) -> Any:
    """A :class:`Predict` or :class:`Learn` of rows of JSON, one on each line."""
    return _named(decoded(body, Row, lines=True), kind, query)


def from_arrow(body: bytes, kind: type[Any], query: Query, most: int) -> Any:
    """A :class:`Predict` or :class:`Learn` of the rows of an Arrow stream."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Problem(415, "this server cannot read Arrow: pip install 'kernelstream[parquet]'") from None
    rows: list[Any] = []
    try:
        for message in pa.MessageReader.open_stream(body):
            if _is_compressed(message.metadata.to_pybytes()):
                raise Problem(415, "send the Arrow stream without compression")
        for batch in pa.ipc.open_stream(body):
            if len(rows) + batch.num_rows > most:
                raise Problem(413, f"a request may have at most {most:,} rows: split it into several")
            batch.validate(full=True)
            columns = [_cells(column, name, pa) for name, column in zip(batch.schema.names, batch.columns)]
            rows += [dict(zip(batch.schema.names, cells)) for cells in zip(*columns)]
    except (pa.ArrowException, struct.error, OSError, ValueError, IndexError) as error:
        raise Problem(400, f"the body is not an Arrow stream: {str(error)[:200]}") from None
    return _named(rows, kind, query)


def _cells(column: Any, name: str, pa: Any) -> list[Any]:
    """The cells of a column as JSON knows them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        values, places = _cells(column.dictionary, name, pa), column.indices.to_pylist()
        found = [None if at is None else values[at] for at in places]
        if sum(len(value) for value in found if isinstance(value, str)) > MAX_SHARED_TEXT:
            raise Problem(413, f"column {name[:80]!r} has more than {MAX_SHARED_TEXT:,} characters")
        return found
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.string())
    elif not any(known(kind) for known in (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating,
                                           pa.types.is_string, pa.types.is_large_string)):  # fmt: skip
        raise Problem(422, f"column {name[:80]!r} has the type {kind}: send numbers, words or dates", column=name[:80])
    found = column.to_pylist()
    return found


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message of Arrow holds compressed buffers, a small one of which might fill the memory.

    The metadata is a FlatBuffers table, Message {version, header_type, header, ...}, whose header is of type 3, a
    RecordBatch {length, nodes, buffers, compression, ...}, or 2, a DictionaryBatch {id, data: RecordBatch, ...}.
    """
    message = _follow(metadata, 0)
    kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
    if kind is None or header is None or metadata[kind] not in (2, 3):
        return False
    batch = _follow(metadata, header)
    if metadata[kind] == 2:
        inner = _field(metadata, batch, 1)
        if inner is None:
            return False
        batch = _follow(metadata, inner)
    return _field(metadata, batch, 3) is not None


def _follow(metadata: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Offset of a field of a table; None if it is absent."""
    names = table - struct.unpack_from("<i", metadata, table)[0]
    size: int = struct.unpack_from("<H", metadata, names)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, names + place)[0] if place < size else 0
    return table + offset if offset else None


def _named(rows: list[Any], kind: type[Any], query: Query) -> Any:
    """The rows, without the columns of targets and ids."""
    unknown = sorted(query.keys() - {"target", "id"})
    if unknown:
        raise Problem(422, f"unknown parameter {unknown[0][:80]!r} of the query: there are target and id")
    parts: dict[str, Any] = {"rows": rows}
    if kind is Learn and "target" not in query:
        raise Problem(422, "name the column of the target: /learn?target=NAME")
    wanted = {"ids": (query.get("id"), list[Id])} | ({"y": (query["target"], list[Target])} if kind is Learn else {})
    for part, (name, of) in wanted.items():
        if name is not None:
            parts[part] = msgspec.convert([_taken(row, i, name[0]) for i, row in enumerate(rows)], of)
    return kind(**parts)


def _taken(row: Any, i: int, name: str) -> Any:
    if not isinstance(row, dict) or name not in row:
        raise Problem(422, f"row {i} has no column {name[:80]!r}", row=i, column=name[:80])
    return row.pop(name)


READERS = {b"application/x-ndjson": from_lines, b"application/vnd.apache.arrow.stream": from_arrow}
