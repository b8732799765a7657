"""The bodies of requests: how they are received, within their limits."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

from .extras import needs
from .problems import Problem
from .schemas import Learn, Predict, decoded
from .tables import READERS

with needs("serve"):
    from starlette.requests import ClientDisconnect, Request

MAX_BODY_BYTES = 2 << 20  # most bytes of a request, unless it is a model file
MAX_MODEL_BYTES = 256 << 20  # most bytes of a model file
MAX_ROWS = 50_000  # most rows of a request
BODY_SECONDS = 30.0  # longest time for a body to arrive
MODEL_FILE = b"application/octet-stream"  # the type of a model file
JSON = b"application/json"  # which a page of another site cannot send without being asked


def type_of(request: Request) -> bytes:
    """The type of a body, in lower case and without parameters."""
    found: bytes = request.scope["header"].get(b"content-type", b"")
    return found.partition(b";")[0].strip().lower()


async def asked(request: Request, kind: Any, most: int, rows: int) -> Any:
    """What a body holds: JSON, or rows in a table of another type."""
    given = type_of(request)
    reader = READERS.get(given) if kind in (Predict, Learn) else None
    if given != JSON and reader is None:
        raise Problem(415, "send JSON, with Content-Type: application/json")
    body = await received(request, most, "send the rows in several requests, as kernelstream_service.Client does")
    if reader is None:
        found = decoded(body or b"{}", kind)
    else:
        found = reader(body, kind, parse_qs(request.scope["query_string"].decode("latin-1")), rows)
    if len(getattr(found, "rows", None) or ()) > rows:
        raise Problem(413, f"a request may have at most {rows:,} rows: split it into several")
    return found


async def model_file(request: Request) -> bytes:
    """The bytes of a model file."""
    if type_of(request) != MODEL_FILE:
        raise Problem(415, f"send a model file, with Content-Type: {MODEL_FILE.decode()}")
    return await received(request, MAX_MODEL_BYTES, "put the file into the store, and start the server with it")


async def received(request: Request, most: int, instead: str) -> bytes:
    """The bytes of a body, of which there are at most ``most``."""
    headers = request.scope["header"]
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Problem(415, "send the body uncompressed, without Content-Encoding")
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > most:
        raise _too_large(most, instead)
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise _too_large(most, instead)
                more = message.get("more_body", False)
    except TimeoutError:
        late = f"the body did not arrive within {BODY_SECONDS:g} seconds"
        raise Problem(408, late, {"Connection": "close"}) from None
    return b"".join(parts)


def _too_large(most: int, instead: str) -> Problem:
    return Problem(413, f"a body has at most {most:,} bytes: {instead}")
