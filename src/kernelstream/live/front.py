"""What every request passes first: the checks of token, host and rate, its id, and the count of the responses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import re
import time
from collections import OrderedDict
from itertools import chain
from typing import Any

from .._extra import needs
from .logs import REQUEST
from .logs import requests as logger
from .responses import Problem, check_right, error_response, problem_response
from .rights import LOCAL_GRANT, Grant, Tokens

with needs("serve"):
    from starlette.routing import Router

LOCAL = ("localhost", "127.0.0.1", "::1")
MAX_HEAD_BYTES = 1 << 16  # most bytes of path and headers
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/=+-]{1,128}\Z")  # that is taken from a client


class Rates:
    """Limits a client to ``rate`` requests a second on average, and as many at once (a token bucket per address).

    Parameters
    ----------
    rate : float or None
        None sets no limit.
    """

    def __init__(self, rate: float | None):
        self.rate = rate
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address: tokens, when

    def wait(self, address: str) -> float:
        """Seconds until the request may be made. 0: it may be made now, and is counted."""
        if self.rate is None:
            return 0.0
        now, most = time.monotonic(), max(1.0, self.rate)
        tokens, then = self.buckets.pop(address, (most, now))
        tokens = min(most, tokens + (now - then) * self.rate)
        allowed = tokens >= 1.0
        self.buckets[address] = (tokens - 1.0 if allowed else tokens, now)
        while len(self.buckets) > 10_000:
            self.buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - tokens) / self.rate


class Front:
    """An ASGI application that checks every request, gives it an id, and counts and logs the responses.

    A subclass has the ``router``, ``quick``, and ``count``, which is called with the route and the status of every
    response.

    Parameters
    ----------
    tokens : Tokens or None
        One of them must come with every request, as ``Authorization: Bearer TOKEN``, except those for the page and for
        the state of the server.
    local : bool
        Without a token, answer only requests that name this machine as their host, so that a page of another site
        cannot reach a server under a host name of its own (DNS rebinding).
    rate : float or None
        Requests a second that one address may make.
    """

    OPEN = ("/", "/health", "/live", "/ready")
    router: Router
    quick: dict[str, Any]  # coroutines that need no router, by the last part of a path below /models/NAME

    def __init__(self, tokens: Tokens | None, local: bool, rate: float | None):
        self.tokens, self.local, self.rates = tokens, local and tokens is None, Rates(rate)

    def count(self, route: str, status: int) -> None:
        """Count a response."""
        raise NotImplementedError

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["app"] = self
        if scope["type"] != "http":
            await self.router(scope, receive, send)
            return
        headers, started, status = dict(scope["headers"]), time.perf_counter(), 0
        name = headers.get(b"x-request-id", b"")
        if not REQUEST_ID.match(name):
            name = b"%016x" % random.getrandbits(64)
        REQUEST.set(name.decode())

        async def counted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name)]
                self.count(scope.get("quick") or getattr(scope.get("route"), "path", "other"), status)
            await send(message)

        try:
            await self._answer(scope, headers, receive, counted)
        except asyncio.CancelledError:  # the server shuts down and waits no longer
            problem = Problem(503, "the server is shutting down: unanswered calls may or may not have been learned")
            with contextlib.suppress(RuntimeError):  # the response has begun
                await problem_response(problem)(scope, receive, counted)
        except Exception as error:
            if status:  # the response has begun
                raise
            await error_response(error, scope["path"])(scope, receive, counted)
        if logger.isEnabledFor(logging.INFO):
            facts = {"method": scope["method"], "path": scope["path"], "status": status}
            facts |= {"seconds": round(time.perf_counter() - started, 6), "client": (scope.get("client") or [None])[0]}
            logger.info("%s %s: %d", scope["method"], scope["path"], status, extra=facts)

    async def _answer(self, scope: Any, headers: dict[bytes, bytes], receive: Any, send: Any) -> None:
        path = scope["path"]
        last = path[path.rfind("/") + 1 :]
        quick = self.quick.get(last) if scope["method"] == "POST" else None
        self._admit(scope, headers)
        if quick is None or not path.startswith("/models/") or path.count("/") != 3:
            await self.router(scope, receive, send)
            return
        scope["quick"], name = f"/models/{{name}}/{last}", path.split("/")[2]
        check_right(scope["grant"], last, name)
        response = await quick(name, scope, headers, receive)
        await response(scope, receive, send)

    def _admit(self, scope: Any, headers: dict[bytes, bytes]) -> None:
        size = sum(map(len, chain.from_iterable(scope["headers"])))
        if size + len(scope["raw_path"]) > MAX_HEAD_BYTES:
            raise Problem(431, f"path and headers have at most {MAX_HEAD_BYTES:,} bytes", {"Connection": "close"})
        host = headers.get(b"host", b"").decode("latin-1").rsplit(":", 1)
        name = host[0].strip("[]") if len(host) == 1 or host[1].isdigit() else ":".join(host).strip("[]")
        if self.local and name not in LOCAL:
            raise Problem(403, "this server only answers requests to localhost")
        wait = self.rates.wait((scope.get("client") or ("", 0))[0])
        if wait:
            raise Problem(429, "too many requests", {"Retry-After": str(max(1, math.ceil(wait)))})
        scope["grant"] = self._grant(headers)
        if scope["grant"] is None and scope["path"] not in self.OPEN:
            raise Problem(
                401, "no token, or a wrong one: send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )

    def _grant(self, headers: dict[bytes, bytes]) -> Grant | None:
        if self.tokens is None:
            return LOCAL_GRANT
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return self.tokens.grant(given.strip()) if kind.lower() == b"bearer" else None
