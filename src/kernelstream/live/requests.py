"""The bodies of requests: what they may hold, and how they are read."""

from __future__ import annotations

import asyncio
import functools
from itertools import chain
from typing import Any

from .._extra import needs
from .responses import Problem

with needs("serve"):
    import msgspec
    from starlette.requests import ClientDisconnect

MAX_BODY_BYTES = 16 << 20  # most bytes of a request
MAX_ROWS = 50_000  # most rows of a request
BODY_SECONDS = 30.0  # longest time for a body to arrive
BYTES_PER_STEP = 1 << 15  # bytes that are decoded in one step: the interpreter does nothing else meanwhile

Id = str | int
Row = dict[str, Any] | list[Any]
Target = int | float | str | bool | None


class Predict(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[Row]
    ids: list[Id] | None = None


class Learn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to learn, or ids of rows that were predicted before."""

    rows: list[Row] | None = None
    y: list[Target] | None = None
    ids: list[Id] | None = None


class Rollback(msgspec.Struct, forbid_unknown_fields=True):
    """The version to go back to; by default the latest former one."""

    to: int | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty object."""


class Policy(msgspec.Struct, forbid_unknown_fields=True):
    """What part of the requests the challenger answers, and when a former champion comes back by itself."""

    share: float = 0.0
    guard: float | None = None


@functools.cache
def decoder(kind: Any) -> Any:
    """Reads JSON of a type."""
    return msgspec.json.Decoder(kind)


def from_json(body: bytes, asked: Any, _: Any, most: int) -> Any:
    """A request in JSON, of at most ``most`` rows."""
    if len(body) > BYTES_PER_STEP and asked in (Predict, Learn):
        return decoded(body, lambda text: in_steps(text, asked, most))
    found = decoded(body or b"{}", decoder(asked).decode)
    if len(getattr(found, "rows", None) or ()) > most:
        raise too_many(most)
    return found


def kind_of(headers: dict[bytes, bytes]) -> bytes:
    """The type of a body, without parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower()


async def content(scope: Any, headers: dict[bytes, bytes], receive: Any, most: int) -> bytes:
    """The bytes of a body, of which there are at most ``most``."""
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Problem(415, "send the body as it is, without Content-Encoding")
    if "whole" in scope:  # all of it is there
        return await _received(receive, most)
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise Problem(413, f"a body has at most {most:,} bytes")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _received(receive, most)
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {BODY_SECONDS:g} seconds", {"Connection": "close"}
        ) from None


async def _received(receive: Any, most: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise Problem(413, f"a body has at most {most:,} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)


def decoded(body: bytes, decode: Any) -> Any:
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def too_many(rows: int) -> Problem:
    return Problem(413, f"a request has at most {rows:,} rows: send them in several requests")


# -------------------------------------------------------------------- large bodies
# A decoder holds the interpreter until it is done, and with it every other request. A large body is therefore cut into
# the items of its lists, which is quick, and these are decoded some at a time.
@functools.cache
def _cut(kind: Any) -> Any:
    """Reads JSON of a type whose fields are lists, and leaves their items as they are."""
    whole, some = list[msgspec.Raw], list[msgspec.Raw] | None
    fields: list[Any] = [
        (field.name, whole) if field.required else (field.name, some, None) for field in msgspec.structs.fields(kind)
    ]
    return msgspec.json.Decoder(msgspec.defstruct(kind.__name__, fields, forbid_unknown_fields=True))


def in_steps(body: bytes, kind: Any, most: int) -> Any:
    """A large body, decoded in steps of about ``BYTES_PER_STEP``; it has at most ``most`` rows."""
    cut = msgspec.structs.asdict(_cut(kind).decode(body))
    if len(cut["rows"] or ()) > most:
        raise too_many(most)
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        items, decode = cut[field.name], decoder(field.type).decode
        if items is not None:
            step = max(1, len(items) * BYTES_PER_STEP // len(body))
            parts = (decode(b"[" + b",".join(items[i : i + step]) + b"]") for i in range(0, len(items), step))
            found[field.name] = list(chain.from_iterable(parts))
    return kind(**found)
