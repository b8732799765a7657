"""The HTTP front: an ASGI application over a store of durable learners.

Bodies are JSON. What is wrong with a request is answered by ``{"error": ..., "row": ..., "column": ...}`` and leaves
everything as it was. Names from the network are looked up among those that are known, and go nowhere else.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import logging
import math
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .. import __version__
from ._extra import needs
from .answers import Busy, StoreError, UnknownId
from .learner import DurableLearner
from .log import LogError
from .rows import RowError, as_rows, wrong_cells
from .store import Store

with needs("serve"):
    import msgspec
    from anyio import to_thread
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

BODY = 16 << 20  # bytes of a request
INLINE = 256  # rows that are predicted at once; more go to another thread, so that other requests need not wait
WATCHERS = 64  # pages that may watch at a time
LOCAL = ("localhost", "127.0.0.1", "::1")
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds, of the times of answers

logger = logging.getLogger("kernelstream.live")

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


class Problem(Exception):
    """An answer that says what is wrong."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **more: Any):
        super().__init__(message)
        self.status, self.headers = status, headers
        self.content = {"error": message} | {key: value for key, value in more.items() if value is not None}


class Rates:
    """Requests a client may make: so many a second on average, and as many at once (a token bucket for each address).

    Parameters
    ----------
    rate : float or None
        None sets no limit.
    """

    def __init__(self, rate: float | None):
        self.rate = rate
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address: tokens, when

    def wait(self, address: str) -> float:
        """Seconds until the request may be made; 0 when it may now, and then it counts."""
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
    """What stands before the application: token, host, rate, and the count of the answers.

    Parameters
    ----------
    app : ASGI application
    token : bytes or None
        What every request must bring, but those for the page and its health.
    local : bool
        Answer only requests that name this machine as their host, so that no web page can be made to ask in another
        name; for a server without a token.
    """

    OPEN = ("/", "/health")
    closing: asyncio.Event

    def __init__(self, app: Any, token: bytes | None, local: bool, rates: Rates, application: Application):
        self.app, self.token, self.local, self.rates, self.counts = app, token, local, rates, application.counts
        self.quick = {"/predict": application.predict, "/learn": application.learn}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            self._admit(scope, headers)
        except Problem as problem:
            self._count(scope, problem.status)
            await _problem(problem)(scope, receive, send)
            return

        path = scope["path"]
        quick = self.quick.get(path[path.rfind("/") :]) if scope["method"] == "POST" else None
        if quick is not None and path.startswith("/models/") and path.count("/") == 3:  # no need of a router
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
        host = headers.get(b"host", b"").decode("latin-1").rsplit(":", 1)
        name = host[0].strip("[]") if len(host) == 1 or host[1].isdigit() else ":".join(host).strip("[]")
        if self.local and name not in LOCAL:
            raise Problem(403, "this server answers to localhost only")
        wait = self.rates.wait((scope.get("client") or ("", 0))[0])
        if wait:
            raise Problem(429, "too many requests", {"Retry-After": str(max(1, math.ceil(wait)))})
        if self.token is not None and scope["path"] not in self.OPEN:
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            if not hmac.compare_digest(given.strip(), self.token) or kind.lower() != b"bearer":
                raise Problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def _count(self, scope: Any, status: int) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self.counts[route, status] = self.counts.get((route, status), 0) + 1


class Times:
    """How long answers took, as Prometheus wants to know it."""

    def __init__(self) -> None:
        self.counts, self.sum, self.n = [0] * len(BOUNDS), 0.0, 0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.sum += seconds
        self.n += 1
        place = bisect_left(BOUNDS, seconds)
        if place < len(BOUNDS):
            self.counts[place] += 1

    def lines(self, name: str) -> list[str]:
        """In Prometheus' words."""
        found = [f'{name}_bucket{{le="{bound}"}} {n}' for bound, n in zip(BOUNDS, accumulate(self.counts))]
        return [f"# TYPE {name} histogram", *found, f'{name}_bucket{{le="+Inf"}} {self.n}', f"{name}_sum {self.sum!r}",
                f"{name}_count {self.n}"]  # fmt: skip


class _Content:
    """JSON on its way out, without what a response of Starlette can do besides."""

    status_code = 200

    def __init__(self, content: bytes):
        self.content = content

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        size = str(len(self.content)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.content})


def _answered(route: str) -> Any:
    """Decorator of a method of :class:`Application` that makes JSON: it becomes a response, and its errors too."""

    def made(method: Any) -> Any:
        @functools.wraps(method)
        async def answer(self: Any, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
            try:
                return _Content(await method(self, name, headers, receive))
            except Exception as error:
                return _told(error, route)

        answer.route = route  # type: ignore[attr-defined]
        return answer

    return made


class Application:
    """The endpoints.

    Parameters
    ----------
    store : Store
    body : int
        Most bytes of a request.
    """

    def __init__(self, store: Store, body: int = BODY):
        self.store, self.body = store, body
        self.counts: dict[Any, int] = {}
        self.times = {"predict": Times(), "learn": Times()}
        self.watchers = 0
        self.closing = asyncio.Event()  # pages that watch are sent home when the server goes
        self._predict = msgspec.json.Decoder(Predict)
        self._learn = msgspec.json.Decoder(Learn)
        self._rollback = msgspec.json.Decoder(Rollback)
        self._nothing = msgspec.json.Decoder(Nothing)
        self._encode = msgspec.json.Encoder(enc_hook=_encode_numpy).encode
        self._page = resources.files(__package__).joinpath("page.html").read_bytes()

    def routes(self) -> list[Route]:
        """Paths and what answers them; :class:`Front` sees to ``predict`` and ``learn`` by itself."""
        listed: list[tuple[str, Callable[[Request], Awaitable[Response]], str]] = [
            ("/models/{name}/predict", self.not_here, "POST"),
            ("/models/{name}/learn", self.not_here, "POST"),
            ("/models/{name}/promote", self.promote, "POST"),
            ("/models/{name}/rollback", self.rollback, "POST"),
            ("/models/{name}", self.model, "GET"),
            ("/models", self.models, "GET"),
            ("/metrics", self.metrics, "GET"),
            ("/health", self.health, "GET"),
            ("/events", self.events, "GET"),
            ("/openapi.json", self.openapi, "GET"),
            ("/", self.page, "GET"),
        ]
        return [Route(path, _guarded(answer), methods=[method]) for path, answer, method in listed]

    async def not_here(self, request: Request) -> Response:
        """Requests that :class:`Front` answers, under a name that none has."""
        raise Problem(404, f"there is no model {request.path_params['name'][:80]!r}")

    # ---------------------------------------------------------------- learning and predicting
    @_answered("/models/{name}/predict")
    async def predict(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
        """Predictions by the readers' copy of the model."""
        started = time.perf_counter()
        asked: Predict = await self._content(headers, receive, self._predict)
        learner = await self._awake(name)
        try:
            if len(asked.rows) > INLINE:
                answer = await to_thread.run_sync(_predicted, learner, asked)
            else:
                answer = _predicted(learner, asked)
        finally:
            self.store.release(name)
        self.times["predict"].add(time.perf_counter() - started)
        return self._encode(answer)

    @_answered("/models/{name}/learn")
    async def learn(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
        """Learn rows; they are in the log when the answer goes out."""
        started = time.perf_counter()
        told: Learn = await self._content(headers, receive, self._learn)
        learner = await self._awake(name)
        try:
            if told.rows is None and told.ids is None:
                raise Problem(422, "learn needs rows, or ids of rows that were predicted")
            answer = await asyncio.wrap_future(learner.learn_soon(told.rows, told.y, told.ids))
            wrong = wrong_cells(told.rows, learner.view.model)
        finally:
            self.store.release(name)
        self.times["learn"].add(time.perf_counter() - started)
        content: dict[str, Any] = {"learned": answer.learned, "total": answer.total, "version": answer.version}
        if answer.repeated:
            content["repeated"] = answer.repeated
        if wrong:
            content["warnings"] = _warnings(wrong)
        return self._encode(content)

    async def promote(self, request: Request) -> Response:
        """The challenger becomes the champion."""
        await self._body(request, self._nothing)
        return await self._change(request, lambda learner: learner.promote())

    async def rollback(self, request: Request) -> Response:
        """A former version becomes the champion again."""
        asked: Rollback = await self._body(request, self._rollback)
        return await self._change(request, lambda learner: learner.rollback(asked.to))

    async def _change(self, request: Request, change: Callable[[DurableLearner], int]) -> Response:
        name, learner = await self._acquire(request)
        try:
            return self._json({"version": await to_thread.run_sync(change, learner)})
        except ValueError as error:
            raise Problem(409, str(error)) from None
        finally:
            self.store.release(name)

    # ---------------------------------------------------------------- looking
    async def models(self, request: Request) -> Response:
        """All models."""
        awake = set(self.store.awake())
        return self._json({"models": [{"name": name, "awake": name in awake} for name in self.store.names()]})

    async def model(self, request: Request) -> Response:
        """What a model is and how it does."""
        name, learner = await self._acquire(request)
        try:
            return self._json({"name": name} | await to_thread.run_sync(learner.describe))
        finally:
            self.store.release(name)

    async def health(self, request: Request) -> Response:
        """Whether all is well; problems are told to those who have the token."""
        about = self.store.health()
        if not request.app.state.open and "authorization" not in request.headers:
            about = {"status": about["status"]}
        return self._json(about, 200 if about["status"] == "ok" else 503)

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text."""
        return Response(await to_thread.run_sync(self._metrics), media_type="text/plain; version=0.0.4")

    def _metrics(self) -> str:
        lines = ["# TYPE kernelstream_requests_total counter"]
        for (path, status), count in sorted(self.counts.items()):
            lines.append(f'kernelstream_requests_total{{path="{path}",status="{status}"}} {count}')
        for name, times in self.times.items():
            lines += times.lines(f"kernelstream_{name}_seconds")
        kinds = {"rows_learned_total": "counter", "version": "gauge", "healthy": "gauge", "waiting_calls": "gauge"}
        kinds |= {"error_whole": "gauge", "error_recent": "gauge", "log_loss_recent": "gauge", "changes": "gauge"}
        found: dict[str, list[str]] = {kind: [] for kind in kinds}
        for name in self.store.awake():
            with self.store.use(name) as learner:
                health, about = learner.health(), learner.champion.scores.summary()
                values = {
                    "rows_learned_total": learner.total, "version": learner.version,
                    "healthy": int(health["status"] == "ok"), "waiting_calls": health["waiting"],
                    "error_whole": about["whole"], "error_recent": about["recent"],
                    "log_loss_recent": about.get("log_loss_recent"), "changes": len(learner.champion.scores.marks),
                }  # fmt: skip
            for kind, value in values.items():
                if value is not None:
                    found[kind].append(f'kernelstream_{kind}{{model="{name}"}} {value!r}')
        for kind, values_of in found.items():
            lines += [f"# TYPE kernelstream_{kind} {kinds[kind]}", *values_of]
        return "\n".join(lines) + "\n"

    async def events(self, request: Request) -> Response:
        """The state of a model, again and again, as server-sent events."""
        name = request.query_params.get("model") or next(iter(self.store.names()), "")
        if name not in self.store:
            raise Problem(404, f"there is no model {name[:80]!r}")
        if self.watchers >= WATCHERS:
            raise Problem(503, "too many pages are watching", {"Retry-After": "10"})
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
                content = await to_thread.run_sync(self._state, name)
                yield b"event: state\ndata: " + content + b"\n\n"
                sent += 1
                if limit is None or sent < limit:
                    try:
                        await asyncio.wait_for(self.closing.wait(), every)
                        return
                    except TimeoutError:
                        pass
        finally:
            self.watchers -= 1

    def _state(self, name: str) -> bytes:
        with self.store.use(name) as learner:
            about = {"name": name} | learner.describe() | {"picture": learner.champion.scores.picture()}
            rival = learner.challenger
            if rival is not None:
                about["rival"] = rival.scores.picture()
            return self._encode(_finite(about))

    async def page(self, request: Request) -> Response:
        """The page to watch."""
        headers = {
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)

    async def openapi(self, request: Request) -> Response:
        """This interface, for programs."""
        from ._openapi import document

        return self._json(document(__version__))

    # ---------------------------------------------------------------- pieces
    def _json(self, content: Any, status: int = 200) -> Response:
        return Response(self._encode(_finite(content)), status, media_type="application/json")

    async def _body(self, request: Request, decoder: Any) -> Any:
        return await self._content(dict(request.scope["headers"]), request.receive, decoder)

    async def _content(self, headers: dict[bytes, bytes], receive: Any, decoder: Any) -> Any:
        """The body of a request, decoded."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":  # which a page of another site cannot send without being asked
            raise Problem(415, "send JSON, with Content-Type: application/json")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body:
            raise Problem(413, f"a body has at most {self.body:,} bytes")
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.body:
                raise Problem(413, f"a body has at most {self.body:,} bytes")
            more = message.get("more_body", False)
        try:
            return decoder.decode(b"".join(parts) or b"{}")
        except msgspec.ValidationError as error:
            raise Problem(422, str(error)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Problem(400, f"the body is no JSON: {error}") from None

    async def _acquire(self, request: Request) -> tuple[str, DurableLearner]:
        name = request.path_params["name"]
        return name, await self._awake(name)

    async def _awake(self, name: str) -> DurableLearner:
        try:
            if self.store.is_awake(name):
                return self.store.acquire(name)
            return await to_thread.run_sync(self.store.acquire, name)
        except KeyError:
            raise Problem(404, f"there is no model {name[:80]!r}") from None


def make_app(
    store: Store,
    *,
    token: str | None = None,
    local: bool = True,
    body: int = BODY,
    rate: float | None = None,
) -> Any:
    """The ASGI application.

    Parameters
    ----------
    store : Store
        It is closed when the server shuts down.
    token : str, optional
        What requests must bring, as ``Authorization: Bearer TOKEN``.
    local : bool, default=True
        Without a token, answer only requests to localhost.
    body : int
        Most bytes of a request.
    rate : float, optional
        Requests a second that one address may make.
    """
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(store.close)

    application = Application(store, body)
    app = Starlette(routes=application.routes(), lifespan=life)
    app.state.open = token is None
    secret = None if token is None else token.encode()
    front = Front(app, secret, local and token is None, Rates(rate), application)
    front.closing = application.closing
    return front


def _guarded(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint whose errors become answers."""

    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:
            return _told(error, request.url.path)

    return guarded


def _told(error: Exception, path: str) -> Response:
    """The answer that an error becomes."""
    if isinstance(error, Problem):
        return _problem(error)
    if isinstance(error, RowError):
        return _problem(Problem(422, str(error), row=error.row, column=error.column))
    if isinstance(error, UnknownId):
        return _problem(Problem(409, str(error), ids=error.ids[:100]))
    if isinstance(error, LogError):
        return _problem(Problem(507, f"nothing was learned: {error.strerror}"))
    if isinstance(error, (Busy, StoreError)):
        return _problem(Problem(503, str(error), {"Retry-After": "1"}))
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)
    if isinstance(error, (ValueError, TypeError)):  # what the model itself says about the rows
        return _problem(Problem(422, str(error)))
    if isinstance(error, MemoryError):
        return _problem(Problem(503, "there is not enough memory for this request"))
    logger.error("a request to %s failed", path, exc_info=error)
    return _problem(Problem(500, "an error of the server; its log says which"))


def _problem(problem: Problem) -> Response:
    content = msgspec.json.encode(problem.content)
    return Response(content, problem.status, problem.headers, media_type="application/json")


def _predicted(learner: DurableLearner, asked: Predict) -> dict[str, Any]:
    """The answer to a request: predictions, with probabilities and intervals where the model has them."""
    view = learner.view
    X = as_rows(asked.rows, view.model, view.columns)
    if not len(asked.rows):
        return {"predictions": [], "version": view.version}
    answer: dict[str, Any] = {}
    try:
        both = getattr(view.model, "_labels_and_proba", None) if "predict_proba" in view.extras else None
        if both is not None:
            answer["predictions"], answer["probabilities"] = both(X)
        else:
            answer["predictions"] = view.model.predict(X)
            if "predict_proba" in view.extras:
                answer["probabilities"] = np.asarray(view.model.predict_proba(X))
    except NotFittedError:
        raise Problem(409, "the model has not learned a row yet") from None
    if "predict_interval" in view.extras:
        bounds = view.model.predict_interval(X)  # low (n,), high (n,)
        answer["intervals"] = np.column_stack(bounds)
    if "predict_set" in view.extras:
        labels = np.asarray(view.model.classes_)
        answer["sets"] = [labels[row].tolist() for row in np.asarray(view.model.predict_set(X), bool)]
    if asked.ids is not None:
        learner.remember(asked.ids, X)
    answer["version"] = view.version
    wrong = wrong_cells(asked.rows, view.model)
    return answer | {"warnings": _warnings(wrong)} if wrong else answer


def _warnings(wrong: list[tuple[int, str, Any]]) -> list[str]:
    """Sentences about cells that were taken as missing."""
    said = [f"row {i}, column {name!r}: {str(value)[:40]!r} is taken as missing" for i, name, value in wrong[:5]]
    return said + ([f"and {len(wrong) - 5} more cells"] if len(wrong) > 5 else [])


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise Problem(422, f"{text[:40]!r} is no number from {low} to {high:g}")
    return value


def _finite(value: Any) -> Any:
    """The same, with null for numbers that JSON does not know, and lists for arrays."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind != "f" or np.isfinite(value).all() else _finite(value.tolist())
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _encode_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):  # numbers that JSON does not know become null
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} is no JSON")
