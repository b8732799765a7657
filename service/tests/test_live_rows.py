"""What becomes of rows that do not fit the served model: unknown keys, gaps, wrong cells, targets of another kind."""

import time

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_client import caught_up

from kernelstream import FeatureClassifier, FeatureRegressor, KernelRegressor, OnlineRidge
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream.trust import WithIntervals
from kernelstream_service import DurableLearner
from kernelstream_service.answers import View
from kernelstream_service.predictions import predictions
from kernelstream_service.rows import gaps_of

PREDICT, LEARN = "/models/m/predict", "/models/m/learn"


def weather(n=60, seed=0):
    rng = np.random.default_rng(seed)
    temp, wind = rng.normal(size=n), rng.normal(size=n)
    towns = rng.choice(["Rome", "Oslo"], n)
    rows = [{"temp": float(t), "wind": float(w), "town": str(c)} for t, w, c in zip(temp, wind, towns)]
    return rows, (3.0 * temp + wind + (towns == "Rome")).tolist()


def mixed():
    rows, y = weather()
    model = make_stream(Columns(), FeatureRegressor(RandomFourier(n_components=20), random_state=0))
    model.learn(rows, y)
    return model


# -------------------------------------------------------------------- columns
def test_unknown_keys_are_refused(fresh):
    """A key that is misspelt is named, nothing is learned, and lists of the model's columns are taken as before."""
    server, client = fresh({"m": mixed()})
    for path, more in ((LEARN, {"y": [1.0]}), (PREDICT, {})):
        status, answer = client.post(path, {"rows": [{"tmep": 290.0, "wind": 1.0}], **more})
        assert status == 422 and "did you mean 'temp'?" in answer["error"]
        assert (answer["row"], answer["column"]) == (0, "tmep")
    with server.store.use("m") as learner:
        assert learner.total == 60 and list(learner.champion.model.columns_.kinds_) == ["temp", "wind", "town"]
    assert client.post(PREDICT, {"rows": [[1.0, 2.0, "Rome"]]})[0] == 200


def test_open_columns_are_bounded(fresh):
    """With open columns a new one is learned, and in a prediction told; the encoder's bound holds."""
    model = make_stream(
        Columns(max_columns=5), FeatureRegressor(RandomFourier(n_components=20), random_state=0), room=99
    )
    rows, y = weather()
    model.learn(rows, y)
    server, client = fresh({"m": model}, opened=True)
    status, answer = client.post(PREDICT, {"rows": [rows[0] | {"rain": 1.0}]})
    assert status == 200 and answer["warnings"] == ["columns that the model does not know are ignored: 'rain'"]
    assert client.post(LEARN, {"rows": [rows[0] | {"rain": 1.0}], "y": [1.0]})[0] == 200
    caught_up(server, "m")
    assert client.get("/models/m")[1]["columns"] == ["temp", "wind", "town", "rain"]
    junk = {f"k{i}": 1.0 for i in range(10)}
    status, answer = client.post(LEARN, {"rows": [rows[0] | junk], "y": [1.0]})
    assert status == 422 and "more than 5" in answer["error"]


def test_a_model_of_a_thousand_columns_is_described_at_once(tmp_path, monkeypatch):
    """However long the model takes to say which columns matter: neither descriptions nor predictions wait for it."""
    rng = np.random.default_rng(0)
    rows = [{f"k{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(3, 1000))]
    model = make_stream(Columns(), FeatureRegressor(RandomFourier(n_components=5), random_state=0))
    with DurableLearner(tmp_path, model, flush="request") as learner:
        learner.learn(rows, [0.0, 1.0, 2.0])
        monkeypatch.setattr(type(model), "relevance_", property(lambda self: time.sleep(1.0) or np.ones(1000)))
        waits, began = [], time.perf_counter()
        for _ in range(5):
            started = time.thread_time()
            about = learner.describe()
            waits.append(time.thread_time() - started)
        learner.predict(rows[:1])
        assert about["relevance"] is None and time.perf_counter() - began < 0.9
        assert len(about["kinds"]) == 1000 and sorted(waits)[2] < 0.02
        learner._relevance.finder.join()
        assert learner.describe()["relevance"] == [1.0] * 1000


# -------------------------------------------------------------------- gaps
@pytest.mark.parametrize("row", [{}, {"temp": None}, {"temp": "warm", "wind": "?"}, [None, None, None], ["a", "b", ""]])
def test_rows_without_a_value_are_refused(fresh, row):
    _, client = fresh({"m": mixed()})
    good = weather(1)[0][0]
    for path, more in ((LEARN, {"y": [1.0, 1.0]}), (PREDICT, {})):
        status, answer = client.post(path, {"rows": [good, row], **more})
        assert status == 422 and "row 1 has no value in any column of the model (temp, wind, town)" in answer["error"]


def test_gaps_are_told_in_lists_as_in_objects(fresh):
    _, client = fresh({"m": mixed()})
    objects = [
        {"temp": 1.0, "wind": 2.0, "town": "Rome"},
        {"temp": "warm", "town": "Oslo"},
        {"wind": 1.0, "town": None},
    ]
    lists = [[1.0, 2.0, "Rome"], ["warm", None, "Oslo"], [None, 1.0, None]]
    expected = [
        "row 1, column 'temp': 'warm' is taken as missing",
        "column 'wind' is missing in row 1",
        "column 'temp' is missing in row 2",
        "column 'town' is missing in row 2",
    ]
    answers = [client.post(PREDICT, {"rows": rows})[1] for rows in (objects, lists)]
    assert answers[0] == answers[1] and answers[0]["warnings"] == expected
    for rows in (objects, lists):
        assert client.post(LEARN, {"rows": rows, "y": [1.0, 2.0, 3.0]})[1]["warnings"] == expected
    assert "warnings" not in client.post(PREDICT, {"rows": objects[:1]})[1]


@pytest.mark.parametrize("target", ["normal", "skewed"])
def test_intervals_of_rows_with_gaps_hold_nine_in_ten(target):
    """Simulated: the column that matters is missing in rows to predict; their intervals still hold 90 %.

    The model's own, which have seen full rows only, hold far fewer.
    """
    rng = np.random.default_rng(0)
    x, z = (rng.normal(size=4000) if target == "normal" else rng.exponential(size=4000)), rng.normal(size=4000)
    y = 10.0 + 2.0 * x + 0.3 * z + 0.2 * rng.normal(size=4000)
    rows = [{"x": float(a), "z": float(b)} for a, b in zip(x, z)]
    model = WithIntervals(OnlineRidge(RandomFourier(n_components=60), random_state=0))
    model = make_stream(Columns(), model)
    model.learn(rows[:2000], y[:2000])
    view, truth = View(model, 1, 2000, None, "regression", ("predict_interval",)), y[2000:]

    def held(told):
        low, high = predictions(view, told, gaps_of(told, model))["intervals"].T
        return np.mean((low <= truth) & (truth <= high)), np.mean(high - low)

    gappy = [{"z": row["z"]} for row in rows[2000:]]
    low, high = model.predict_interval(gappy)
    assert np.mean((low <= truth) & (truth <= high)) < 0.6
    share, width = held(gappy)
    narrow = held(rows[2000:])[1]
    assert share >= 0.9 and narrow < 0.4 * width
    assert width < 1.1 * np.sqrt(160 / 9) * y.std()  # mean ± sqrt(40/9) deviations, no wider


def test_usual_gaps_do_not_widen():
    """A column that is missing most of the time: its gaps are part of the errors that the intervals follow."""
    rows, y = weather(200)
    for i, row in enumerate(rows):
        if i % 4:
            del row["wind"]
    model = make_stream(Columns(), WithIntervals(OnlineRidge(RandomFourier(n_components=20), random_state=0)))
    model.learn(rows, y)
    assert model.columns_.missing_["wind"] == pytest.approx(0.75) and model.columns_.missing_["temp"] == 0.0
    view = View(model, 1, 200, None, "regression", ("predict_interval",))
    told = [rows[1], {"town": "Rome", "wind": 1.0}]
    found = predictions(view, told, gaps_of(told, model))["intervals"]
    own = np.column_stack(model.predict_interval(told))
    assert (found[0] == own[0]).all() and (found[1] != own[1]).any()


# -------------------------------------------------------------------- answers and targets
def test_targets_of_another_kind_are_refused(fresh):
    server, client = fresh({"m": mixed()})
    row = weather(1)[0][0]
    for y, message in (([True], "target 0 is True"), (["4500"], "'4500'"), ([1.0, True], "target 1 is True")):
        status, answer = client.post(LEARN, {"rows": [row] * len(y), "y": y})
        assert status == 422 and message in answer["error"] and "learns numbers" in answer["error"]
    assert client.post(LEARN, {"rows": [row], "y": [4500]})[0] == 200
    with server.store.use("m") as learner:
        assert learner.champion.scores.rows == 1


def test_probabilities_name_their_classes(fresh):
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = np.array(["low", "mid", "up"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = FeatureClassifier(RandomFourier(n_components=20), loss="softmax", random_state=0).fit(X, y)
    _, client = fresh({"m": model})
    answer = client.post(PREDICT, {"rows": X[:5].tolist()})[1]
    assert answer["classes"] == ["low", "mid", "up"]
    named = [answer["classes"][int(np.argmax(p))] for p in answer["probabilities"]]
    assert named == answer["predictions"] == model.predict(X[:5]).tolist()


@pytest.mark.parametrize("model", [mixed(), FeatureRegressor(random_state=0).fit(np.eye(60), np.arange(60.0))])
def test_rows_from_before_are_counted(fresh, model):
    """A model that was trained on 60 rows and learns one more has learned 61."""
    _, client = fresh({"m": model})
    row = weather(1)[0][0] if hasattr(model, "columns_") else [0.0] * 60
    assert client.get("/models/m")[1]["rows"] == 60
    assert client.post(LEARN, {"rows": [row], "y": [1.0]})[1]["total"] == 61


def test_a_wild_target_is_named(fresh):
    """One mistyped target is answered with a warning, and the model is as without it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    model = KernelRegressor(size="small", random_state=0).partial_fit(X, 100 + 10 * X[:, 0])
    _, client = fresh({"m": model})
    answer = client.post(LEARN, {"rows": X[:3].tolist(), "y": [100.0, 1e6, 100.0]})[1]
    assert answer["warnings"] == ["a row had a target far outside the others so far, and changed nothing"]
    assert "warnings" not in client.post(LEARN, {"rows": X[:1].tolist(), "y": [100.0]})[1]
