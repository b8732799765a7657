"""Calls that are refused, names of rows, versions."""

import numpy as np
import pytest
from live_cases import CALLS, crash, logistic, moons, same, taught

import kernelstream as ks
from kernelstream import model_io
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream_papers.rivals import FixedFeatureRegressor
from kernelstream_service import DurableLearner, RowError, StoreError, UnknownId
from kernelstream_service.keeper import Keeper


# -------------------------------------------------------------------- bad calls
def test_a_refused_call_leaves_the_model_and_the_replay_alone(tmp_path):
    """A call that only the model itself can refuse, behind the log, is not learned by a replay either."""
    learner = DurableLearner(tmp_path, ks.FeatureRegressor(features=RandomFourier(n_components=10), random_state=0))
    X, _ = moons(20)
    learner.learn(X, X[:, 0])
    before = model_io.to_bytes(learner.champion.model)
    with pytest.raises(ValueError):
        learner.learn(X, np.array(["word"] * 20))
    assert model_io.to_bytes(learner.champion.model) == before and learner.total == 20
    learner.learn(X, X[:, 1])
    crash(learner)
    with DurableLearner(tmp_path) as again:
        assert same(again.champion.model, learner.champion.model) and again.total == 40


@pytest.mark.parametrize(
    "rows, y, message, column",
    [
        ([[1.0, 2.0]], [1], "2 columns, the model has 3", 2),
        ([[1.0, 2.0, 3.0], [1.0, 2.0]], [1, 0], "row 1 has 2 columns", 2),
        ([[1.0, "two", 3.0]], [1], "column 1: the value is 'two'", 1),
        ([[1.0, None, 3.0]], [1], "column 1: the value is missing", 1),
        ([[1.0, float("nan"), 3.0]], [1], "column 1", 1),
        ([[1.0, 2.0, 10**400]], [1], "column 2", 2),
        ([[1.0, 2.0, [3.0]]], [1], "column 2", 2),
        ("rows", [1], "must be a list", None),
        ([1.0, 2.0], [1, 0], "row 0 must be a list", None),
        ([[1.0, 2.0, 3.0]], [1, 0], "1 rows, but 2 targets", "y"),
        ([[1.0, 2.0, 3.0]], [None], "target 0 is None", "y"),
        ([[1.0, 2.0, 3.0]], [float("inf")], "target 0 is inf", "y"),
        ([[1.0, 2.0, 3.0]] * 2, ["a", 1], "mixes words and numbers", "y"),
        ([[1.0, 2.0, 3.0]], None, "needs y", None),
        ([{"a": 1.0, "b": 2.0, "c": 3.0}], [1], "has no names for its 3 columns", None),
    ],
)
def test_what_is_wrong_with_a_row(tmp_path, rows, y, message, column):
    with taught(tmp_path, CALLS) as learner:
        with pytest.raises(RowError, match=message) as wrong:
            learner.learn(rows, y)
        assert wrong.value.column == column
        assert learner.total == sum(len(y) for _, y in CALLS)


def test_rows_as_dictionaries(tmp_path):
    """By the names the model was told, in any order; further keys do not matter."""
    X, y = moons(50)
    with DurableLearner(tmp_path / "named", logistic(), columns=["a", "b", "c"]) as learner:
        learner.learn([{"c": c, "extra": "?", "a": a, "b": b} for a, b, c in X], y)
        plain = logistic()
        plain.learn(X, y)
        assert same(learner.champion.model, plain)
        with pytest.raises(RowError, match=r"row 0 has no column 'b': did you mean 'bb'\?") as wrong:
            learner.predict([{"a": 1.0, "bb": 2.0, "c": 3.0}])
        assert wrong.value.column == "b"
    with DurableLearner(tmp_path / "new", logistic()) as learner:  # the first row says what there is
        learner.learn([{"u": 1.0, "v": 2.0}], [1])
    with DurableLearner(tmp_path / "new") as learner:
        learner.learn([{"v": 2.0, "u": 1.0}], [0])
        assert learner.champions.columns == ["u", "v"]


def test_what_cannot_learn_is_refused(tmp_path):
    model = FixedFeatureRegressor()
    with pytest.raises(ValueError, match="has no method learn"):
        DurableLearner(tmp_path, model)
    with pytest.raises(StoreError, match="give a model to start with"):
        DurableLearner(tmp_path / "nothing")


# -------------------------------------------------------------------- ids
def test_targets_by_id(tmp_path):
    X, y = moons(30)
    with taught(tmp_path, CALLS) as learner:
        learner.predict(X, ids=list(range(30)))
        answer = learner.learn(ids=[3, 1], y=y[[3, 1]])
        assert (answer.learned, answer.repeated) == (2, 0)
        undisturbed = taught(tmp_path / "other", [*CALLS, (X[[3, 1]], y[[3, 1]])])
        assert same(learner.champion.model, undisturbed.champion.model)
        undisturbed.close()
        again = learner.learn(ids=[1, 3], y=y[[1, 3]])
        assert (again.learned, again.repeated) == (0, 2)
        mixed = learner.learn(ids=[3, 4], y=y[[3, 4]])
        assert (mixed.learned, mixed.repeated) == (1, 1)
        with pytest.raises(UnknownId, match="'no such'"):
            learner.learn(ids=["no such"], y=[1])


def test_remembered_rows_are_bounded(tmp_path):
    X, _ = moons(30)
    with taught(tmp_path, CALLS, remember=10) as learner:
        learner.predict(X, ids=list(range(30)))
        with pytest.raises(UnknownId):
            learner.learn(ids=[19], y=[1])
        assert learner.learn(ids=[20], y=[1]).learned == 1


def test_a_call_repeated_after_a_crash_is_learned_once(tmp_path):
    """The answer was lost with the process: the client sends the call again."""
    X, y = moons(10)
    for snapshot_rows in (1, 10**6):
        folder = tmp_path / str(snapshot_rows)
        learner = taught(folder, CALLS, snapshot_rows=snapshot_rows)
        learner.learn(X, y, ids=[f"row {i}" for i in range(10)])
        crash(learner)
        again = DurableLearner(folder)
        answer = again.learn(X[5:], y[5:], ids=[f"row {i}" for i in range(5, 10)])
        assert (answer.learned, answer.repeated) == (0, 5)
        assert same(again.champion.model, learner.champion.model)
        twice = again.learn(X[:2], y[:2], ids=["x", "x"])
        assert (twice.learned, twice.repeated) == (1, 1)
        again.close()


def test_a_call_has_no_more_ids_than_are_remembered(tmp_path):
    """Otherwise its first rows would be learned again when it is repeated."""
    X, y = moons(30)
    with DurableLearner(tmp_path, logistic(), remember=20) as learner:
        with pytest.raises(RowError, match="30 ids, but only 20 are remembered"):
            learner.learn(X, y, ids=list(range(30)))
        assert learner.total == 0
        for learned in (20, 0):
            assert learner.learn(X[:20], y[:20], ids=list(range(20))).learned == learned


# -------------------------------------------------------------------- versions
def test_champion_and_challenger(tmp_path):
    """The challenger learns the same rows; promoted and called back, everything survives a crash at any moment."""
    X, y = moons(400)
    learner = taught(tmp_path, [(X[:100], y[:100])])
    rival = ks.FeatureClassifier(loss="logistic", features=RandomFourier(n_components=50), random_state=5)
    learner.challenge(rival)
    learner.learn(X[100:200], y[100:200])
    rival.learn(X[100:200], y[100:200])
    crash(learner)
    learner = DurableLearner(tmp_path)
    assert same(learner.champions.challenger.model, rival)
    assert learner.champions.challenger.scores.rows == learner.champions.against.rows == 100
    old = model_io.to_bytes(learner.champion.model)
    assert learner.promote() == 2 and learner.version == 2 and learner.champions.challenger is None
    assert learner.view.version == 2 and same(learner.model, rival)
    learner.learn(X[200:300], y[200:300])
    rival.learn(X[200:300], y[200:300])
    crash(learner)
    learner = DurableLearner(tmp_path)
    assert same(learner.champion.model, rival) and learner.version == 2
    new = model_io.to_bytes(learner.champion.model)
    assert learner.rollback() == 3 and model_io.to_bytes(learner.champion.model) == old
    crash(learner)
    learner = DurableLearner(tmp_path)
    assert model_io.to_bytes(learner.champion.model) == old and learner.version == 3
    assert learner.rollback(to=2) == 4 and model_io.to_bytes(learner.champion.model) == new
    with pytest.raises(ValueError, match="no version 9"):
        learner.rollback(to=9)
    with pytest.raises(ValueError, match="no challenger"):
        learner.promote()
    learner.close()


def test_versions_by_replay_alone(tmp_path, monkeypatch):
    """The same without the snapshots that follow a change of version: the log has all of it."""
    monkeypatch.setattr(Keeper, "snapshot", lambda self: None)
    X, y = moons(100)
    learner = taught(tmp_path, [(X, y)])
    learner.challenge(logistic())
    learner.learn(X, y)
    with pytest.raises(ValueError, match="to go back to"):
        learner.rollback()
    learner.promote()
    learner.learn(X, y)
    learner.rollback()
    learner.learn(X, y)
    expected = model_io.to_bytes(learner.champion.model)
    crash(learner)
    again = DurableLearner(tmp_path)
    assert again.version == 3 and model_io.to_bytes(again.champion.model) == expected
    assert again.champion.scores.summary() == learner.champion.scores.summary()
    crash(again)


def test_few_former_versions_are_kept(tmp_path):
    with taught(tmp_path, CALLS) as learner:
        for _ in range(8):
            learner.challenge(logistic())
            learner.promote()
        assert len(list(tmp_path.glob("version-*.ks"))) == 5
        assert [old["version"] for old in learner.champions.retired] == [4, 5, 6, 7, 8]


def test_a_challenger_of_numbers_beside_a_champion_of_words(tmp_path):
    """It gets an encoder of its own; one that has learned rows of numbers cannot."""
    rows = [{"town": "Rome" if i % 3 else "Oslo", "size": float(i % 7)} for i in range(60)]
    y = np.array([float(row["town"] == "Rome") for row in rows])
    with DurableLearner(tmp_path, make_stream(Columns(), ks.OnlineRidge(random_state=0)), flush="request") as learner:
        learner.learn(rows, y)
        learner.challenge(ks.OnlineRidge(random_state=1))
        learner.learn(rows, y)
        about = learner.describe()["challenger"]
        assert about["failures"] == 0 and about["class"] == "OnlineRidge" and about["scores"]["rows"] == 60
        with pytest.raises(ValueError, match="rows of numbers"):
            learner.challenge(ks.OnlineRidge().fit(np.zeros((3, 2)), np.zeros(3)))


def test_a_challenger_that_fails_does_no_harm(tmp_path):
    X, y = moons(50)
    with taught(tmp_path, [(X, y)]) as learner:
        learner.challenge(logistic().fit(*moons(10, d=5)))  # it knows other rows
        answer = learner.learn(X, y)
        assert answer.learned == 50 and learner.champions.challenger.failures == 1
        with pytest.raises(ValueError, match="classification"):
            learner.challenge(ks.FeatureRegressor())
