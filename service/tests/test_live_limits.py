"""One request among others: long ones, those of clients that leave, and what is too large or too slow."""

import gzip
import json
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_client import Client
from waiting import run_until

from kernelstream import FeatureRegressor, KernelClassifier, KernelRegressor
from kernelstream.features import RandomFourier
from kernelstream_service import gate, predictions, schemas
from kernelstream_service.answers import View
from kernelstream_service.readers import EXTRA_METHODS

PREDICT = "/models/m/predict"


class Slow:
    """A model that takes its time for each row, and notes how many it was given in a call."""

    def __init__(self, seconds):
        self.seconds, self.calls, self.work = seconds, [], np.ones(10_000)

    def predict(self, X):
        self.calls.append(len(X))
        started = time.thread_time()
        while time.thread_time() - started < self.seconds * len(X):
            np.sin(self.work)
        return np.asarray(X, float)[:, 0] * 2.0


@pytest.fixture
def slow(fresh):
    """Start a server whose model is slow; returns the server, the model and a client."""

    def start(each=0.001, **limits):
        server, client = fresh({"m": FeatureRegressor(RandomFourier(n_components=5), random_state=0)}, **limits)
        model = Slow(each)
        with server.store.use("m") as learner:
            learner.keeper.readers.view = View(model, 1, 0, None)
        return server, model, client

    return start


def in_background(call):
    """Start a call in a thread; returns the thread and the list that its result will be in."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    return thread, found


def answered(view, tables, following=False):
    """Answers to some requests at once."""
    return predictions.answers(view, tables, following, False)


def rows(n):
    return {"rows": [[float(i)] for i in range(n)]}


def test_nobody_waits_for_a_long_request(slow):
    """While 1,000 rows are predicted for a second, single rows and /health are answered; and so are all rows."""
    server, model, client = slow()
    thread, found = in_background(lambda: client.post(PREDICT, rows(1000)))
    run_until(lambda: model.calls)
    other, waits = Client(server.port), []
    while thread.is_alive() and len(waits) < 5:
        for call in (lambda: other.post(PREDICT, {"rows": [[7.0]]})[1]["predictions"], lambda: other.get("/health")[1]):
            before = sum(model.calls)
            assert call() in ([14.0], {"status": "ok", "problems": {}})
            waits.append(sum(model.calls) - before)  # a millisecond for each row, on any machine
    assert thread.is_alive() and max(waits) < 800
    thread.join(30)
    assert found[0][0] == 200 and found[0][1]["predictions"] == [2.0 * i for i in range(1000)]
    assert max(model.calls) <= 64  # no call keeps the model for long


def test_requests_that_wait_are_answered_together(slow):
    """Behind a call that takes a while, twenty requests of one row need one call, and each gets its own answer."""
    server, model, client = slow(0.02)
    first, _ = in_background(lambda: client.post(PREDICT, rows(20)))
    run_until(lambda: model.calls)
    asked = [in_background(lambda k=k: Client(server.port).post(PREDICT, {"rows": [[float(k)]]})) for k in range(12)]
    for thread, _ in [*asked, (first, None)]:
        thread.join(30)
    assert [found[0][1]["predictions"] for _, found in asked] == [[2.0 * k] for k in range(12)]
    assert sum(model.calls) == 32 and len(model.calls) <= 6


def test_the_fault_of_one_is_not_that_of_others():
    """Requests that are answered together: the one whose rows the model cannot take fails alone."""

    class Picky:
        def predict(self, X):
            if (np.asarray(X) < 0).any():
                raise ValueError("negative")
            return np.asarray(X, float)[:, 0]

    view = View(Picky(), 1, 0, None)
    done = answered(view, [[[x]] for x in (1.0, -1.0, 3.0)])
    assert done[0][1] == {"predictions": [1.0]}
    assert str(done[1]) == "negative" and done[2][1]["predictions"] == [3.0]


def test_rows_are_scored_once(monkeypatch):
    """Labels, probabilities and sets of twenty requests are made from one table of scores; the model says the same."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = KernelClassifier(size="small", random_state=0)
    model.learn(X, (X[:, 0] > 0).astype(int))
    view = View(model, 1, 400, None, "classification", EXTRA_METHODS)
    asked = X[:20] + 0.1
    labels, chances, sets = (
        np.concatenate([ask(asked[i : i + 1]) for i in range(20)])  # each request has one row
        for ask in (model.predict, model.predict_proba, model.predict_set)
    )
    scored, scores = [], type(model)._scores
    monkeypatch.setattr(type(model), "_scores", lambda self, X, *more: scored.append(len(X)) or scores(self, X, *more))
    answers = [found for _, found, _ in answered(view, [[row] for row in asked.tolist()])]
    assert scored == [20]
    assert [answer["predictions"][0] for answer in answers] == labels.tolist()
    np.testing.assert_array_equal([answer["probabilities"][0] for answer in answers], chances)
    assert [answer["sets"][0] for answer in answers] == [np.flatnonzero(row).tolist() for row in sets]


@pytest.mark.parametrize("following", [False, True], ids=["predict", "forecast"])
@pytest.mark.parametrize("mixed", [False, True], ids=["numbers", "words"])
def test_an_answer_does_not_depend_on_what_else_is_asked(mixed, following):
    """A row has the same answer whatever is asked with it, or answered in the same turn."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    rows = [{"a": a, "b": b, "town": "Rome" if c > 0 else "Oslo"} for a, b, c in X.tolist()] if mixed else X.tolist()
    model = KernelRegressor(size="small", random_state=0)
    model.learn(rows if mixed else X, X[:, 0] + np.cumsum(X[:, 1]))
    view = View(model, 1, 400, None, "regression", ("predict_interval",))
    tables = [rows[:1], rows[1:4], rows[4:5], rows[5:6], rows[6:8]]

    def asked(*tables):
        return [found for _, found, _ in answered(view, tables, following)]

    alone = [answer for table in tables for answer in asked(table)]
    assert asked(*tables) == alone
    told = (model.forecast_interval if following else model.predict_interval)(rows[:8] if mixed else X[:8])
    found = [interval for answer in alone for interval in answer["intervals"]]
    np.testing.assert_array_equal(np.transpose(told), found)
    each = model.forecast if following else model.predict
    told = [each(rows[i : i + 1] if mixed else X[i : i + 1])[0] for i in range(8)]
    assert told == [value for answer in alone for value in answer["predictions"]]
    assert model.forecast(X[:1] if not mixed else rows[:1]) != model.predict(X[:1] if not mixed else rows[:1])


def test_what_is_forecast_and_what_is_predicted_go_apart():
    """Requests of one kind that follow each other are answered together, by one call of the model."""
    line, view = predictions.Line(None, None, False), object()
    for following in (True, True, False, True):
        line.waiting.append(predictions.Asked(view, [[1.0]], following, SimpleNamespace(done=lambda: False)))
    assert [[asked.following for asked in line.next()[0]] for _ in range(3)] == [[True, True], [False], [True]]


def test_rows_seconds_and_what_waits_are_limited(slow, monkeypatch):
    _, _, client = slow(rows=100, seconds=0.4)
    status, answer = client.post(PREDICT, rows(101))
    assert status == 413 and "at most 100 rows" in answer["error"]
    many = {"rows": [{}] * 60_000}  # a large body is not even decoded to its end
    status, answer = client.post(PREDICT, many)
    assert status == 413 and "at most 100 rows" in answer["error"]
    _, model, client = slow(0.02, seconds=0.4)
    status, answer = client.post(PREDICT, rows(500))
    assert status == 503 and "0.4 seconds" in answer["error"]
    time.sleep(0.5)
    before = len(model.calls)
    time.sleep(0.5)
    assert len(model.calls) == before  # and nobody works on it any more
    monkeypatch.setattr(predictions, "MAX_WAITING_ROWS", 10)
    status, answer = client.post(PREDICT, rows(11))
    assert status == 503 and "at most 10 may" in answer["error"] and client.answer.getheader("retry-after")


def test_the_work_of_a_client_that_has_left_is_dropped(slow):
    server, model, client = slow(0.004)
    body = json.dumps(rows(3000)).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as stream:
        head = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        stream.sendall(f"POST {PREDICT} HTTP/1.1\r\n{head}".encode() + body)
        run_until(lambda: model.calls)
    run_until(lambda: not server.service.desk.waiting_rows, 10)
    assert sum(model.calls) < 1500
    assert client.post(PREDICT, {"rows": [[1.0]]})[1]["predictions"] == [2.0]


def test_a_long_prediction_when_the_server_shuts_down(slow):
    server, model, client = slow(0.004)
    thread, found = in_background(lambda: client.post(PREDICT, rows(3000)))
    run_until(lambda: model.calls)
    server.stop()
    thread.join(20)
    status, answer = found[0]
    assert status == 503 and "shutting down" in answer["error"]


def test_the_state_of_the_server(slow):
    server, _, client = slow()
    assert client.get("/live") == (200, {"status": "ok"}) and client.get("/ready") == (200, {"status": "ok"})
    server.service.closing = lambda: True
    assert client.get("/live")[0] == 200 and client.get("/ready") == (503, {"status": "closing"})


# -------------------------------------------------------------------- heads and bodies
def talk(port, *parts, pause=0.0, seconds=10):
    """Send parts as they are; returns what came back before the server hung up."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as stream:
        try:
            for part in parts:
                stream.sendall(part)
                time.sleep(pause)
            while part := stream.recv(65536):
                answer += part
        except ConnectionError:
            pass
    return answer


def test_heads_have_an_end(slow, monkeypatch):
    """Half a head is hung up on, however slowly it goes on; one of a megabyte is refused."""
    monkeypatch.setattr(gate, "HEAD_SECONDS", 0.3)
    server, _, client = slow()
    for parts in (
        [b"GET /health HTTP/1.1\r\nHost: localhost\r\n"],
        [b"GET /health HTTP/1.1\r\n", *[b"x: y\r\n"] * 8],
        [],
    ):
        started = time.monotonic()
        assert talk(server.port, *parts, pause=0.1) == b"" and time.monotonic() - started < 5
    long = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (1 << 20) + b"\r\nConnection: close\r\n\r\n"
    assert talk(server.port, long)[:12] in (b"", b"HTTP/1.1 431")
    status, answer = client.get("/health", X="x" * 70_000)
    assert status == 431 and "65,536" in answer["error"]
    assert Client(server.port).get("/health", X="x" * 8000)[0] == 200


def test_bodies_that_do_not_come(slow, monkeypatch):
    monkeypatch.setattr(schemas, "BODY_SECONDS", 0.3)
    server, _, _ = slow()
    head = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    answer = talk(server.port, b"POST /models/m/predict HTTP/1.1\r\n" + head + b'{"rows"')
    assert answer.startswith(b"HTTP/1.1 408") and b"0.3 seconds" in answer


def test_everything_is_json(slow):
    """Unknown paths, other methods, and bodies that were compressed."""
    _, _, client = slow()
    for status, call in [
        (404, lambda: client.get("/nothing")),
        (405, lambda: client.ask("PATCH", "/models/m", None, {})),
        (405, lambda: client.get("/models/m/learn")),
    ]:
        found, answer = call()
        assert found == status and answer["error"]
    body = gzip.compress(json.dumps(rows(2)).encode())
    status, answer = client.post(PREDICT, body, Content_Encoding="gzip")
    assert status == 415 and "Content-Encoding" in answer["error"]
