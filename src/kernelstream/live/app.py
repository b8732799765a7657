"""The HTTP front: an ASGI application over a store of durable learners.

Bodies are JSON. What is wrong with a request is answered by ``{"error": ..., "row": ..., "column": ...}`` and leaves
everything as it was. Names from the network are only looked up among the known ones; they never become a path.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from .. import __version__
from ._extra import needs
from .desk import Desk
from .front import Front, Rates
from .learner import DurableLearner
from .metrics import Times, metrics_text
from .requests import MAX_BODY_BYTES, MAX_ROWS, Learn, Nothing, Predict, Rollback, read
from .responses import Problem, answered, encode, guarded, json_response, unrouted
from .rows import check_names, gaps_of
from .store import Store
from .watch import StatusPage

with needs("serve"):
    import msgspec
    from anyio import to_thread
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

PREDICTION_SECONDS = 30.0  # that a prediction may take
SECONDS_UNWATCHED = 0.1  # seconds after which it is watched whether the client of a prediction is still there


class Application:
    """The endpoints.

    Parameters
    ----------
    store : Store
    body, rows : int
        Most bytes and rows of a request.
    seconds : float
        That a prediction may take.
    opened : bool
        Whether rows may bring columns that a model does not know yet.
    """

    def __init__(
        self,
        store: Store,
        body: int = MAX_BODY_BYTES,
        rows: int = MAX_ROWS,
        seconds: float = PREDICTION_SECONDS,
        opened: bool = False,
    ):
        self.store, self.body, self.rows, self.seconds, self.opened = store, body, rows, seconds, opened
        self.desk = Desk(store, opened)
        self._health: dict[str, Any] = {"status": "ok", "problems": {}}  # as it was known last
        self.counts: dict[Any, int] = {}
        self.times = {"predict": Times(), "learn": Times()}
        self.watch = StatusPage(store)
        self._predict = msgspec.json.Decoder(Predict)
        self._learn = msgspec.json.Decoder(Learn)
        self._rollback = msgspec.json.Decoder(Rollback)
        self._nothing = msgspec.json.Decoder(Nothing)

    def routes(self) -> list[Route]:
        """Paths and what answers them; :class:`Front` sees to ``predict`` and ``learn`` by itself."""
        listed: list[tuple[str, Callable[[Request], Awaitable[Response]], str]] = [
            ("/models/{name}/predict", self.not_here, "POST"),
            ("/models/{name}/learn", self.not_here, "POST"),
            ("/models/{name}/promote", self.promote, "POST"),
            ("/models/{name}/rollback", self.rollback, "POST"),
            ("/models/{name}/acknowledge", self.acknowledge, "POST"),
            ("/models/{name}", self.model, "GET"),
            ("/models", self.models, "GET"),
            ("/metrics", self.metrics, "GET"),
            ("/health", self.health, "GET"),
            ("/live", self.live, "GET"),
            ("/ready", self.ready, "GET"),
            ("/events", self.watch.events, "GET"),
            ("/openapi.json", self.openapi, "GET"),
            ("/", self.watch.page, "GET"),
        ]
        return [Route(path, guarded(answer), methods=[method]) for path, answer, method in listed]

    def quick(self) -> dict[str, Any]:
        """What :class:`Front` answers by itself: the two paths that must be fast."""
        return {"/predict": self.predict, "/learn": self.learn}

    async def not_here(self, request: Request) -> Response:
        """``predict`` and ``learn`` reach the router only under a name that no model can have."""
        raise Problem(404, f"there is no model {request.path_params['name'][:80]!r}")

    @answered("/models/{name}/predict")
    async def predict(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
        """Predictions by the readers' copy of the model."""
        started = time.perf_counter()
        asked: Predict = await read(headers, receive, self._predict, self.body, self.rows)
        self._check_name(name)
        answer = await self._in_time(self.desk.ask(name, asked).future, receive)
        self.times["predict"].add(time.perf_counter() - started)
        return answer

    async def _in_time(self, future: asyncio.Future[Any], receive: Any) -> bytes:
        """The answer; the work is dropped when it takes too long, or the client has left."""
        loop, watching = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        watch = loop.call_later(
            min(SECONDS_UNWATCHED, self.seconds),
            lambda: watching.add(loop.create_task(self._watch(future, receive))),
        )
        try:
            answer: bytes = await future
            return answer
        finally:
            watch.cancel()
            for task in watching:
                task.cancel()

    async def _watch(self, future: asyncio.Future[Any], receive: Any) -> None:
        """End the wait for an answer when there is nobody to get it, or time is over."""
        try:
            async with asyncio.timeout(max(0.0, self.seconds - SECONDS_UNWATCHED)):
                while (await receive())["type"] != "http.disconnect":
                    pass
            error: Exception = ClientDisconnect()
        except TimeoutError:
            message = f"the prediction took more than {self.seconds:g} seconds: send fewer rows, or try again later"
            error = Problem(503, message, {"Retry-After": "1"})
        if not future.done():
            future.set_exception(error)

    @answered("/models/{name}/learn")
    async def learn(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
        """Learn rows; they are in the log when the answer goes out."""
        started = time.perf_counter()
        request: Learn = await read(headers, receive, self._learn, self.body, self.rows)
        self._check_name(name)
        if request.rows is None and request.ids is None:
            raise Problem(422, "learn needs rows, or ids of rows that were predicted")
        future, warnings = await self.desk.run(self._learn_soon, name, request)
        answer = await asyncio.wrap_future(future)
        self.times["learn"].add(time.perf_counter() - started)
        content: dict[str, Any] = {"learned": answer.learned, "total": answer.total, "version": answer.version}
        if answer.repeated:
            content["repeated"] = answer.repeated
        if warnings:
            content["warnings"] = warnings
        return encode(content)

    def _learn_soon(self, name: str, request: Learn) -> tuple[Any, list[str]]:
        """Check the rows and hand them to the learner; the future of its answer, and sentences about the rows."""
        with self.store.use(name) as learner:
            view = learner.view
            check_names(request.rows, view.model, view.columns, self.opened)
            warnings = gaps_of(request.rows, view.model).warnings()
            return learner.learn_soon(request.rows, request.y, request.ids), warnings

    async def promote(self, request: Request) -> Response:
        """The challenger becomes the champion."""
        await self._body(request, self._nothing)
        return await self._change(request, lambda learner: learner.promote())

    async def rollback(self, request: Request) -> Response:
        """A former version becomes the champion again."""
        asked: Rollback = await self._body(request, self._rollback)
        return await self._change(request, lambda learner: learner.rollback(asked.to))

    async def acknowledge(self, request: Request) -> Response:
        """The operator has seen which calls are lost."""
        await self._body(request, self._nothing)
        return json_response({"acknowledged": await self._with(request, DurableLearner.acknowledge)})

    async def _change(self, request: Request, change: Callable[[DurableLearner], int]) -> Response:
        try:
            return json_response({"version": await self._with(request, change)})
        except ValueError as error:
            raise Problem(409, str(error)) from None

    async def models(self, request: Request) -> Response:
        """All models; with its key, where a model is for one."""
        awake = set(self.store.awake())
        key = {name: {"key": text} for name, text in self.store.keys().items()}
        found = [{"name": name, "awake": name in awake} | key.get(name, {}) for name in self.store.names()]
        return json_response({"models": found})

    async def model(self, request: Request) -> Response:
        """What a model is and how well it does."""
        return json_response({"name": request.path_params["name"]} | await self._with(request, DurableLearner.describe))

    async def health(self, request: Request) -> Response:
        """Whether all is well; the problems are for clients with the token only."""
        self._health = self.store.health(wait=False) or self._health
        about = self._health if request.scope["trusted"] else {"status": self._health["status"]}
        return json_response(about, 200 if about["status"] == "ok" else 503)

    async def live(self, request: Request) -> Response:
        """That the server answers."""
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether it takes requests: not once it shuts down."""
        closing = self.watch.closing.is_set()
        return json_response({"status": "closing" if closing else "ok"}, 503 if closing else 200)

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text."""
        text = await to_thread.run_sync(metrics_text, self.store, self.counts, self.times)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This interface, for programs."""
        from ._openapi import document

        return json_response(document(__version__))

    async def _body(self, request: Request, decoder: Any) -> Any:
        return await read(dict(request.scope["headers"]), request.receive, decoder, self.body)

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


def make_app(
    store: Store,
    *,
    token: str | None = None,
    local: bool = True,
    rate: float | None = None,
    **limits: Any,
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
    rate : float, optional
        Requests a second that one address may make.
    **limits
        Of :class:`Application`.
    """

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        await to_thread.run_sync(store.health)  # loads what the first request would have to wait for
        yield
        application.desk.close()
        await to_thread.run_sync(store.close)

    application = Application(store, **limits)
    app = Starlette(routes=application.routes(), lifespan=life, exception_handlers={HTTPException: unrouted})
    secret = None if token is None else token.encode()
    front = Front(app, secret, local and token is None, Rates(rate), application.quick(), application.counts)
    front.closing = application.watch.closing
    return front
