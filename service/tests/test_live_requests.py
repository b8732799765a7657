"""The clients of the service: whatever is lost on the way, every row is learned once."""

import datetime
import socket
import threading
import time

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

import httpx
from live_cases import logistic, moons, same
from live_client import caught_up

from kernelstream import KernelRegressor
from kernelstream_service import Client, RequestError, Store
from kernelstream_service import client as clients
from kernelstream_service.serve import Server


class Forgetful(httpx.HTTPTransport):
    """Carries every request to the server, and loses every second answer, or the request itself."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def handle_request(self, request):
        self.count += 1
        if self.count % 3 == 1:
            raise httpx.ConnectError("the request was lost")
        response = super().handle_request(request)
        if self.count % 3 == 2:
            response.read()
            raise httpx.ReadError("the answer was lost")
        return response


def url(server):
    return f"http://127.0.0.1:{server.port}"


def test_rows_are_learned_once_whatever_is_lost(fresh, monkeypatch):
    monkeypatch.setattr(clients, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(clients, "ROWS_PER_REQUEST", 40)
    server, _ = fresh({"moons": logistic()})
    X, y = moons(300)
    expected = logistic()
    with Client(url(server), transport=Forgetful()) as client:
        for start in range(0, 300, 100):  # 40, 40 and 20 rows at a time
            answer = client.learn("moons", X[start : start + 100], y[start : start + 100])
            assert answer["learned"] + answer.get("repeated", 0) == 100 and answer["total"] == start + 100
            for stop in (40, 80, 100):
                first = start + (stop - 1) // 40 * 40
                expected.learn(X[first : start + stop], y[first : start + stop])
        assert same(caught_up(server, "moons"), expected)  # readers have it a moment after the answers
        said = client.predict("moons", X)
        np.testing.assert_array_equal(said["predictions"], expected.predict(X))
        assert client.forecast("moons", X) == said  # of a model to which the next row is like any other
        np.testing.assert_allclose(said["probabilities"], expected.predict_proba(X), rtol=1e-12)
        assert said["classes"] == [0, 1] and client.describe("moons")["rows"] == 300
        assert [model["name"] for model in client.models()] == ["moons"]


def test_rows_of_every_kind(fresh):
    """A frame with words, dates and gaps, the same rows as dictionaries, and one row alone."""
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2026-01-01", periods=200, freq="D"),
            "city": np.resize(["rome", "oslo", None], 200),
            "size": np.resize([50.0, 80.0, np.nan, 120.0], 200),
            "rooms": pd.array(np.resize([2, None, 3], 200), "Int64"),  # its gaps are pandas' NA
        }
    )
    y = np.arange(200.0)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    server, _ = fresh({name: KernelRegressor(size="small", random_state=0) for name in ("frames", "rows")})
    with Client(url(server)) as client:
        assert client.learn("frames", frame, y, ids=np.arange(200))["learned"] == 200
        assert client.learn("rows", rows, y.tolist())["learned"] == 200
        expected = client.predict("frames", frame)["predictions"]
        assert expected == client.predict("rows", rows)["predictions"]
        alone = {"when": datetime.date(2026, 7, 19), "city": "oslo", "size": np.float32(80)}
        assert np.isfinite(client.predict("rows", alone)["predictions"]).all()


def test_targets_that_come_later(fresh):
    server, _ = fresh({"moons": logistic()})
    X, y = moons(50)
    with Client(url(server)) as client:
        client.learn("moons", X, y)
        client.predict("moons", X[:2], ids=["a", "b"])
        assert client.learn("moons", None, [1, 0], ids=["a", "b"])["total"] == 52
        assert client.learn("moons", None, [0], ids=["b"])["repeated"] == 1
        with pytest.raises(RequestError, match="c") as refused:
            client.learn("moons", None, [1], ids=["c"])
        assert refused.value.status == 409


def test_what_the_server_refuses_is_not_repeated(fresh):
    server, _ = fresh({"moons": logistic()}, columns=["u", "v", "w"])
    X, y = moons(50)
    with Client(url(server), patience=0) as client:
        client.learn("moons", X, y)
        with pytest.raises(RequestError, match="did you mean 'w'") as refused:
            client.predict("moons", {"u": 1.0, "v": 2.0, "ww": 3.0})
        assert refused.value.status == 422
        with pytest.raises(RequestError, match="no model 'suns'"):
            client.predict("suns", X)
        with pytest.raises(ValueError, match="lengths differ: 50 rows, 49 y"):
            client.learn("moons", X, y[1:])
        with pytest.raises(ValueError, match="infinite"):
            client.learn("moons", [[np.inf, 0, 0]], [1])
        with pytest.raises(ValueError, match="needs rows, or the ids"):
            client.learn("moons", None, [1])
        assert client.describe("moons")["rows"] == 50
    with pytest.raises(ValueError, match="patience"):
        Client(patience=-1)


def test_a_change_of_models_is_asked_for_once(fresh):
    """Its answer is lost: a second request would go back two versions."""
    server, _ = fresh({"moons": logistic()})

    class Deaf(httpx.HTTPTransport):
        asked = 0

        def handle_request(self, request):
            Deaf.asked += 1
            super().handle_request(request).read()
            raise httpx.ReadError("the answer was lost")

    with Client(url(server), transport=Deaf()) as client:
        with pytest.raises(ConnectionError, match="may have been carried out"):
            client.rollback("moons")
        with pytest.raises(ConnectionError, match="may have been carried out"):
            client.promote("moons")
    assert Deaf.asked == 2


def test_a_server_that_is_not_there_is_waited_for(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    X, y = moons(30)
    with (
        Client(f"http://127.0.0.1:{port}", patience=0.2) as client,
        pytest.raises(ConnectionError, match=r"0\.2 seconds"),
    ):
        client.models()

    store = Store(tmp_path / "store", flush="request")
    store.create("moons", logistic())
    started = []
    timer = threading.Timer(0.5, lambda: started.append(Server(store, port=port).start()))
    began = time.monotonic()
    timer.start()
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            assert client.learn("moons", X, y)["learned"] == 30
        assert time.monotonic() - began > 0.4
    finally:
        timer.join()
        started[0].stop()


def test_long_tables_are_cut(fresh):
    """Rows of many bytes go in several requests, none of which is larger than the server takes."""
    server, small = fresh({"moons": logistic()})
    wide = np.random.default_rng(0).normal(size=(900, 300))
    status, answer = small.post("/models/moons/learn", {"rows": wide.tolist(), "y": [i % 2 for i in range(900)]})
    assert status == 413 and "2,097,152 bytes" in answer["error"] and "Client" in answer["error"]
    with Client(url(server)) as client:
        assert client.learn("moons", wide, np.arange(900) % 2)["total"] == 900
        assert len(client.predict("moons", wide)["predictions"]) == 900
