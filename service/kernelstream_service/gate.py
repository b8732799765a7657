"""What every request passes: limits of its head, its token, its id, its line in the log, its count."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import re
import time
from contextvars import ContextVar
from itertools import chain
from typing import Any

from .extras import needs
from .logs import REQUEST
from .logs import requests as logger
from .problems import Problem, error_response

with needs("serve"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LOCAL = ("localhost", "127.0.0.1", "::1")
OPEN = ("/", "/health", "/live", "/ready")  # paths that need no token
MAX_HEAD_BYTES = 1 << 16  # most bytes of path and headers
HEAD_SECONDS = 10.0  # longest time for the head of a request to arrive
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/=+-]{1,128}\Z")  # that is taken from a client


class Connection(asyncio.Protocol):
    """A connection in front of uvicorn's protocol: hangs up on heads that are late or without an end.

    The server starts every request in the context of the bytes that complete its head, where the application finds the
    connection (:data:`CONNECTION`) and tells it that a request has begun.
    """

    def __init__(self, **options: Any):
        self.inner = HttpToolsProtocol(**options)
        self.eof_received, self.pause_writing = self.inner.eof_received, self.inner.pause_writing  # type: ignore
        self.resume_writing = self.inner.resume_writing  # type: ignore[method-assign]
        self._since: float | None = None  # when a head began that has no end yet
        self._head, self.requests = 0, 0

    def connection_made(self, transport: Any) -> None:
        self._transport, self._loop = transport, asyncio.get_running_loop()
        self._since = self._loop.time()
        self.inner.connection_made(transport)
        self._check = self._loop.call_later(HEAD_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        if not self.requests:
            self._head += len(data)
            if self._head > 0:
                self._since = self._since or self._loop.time()
        before = CONNECTION.set(self)
        try:
            self.inner.data_received(data)
        finally:
            CONNECTION.reset(before)
        if self._head > 2 * MAX_HEAD_BYTES and not self.requests:
            self._transport.close()

    def begun(self, body: bytes) -> None:
        """A request has begun; the bytes of its body, some of which may come after the answer, are no head."""
        self.requests += 1
        self._since, self._head = None, -int(body) if body.isdigit() else 0

    def _look(self) -> None:
        """Hang up if a head is late; a connection has one timer, renewed when it ends, not with each request."""
        late = 0.0 if self._since is None else self._loop.time() - self._since
        if late >= HEAD_SECONDS:
            self._transport.close()
        else:
            self._check = self._loop.call_later(HEAD_SECONDS - late, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        self.inner.connection_lost(exc)


CONNECTION: ContextVar[Connection | None] = ContextVar("connection", default=None)


class Gate:
    """Admits requests, gives each an id, and counts and logs their responses.

    Parameters
    ----------
    app : ASGI application
    service : Service
    """

    def __init__(self, app: Any, service: Any):
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        connection, headers = CONNECTION.get(), dict(scope["headers"])
        if connection is not None:
            connection.begun(headers.get(b"content-length", b""))
        started, status = time.perf_counter(), 0
        name = headers.get(b"x-request-id", b"")
        if not REQUEST_ID.match(name):
            name = b"%016x" % random.getrandbits(64)
        REQUEST.set(name.decode())

        async def counted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name)]
                self.service.measured.responses(scope.get("pattern", "other"), status).inc()
            await send(message)

        scope["header"], scope["app"] = headers, self  # with an application, the router raises what it cannot find
        try:
            self._admit(scope, headers)
            await self.app(scope, receive, counted)
        except asyncio.CancelledError:  # the server shuts down and waits no longer
            problem = Problem(503, "the server is shutting down: unanswered calls may or may not have been learned")
            with contextlib.suppress(RuntimeError):  # the response has begun
                await error_response(problem, "")(scope, receive, counted)
        except Exception as error:
            if status:  # the response has begun
                raise
            await error_response(error, scope["path"])(scope, receive, counted)
        finally:
            if connection is not None:
                connection.requests -= 1
        if logger.isEnabledFor(logging.INFO):
            facts = {"method": scope["method"], "path": scope["path"], "status": status}
            facts |= {"seconds": round(time.perf_counter() - started, 6), "client": (scope.get("client") or [None])[0]}
            logger.info("%s %s: %d", scope["method"], scope["path"], status, extra=facts)

    def _admit(self, scope: Any, headers: dict[bytes, bytes]) -> None:
        size = sum(map(len, chain.from_iterable(scope["headers"])))
        if size + len(scope["raw_path"]) > MAX_HEAD_BYTES:
            raise Problem(431, f"path and headers have at most {MAX_HEAD_BYTES:,} bytes", {"Connection": "close"})
        if self.service.local and not is_local(headers.get(b"host", b"")):
            raise Problem(403, "this server only answers requests to localhost")
        scope["grant"] = self.service.grant(headers)
        if scope["grant"] is None and scope["path"] not in OPEN:
            raise Problem(
                401, "no token, or a wrong one: send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )


@functools.lru_cache(maxsize=128)
def is_local(host: bytes) -> bool:
    """Whether a header Host names this machine."""
    name, _, port = host.decode("latin-1").rpartition(":")
    if not port.isdigit() or not name:
        name = host.decode("latin-1")
    return name.strip("[]") in LOCAL
