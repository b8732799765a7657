"""The HTTP front: routes of Starlette to a store of durable learners.

Bodies are JSON. An error in a request is answered by
``{"error": ..., "row": ..., "column": ...}`` and changes nothing. Names from the network are only looked up
among the known ones, or checked before a model is created under them. Nothing that takes time is done in the event
loop: learners wake, and work, in other threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kernelstream import __version__
from kernelstream.innermost import innermost

from .extras import needs
from .gate import Gate
from .learner import DurableLearner, file_of, read_model
from .metrics import Metrics
from .predictions import Desk
from .problems import Problem, aside, encode, error_response, json_response, result_of
from .rights import LOCAL_GRANT, Tokens, denied
from .rows import gaps_in, warnings
from .schemas import (
    MAX_BODY_BYTES,
    MAX_ROWS,
    MODEL_FILE,
    Acknowledged,
    Learn,
    Nothing,
    Predict,
    Predictions,
    Rollback,
    Taught,
    Version,
    asked,
    document,
    model_file,
)
from .store import Store, check_name
from .watch import StatusPage

with needs("serve"):
    from anyio import to_thread
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, Router

PREDICTION_SECONDS = 30.0  # longest time for a prediction
WAKE_SECONDS = 20.0  # that a request waits for a learner that wakes
FEW_ROWS = 64  # that are checked in the event loop
WAKERS = 2  # learners that wake at a time
THREADS = 6  # beside the event loop; each keeps the memory of the largest model that it has held

Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """A path: what answers it, the right that it needs for the model it names, and what OpenAPI says of its bodies."""

    path: str
    answer: Answer
    method: str
    right: str | None
    asked: Any = None
    answered: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["pattern"] = self.path
        name = scope["path_params"].get("name")
        if name is not None and not scope["grant"].may(self.right, name):
            raise denied(self.right, name)
        response = await self.answer(Request(scope, receive))
        await response(scope, receive, send)


class Service:
    """What the paths answer.

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
        body: int = MAX_BODY_BYTES,
        rows: int = MAX_ROWS,
        seconds: float = PREDICTION_SECONDS,
        opened: bool = False,
    ):
        self.store, self.tokens, self.local = store, tokens, local and tokens is None
        self.body, self.rows, self.opened = body, rows, opened
        self.started: Callable[[], Any] = bool  # called when the server starts
        self.closing: Callable[[], bool] = bool  # whether it shuts down
        self.desk = Desk(opened, seconds)
        self.measured = Metrics(store.learners, lambda: self.desk.waiting_rows)
        self.watch = StatusPage(self)
        self._waking: dict[str, asyncio.Future[str | None]] = {}
        self._wakers = ThreadPoolExecutor(WAKERS, "waking")
        self.endpoints = [
            Endpoint("/models/{name}/predict", self.predict, "POST", "predict", Predict, Predictions),
            Endpoint("/models/{name}/learn", self.learn, "POST", "learn", Learn, Taught),
            Endpoint("/models/{name}/forecast", self.forecast, "POST", "predict", Predict, Predictions),
            Endpoint("/models/{name}/promote", self.promote, "POST", "operate", Nothing, Version),
            Endpoint("/models/{name}/rollback", self.rollback, "POST", "operate", Rollback, Version),
            Endpoint("/models/{name}/acknowledge", self.acknowledge, "POST", "operate", Nothing, Acknowledged),
            Endpoint("/models/{name}/challenger", self.challenge, "PUT", "administer"),
            Endpoint("/models/{name}/challenger", self.end_challenge, "DELETE", "administer"),
            Endpoint("/models/{name}/file", self.download, "GET", "administer"),
            Endpoint("/models/{name}", self.put, "PUT", "administer", None, Version),
            Endpoint("/models/{name}", self.delete, "DELETE", "administer"),
            Endpoint("/models/{name}", self.model, "GET", None),
            Endpoint("/models", self.models, "GET", None),
            Endpoint("/metrics", self.metrics, "GET", None),
            Endpoint("/health", self.health, "GET", None),
            Endpoint("/live", self.live, "GET", None),
            Endpoint("/ready", self.ready, "GET", None),
            Endpoint("/events", self.watch.events, "GET", None),
            Endpoint("/openapi.json", self.openapi, "GET", None),
            Endpoint("/", self.watch.page, "GET", None),
        ]

    def application(self) -> Gate:
        """The application: routes behind the gate, which answers errors, too."""
        routes = [Route(one.path, one, methods=[one.method]) for one in self.endpoints]
        return Gate(Router(routes, lifespan=self._life), self)

    @contextlib.asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        """From the start of the server to its end."""
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        self.started()
        yield
        self.desk.close()
        self._wakers.shutdown(wait=False, cancel_futures=True)
        await aside(self.store.close)

    # ---------------------------------------------------------------- learners
    async def learner(self, name: str) -> DurableLearner:
        """The learner of a name, awake. One that sleeps is woken, and only those who want it wait."""
        until = time.monotonic() + WAKE_SECONDS
        while True:
            try:
                found = self.store.now(name)
            except KeyError:
                raise Problem(404, f"there is no model {name[:80]!r}") from None
            if found is not None:
                return found
            if name not in self._waking:
                loop = asyncio.get_running_loop()
                self._waking[name] = loop.run_in_executor(self._wakers, self._woken, name)
                self._waking[name].add_done_callback(lambda _: self._waking.pop(name, None))
            done, _ = await asyncio.wait((self._waking[name],), timeout=max(0.0, until - time.monotonic()))
            problem = "is being loaded: try again later" if not done else done.pop().result()
            if problem is not None:
                raise Problem(503, f"the model {name!r} {problem}", {"Retry-After": "5"})

    def _woken(self, name: str) -> str | None:
        try:
            with self.store.use(name):
                return None
        except KeyError:
            return None  # it has been deleted
        except Exception as error:
            return f"cannot be loaded: {error}"

    def _check_known(self, name: str) -> None:
        if name not in self.store:
            raise Problem(404, f"there is no model {name[:80]!r}")

    async def _with(self, request: Request, call: Callable[[DurableLearner], Any]) -> Any:
        """The result of a call with the learner that the path names, in another thread."""
        name = request.path_params["name"]
        await self.learner(name)

        def called() -> Any:
            with self.store.use(name) as learner:
                return call(learner)

        return await aside(called)

    async def _changed(self, request: Request, change: Callable[[DurableLearner], Any]) -> Any:
        """:meth:`_with` for a change that the learner may refuse in its present state."""
        try:
            return await self._with(request, change)
        except ValueError as error:
            raise Problem(409, str(error)) from None

    # ---------------------------------------------------------------- rows
    async def predict(self, request: Request, following: bool = False) -> Response:
        """Predictions; with ids, the rows wait for their targets."""
        started = time.perf_counter()
        learner = await self.learner(request.path_params["name"])
        wanted = await asked(request, Predict, self.body, self.rows)
        found = await self.desk.answer(learner, wanted, following, request.is_disconnected)
        if isinstance(found, Exception):
            return error_response(found, request.url.path)
        self._timed("predict", started)
        return Response(found, media_type="application/json")

    async def forecast(self, request: Request) -> Response:
        """Predictions for rows each of which is the next one of the stream; with ids, they wait for their targets."""
        return await self.predict(request, True)

    async def learn(self, request: Request) -> Response:
        """Learn rows, or targets of rows that were predicted with ids; they are on the disk before the answer."""
        started = time.perf_counter()
        learner = await self.learner(request.path_params["name"])
        taught: Learn = await asked(request, Learn, self.body, self.rows)
        if taught.rows is None and taught.ids is None:
            raise Problem(422, "learn needs rows, or the ids of rows that were predicted")
        few = len(taught.rows or taught.ids or ()) <= FEW_ROWS
        future, said = self._learn_soon(learner, taught) if few else await aside(self._learn_soon, learner, taught)
        found = await result_of(future)
        if isinstance(found, Exception):
            return error_response(found, request.url.path)
        self._timed("learn", started)
        if found.set_aside:
            rows = "a row" if found.set_aside == 1 else f"{found.set_aside} rows"
            said = [*(said or ()), f"{rows} had a target far outside the others so far, and changed nothing"]
        answer = Taught(found.learned, found.total, found.version, found.repeated, said)
        return Response(encode(answer), media_type="application/json")

    def _learn_soon(self, learner: DurableLearner, taught: Learn) -> tuple[Any, list[str] | None]:
        """Check the rows and pass them to the learner; returns the future of its answer, and warnings."""
        gaps = gaps_in(taught.rows, learner.view, self.opened)
        return learner.learn_soon(taught.rows, taught.y, taught.ids), warnings(gaps) if gaps else None

    def _timed(self, call: str, started: float) -> None:
        taken = time.perf_counter() - started
        self.measured.seconds[call].observe(taken)
        self.watch.recent[call].add(taken)

    # ---------------------------------------------------------------- models
    async def promote(self, request: Request) -> Response:
        """Make the challenger the champion."""
        await asked(request, Nothing, self.body, self.rows)
        return json_response(Version(await self._changed(request, DurableLearner.promote)))

    async def rollback(self, request: Request) -> Response:
        """Restore a former version."""
        back: Rollback = await asked(request, Rollback, self.body, self.rows)
        return json_response(Version(await self._changed(request, lambda learner: learner.rollback(back.to))))

    async def acknowledge(self, request: Request) -> Response:
        """Mark lost calls as seen by the operator."""
        await asked(request, Nothing, self.body, self.rows)
        return json_response(Acknowledged(await self._with(request, DurableLearner.acknowledge)))

    async def challenge(self, request: Request) -> Response:
        """Make a model file the challenger."""
        self._check_known(request.path_params["name"])
        model, _ = await aside(read_model, await model_file(request))
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
        return Response(found, media_type=MODEL_FILE, headers={"Content-Disposition": name})

    async def put(self, request: Request) -> Response:
        """Create a model from a model file, or make the file the champion of an existing one."""
        name = request.path_params["name"]
        check_name(name)  # before anything is read
        model, columns = await aside(read_model, await model_file(request))
        if name in self.store:
            return json_response(Version(await self._changed(request, lambda learner: learner.replace(model))))
        await aside(self.store.create, name, model, columns)
        return json_response(Version(1), 201)

    async def delete(self, request: Request) -> Response:
        """Delete a model and everything it has learned."""
        name = request.path_params["name"]
        self._check_known(name)
        await aside(self.store.delete, name)
        return json_response({"deleted": name})

    async def models(self, request: Request) -> Response:
        """The models that the token is for, and how well those in memory perform."""
        grant = request.scope["grant"]

        def found() -> list[dict[str, Any]]:
            awake = dict(self.store.learners())
            names = [name for name in self.store.names() if grant.may(None, name)]
            return [
                {"name": name, "awake": name in awake} | (awake[name].brief() if name in awake else {})
                for name in names
            ]

        return json_response({"models": await aside(found)})

    async def model(self, request: Request) -> Response:
        """What a model is and how well it performs."""
        return json_response({"name": request.path_params["name"]} | await self._with(request, DurableLearner.describe))

    # ---------------------------------------------------------------- the server
    async def health(self, request: Request) -> Response:
        """The state of the server; its problems are shown to clients that may see all models."""
        about = self.store.health()
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
        closing = self.closing()
        return json_response({"status": "closing" if closing else "ok"}, 503 if closing else 200)

    async def metrics(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        if request.scope["grant"].models is not None:
            raise Problem(403, "this needs a token for all models")
        return Response(await aside(self.measured.text), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This interface as an OpenAPI document."""
        calls = [
            (one.path, one.method, inspect.getdoc(one.answer) or "", one.asked, one.answered) for one in self.endpoints
        ]
        return json_response(document(__version__, calls))

    def grant(self, headers: dict[bytes, bytes]) -> Any:
        """The grant of a request's token; None where it has none that is known."""
        if self.tokens is None:
            return LOCAL_GRANT
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        return self.tokens.grant(given.strip()) if kind.lower() == b"bearer" else None
