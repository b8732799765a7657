"""The bodies of requests: what they may hold, and how they are read."""

from __future__ import annotations

from typing import Any

from ._extra import needs
from .responses import Problem

with needs("serve"):
    import msgspec
    from starlette.requests import ClientDisconnect

BODY = 16 << 20  # most bytes of a request

Id = str | int


class Predict(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[dict[str, Any] | list[Any]]
    ids: list[Id] | None = None


class Learn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to learn, or ids of rows that were predicted before."""

    rows: list[dict[str, Any] | list[Any]] | None = None
    y: list[int | float | str | bool | None] | None = None
    ids: list[Id] | None = None


class Rollback(msgspec.Struct, forbid_unknown_fields=True):
    """The version to go back to; by default the latest former one."""

    to: int | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty object."""


async def read(headers: dict[bytes, bytes], receive: Any, decoder: Any, most: int) -> Any:
    """The body of a request, of at most ``most`` bytes, decoded."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":  # which a page of another site cannot send without being asked
        raise Problem(415, "send JSON, with Content-Type: application/json")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise Problem(413, f"a body has at most {most:,} bytes")
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
    try:
        return decoder.decode(b"".join(parts) or b"{}")
    except msgspec.ValidationError as error:
        raise Problem(422, str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None
