"""The bodies of requests: what they may hold, and how they are read."""

from __future__ import annotations

import asyncio
import functools
import re
from typing import Any

from .extras import needs
from .responses import Problem

with needs("serve"):
    import msgspec
    from starlette.requests import ClientDisconnect

MAX_BODY_BYTES = 16 << 20  # most bytes of a request
MAX_ROWS = 50_000  # most rows of a request
BODY_SECONDS = 30.0  # longest time for a body to arrive
BYTES_PER_STEP = 1 << 15  # bytes that are decoded in one step: the interpreter can do nothing else in that time
MAX_ROW_BYTES = 1 << 20  # bytes of one row of a large body

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
    """The version to restore; by default the latest one before the present."""

    to: int | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty object."""


class Policy(msgspec.Struct, forbid_unknown_fields=True):
    """Which share of the requests the challenger answers, and when a former champion is restored automatically."""

    share: float = 0.0
    guard: float | None = None


@functools.cache
def decoder(kind: Any) -> Any:
    """A decoder of JSON of a type."""
    return msgspec.json.Decoder(kind)


def from_json(body: bytes, asked: Any, _: Any, most: int) -> Any:
    """A request in JSON, of at most ``most`` rows."""
    if len(body) > BYTES_PER_STEP and asked in (Predict, Learn):
        return decoded(body, lambda text: in_slices(text, asked, most))
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
        raise Problem(415, "send the body uncompressed, without Content-Encoding")
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
    return Problem(413, f"a request may have at most {rows:,} rows: split it into several")


# -------------------------------------------------------------------- large bodies
# A decoder holds the interpreter until it is done, and with it every other request. A large body is therefore cut where
# one row ends and the next begins, and decoded some rows at a time. The expressions find ends only: what is between
# them is for the decoder to judge. `*+` never gives back what it has taken, so that nothing is looked at twice.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_CELLS = rb'[^"\[\]{}]*+(?:' + _TEXT + rb'[^"\[\]{}]*+)*+'
_ITEM = rb"(?:\[" + _CELLS + rb"\]|\{" + _CELLS + rb"\}|" + _TEXT + rb'|[^"\[\]{},\s]++)\s*+'
_SOME = re.compile(_ITEM + rb"(?:,\s*+" + _ITEM + rb"(?=[,\]]))*", re.DOTALL)
_KEY = re.compile(rb"\s*+(" + _TEXT + rb")\s*+:\s*+(\[|null)\s*+")
_NEXT = re.compile(rb"\s*+([,\]}])\s*+")


def in_slices(body: bytes, kind: type[Any], most: int) -> Any:
    """A large body, decoded in steps of limited size; rows may hold plain cells only, and there are at most ``most``.

    Parameters
    ----------
    body : bytes
        A JSON object of lists.
    kind : type
        :class:`Predict` or :class:`Learn`.
    most : int
    """
    decoders = {field.name: decoder(field.type) for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    at = len(body) - len(body.lstrip())
    if body[at : at + 1] != b"{":
        raise msgspec.ValidationError("Expected `object`")
    ended = bool(re.compile(rb"\{\s*\}").match(body, at))
    at = body.index(b"}", at) + 1 if ended else at + 1
    while not ended:
        key = _KEY.match(body, at)
        if key is None:
            raise msgspec.DecodeError(f"an object of lists is expected (byte {at})")
        name = msgspec.json.decode(key[1])
        if name not in decoders:
            raise msgspec.ValidationError(f"Object contains unknown field `{name[:80]}`")
        found[name], at = _items(body, key.end(), decoders[name], most) if key[2] == b"[" else (None, key.end())
        end = _NEXT.match(body, at)
        if end is None or end[1] == b"]":
            raise msgspec.DecodeError(f"a comma or the end of the object is expected (byte {at})")
        at, ended = end.end(), end[1] == b"}"
    if body[at:].strip():
        raise msgspec.DecodeError(f"trailing characters (byte {at})")
    if kind is Predict and found.get("rows") is None:
        raise msgspec.ValidationError("Object missing required field `rows`")
    return kind(**found)


def _items(body: bytes, at: int, decoder: Any, most: int) -> tuple[list[Any], int]:
    """The items of a list that begins at ``at``, and where it has ended."""
    found: list[Any] = []
    if body[at : at + 1] == b"]":
        return found, at + 1
    while True:
        some = _SOME.match(body, at, at + BYTES_PER_STEP) or _SOME.match(body, at, at + MAX_ROW_BYTES)
        end = None if some is None else _NEXT.match(body, some.end())
        if some is None or end is None or end[1] == b"}":
            raise msgspec.DecodeError(f"a list of plain values, or of rows of them, is expected (byte {at})")
        found += decoder.decode(b"[" + some[0] + b"]")
        if len(found) > most:
            raise too_many(most)
        at = end.end()
        if end[1] == b"]":
            return found, at
