"""The page to watch a model on, and the events that keep it up to date."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

from .extras import needs
from .problems import Problem, aside, encode
from .rights import denied

with needs("serve"):
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse

MAX_WATCHERS = 64  # pages that may watch at a time
CLOSING_SECONDS = 0.2  # after which an event stream sees that the server shuts down
SECONDS_KEPT = 300  # of requests that are remembered


class Recent:
    """Requests of the last minutes: how many answers there were in each of the last seconds, and how long they took."""

    def __init__(self) -> None:
        self.seconds: deque[list[float]] = deque(maxlen=SECONDS_KEPT)  # second, answers, sum and largest of their times

    def add(self, taken: float) -> None:
        """Count an answer."""
        now = int(time.time())
        if not self.seconds or self.seconds[-1][0] != now:
            self.seconds.append([now, 0, 0.0, 0.0])
        last = self.seconds[-1]
        last[1] += 1
        last[2] += taken
        last[3] = max(last[3], taken)

    def picture(self) -> list[list[float]]:
        """``[second, answers a second, mean seconds, largest]`` in order; seconds without an answer are left out."""
        return [[at, n, total / n, most] for at, n, total, most in list(self.seconds)]


class StatusPage:
    """The page and its events.

    Parameters
    ----------
    service : Service
        Whose models it shows, and which says when the server shuts down: open event streams then end.
    """

    def __init__(self, service: Any):
        self.service, self.store = service, service.store
        self.recent = {"predict": Recent(), "learn": Recent()}
        self.watchers = 0
        self._page = resources.files(__package__).joinpath("page.html").read_bytes()

    async def events(self, request: Request) -> Response:
        """The state of a model every second or so, as server-sent events."""
        grant = request.scope["grant"]
        first = next((name for name in self.store.names() if grant.may(None, name)), "")
        name = request.query_params.get("model") or first
        if not grant.may(None, name):
            raise denied(None, name)
        if name not in self.store:
            raise Problem(404, f"there is no model {name[:80]!r}")
        if self.watchers >= MAX_WATCHERS:
            raise Problem(503, "too many pages are watching: try again later", {"Retry-After": "10"})
        await self.service.learner(name)
        every = _number(request.query_params.get("every", "1"), 0.1, 60.0)
        limit = int(_number(request.query_params.get("count", "0"), 0, 1e9)) or None
        return StreamingResponse(
            self._events(name, every, limit), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _events(self, name: str, every: float, limit: int | None) -> AsyncIterator[bytes]:
        self.watchers += 1
        sent = 0
        try:
            while limit is None or sent < limit:
                await self.service.learner(name)
                content = await aside(self._state, name)
                yield b"event: state\ndata: " + content + b"\n\n"
                sent += 1
                until = time.monotonic() + every
                while (left := until - time.monotonic()) > 0 and sent != limit:
                    await asyncio.sleep(min(left, CLOSING_SECONDS))
                    if self.service.closing():
                        return
        finally:
            self.watchers -= 1

    def _state(self, name: str) -> bytes:
        with self.store.use(name) as learner:
            champions = learner.champions
            about = {"name": name} | learner.describe() | {"picture": champions.champion.scores.picture()}
            about["clock"] = [*champions.clock.times, (time.time(), champions.total)]
            about["requests"] = {call: recent.picture() for call, recent in self.recent.items()}
            rival = champions.challenger
            if rival is not None:
                about["rival"] = rival.scores.picture()
            return encode(about)

    async def page(self, request: Request) -> Response:
        """The page to watch models on."""
        headers = {
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise Problem(422, f"{text[:40]!r} is not a number from {low} to {high:g}")
    return value
