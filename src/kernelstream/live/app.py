"""The HTTP front: an ASGI application over a store of durable learners.

Bodies are JSON, or tables (:mod:`.tables`). An error in a request is answered by
``{"error": ..., "row": ..., "column": ...}`` and changes nothing. Names from the network are only looked up
among the known ones, or checked before a model is created under them.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from .. import __version__
from .._extra import needs
from .describe import brief
from .desk import Desk
from .files import file_of, read_model
from .front import Front
from .learner import DurableLearner
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
from .responses import JSONContent, Problem, encode, guarded, json_response
from .rights import Tokens
from .rows import check_names, gaps_of
from .store import Store
from .tables import JSON, READERS
from .watch import StatusPage

with needs("serve"):
    from anyio import to_thread
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, Router

MODEL_FILE_TYPE = b"application/octet-stream"  # the type of a model file
PREDICTION_SECONDS = 30.0  # longest time for a prediction


class Application(Front):
    """The endpoints.

    Parameters
    ----------
    store : Store
        It is closed when the server shuts down.
    tokens, local, rate
        Of :class:`Front`.
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
        super().__init__(tokens, local, rate)
        self.store, self.body, self.rows = store, body, rows
        self.seconds, self.opened = seconds, opened
        self.desk = Desk(store, opened)
        self._health: dict[str, Any] = {"status": "ok", "problems": {}}  # the last known state
        self.measured = Metrics(store.learners, self.desk.waiting_rows)
        self.watch = StatusPage(store)
        self.closing = self.watch.closing  # set when the server shuts down
        self.quick = {"predict": self.predict, "learn": self.learn}
        self.router = Router([*self.routes()], lifespan=self.life)

    @asynccontextmanager
    async def life(self, _: Any) -> AsyncIterator[None]:
        """From the start of the server to its end."""
        await to_thread.run_sync(self.store.health)  # loads what the first request would have to wait for
        yield
        self.desk.close()
        await to_thread.run_sync(self.store.close)

    def listed(self) -> list[tuple[str, Callable[..., Any], str, str | None]]:
        """Paths, what answers them, by which method, and the right that it takes."""
        watch = self.watch
        return [
            ("/models/{name}/predict", self.predict, "POST", "predict"),
            ("/models/{name}/learn", self.learn, "POST", "learn"),
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
        """The routes; :class:`Front` sees to ``predict`` and ``learn``, unless the path ends with a newline."""
        for path, answer, method, right in self.listed():
            called = self.not_here if answer in self.quick.values() else answer
            yield Route(path, guarded(called, right), methods=[method])

    def count(self, route: str, status: int) -> None:
        """Count a response."""
        self.measured.responses(route, status).inc()

    def _timed(self, call: str, started: float) -> None:
        taken = time.perf_counter() - started
        self.measured.seconds[call].observe(taken)
        self.watch.recent[call].add(taken)

    async def not_here(self, request: Request) -> Response:
        """The answer to ``/models/NAME/predict%0A``, which the router takes for ``predict``."""
        raise Problem(404, f"there is no {request.url.path[:80]!r}")

    async def predict(self, name: str, scope: Any, headers: dict[bytes, bytes], receive: Any) -> JSONContent:
        """Predictions; with ids, the rows wait for their targets."""
        started = time.perf_counter()
        self._check_name(name)
        asked: Predict = await self._read(scope, headers, receive, Predict)
        answer = await self._in_time(self.desk.ask(name, asked).future, scope)
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
        """The answer; the work is dropped when it takes too long, or the client has left."""
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
        if warnings:
            found["warnings"] = warnings
        return JSONContent(encode(found))

    def _learn_soon(self, name: str, request: Learn) -> tuple[Any, list[str]]:
        """Check the rows and hand them to the learner; the future of its answer, and sentences about the rows."""
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
        return json_response({"challenger": type(getattr(model, "model", model)).__name__})

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
        """How the values of a column, which the query names, were distributed then and now."""
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
        """Whether all is well; the problems are for clients that may look at all models."""
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
        """Prometheus' text."""
        if request.scope["grant"].models is not None:
            raise Problem(403, "this needs a token for all models")
        return Response(await to_thread.run_sync(self.measured.text), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This interface, for programs."""
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
