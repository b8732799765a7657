"""The HTTP front: the shapes of its answers, and what strangers may try."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_cases import logistic
from live_cases import moons as rows
from live_client import Client, caught_up

from kernelstream import (
    FeatureClassifier,
    FeatureRegressor,
    KernelClassifier,
    KernelRegressor,
    MultiKernelClassifier,
    cli,
    model_io,
    save,
)
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream_service import LogError, Store
from kernelstream_service.answers import View
from kernelstream_service.predictions import predictions
from kernelstream_service.serve import Server

COLUMNS = ["size", "rooms", "floor"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with two models, and their names."""
    store = Store(tmp_path_factory.mktemp("store"), flush="request")
    X, y = rows(60)
    store.create("flats", logistic().fit(X, y), COLUMNS)
    store.create("prices", FeatureRegressor(RandomFourier(n_components=10), random_state=0).fit(X, X[:, 0]))
    with Server(store, port=0, body=20_000) as server:
        yield server


@pytest.fixture
def client(served):
    client = Client(served.port)
    yield client
    client.close()


def state_of(server, name="flats"):
    with server.store.use(name) as learner:
        return model_io.to_bytes(learner.champion.model), learner.total


# -------------------------------------------------------------------- shapes
def test_predict(client, served):
    X, _ = rows(4, seed=1)
    status, answer = client.post("/models/flats/predict", {"rows": X.tolist()})
    with served.store.use("flats") as learner:
        assert status == 200 and answer["predictions"] == learner.model.predict(X).tolist()
        assert answer["probabilities"] == learner.model.predict_proba(X).tolist() and answer["version"] == 1
    objects = [dict(zip(COLUMNS, row)) for row in X.tolist()]
    assert client.post("/models/flats/predict", {"rows": objects})[1] == answer
    status, answer = client.post("/models/prices/predict", {"rows": X.tolist()})
    assert status == 200 and set(answer) == {"predictions", "version"} and len(answer["predictions"]) == 4
    assert client.post("/models/flats/predict", {"rows": []}) == (200, {"predictions": [], "version": 1})


def test_forecast(fresh):
    """Rows each of which is the next one of the stream: what the model says of them, one or several."""
    X, _ = rows(200)
    model = KernelRegressor(size="small", random_state=0)
    model.learn(X, np.cumsum(X[:, 0]))
    _, client = fresh({"flats": model}, COLUMNS)
    for n in (1, 3):
        asked = {"rows": X[:n].tolist()}
        status, forecast = client.post("/models/flats/forecast", asked)
        answer = client.post("/models/flats/predict", asked)[1]
        assert status == 200 and forecast["predictions"] == model.forecast(X[:n]).tolist()
        assert np.transpose(forecast["intervals"]).tolist() == np.array(model.forecast_interval(X[:n])).tolist()
        assert answer["predictions"] == model.predict(X[:n]).tolist() != forecast["predictions"]


class Answers:
    """A model that gives low and high of all rows, and which labels a row may well have."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return np.zeros(len(X))

    def predict_interval(self, X):
        return np.full(len(X), -1.0), np.full(len(X), 2.0)

    def predict_set(self, X):
        return np.array([[True, False], [True, True], [False, False]])


def test_intervals_are_pairs_and_sets_lists_of_labels():
    view = View(Answers(), 1, 0, None, "regression", ("predict_interval", "predict_set"))
    answer = predictions(view, np.ones((3, 1)), [])
    assert answer["intervals"].tolist() == [[-1.0, 2.0]] * 3
    assert answer["sets"] == [["no"], ["no", "yes"], []]


def test_learn(fresh):
    """One row, many, arrays, objects, ids: the model is the one that learned the same calls."""
    server, client = fresh({"flats": logistic()}, COLUMNS)
    X, y = rows(40)
    plain = logistic()
    assert client.post("/models/flats/predict", {"rows": X[:1].tolist()})[0] == 409  # nothing learned yet
    sent = [
        {"rows": X[:1].tolist(), "y": y[:1].tolist()},
        {"rows": X[1:20].tolist(), "y": y[1:20].tolist()},
        {"rows": [dict(zip(COLUMNS, row)) for row in X[20:30].tolist()], "y": y[20:30].tolist()},
    ]
    totals = [client.post("/models/flats/learn", body) for body in sent]
    for part in (slice(0, 1), slice(1, 20), slice(20, 30)):
        plain.learn(X[part], y[part])
    assert totals == [(200, {"learned": n, "total": t, "version": 1}) for n, t in ((1, 1), (19, 20), (10, 30))]
    client.post("/models/flats/predict", {"rows": X[30:].tolist(), "ids": [f"r{i}" for i in range(10)]})
    told = {"ids": ["r3", "r1"], "y": [int(y[33]), int(y[31])]}
    assert client.post("/models/flats/learn", told)[1] == {"learned": 2, "total": 32, "version": 1}
    plain.learn(X[[33, 31]], y[[33, 31]])
    assert client.post("/models/flats/learn", told)[1] == {"learned": 0, "total": 32, "version": 1, "repeated": 2}
    assert state_of(server)[0] == model_io.to_bytes(plain)


def test_words_as_labels(fresh):
    _, client = fresh({"m": logistic()})
    assert client.post("/models/m/learn", {"rows": [[1.0], [2.0]], "y": ["yes", "no"]})[0] == 200
    status, answer = client.post("/models/m/predict", {"rows": [[1.0]]})
    assert status == 200 and answer["predictions"][0] in ("yes", "no")
    status, about = client.get("/models/m")
    assert about["classes"] == ["no", "yes"]


def test_looking(client, served):
    models = client.get("/models")[1]["models"]
    assert [(model["name"], model["awake"], model["rows"]) for model in models] == [
        ("flats", True, 60), ("prices", True, 60),
    ]  # fmt: skip
    status, about = client.get("/models/flats")
    assert status == 200 and about["columns"] == COLUMNS and about["class"] == "FeatureClassifier"
    assert {"rows", "version", "scores", "members", "relevance", "drift", "health", "challenger"} <= set(about)
    assert client.get("/health") == (200, {"status": "ok", "problems": {}})
    status, document = client.get("/openapi.json")
    assert status == 200 and document["openapi"].startswith("3.")
    for path in ("/models/{name}/predict", "/models/{name}/learn", "/models", "/models/{name}", "/events"):
        assert path in document["paths"]
    status, page = client.get("/")
    assert status == 200 and "<title>" in page
    assert "default-src 'none'" in client.answer.getheader("content-security-policy")


def test_what_is_lost_is_said_until_it_is_acknowledged(tmp_path):
    """By /health, /models/NAME and /metrics of a server that was started again; sleeping models are known, too."""
    X, y = rows(60)
    with Store(tmp_path / "a") as store:
        store.create("m", logistic())
        with store.use("m") as learner:
            learner._do(lambda: learner.keeper.journal.db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            for _ in range(3):
                learner.learn(X, y)
            shutil.copytree(tmp_path / "a", tmp_path / "b")  # as a killed process leaves it
    (tmp_path / "b" / "m" / "learner.db-wal").unlink()  # three calls are gone
    with Server(Store(tmp_path / "b"), port=0) as server:
        client = Client(server.port)
        assert client.get("/health")[0] == 200  # nobody has looked at the model yet
        assert client.get("/models")[1]["models"] == [{"name": "m", "awake": False}]
        assert client.get("/models/m")[1]["health"]["lost"] == 3
        assert client.get("/health")[0] == 503
        client.close()
    with Server(Store(tmp_path / "b"), port=0) as server:
        client = Client(server.port)
        status, about = client.get("/health")
        assert status == 503 and "calls 0 to 2" in about["problems"]["m"]["lost"]
        assert client.get("/models/m")[1]["health"]["lost"] == 3
        assert 'kernelstream_lost_calls{model="m"} 3' in client.get("/metrics")[1]
        assert client.post("/models/m/acknowledge", {}) == (200, {"acknowledged": 3})
        assert client.get("/health")[0] == 200
        assert 'kernelstream_lost_calls{model="m"} 0' in client.get("/metrics")[1]
        client.close()


def test_events(fresh):
    _, client = fresh({"m": MultiKernelClassifier(random_state=0)})
    X, y = rows(60)
    client.post("/models/m/learn", {"rows": X.tolist(), "y": y.tolist()})
    status, text = client.get("/events?model=m&count=2&every=0.1")
    assert status == 200 and client.answer.getheader("content-type").startswith("text/event-stream")
    events = [block.split("\n") for block in text.strip().split("\n\n")]
    assert len(events) == 2 and events[0][0] == "event: state"
    state = json.loads(events[-1][1].removeprefix("data: "))
    assert state["rows"] == 60 and [point[0] for point in state["picture"]["curve"]] == [20, 40, 60]
    assert len(state["members"]["weights"]) == len(state["members"]["names"]) > 1
    assert sum(state["members"]["weights"]) == pytest.approx(1.0)
    assert len(state["picture"]["curve"][-1][5]) == len(state["members"]["weights"])


def test_champion_and_challenger(fresh):
    server, client = fresh({"m": logistic()})
    X, y = rows(60)
    body = {"rows": X.tolist(), "y": y.tolist()}
    client.post("/models/m/learn", body)
    assert client.post("/models/m/promote", {})[0] == 409
    assert client.post("/models/m/rollback", {})[0] == 409
    with server.store.use("m") as learner:
        learner.challenge(FeatureClassifier(random_state=3))
    client.post("/models/m/learn", body)
    about = client.get("/models/m")[1]["challenger"]
    assert about["scores"]["rows"] == about["champion"]["rows"] == 60
    assert client.post("/models/m/promote", {}) == (200, {"version": 2})
    assert client.post("/models/m/predict", {"rows": X[:1].tolist()})[1]["version"] == 2
    assert client.post("/models/m/rollback", {"to": 1}) == (200, {"version": 3})
    assert client.post("/models/m/rollback", {"to": 17})[0] == 409


# -------------------------------------------------------------------- what strangers may try
ROW = [1.0, 2.0, 3.0]
BAD = [
    ("learn", b"", 422, "needs rows"),
    ("learn", b"{", 400, "not JSON"),
    ("learn", b"\xff\xfe", 400, "not JSON"),
    ("learn", b'{"rows": [[1, 2, 3]], "y": [NaN]}', 400, "not JSON"),
    ("learn", b'{"rows": [[1, 2, Infinity]], "y": [1]}', 400, "not JSON"),
    ("learn", b'{"rows": [[1, 2, 1e999]], "y": [1]}', (400, 422), ""),
    ("learn", b"[" * 10_000, 422, "object"),
    ("learn", b'{"rows": ' + b"[" * 5000, 400, "not JSON"),
    ("learn", b"[]", 422, "object"),
    ("learn", b"null", 422, "object"),
    ("learn", {"rows": "all", "y": [1]}, 422, "rows"),
    ("learn", {"rows": [1, 2, 3], "y": [1]}, 422, "rows"),
    ("learn", {"rows": [ROW], "y": [1], "model": "x"}, 422, "model"),
    ("learn", {"rows": [ROW], "y": 1}, 422, "y"),
    ("learn", {"rows": [ROW]}, 422, "needs y"),
    ("learn", {"rows": [ROW], "y": [1, 0]}, 422, "1 rows, but 2 targets"),
    ("learn", {"rows": [ROW], "y": [None]}, 422, "target 0"),
    ("learn", {"rows": [ROW], "y": [[1]]}, 422, "y"),
    ("learn", {"rows": [ROW], "y": ["word"]}, 422, "cannot be mixed with"),
    ("learn", {"rows": [ROW], "y": [2**70]}, 422, ""),
    ("learn", {"rows": [[1.0, 2.0]], "y": [1]}, 422, "2 columns, the model has 3"),
    ("learn", {"rows": [[1.0, 2.0, 3.0, 4.0]], "y": [1]}, 422, "4 columns, the model has 3"),
    ("learn", {"rows": [[]], "y": [1]}, 422, "0 columns"),
    ("learn", {"rows": [[1.0, "two", 3.0]], "y": [1]}, 422, "'rooms'"),
    ("learn", {"rows": [[1.0, None, 3.0]], "y": [1]}, 422, "'rooms'"),
    ("learn", {"rows": [[1.0, {}, 3.0]], "y": [1]}, 422, "'rooms'"),
    ("learn", {"rows": [ROW, {"size": 1}], "y": [1, 1]}, 422, "row 1"),
    ("learn", {"rows": [{"size": 1, "rooms": 2}], "y": [1]}, 422, "'floor'"),
    ("learn", {"rows": [{"size": 1, "room": 2, "floor": 3}], "y": [1]}, 422, "did you mean 'rooms'?"),
    ("learn", {"rows": [[1e300, 1e300, 1e300]], "y": [1]}, 422, ""),
    ("learn", {"rows": [ROW], "y": [1], "ids": []}, 422, "1 rows, but 0 ids"),
    ("learn", {"rows": [ROW], "y": [1], "ids": ["x" * 201]}, 422, "ids are"),
    ("learn", {"rows": [ROW], "y": [1], "ids": [1.5]}, 422, "ids"),
    ("learn", {"ids": ["unknown"], "y": [1]}, 409, "'unknown'"),
    ("predict", {"rows": [[1.0, 2.0]]}, 422, "2 columns"),
    ("predict", {"rows": [[1.0, 2.0, "x"]]}, 422, "'floor'"),
    ("predict", {}, 422, "rows"),
    ("predict", {"rows": [ROW], "ids": ["a", "b"]}, 422, "1 rows, but 2 ids"),
    ("rollback", {"to": "yesterday"}, 422, "to"),
    ("promote", {"now": True}, 422, "now"),
    ("learn", {"rows": [[0.0] * 3] * 9000, "y": [1] * 9000}, 413, "at most 20,000 bytes"),
]  # fmt: skip


@pytest.mark.parametrize("path, body, status, message", BAD, ids=range(len(BAD)))
def test_bad_requests_change_nothing(served, client, path, body, status, message):
    before = state_of(served)
    found, answer = client.post(f"/models/flats/{path}", body)
    assert found == status or found in np.atleast_1d(status), answer
    assert message in answer["error"]
    assert state_of(served) == before
    assert client.get("/health")[1]["status"] == "ok"


def test_the_column_is_named(client):
    answer = client.post("/models/flats/learn", {"rows": [ROW, [1.0, "two", 3.0]], "y": [1, 1]})[1]
    assert (answer["row"], answer["column"]) == (1, "rooms")


@pytest.mark.parametrize(
    "name",
    ["nobody", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "flats%2f..%2fprices", "flats%00", "a" * 5000, "%ff", "FLATS"],
)
@pytest.mark.parametrize("what", ["/predict", "/learn", "", "/promote"])
def test_unknown_names(served, client, name, what):
    path = f"/models/{name}{what}"
    status, _ = client.post(path, {"rows": [ROW], "y": [1]}) if what else client.get(path)
    assert status in (404, 422)  # of a promotion, the body is looked at first
    assert sorted(os.listdir(served.store.folder)) == ["flats", "prices"]


def test_other_types(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert client.post("/models/flats/learn", {"rows": [ROW], "y": [1]}, Content_Type=kind)[0] == 415
    assert (
        client.post("/models/flats/predict", {"rows": [ROW]}, Content_Type="application/json; charset=utf-8")[0] == 200
    )
    assert client.get("/events?model=nobody")[0] == 404
    assert client.get("/events?model=flats&every=0")[0] == 422


def test_a_body_without_a_length_is_bounded(served):
    """Chunks without end: refused when there are too many bytes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as stream:
        stream.sendall(
            b"POST /models/flats/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        with contextlib.suppress(OSError):  # it may hang up at any moment
            for _ in range(200):
                stream.sendall(b"400\r\n" + b"[" * 1024 + b"\r\n")
        with contextlib.suppress(OSError):
            answer = stream.recv(1000)
    assert b"413" in answer.split(b"\r\n")[0] or answer == b""


def test_other_hosts_are_refused_without_a_token(client):
    """A page of another site that had its name lead here (DNS rebinding)."""
    assert client.get("/models", Host="evil.example")[0] == 403
    assert client.get("/models", Host="localhost:1234")[0] == 200
    assert client.get("/models", Host="[::1]:1234")[0] == 200


def test_tokens(fresh):
    server, client = fresh({"m": logistic()}, token="correct horse battery".replace(" ", "-"))
    body = {"rows": [ROW], "y": [1]}
    assert client.post("/models/m/learn", body)[0] == 200
    for token in (None, "", "wrong", "correct-horse-batter", "correct-horse-battery-", "ä"):
        other = Client(server.port)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        for path in ("/models/m/learn", "/models/m/predict", "/models/m/promote"):
            assert other.post(path, body, **headers)[0] == 401
        for path in ("/models", "/models/m", "/metrics", "/events?count=1", "/openapi.json", "/nothing"):
            assert other.get(path, **headers)[0] == 401
        assert other.get("/", **headers)[0] == 200  # the page holds no data
    basic = {"Authorization": "Basic correct-horse-battery"}
    assert Client(server.port).get("/models", **basic)[0] == 401
    for headers in ({}, {"Authorization": "Bearer wrong-horse"}, basic):  # it is alive: strangers learn no more
        assert Client(server.port).get("/health", **headers) == (200, {"status": "ok"})
    assert client.get("/health")[1] == {"status": "ok", "problems": {}}
    assert client.get("/models/m")[1]["rows"] == 1


def test_threads_switch_often_while_a_server_runs(tmp_path):
    """Half a dozen threads that each keep the interpreter for 5 ms, Python's default, would hold up every request."""
    before = sys.getswitchinterval()
    with Server(Store(tmp_path), port=0):
        assert sys.getswitchinterval() <= 0.0011
    assert sys.getswitchinterval() == before


def test_a_disk_that_fails(fresh, monkeypatch):
    """507, nothing learned, predictions go on, health says so; and all is well again afterwards."""
    server, client = fresh({"m": logistic()}, options={"flush": "each"})
    X, y = rows(10)
    body = {"rows": X.tolist(), "y": y.tolist()}
    client.post("/models/m/learn", body)
    with server.store.use("m") as learner:
        monkeypatch.setattr(learner.keeper.journal, "append", Mock(side_effect=LogError(28, "No space left on device")))
        status, answer = client.post("/models/m/learn", body)
        assert status == 507 and "No space left" in answer["error"] and learner.total == 10
        assert client.post("/models/m/predict", {"rows": X.tolist()})[0] == 200
        assert client.get("/health")[0] == 503
        monkeypatch.undo()
        assert client.post("/models/m/learn", body)[1]["total"] == 20
        assert client.get("/health")[0] == 200


# -------------------------------------------------------------------- the command
def start(*arguments):
    """A server as a process; returns it and its port."""
    command = [sys.executable, "-m", "kernelstream.cli", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if " at http://" in line:
            return process, int(line.split(" at http://")[1].split(",")[0].rsplit(":", 1)[1])
    raise AssertionError(f"it ended with {process.wait()}")


@pytest.mark.parametrize(
    "kills, model",
    [
        (1, logistic()),
        pytest.param(10, logistic(), marks=pytest.mark.slow),
        pytest.param(10, KernelClassifier(size="medium", random_state=0), marks=pytest.mark.slow),
    ],
    ids=["1", "10", "10 medium"],
)
def test_kill_9_under_load(tmp_path, kills, model):
    """Clients send rows with ids and repeat what was not answered; after the kills each row has been learned once."""
    save(model, tmp_path / "m.ks")
    X, y = rows(100_000)
    answered, stop, port = [0] * 3, threading.Event(), [0]

    def send(k):
        i = k
        while not stop.is_set():
            try:
                client = Client(port[0])
                while not stop.is_set():
                    body = {"rows": X[i : i + 1].tolist(), "y": y[i : i + 1].tolist(), "ids": [i]}
                    status, _ = client.post("/models/m/learn", body)
                    if status == 200:
                        answered[k] += 1
                        i += 3
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.02)

    process, port[0] = start(tmp_path / "m.ks", "--snapshot-rows", 40)
    threads = [threading.Thread(target=send, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            before = sum(answered)
            while sum(answered) < before + 60:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process, port[0] = start(tmp_path / "m.ks", "--snapshot-rows", 40)
        before = sum(answered)
        while sum(answered) < before + 30:
            time.sleep(0.01)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    client = Client(port[0])
    total = client.get("/models/m")[1]["rows"]
    assert sum(answered) <= total <= sum(answered) + 3  # at most one call of each client was never answered
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) in (0, -signal.SIGTERM)
    process.stderr.close()
    with Store(tmp_path / "m.live") as store, store.use("m") as learner:
        assert learner.total == total and learner.champion.scores.rows == total


def test_wrong_usage(tmp_path, capsys):
    save(logistic(), tmp_path / "m.ks")
    (tmp_path / "short").write_text("short\n")
    cases = [
        ([], "needs a model file"),
        ([tmp_path / "nothing.ks"], "No such file"),
        ([tmp_path / "m.ks", "--host", "0.0.0.0"], "needs tokens: name their file"),
        ([tmp_path / "m.ks", "--token-file", tmp_path / "short"], "at least 8"),
        ([tmp_path / "m.ks", "--flush", "often"], "--flush must be"),
        ([tmp_path / "m.ks", "--port", "99999"], "--port must be"),
        (["--store", tmp_path / "empty"], "holds no models"),
    ]
    for arguments, message in cases:
        assert cli.main(["serve", *map(str, arguments)]) in (1, 2)
        assert message in capsys.readouterr().err


def test_a_model_keeps_its_columns(tmp_path):
    """Trained from a CSV by the command, its rows may come as objects."""
    X, _ = rows(200)
    np.savetxt(tmp_path / "flats.csv", np.column_stack([X, X[:, 0]]), delimiter=",", header="size,rooms,floor,price",
               comments="")  # fmt: skip
    path = str(tmp_path / "flats.ks")
    train = ["train", str(tmp_path / "flats.csv"), "--target", "price", "--model", path, "--task", "regression", "-q"]
    assert cli.main(train) == 0
    from kernelstream_service.commands.serve import name_of, read_model

    model, columns = read_model(path)
    assert columns == COLUMNS and name_of(path) == "flats" and name_of("/x/.ks weird:näme.ks") == "ks-weird-n-me"
    with Store(tmp_path / "store", flush="request") as store:
        store.create("flats", model, columns)
        with store.use("flats") as learner:
            assert learner.predict([{"floor": 1, "rooms": 2, "size": 3}]) == model.predict([[3.0, 2.0, 1.0]])


def test_the_live_demonstration(capsys, monkeypatch):
    """It prints its address, opens the page unless told not to, learns, and ends by itself."""
    from kernelstream_service import demo

    opened = []
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    assert cli.main(["serve", "--demo", "--stop-after", "0.4", "--no-open"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out and not opened
    assert demo.run(seconds=0.4, rate=2000) > 0 and opened[0].startswith("http://127.0.0.1:")


def test_the_demonstrations_stream_drifts():
    from kernelstream_service import demo

    blocks = demo.rows()
    first = [next(blocks) for _ in range(2 * demo.CONCEPT_ROWS // demo.ROWS_PER_REQUEST)]
    X, y = (np.concatenate(part) for part in zip(*first))
    model = FeatureClassifier(random_state=0).fit(X[: demo.CONCEPT_ROWS].astype(float), y[: demo.CONCEPT_ROWS])
    wrong = (model.predict(X.astype(float)) != y).reshape(2, demo.CONCEPT_ROWS).mean(axis=1)
    assert wrong[0] < 0.1 and wrong[1] > 2.5 * wrong[0]


def test_words_among_numbers_are_told(fresh):
    """A cell that is none of its column's kind is missing, and the answer and the description of the model say so."""
    server, client = fresh({"flats": make_stream(Columns(), logistic())})
    good = [{"town": "Rome" if i % 2 else "Oslo", "size": float(i)} for i in range(20)]
    told = {"rows": [*good, {"town": "Rome", "size": "large"}], "y": [i % 2 for i in range(21)]}
    assert client.post("/models/flats/learn", {"rows": good, "y": told["y"][:20]})[1]["learned"] == 20
    status, answer = client.post("/models/flats/learn", told)
    assert (status, answer["learned"]) == (200, 21)
    assert answer["warnings"] == ["row 20, column 'size': 'large' is taken as missing"]
    asked = [{"size": "7", "town": "Rome"}, {"size": "a lot", "town": 5}]
    status, answer = client.post("/models/flats/predict", {"rows": asked})
    assert answer["warnings"] == ["row 1, column 'size': 'a lot' is taken as missing"]  # "7" is a number
    many = client.post("/models/flats/predict", {"rows": [{"size": "x", "town": "Rome"}] * 9})[1]["warnings"]
    assert len(many) == 6 and many[-1] == "and 4 more cells"
    caught_up(server, "flats")
    assert client.get("/models/flats")[1]["wrong_cells"] == {"size": 1}


def test_lists_beside_objects(fresh):
    """A model of named columns takes a list as its cells in their order; one of another length is refused."""
    server, client = fresh({"flats": make_stream(Columns(), logistic())})
    rows = [{"town": "Rome" if i % 2 else "Oslo", "size": float(i)} for i in range(20)]
    assert client.post("/models/flats/learn", {"rows": rows, "y": [i % 2 for i in range(20)]})[0] == 200
    caught_up(server, "flats")
    by_name = client.post("/models/flats/predict", {"rows": [{"town": "Rome", "size": 3.5}]})[1]
    assert client.post("/models/flats/predict", {"rows": [["Rome", 3.5]]})[1] == by_name
    status, answer = client.post("/models/flats/learn", {"rows": [[3.5]], "y": [1]})
    assert status == 422 and answer["column"] == "size" and "has 1 columns, the model has 2" in answer["error"]
    assert client.post("/models/flats/learn", {"rows": [["Oslo", 3.5]], "y": [1]})[1]["total"] == 21
    assert client.get("/models/flats")[1]["columns"] == ["town", "size"]
