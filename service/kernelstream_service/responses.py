"""Responses: JSON, and what becomes of errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from .answers import Busy, StoreError, UnknownId
from .extras import needs
from .log import LogError
from .rights import Grant
from .rows import RowError

with needs("serve"):
    import msgspec
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response

logger = logging.getLogger("kernelstream_service")


class Problem(Exception):
    """An error that is reported to the client."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any):
        super().__init__(message)
        self.status, self.headers = status, headers
        self.content = {"error": message} | {key: value for key, value in more.items() if value is not None}


class JSONContent:
    """A JSON response that is quicker to make than Starlette's."""

    def __init__(self, content: bytes):
        self.content = content

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        size = str(len(self.content)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.content})


def guarded(
    answer: Callable[[Request], Awaitable[Response]], right: str | None
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that needs a right for the model that its path names."""

    async def endpoint(request: Request) -> Response:
        check_right(request.scope["grant"], right, request.path_params.get("name"))
        return await answer(request)

    return endpoint


def check_right(grant: Grant | None, right: str | None, name: str | None) -> None:
    """Raise a problem for a request that a grant does not allow."""
    if name is not None and (grant is None or not grant.may(right, name)):
        needed = f"the right {right!r}" if right else "any right"
        raise Problem(403, f"this needs a token with {needed} for the model {name[:80]!r}")


def error_response(error: Exception, path: str) -> Response:
    """The response that reports an error to the client."""
    if isinstance(error, Problem):
        return problem_response(error)
    if isinstance(error, HTTPException):  # there is no path or method for it
        message = f"there is no {path[:80]}" if error.status_code == 404 else error.detail
        return problem_response(Problem(error.status_code, message, error.headers))
    if isinstance(error, RowError):
        return problem_response(Problem(422, str(error), row=error.row, column=error.column))
    if isinstance(error, UnknownId):
        return problem_response(Problem(409, str(error), ids=error.ids[:100]))
    if isinstance(error, LogError):
        return problem_response(Problem(507, f"nothing was learned: {error.strerror}"))
    if isinstance(error, (Busy, StoreError)):
        return problem_response(Problem(503, str(error), {"Retry-After": "1"}))
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)
    if isinstance(error, (ValueError, TypeError)):  # what the model itself says about the rows
        return problem_response(Problem(422, str(error)))
    if isinstance(error, MemoryError):
        return problem_response(Problem(503, "there is not enough memory for this request"))
    logger.error("a request to %s failed", path, exc_info=error)
    return problem_response(
        Problem(500, "internal error: look in the server's log for the X-Request-ID of this response")
    )


def problem_response(problem: Problem) -> Response:
    """The problem as a response."""
    content = msgspec.json.encode(problem.content)
    return Response(content, problem.status, problem.headers, media_type="application/json")


def _encode_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):  # msgspec writes null for numbers that JSON does not know
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} cannot be written as JSON")


encode = msgspec.json.Encoder(enc_hook=_encode_numpy).encode


def json_response(content: Any, status: int = 200) -> Response:
    """``content`` as a response."""
    return Response(encode(content), status, media_type="application/json")
