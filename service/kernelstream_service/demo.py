"""The live demonstration: a server, a drifting stream sent into it, and the page that shows it learn."""

from __future__ import annotations

import contextlib
import http.client
import json
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernelstream import drift
from kernelstream.estimators import KernelClassifier, OnlineRidgeClassifier

from .serve import Server
from .store import Store

ROWS_PER_REQUEST = 20  # rows of a request
CONCEPT_ROWS = 2000  # rows from one change of the stream to the next
ROWS_PER_SECOND = 500  # rows a second
COLUMNS = ("east", "north", "noise")  # the last has nothing to do with the label


def run(
    *,
    port: int = 0,
    seconds: float | None = None,
    show: bool = True,
    rate: float = ROWS_PER_SECOND,
    say: Callable[[str], Any] = print,
) -> int:
    """Serve the default learner with a challenger, and stream into it; returns the number of rows learned.

    Parameters
    ----------
    port : int, default=0
        0 takes any that is free.
    seconds : float, optional
        How long; without it until control-C.
    show : bool, default=True
        Open the page in a browser.
    rate : float, default=500
        Rows a second.
    say : callable
        Called with each line of what happens.
    """
    with tempfile.TemporaryDirectory(prefix="kernelstream-demo-") as folder:
        store = Store(folder, flush="request")
        store.create("hills", KernelClassifier(size="small", random_state=0), COLUMNS)
        with store.use("hills") as learner:
            learner.challenge(OnlineRidgeClassifier(random_state=0))
        with Server(store, port=port) as server:
            say(f"watch it learn: {server.url}   (control-C ends it)")
            if show:
                webbrowser.open(server.url)
            with contextlib.suppress(KeyboardInterrupt):
                _stream(server.port, seconds, rate)
            with store.use("hills") as learner:
                sent = learner.total
        say(f"{sent:,} rows were learned; nothing is kept")
        return sent


def rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of an endless stream, whose concept changes every few thousand rows."""
    concept, rng = 1, np.random.default_rng(0)
    while True:
        columns = len(COLUMNS) - 1
        for X, y in drift.generate(CONCEPT_ROWS, ROWS_PER_REQUEST, "none", concept, n_features=columns, noise=0.02):
            yield np.column_stack([X, rng.normal(size=len(X))]), y
        concept += 1


def _stream(port: int, seconds: float | None, rate: float) -> None:
    """Send blocks to the model, no faster than the rate."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    started, sent = time.monotonic(), 0
    for X, y in rows():
        body = json.dumps({"rows": [dict(zip(COLUMNS, row)) for row in X.astype(float).tolist()], "y": y.tolist()})
        connection.request("POST", "/models/hills/learn", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the server answered {answer.status}: {content[:200]!r}")
        sent += len(y)
        elapsed = time.monotonic() - started
        if seconds is not None and elapsed >= seconds:
            break
        time.sleep(max(0.0, sent / rate - elapsed))
    connection.close()
