"""A server: the application of :mod:`.app` on a port, in this thread or another."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from .app import LOCAL, MAX_HEAD_BYTES, Application
from .extras import needs
from .rights import Tokens
from .store import Store

with needs("serve"):
    import uvicorn
    from starlette.requests import ClientDisconnect
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

START_SECONDS = 30.0  # longest time for a server to start
HEAD_SECONDS = 10.0  # longest time for the head of a request to arrive
SWITCH_SECONDS = 0.001  # that a thread keeps the interpreter while others, and every request with them, wait for it


class _Protocol(HttpToolsProtocol):
    """Hangs up on clients that do not send the head of a request, or send one without an end.

    Uvicorn has no limits for that: its ``timeout_keep_alive`` begins with the first response, and the size of a head is
    limited in its other parser only.
    """

    _head: int | None = 0  # bytes of a head that has no end yet
    _since = 0.0  # when it began
    _check: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self._check = self.loop.call_later(HEAD_SECONDS, self._check_head)

    def on_message_begin(self) -> None:
        self._head, self._since = 0, self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.scope["whole"] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > MAX_HEAD_BYTES:
                self.transport.close()

    def _check_head(self) -> None:
        """Hang up if the head is late; a connection has one timer, renewed when it ends, not with each request."""
        late = 0.0 if self._head is None else self.loop.time() - self._since
        if late >= HEAD_SECONDS:
            self.timeout_keep_alive_handler()
        else:
            self._check = self.loop.call_later(HEAD_SECONDS - late, self._check_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        answer: Any = (self.scope or {}).get("answer")  # that a client who has left was waiting for
        if answer is not None and not answer.done():
            answer.set_exception(ClientDisconnect())
        super().connection_lost(exc)


class _Uvicorn(uvicorn.Server):
    """Reports when it has started, and tells the application before it shuts down, so that open event streams end."""

    def __init__(self, config: uvicorn.Config):
        super().__init__(config)
        self.began = threading.Event()
        self.then: Callable[[], Any] | None = None

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started and self.then is not None:
            self.then()
        self.began.set()

    async def shutdown(self, sockets: Any = None) -> None:
        self.config.app.closing.set()  # type: ignore[union-attr]
        await super().shutdown(sockets)


class Server:
    """A store behind HTTP.

    Parameters
    ----------
    store : Store
        The server closes it in the end.
    host, port
        Where to listen; port 0 takes any that is free.
    token_file : path, optional
        With the tokens that requests must bring (:mod:`.rights`). Needed unless ``host`` is this machine itself.
    **limits
        ``rate``, ``body``, ``rows``, ``seconds``, ``opened`` of :class:`.app.Application`.
    """

    def __init__(
        self,
        store: Store,
        host: str = "127.0.0.1",
        port: int = 8000,
        token_file: str | os.PathLike[str] | None = None,
        **limits: Any,
    ):
        if token_file is None and host not in LOCAL:
            raise ValueError(f"a server that others can reach ({host}) needs tokens: name their file (--token-file)")
        tokens = None if token_file is None else Tokens(token_file)
        self.store = store
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((host, port))
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, f"{error.strerror} (port {port} of {host})") from None
        self.host, self.port = host, int(self.socket.getsockname()[1])
        app = Application(store, tokens, host in LOCAL, **limits)
        config = uvicorn.Config(
            app, http=_Protocol, ws="none", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._server = _Uvicorn(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self, started: Callable[[], Any] | None = None) -> None:
        """Serve until interrupted (control-C or SIGTERM)."""
        self._server.then = started
        gc.collect()
        gc.freeze()  # scanning all objects of the libraries would stop every thread for a quarter of a second
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            self._server.run(sockets=[self.socket])
        finally:
            sys.setswitchinterval(interval)
            gc.unfreeze()
            self.store.close()

    def start(self) -> Server:
        """Serve in another thread; returns once the server answers."""
        self._thread = threading.Thread(target=self.run, name="server", daemon=True)
        self._thread.start()
        if not self._server.began.wait(START_SECONDS) or not self._server.started:
            raise RuntimeError("the server did not start")
        return self

    def stop(self) -> None:
        """Stop what :meth:`start` started."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *exc: Any) -> None:
        self.stop()
