"""A server: the application of :mod:`.app` on a port, in this thread or another."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from .app import Service
from .extras import needs
from .gate import LOCAL, Connection
from .rights import Tokens
from .store import Store

with needs("serve"):
    import uvicorn

START_SECONDS = 30.0  # longest time for a server to start
KEEP_ALIVE = 75  # seconds that a connection without a request stays open
SWITCH_SECONDS = 0.001  # that a thread keeps the interpreter while others, and every request with them, wait for it


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
    keep_alive : int
        Seconds that a connection without a request stays open.
    **limits
        ``body``, ``rows``, ``seconds``, ``opened`` of :class:`.app.Service`.
    """

    def __init__(
        self,
        store: Store,
        host: str = "127.0.0.1",
        port: int = 8000,
        token_file: str | os.PathLike[str] | None = None,
        keep_alive: int = KEEP_ALIVE,
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
        self.service = Service(store, tokens, host in LOCAL, **limits)
        self._server = uvicorn.Server(uvicorn.Config(
            self.service.application(), http=Connection, ws="none", log_config=None, access_log=False,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=2, timeout_keep_alive=keep_alive,
        ))  # fmt: skip
        self.service.closing = lambda: self._server.should_exit
        self._began, self._thread = threading.Event(), threading.Thread(target=self.run, name="server", daemon=True)

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self, started: Callable[[], Any] = bool) -> None:
        """Serve until interrupted (control-C or SIGTERM); ``started`` is called when requests can come."""
        self.socket.listen()

        def began() -> None:
            started()
            self._began.set()

        self.service.started = began
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
        """Serve in another thread; returns once requests can come."""
        self._thread.start()
        if not self._began.wait(START_SECONDS):
            raise RuntimeError("the server did not start")
        return self

    def stop(self) -> None:
        """Stop what :meth:`start` started."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *exc: Any) -> None:
        self.stop()
