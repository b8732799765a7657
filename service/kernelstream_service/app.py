"""The HTTP front: an ASGI application over a store of durable learners.

Bodies are JSON, or tables (:mod:`.tables`). An error in a request is answered by
``{"error": ..., "row": ..., "column": ...}`` and changes nothing. Names from the network are only looked up
among the known ones, or checked before a model is created under them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import chain
from typing import Any
from urllib.parse import parse_qs

from kernelstream import __version__
from kernelstream.innermost import innermost

from .describe import brief
from .desk import Desk
from .extras import needs
from .learner import DurableLearner, file_of, read_model
from .logs import REQUEST
from .logs import requests as logger
from .metrics import Metrics
from .requests import (
    BYTES_PER_STEP,
    MAX_BODY_BYTES,
    MAX_ROWS,
    Learn,
    Nothing,
    Policy,
    Predict,
    Rollback,
    content,
    kind_of,
)  # fmt: skip
from .responses import (
    JSONContent,
    Problem,
    check_right,
    encode,
    error_response,
    guarded,
    json_response,
    problem_response,
)  # fmt: skip
from .rights import LOCAL_GRANT, Grant, Rates, Tokens
from .rows import check_names, gaps_of
from .store import Store
from .tables import JSON, READERS
from .watch import StatusPage

with needs("serve"):
    from anyio import to_thread
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, Router

LOCAL = ("localhost", "127.0.0.1", "::1")
OPEN = ("/", "/health", "/live", "/ready")  # paths that need no token
MAX_HEAD_BYTES = 1 << 16  # most bytes of path and headers
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/=+-]{1,128}\Z")  # that is taken from a client
MODEL_FILE_TYPE = b"application/octet-stream"  # the type of a model file
PREDICTION_SECONDS = 30.0  # longest time for a prediction


class Application:
    """Checks every request, gives it an id, answers it, and counts and logs the response.

    Parameters
    ----------
    store : Store
        It is closed when the server shuts down.
    tokens : Tokens, optional
        One of them must come with every request, as ``Authorization: Bearer TOKEN``, except those for the page and for
        the state of the server.
    local : bool
        Without a token, answer only requests that name this machine as their host, so that a page of another site
        cannot reach a server under a host name of its own (DNS rebinding).
    rate : float, optional
        Requests a second that one address may make.
    body, rows : int
        Largest number of bytes and of rows in a request.
    seconds : float
        Longest time for a prediction.
    opened : bool
        Whether rows may bring columns that a model does not know yet.
    """

    def __init__(
        self,
        store: Store,
        tokens: Tokens | None = None,
        local: bool = True,
        rate: float | None = None,
        body: int = MAX_BODY_BYTES,
        rows: int = MAX_ROWS,
        seconds: float = PREDICTION_SECONDS,
        opened: bool = False,
    ):
        self.tokens, self.local, self.rates = tokens, local and tokens is None, Rates(rate)
        self.store, self.body, self.rows = store, body, rows
        self.seconds, self.opened = seconds, opened
        self.desk = Desk(store, opened)
        self._health: dict[str, Any] = {"status": "ok", "problems": {}}  # the last known state
        self.measured = Metrics(store.learners, self.desk.waiting_rows)
        self.watch = StatusPage(store)
        self.closing = self.watch.closing  # set when the server shuts down
        # without the router, below /models/NAME; with the right that they need
        self.quick = {
            "predict": (self.predict, "predict"),
            "forecast": (self.forecast, "predict"),
            "learn": (self.learn, "learn"),
        }
        self.router = Router([*self.routes()], lifespan=self.life)

    @contextlib.asynccontextmanager
    async def life(self, _: Any) -> AsyncIterator[None]:
        """From the start of the server to its end."""
        await to_thread.run_sync(self.store.health)  # loads what the first request would have to wait for
        yield
        self.desk.close()
        await to_thread.run_sync(self.store.close)

    def listed(self) -> list[tuple[str, Callable[..., Any], str, str | None]]:
        """Paths, their endpoints, methods, and the rights that they need."""
        watch = self.watch
        return [
            *((f"/models/{{name}}/{call}", answer, "POST", right) for call, (answer, right) in self.quick.items()),
            ("/models/{name}/promote", self.promote, "POST", "operate"),
            ("/models/{name}/rollback", self.rollback, "POST", "operate"),
            ("/models/{name}/acknowledge", self.acknowledge, "POST", "operate"),
            ("/models/{name}/policy", self.policy, "POST", "operate"),
            ("/models/{name}/challenger", self.challenge, "PUT", "administer"),
            ("/models/{name}/challenger", self.end_challenge, "DELETE", "administer"),
            ("/models/{name}/column", self.column, "GET", None),
            ("/models/{name}/file", self.download, "GET", "administer"),
            ("/models/{name}", self.put, "PUT", "administer"),
            ("/models/{name}", self.delete, "DELETE", "administer"),
            ("/models/{name}", self.model, "GET", None),
            ("/models", self.models, "GET", None),
            ("/metrics", self.metrics, "GET", None),
            ("/health", self.health, "GET", None),
            ("/live", self.live, "GET", None),
            ("/ready", self.ready, "GET", None),
            ("/events", watch.events, "GET", None),
            ("/openapi.json", self.openapi, "GET", None),
            ("/", watch.page, "GET", None),
        ]

    def routes(self) -> Iterator[Route]:
        """The routes; those without the router get here only if the path ends with a newline."""
        quick = [answer for answer, _ in self.quick.values()]
        for path, answer, method, right in self.listed():
            called = self.not_here if answer in quick else answer
            yield Route(path, guarded(called, right), methods=[method])

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
                route = scope.get("quick") or getattr(scope.get("route"), "path", "other")
                self.measured.responses(route, status).inc()
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
        answer, right = quick
        check_right(scope["grant"], right, name)
        response = await answer(name, scope, headers, receive)
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
        if scope["grant"] is None and scope["path"] not in OPEN:
            raise Problem(
                401, "no token, or a wrong one: send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )

    def _grant(self, headers: dict[bytes, bytes]) -> Grant | None:
        if self.tokens is None:
            return LOCAL_GRANT
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return self.tokens.grant(given.strip()) if kind.lower() == b"bearer" else None

    def _timed(self, call: str, started: float) -> None:
        taken = time.perf_counter() - started
        self.measured.seconds[call].observe(taken)
        self.watch.recent[call].add(taken)

    async def not_here(self, request: Request) -> Response:
        """The answer to ``/models/NAME/predict%0A``, which the router takes for ``predict``."""
        raise Problem(404, f"there is no {request.url.path[:80]!r}")

    async def forecast(self, name: str, scope: Any, headers: dict[bytes, bytes], receive: Any) -> JSONContent:
        """Predictions for rows each of which is the next one of the stream; with ids, they wait for their targets."""
        return await self.predict(name, scope, headers, receive, following=True)

    async def predict(
        self, name: str, scope: Any, headers: dict[bytes, bytes], receive: Any, following: bool = False
    ) -> JSONContent:
        """Predictions; with ids, the rows wait for their targets."""
        started = time.perf_counter()
        self._check_name(name)
        asked: Predict = await self._read(scope, headers, receive, Predict)
        answer = await self._in_time(self.desk.ask(name, asked, following).future, scope)
        self._timed("predict", started)
        return JSONContent(answer)

    async def _read(self, scope: Any, headers: dict[bytes, bytes], receive: Any, asked: Any) -> Any:
        """What a body holds: JSON, or rows in a table of another type."""
        kind = kind_of(headers)
        if kind not in (READERS if asked in (Predict, Learn) else (JSON,)):
            raise Problem(415, "send JSON, with Content-Type: application/json")
        body = await content(scope, headers, receive, self.body)
        given = body, asked, parse_qs(scope["query_string"].decode("latin-1")), self.rows
        if len(body) <= BYTES_PER_STEP:
            return READERS[kind](*given)
        return await self.desk.run(READERS[kind], *given)

    async def _in_time(self, future: asyncio.Future[bytes], scope: Any) -> bytes:
        """The answer; the work is dropped if it takes too long or the client leaves."""
        scope["answer"] = future  # in which the server notes that the client has left
        timer = future.get_loop().call_later(self.seconds, self._give_up, future)
        try:
            return await future
        finally:
            timer.cancel()

    def _give_up(self, future: asyncio.Future[bytes]) -> None:
        if not future.done():
            message = f"the prediction took more than {self.seconds:g} seconds: send fewer rows, or try again later"
            future.set_exception(Problem(503, message, {"Retry-After": "1"}))

    async def learn(self, name: str, scope: Any, headers: dict[bytes, bytes], receive: Any) -> JSONContent:
        """Learn rows, or targets of rows that were predicted with ids; they are logged before the answer is sent."""
        started = time.perf_counter()
        self._check_name(name)
        request: Learn = await self._read(scope, headers, receive, Learn)
        if request.rows is None and request.ids is None:
            raise Problem(422, "learn needs rows, or the ids of rows that were predicted")
        future, warnings = await self.desk.run(self._learn_soon, name, request)
        answer = await asyncio.wrap_future(future)
        self._timed("learn", started)
        found: dict[str, Any] = {"learned": answer.learned, "total": answer.total, "version": answer.version}
        if answer.repeated:
            found["repeated"] = answer.repeated
        if answer.set_aside:
            rows = "a row" if answer.set_aside == 1 else f"{answer.set_aside} rows"
            warnings = [*warnings, f"{rows} had a target far outside the others so far, and changed nothing"]
        if warnings:
            found["warnings"] = warnings
        return JSONContent(encode(found))

    def _learn_soon(self, name: str, request: Learn) -> tuple[Any, list[str]]:
        """Check the rows and pass them to the learner; returns the future of its answer, and warnings."""
        with self.store.use(name) as learner:
            view = learner.view
            check_names(request.rows, view.model, view.columns, self.opened)
            warnings = gaps_of(request.rows, view.model).warnings()
            return learner.learn_soon(request.rows, request.y, request.ids), warnings

    async def promote(self, request: Request) -> Response:
        """Make the challenger the champion."""
        await self._body(request, Nothing)
        return json_response({"version": await self._changed(request, DurableLearner.promote)})

    async def rollback(self, request: Request) -> Response:
        """Restore a former version."""
        asked: Rollback = await self._body(request, Rollback)
        return json_response({"version": await self._changed(request, lambda learner: learner.rollback(asked.to))})

    async def acknowledge(self, request: Request) -> Response:
        """Mark lost calls as seen by the operator."""
        await self._body(request, Nothing)
        return json_response({"acknowledged": await self._with(request, DurableLearner.acknowledge)})

    async def policy(self, request: Request) -> Response:
        """Set the share of the challenger, and when a former champion is restored automatically."""
        asked: Policy = await self._body(request, Policy)
        await self._with(request, lambda learner: learner.set_policy(asked.share, asked.guard))
        return json_response({"policy": {"share": asked.share, "guard": asked.guard}})

    async def challenge(self, request: Request) -> Response:
        """Make a model file the challenger."""
        model, _ = await self._model_file(request)
        await self._changed(request, lambda learner: learner.challenge(model))
        return json_response({"challenger": type(innermost(model)).__name__})

    async def end_challenge(self, request: Request) -> Response:
        """Remove the challenger."""
        await self._with(request, lambda learner: learner.challenge(None))
        return json_response({"challenger": None})

    async def download(self, request: Request) -> Response:
        """The file of the champion."""
        found = await self._with(request, file_of)
        name = f'attachment; filename="{request.path_params["name"]}.ks"'
        return Response(found, media_type=MODEL_FILE_TYPE.decode(), headers={"Content-Disposition": name})

    async def put(self, request: Request) -> Response:
        """Create a model from a model file, or make the file the champion of an existing one."""
        model, columns = await self._model_file(request)
        name = request.path_params["name"]
        if name in self.store:
            return json_response({"version": await self._changed(request, lambda learner: learner.replace(model))})
        await to_thread.run_sync(self.store.create, name, model, columns)
        return json_response({"version": 1}, 201)

    async def delete(self, request: Request) -> Response:
        """Delete a model and everything it has learned."""
        name = request.path_params["name"]
        self._check_name(name)
        await to_thread.run_sync(self.store.delete, name)
        return json_response({"deleted": name})

    async def _model_file(self, request: Request) -> tuple[Any, list[str] | None]:
        headers = dict(request.scope["headers"])
        if kind_of(headers) != MODEL_FILE_TYPE:
            raise Problem(415, f"send a model file, with Content-Type: {MODEL_FILE_TYPE.decode()}")
        return await to_thread.run_sync(read_model, await content(request.scope, headers, request.receive, self.body))

    async def _changed(self, request: Request, change: Callable[[DurableLearner], Any]) -> Any:
        """:meth:`_with` for a change that the learner may refuse in its present state."""
        try:
            return await self._with(request, change)
        except ValueError as error:
            raise Problem(409, str(error)) from None

    async def models(self, request: Request) -> Response:
        """The models that the token is for, and how well those in memory perform."""
        grant, awake = request.scope["grant"], dict(self.store.learners())
        key = {name: {"key": text} for name, text in self.store.keys().items()}
        found = [
            {"name": name, "awake": name in awake} | key.get(name, {}) | (brief(awake[name]) if name in awake else {})
            for name in self.store.names()
            if grant.may(None, name)
        ]
        return json_response({"models": found})

    async def model(self, request: Request) -> Response:
        """What a model is and how well it performs."""
        return json_response({"name": request.path_params["name"]} | await self._with(request, DurableLearner.describe))

    async def column(self, request: Request) -> Response:
        """How the values of a column, named in the query, are distributed in the first and last rows."""
        name = request.query_params.get("name", "")

        def compared(learner: DurableLearner) -> Any:
            samples = learner.samples
            known = {str(column): column for column in samples.columns()}
            known |= {text: i for i, text in enumerate(learner.view.columns or ()) if i in samples.columns()}
            if name not in known:
                raise Problem(404, f"there is no column {name[:80]!r}")
            return samples.compare(known[name])

        return json_response(await self._with(request, compared))

    async def health(self, request: Request) -> Response:
        """The state of the server; its problems are shown to clients that may see all models."""
        self._health = self.store.health(wait=False) or self._health
        about = self._health
        if self.tokens is not None and self.tokens.problem is not None:
            about = {"status": "degraded", "problems": about["problems"] | {"tokens": self.tokens.problem}}
        grant = request.scope["grant"]
        shown = about if grant is not None and grant.models is None else {"status": about["status"]}
        return json_response(shown, 200 if about["status"] == "ok" else 503)

    async def live(self, request: Request) -> Response:
        """Whether the server is alive."""
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether it takes requests, which ends when it shuts down."""
        closing = self.closing.is_set()
        return json_response({"status": "closing" if closing else "ok"}, 503 if closing else 200)

    async def metrics(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        if request.scope["grant"].models is not None:
            raise Problem(403, "this needs a token for all models")
        return Response(await to_thread.run_sync(self.measured.text), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This interface as an OpenAPI document."""
        from ._openapi import document

        calls = [(path, method, inspect.getdoc(answer) or "") for path, answer, method, _ in self.listed()]
        return json_response(document(__version__, calls))

    async def _body(self, request: Request, asked: Any) -> Any:
        return await self._read(request.scope, dict(request.scope["headers"]), request.receive, asked)

    async def _with(self, request: Request, call: Callable[[DurableLearner], Any]) -> Any:
        """The result of a call with the learner that the path names, in another thread."""
        name = request.path_params["name"]
        self._check_name(name)

        def called() -> Any:
            with self.store.use(name) as learner:
                return call(learner)

        return await to_thread.run_sync(called)

    def _check_name(self, name: str) -> None:
        if name not in self.store:
            raise Problem(404, f"there is no model {name[:80]!r}")
