"""Errors of requests, and the responses that report them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from .answers import Busy, StoreError, UnknownId
from .extras import needs
from .journal import LogError
from .rows import RowError

with needs("serve"):
    import msgspec
    from anyio import to_thread
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response

logger = logging.getLogger("kernelstream_service")

T = TypeVar("T")


class Problem(Exception):
    """An error that is reported to the client."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any):
        super().__init__(message)
        self.status, self.headers = status, headers
        self.content = {"error": message} | {key: value for key, value in more.items() if value is not None}


def problem_of(error: Exception, path: str) -> Problem:
    """What a client is told about an error."""
    match error:
        case Problem():
            return error
        case HTTPException():  # there is no path or method for it
            message = f"there is no {path[:80]}" if error.status_code == 404 else error.detail
            return Problem(error.status_code, message, error.headers)
        case RowError():
            return Problem(422, str(error), row=error.row, column=error.column)
        case UnknownId():
            return Problem(409, str(error), ids=error.ids[:100])
        case LogError():
            return Problem(507, f"nothing was learned: {error.strerror}")
        case Busy() | StoreError():
            return Problem(503, str(error), {"Retry-After": "1"})
        case ClientDisconnect():
            return Problem(400, "the client has left")
        case ValueError() | TypeError():  # what the model itself says about the rows
            return Problem(422, str(error))
        case MemoryError():
            return Problem(503, "there is not enough memory for this request")
    logger.error("a request to %s failed", path, exc_info=error)
    return Problem(500, "internal error: look in the server's log for the X-Request-ID of this response")


def error_response(error: Exception, path: str) -> Response:
    """The response that reports an error."""
    problem = problem_of(error, path)
    return json_response(problem.content, problem.status, problem.headers)


def _encode_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):  # msgspec writes null for numbers that JSON does not know
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} cannot be written as JSON")


encode = msgspec.json.Encoder(enc_hook=_encode_numpy).encode


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``content`` as a response."""
    return Response(encode(content), status, headers, media_type="application/json")


# An error that waits in a future has a traceback, whose frames know the future: a circle, which keeps alive whatever
# else they know, such as copies of models, until the garbage collector comes by. Errors of other threads are therefore
# passed on as results, without their frames.
def quiet(error: T) -> T:
    """An error without the frames it has come through."""
    error.__traceback__ = error.__context__ = error.__cause__ = None  # type: ignore[attr-defined]
    return error


def caught(call: Callable[..., T], *args: Any) -> T | Exception:
    """The result of a call, or its error."""
    try:
        return call(*args)
    except Exception as error:
        return quiet(error)


async def aside(call: Callable[..., T], *args: Any) -> T:
    """The result of a call in another thread."""
    found = await to_thread.run_sync(caught, call, *args)
    if isinstance(found, Exception):
        try:
            raise found
        finally:
            del found
    return found


async def result_of(future: Any) -> Any:
    """What a future of another thread brings: its result, or its error, which is not raised."""
    waiting = asyncio.wrap_future(future)
    await asyncio.wait((waiting,))
    error = waiting.exception()
    return waiting.result() if error is None else quiet(error)
