"""Who may do what, and what an administrator does over HTTP."""

import io

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_cases import logistic, moons
from live_client import Client, caught_up
from waiting import run_until

from kernelstream import FeatureRegressor, load, model_io
from kernelstream.features import RandomFourier
from kernelstream_service import rights

BODY = {"rows": [[0.5, 0.5, 0.5]], "y": [1]}
BYTES = {"Content_Type": "application/octet-stream"}


def wave(**options):
    return FeatureRegressor(RandomFourier(n_components=20), random_state=0, **options)


def smooth(n, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return X, np.sin(X[:, 0]) + X[:, 1]


def put(client, path, content, **headers):
    return client.ask("PUT", path, content, {**BYTES, **headers})


TOKENS = (
    "predict-a predict a",
    "learn-only learn a,b",
    "operator-1 operate  # the night shift",
    "admin-of-a administer a",
)


@pytest.fixture
def many(fresh):
    server, client = fresh({"a": logistic(), "b": logistic()}, token="all-of-it", tokens=TOKENS)
    for name in "ab":
        assert client.post(f"/models/{name}/learn", BODY)[0] == 200
        caught_up(server, name)
    return server, client


def test_each_token_has_its_rights_and_models(many):
    server, _client = many
    asked = {
        "predict": lambda c, m: c.post(f"/models/{m}/predict", {"rows": BODY["rows"]})[0],
        "learn": lambda c, m: c.post(f"/models/{m}/learn", BODY)[0],
        "operate": lambda c, m: c.post(f"/models/{m}/acknowledge", {})[0],
        "administer": lambda c, m: c.ask("DELETE", f"/models/{m}/challenger", None, {})[0],
        "look": lambda c, m: c.get(f"/models/{m}")[0],
    }
    allowed = {
        "predict-a": {("predict", "a"), ("look", "a")},
        "learn-only": {("learn", "a"), ("learn", "b"), ("look", "a"), ("look", "b")},
        "operator-1": {("operate", "a"), ("operate", "b"), ("look", "a"), ("look", "b")},
        "admin-of-a": {("administer", "a"), ("look", "a")},
        "all-of-it": {(right, name) for right in asked for name in "ab"},
    }
    for token, may in allowed.items():
        own = Client(server.port, token)
        for right, ask in asked.items():
            for name in "ab":
                assert ask(own, name) == (200 if (right, name) in may else 403), (token, right, name)
        names = [model["name"] for model in own.get("/models")[1]["models"]]
        assert names == sorted({name for _, name in may})
        whole = token in ("operator-1", "all-of-it")
        assert own.get("/metrics")[0] == (200 if whole else 403)
        assert ("problems" in own.get("/health")[1]) is whole
        assert own.get("/events?count=1&model=b")[0] == (200 if ("look", "b") in may else 403)
    status, _answer = Client(server.port, "predict-a").post("/models/nothing/predict", {"rows": []})
    assert status == 403  # it is not told which models there are
    asks = {
        token: Client(server.port, token).post("/models/a/forecast", {"rows": BODY["rows"]})[0] for token in allowed
    }
    assert [token for token, status in asks.items() if status == 200] == ["predict-a", "all-of-it"]
    assert "right 'learn'" in Client(server.port, "predict-a").post("/models/a/learn", BODY)[1]["error"]


def test_tokens_change_without_a_restart(many, monkeypatch, tmp_path):
    server, client = many
    monkeypatch.setattr(rights, "SECONDS_UNREAD", 0.0)
    file = tmp_path / "tokens0"
    newcomer = Client(server.port, "newcomer-1")
    assert newcomer.get("/models")[0] == 401
    file.write_text("newcomer-1 predict\nall-of-it\n")
    assert newcomer.get("/models")[0] == 200 and newcomer.post("/models/a/learn", BODY)[0] == 403
    assert Client(server.port, "predict-a").get("/models")[0] == 401
    file.write_text("newcomer-1 fly\n")  # a mistake: those of before are good, and it is said
    assert newcomer.get("/models")[0] == 200
    status, answer = client.get("/health")
    assert status == 503 and "line 1: the rights are predict" in answer["problems"]["tokens"]
    file.write_text("newcomer-1 learn,predict a\n")
    assert newcomer.post("/models/a/learn", BODY)[0] == 200 and newcomer.get("/health")[0] == 200
    assert client.get("/models")[0] == 401


@pytest.mark.parametrize("line", ["", "# nothing", "short", "long-enough all * more", "long-enough fly", "ünïcödéé"])
def test_lines_that_are_no_tokens(tmp_path, line):
    (tmp_path / "t").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"t(, line 1: | holds no token)"):
        rights.Tokens(tmp_path / "t")


def test_models_come_and_go(many, tmp_path):
    """Created, downloaded, replaced, challenged and deleted; a model keeps what it has learned on its way."""
    server, client = many
    X, y = smooth(300)
    model = wave()
    model.learn(X, y)
    content = model_io.to_bytes(model)
    assert put(client, "/models/new", content) == (201, {"version": 1})
    found = client.post("/models/new/predict", {"rows": X[:5].tolist()})[1]["predictions"]
    np.testing.assert_array_equal(found, model.predict(X[:5]))
    more, truth = smooth(50, seed=1)
    client.post("/models/new/learn", {"rows": more.tolist(), "y": truth.tolist()})
    model.learn(more, truth)
    client.connection.request("GET", "/models/new/file", headers=client.headers)
    answer = client.connection.getresponse()
    taken = answer.read()
    assert answer.status == 200 and 'filename="new.ks"' in answer.getheader("content-disposition")
    np.testing.assert_array_equal(load(io.BytesIO(taken)).predict(X), model.predict(X))
    other = wave(update="ogd")
    other.learn(X, y)
    assert put(client, "/models/new/challenger", model_io.to_bytes(other))[0] == 200
    assert client.get("/models/new")[1]["challenger"]["class"] == "FeatureRegressor"
    assert client.ask("DELETE", "/models/new/challenger", None, {})[0] == 200
    assert client.get("/models/new")[1]["challenger"] is None
    assert put(client, "/models/new", model_io.to_bytes(other)) == (200, {"version": 2})
    found = client.post("/models/new/predict", {"rows": X[:5].tolist()})[1]
    np.testing.assert_array_equal(found["predictions"], other.predict(X[:5]))
    assert client.post("/models/new/rollback", {})[1] == {"version": 3}
    found = client.post("/models/new/predict", {"rows": X[:5].tolist()})[1]
    np.testing.assert_array_equal(found["predictions"], model.predict(X[:5]))
    assert client.ask("DELETE", "/models/new", None, {}) == (200, {"deleted": "new"})
    assert client.get("/models/new")[0] == 404 and client.ask("DELETE", "/models/new", None, {})[0] == 404
    assert not list(server.store.folder.glob("*new*"))
    assert put(client, "/models/new", content)[0] == 201  # and it starts afresh
    assert client.get("/models/new")[1]["rows"] == 300


def test_what_no_model_can_be_made_of(many):
    server, client = many
    X, y = smooth(50)
    regression, wide = wave(), logistic()
    regression.learn(X, y)
    wide.learn(np.ones((5, 4)), [0, 1, 0, 1, 0])
    batch = model_io.to_bytes(regression)
    assert put(client, "/models/new", b"no model")[0] == 422
    assert put(client, "/models/new", b"")[0] == 422
    assert put(client, "/models/new", batch, Content_Type="application/json")[0] == 415
    for name in ("..", "a%2Fb", "-x", "x" * 65, "%2e%2e"):
        assert put(client, f"/models/{name}", batch)[0] in (404, 422)
    assert put(client, "/models/a", batch)[0] == 409  # another task
    status, answer = put(client, "/models/a", model_io.to_bytes(wide))
    assert status == 409 and "4 columns" in answer["error"]
    assert client.get("/models/a")[1]["version"] == 1
    assert sorted(server.store.names()) == ["a", "b"]


def test_without_tokens_nobody_administers(fresh):
    _, client = fresh({"a": logistic()})
    assert client.ask("DELETE", "/models/a", None, {})[0] == 403
    assert put(client, "/models/b", model_io.to_bytes(wave()))[0] == 403
    assert client.get("/models/a/file")[0] == 403
    assert client.post("/models/a/learn", BODY)[0] == 200


def test_deleting_waits_for_calls_under_way(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    from kernelstream_service import Store

    X, y = moons(100)
    with Store(tmp_path) as store, ThreadPoolExecutor(1) as pool:
        store.create("m", logistic())
        with store.use("m") as learner:
            gone = pool.submit(store.delete, "m")
            run_until(lambda: "m" not in store)
            with pytest.raises(KeyError):
                store.use("m").__enter__()
            with pytest.raises(ValueError, match="already"):
                store.create("m", logistic())
            assert learner.learn(X, y).total == 100
        gone.result(20)
        store.create("m", logistic())
        with store.use("m") as learner:
            assert learner.total == 0
    (tmp_path / ".deleted-x-1").mkdir()  # of a deletion that was cut short
    with Store(tmp_path) as store:
        assert store.names() == ["m"] and not [*tmp_path.glob(".deleted*")]
