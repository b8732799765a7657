"""What every request passes first: the checks of token, host and rate, and the count of the responses."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import math
import time
from collections import OrderedDict
from typing import Any

from .responses import Problem, problem_response

LOCAL = ("localhost", "127.0.0.1", "::1")
MAX_HEAD_BYTES = 1 << 16  # most bytes of path and headers


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
    """Checks token, host and rate of every request, and counts the responses.

    Parameters
    ----------
    app : ASGI application
    token : bytes or None
        What every request must bring, except those for the page and for the state of the server.
    local : bool
        Answer only requests that name this machine as their host, so that a page of another site cannot reach a server
        without a token under a host name of its own (DNS rebinding).
    rates : Rates
    quick : dict
        Last part of a path below ``/models/NAME`` to the coroutine that answers it, without a router.
    counts : dict
        ``(route, status)`` to the number of responses; counted here.
    """

    OPEN = ("/", "/health", "/live", "/ready")
    closing: asyncio.Event

    def __init__(
        self, app: Any, token: bytes | None, local: bool, rates: Rates, quick: dict[str, Any], counts: dict[Any, int]
    ):
        self.app, self.token, self.local, self.rates = app, token, local, rates
        self.quick, self.counts = quick, counts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            await self._answer(scope, headers, receive, send)
        except asyncio.CancelledError:  # the server shuts down and waits no longer
            problem = Problem(503, "the server shuts down: what it has not answered may or may not have been learned")
            with contextlib.suppress(RuntimeError):  # the response has begun
                await problem_response(problem)(scope, receive, send)

    async def _answer(self, scope: Any, headers: dict[bytes, bytes], receive: Any, send: Any) -> None:
        try:
            self._admit(scope, headers)
        except Problem as problem:
            self._count(scope, problem.status)
            await problem_response(problem)(scope, receive, send)
            return

        path = scope["path"]
        quick = self.quick.get(path[path.rfind("/") :]) if scope["method"] == "POST" else None
        if quick is not None and path.startswith("/models/") and path.count("/") == 3:  # no router needed
            response = await quick(path.split("/")[2], headers, receive)
            self.counts[quick.route, response.status_code] = self.counts.get((quick.route, response.status_code), 0) + 1
            await response(scope, receive, send)
            return

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"])
            await send(message)

        await self.app(scope, receive, counted)

    def _admit(self, scope: Any, headers: dict[bytes, bytes]) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"]) > MAX_HEAD_BYTES:
            raise Problem(431, f"path and headers have at most {MAX_HEAD_BYTES:,} bytes", {"Connection": "close"})
        host = headers.get(b"host", b"").decode("latin-1").rsplit(":", 1)
        name = host[0].strip("[]") if len(host) == 1 or host[1].isdigit() else ":".join(host).strip("[]")
        if self.local and name not in LOCAL:
            raise Problem(403, "this server answers to localhost only")
        wait = self.rates.wait((scope.get("client") or ("", 0))[0])
        if wait:
            raise Problem(429, "too many requests", {"Retry-After": str(max(1, math.ceil(wait)))})
        scope["trusted"] = self._trusts(headers)
        if not scope["trusted"] and scope["path"] not in self.OPEN:
            raise Problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def _trusts(self, headers: dict[bytes, bytes]) -> bool:
        if self.token is None:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return hmac.compare_digest(given.strip(), self.token) and kind.lower() == b"bearer"

    def _count(self, scope: Any, status: int) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self.counts[route, status] = self.counts.get((route, status), 0) + 1
