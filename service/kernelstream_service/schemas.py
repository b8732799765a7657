"""What requests hold, within their limits, and what is answered; msgspec decodes the first, and describes both."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from .extras import needs
from .problems import Problem

with needs("serve"):
    import msgspec
    from starlette.requests import Request

MAX_BODY_BYTES = 2 << 20  # most bytes of a request, unless it is a model file
MAX_MODEL_BYTES = 256 << 20  # most bytes of a model file
MAX_ROWS = 50_000  # most rows of a request
BODY_SECONDS = 30.0  # longest time for a body to arrive
MODEL_FILE = "application/octet-stream"  # the type of a model file
JSON = "application/json"  # which a page of another site cannot send without being asked

Id = str | int
Row = dict[str, Any] | list[Any]
Target = int | float | str | bool | None


class Predict(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict; with ids, they wait for their targets."""

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


class Predictions(msgspec.Struct, omit_defaults=True):
    """An item for each row, the version of the model, and cells that it could not use."""

    predictions: list[Any]
    version: int
    probabilities: list[list[float]] | None = None
    classes: list[Any] | None = None
    intervals: list[list[float]] | None = None
    sets: list[list[Any]] | None = None
    warnings: list[str] | None = None


class Taught(msgspec.Struct, omit_defaults=True):
    """Rows learned now and in all; rows that had been learned before."""

    learned: int
    total: int
    version: int
    repeated: int = 0
    warnings: list[str] | None = None


class Version(msgspec.Struct):
    """The version of the champion."""

    version: int


class Acknowledged(msgspec.Struct):
    """Lost calls that are no longer reported."""

    acknowledged: int


class Error(msgspec.Struct):
    """Why a request was refused, and where."""

    error: str
    row: int | None = None
    column: str | int | None = None


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


async def asked(request: Request, kind: Any, most: int, rows: int) -> Any:
    """What a body of JSON holds; 400 for what is no JSON, 422 for what is no ``kind``, 413 for too many rows."""
    body = await received(request, JSON, most, "send the rows in several requests, as kernelstream_service.Client does")
    try:
        found = _decoder(kind).decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise Problem(422, str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None
    if len(getattr(found, "rows", None) or ()) > rows:
        raise Problem(413, f"a request may have at most {rows:,} rows: split it into several")
    return found


async def model_file(request: Request) -> bytes:
    """The bytes of a model file."""
    return await received(request, MODEL_FILE, MAX_MODEL_BYTES, "put the file into the store, and start the server")


async def received(request: Request, kind: str, most: int, instead: str) -> bytes:
    """The bytes of a body of a type, of which there are at most ``most``."""
    headers: dict[bytes, bytes] = request.scope["header"]
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != kind.encode():
        raise Problem(415, f"send this with Content-Type: {kind}")
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Problem(415, "send the body uncompressed, without Content-Encoding")
    length = headers.get(b"content-length", b"")
    size, body = int(length) if length.isdigit() else 0, bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            if size <= most:
                async for part in request.stream():
                    body += part
                    if (size := len(body)) > most:
                        break
    except TimeoutError:
        late = f"the body did not arrive within {BODY_SECONDS:g} seconds"
        raise Problem(408, late, {"Connection": "close"}) from None
    if size > most:
        raise Problem(413, f"a body has at most {most:,} bytes: {instead}")
    return bytes(body)


_ERRORS = {
    "400": "not JSON", "401": "missing or wrong token", "403": "the token lacks the right",
    "404": "no such model", "408": "the body did not arrive in time",
    "409": "unknown ids, or refused in the present state", "413": "too many bytes or rows",
    "415": "unsupported type, or compressed", "422": "bad rows: the model is unchanged",
    "431": "headers too large", "503": "too many waiting, waking, or it took too long", "507": "no space on the disk",
}  # fmt: skip


def document(version: str, calls: list[tuple[str, str, str, Any, Any]]) -> dict[str, Any]:
    """The OpenAPI document of calls: path, method, summary, and the structs of request and answer or None."""
    structs = [kind for *_, asked, answered in calls for kind in (asked, answered) if kind is not None]
    structs = [*dict.fromkeys(structs), Error]
    _, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for path, method, summary, asked, answered in calls:
        done: dict[str, Any] = {"description": "done"} | ({} if answered is None else {"content": _json(answered)})
        about: dict[str, Any] = {"summary": summary, "responses": {"200": done}}
        if "{name}" in path:
            about["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
        if method != "GET":
            about["responses"] |= {
                code: {"description": text, "content": _json(Error)} for code, text in _ERRORS.items()
            }
        if method == "PUT":
            about["requestBody"] = {"content": {"application/octet-stream": {}}}
        elif asked is not None:
            about["requestBody"] = {"content": _json(asked)}
        paths.setdefault(path, {})[method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": "kernelstream", "version": version},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _json(kind: Any) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
