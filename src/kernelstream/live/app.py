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
from .front import Front, Rates
from .learner import DurableLearner
from .metrics import Times, metrics_text
from .predictions import predictions, warnings_about
from .requests import BODY, Learn, Nothing, Predict, Rollback, read
from .responses import Problem, answered, encode, guarded, json_response
from .rows import wrong_cells
from .store import Store
from .watch import Watch

with needs("serve"):
    import msgspec
    from anyio import to_thread
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

INLINE = 256  # rows that are predicted at once; more go to another thread, so that other requests need not wait


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
        self.watch = Watch(store)
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
        asked: Predict = await read(headers, receive, self._predict, self.body)
        learner = await self._awake(name)
        try:
            if len(asked.rows) > INLINE:
                answer = await to_thread.run_sync(predictions, learner, asked)
            else:
                answer = predictions(learner, asked)
        finally:
            self.store.release(name)
        self.times["predict"].add(time.perf_counter() - started)
        return encode(answer)

    @answered("/models/{name}/learn")
    async def learn(self, name: str, headers: dict[bytes, bytes], receive: Any) -> Any:
        """Learn rows; they are in the log when the answer goes out."""
        started = time.perf_counter()
        told: Learn = await read(headers, receive, self._learn, self.body)
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
            content["warnings"] = warnings_about(wrong)
        return encode(content)

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
        name, learner = await self._acquire(request)
        try:
            return json_response({"acknowledged": await to_thread.run_sync(learner.acknowledge)})
        finally:
            self.store.release(name)

    async def _change(self, request: Request, change: Callable[[DurableLearner], int]) -> Response:
        name, learner = await self._acquire(request)
        try:
            return json_response({"version": await to_thread.run_sync(change, learner)})
        except ValueError as error:
            raise Problem(409, str(error)) from None
        finally:
            self.store.release(name)

    async def models(self, request: Request) -> Response:
        """All models; with its key, where a model is for one."""
        awake = set(self.store.awake())
        key = {name: {"key": text} for name, text in self.store.keys().items()}
        found = [{"name": name, "awake": name in awake} | key.get(name, {}) for name in self.store.names()]
        return json_response({"models": found})

    async def model(self, request: Request) -> Response:
        """What a model is and how well it does."""
        name, learner = await self._acquire(request)
        try:
            return json_response({"name": name} | await to_thread.run_sync(learner.describe))
        finally:
            self.store.release(name)

    async def health(self, request: Request) -> Response:
        """Whether all is well; only clients with the token are told the problems."""
        about = self.store.health()
        if not request.app.state.open and "authorization" not in request.headers:
            about = {"status": about["status"]}
        return json_response(about, 200 if about["status"] == "ok" else 503)

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

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(store.close)

    application = Application(store, body)
    app = Starlette(routes=application.routes(), lifespan=life)
    app.state.open = token is None
    secret = None if token is None else token.encode()
    front = Front(app, secret, local and token is None, Rates(rate), application.quick(), application.counts)
    front.closing = application.watch.closing
    return front
