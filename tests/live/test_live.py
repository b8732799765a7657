"""Durable learners: nothing that was acknowledged is lost, and a replay gives the same model to the last bit."""

import io
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernelstream import (
    BudgetClassifier,
    BudgetOneClass,
    FeatureClassifier,
    FeatureRegressor,
    MultiKernelClassifier,
    OnlineRidge,
    model_io,
)
from kernelstream.baselines import FixedFeatureRegressor
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream.live import Busy, DurableLearner, LogError, RowError, Store, StoreError, UnknownId, snapshots, writer
from kernelstream.live.scores import Change, Scores


def moons(n=300, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, 0)


def logistic(**options):
    return FeatureClassifier(loss="logistic", features=RandomFourier(n_components=20), random_state=0, **options)


def same(a, b):
    return model_io.to_bytes(a) == model_io.to_bytes(b)


def crash(learner):
    """Let go of the folder as a killed process would: nothing is written any more."""
    with learner._condition:
        learner._closed = True
        learner._condition.notify_all()
    if learner._thread is not None:
        learner._thread.join()
    learner._wait_for_saver()
    learner._lock.close()


def taught(folder, calls, model=None, **options):
    learner = DurableLearner(folder, model or logistic(), **options)
    for X, y in calls:
        learner.learn(X, y)
    return learner


CALLS = [moons(n, seed=n) for n in (1, 7, 50, 1, 33, 120, 2)]


# -------------------------------------------------------------------- recovery
@pytest.mark.parametrize(
    "model",
    [
        logistic(),
        FeatureClassifier(),  # its seed is left to chance
        BudgetClassifier(budget=10),
        MultiKernelClassifier(),
        FeatureClassifier(standardize=True, features=RandomFourier(n_components=10)),
    ],
    ids=["logistic", "no seed", "budget", "ensemble", "standardize"],
)
@pytest.mark.parametrize("snapshot_rows", [1, 60, 10**6])
def test_a_crash_at_any_call_changes_nothing(tmp_path, model, snapshot_rows):
    """The model after a crash behind every call equals one that was never disturbed."""
    learner = DurableLearner(tmp_path / "a", model, snapshot_rows=snapshot_rows)
    undisturbed = DurableLearner(tmp_path / "b", learner.champion.model)
    for X, y in CALLS:
        learner.learn(X, y)
        crash(learner)
        learner = DurableLearner(tmp_path / "a", snapshot_rows=snapshot_rows)
        undisturbed.learn(X, y)
        assert learner.total == undisturbed.total
        assert same(learner.champion.model, undisturbed.champion.model)
        assert learner.champion.scores.summary() == undisturbed.champion.scores.summary()
        assert learner.champion.scores.picture() == undisturbed.champion.scores.picture()
    learner.close()
    undisturbed.close()


def test_a_regressor_and_a_detector(tmp_path):
    X, _ = moons()
    for model, y in (
        (OnlineRidge(features=RandomFourier(n_components=10), random_state=0), X[:, 0] ** 2),
        (BudgetOneClass(budget=10), None),
    ):
        folder = tmp_path / type(model).__name__
        with DurableLearner(folder, model) as learner:
            assert learner.learn(X, y).total == 300
            state = model_io.to_bytes(learner.champion.model)
        again = DurableLearner(folder)
        assert model_io.to_bytes(again.champion.model) == state
        again.close()


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_kill_9(tmp_path, kills):
    """kill -9 while it learns: no acknowledged row is lost, none is learned twice, the model is the same to the bit."""
    script = Path(__file__).with_name("live_killed.py")
    command = [sys.executable, str(script), str(tmp_path), str(kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == f"kills {kills}"
    assert all(int(line.split()[1]) > 20 for line in done.stdout.splitlines()[:-1]), done.stdout


def test_the_folder_counts_not_the_model_given_again(tmp_path):
    taught(tmp_path, CALLS).close()
    with DurableLearner(tmp_path, logistic()) as learner:
        assert learner.total == sum(len(y) for _, y in CALLS)


def test_snapshots_are_model_files_and_few(tmp_path):
    learner = taught(tmp_path, CALLS, snapshot_rows=5)
    learner.close()
    files = sorted(tmp_path.glob("snapshot-*.ks"))
    assert len(files) == 2
    assert same(model_io.load(files[-1]), learner.champion.model)
    assert len(list(tmp_path.glob("log-*.bin"))) <= 3


# -------------------------------------------------------------------- what can go wrong with a disk
def test_a_damaged_snapshot_is_passed_over(tmp_path, caplog):
    """The older one and a longer replay give the same model; health and log say so."""
    learner = taught(tmp_path, CALLS, snapshot_rows=5)
    learner.close()
    newest = max(tmp_path.glob("snapshot-*.ks"))
    newest.write_bytes(newest.read_bytes()[:-100])
    with caplog.at_level(logging.ERROR, "kernelstream.live"):
        again = DurableLearner(tmp_path)
    assert same(again.champion.model, learner.champion.model) and again.total == learner.total
    assert newest.name in caplog.text and newest.name in again.health()["problems"]["recovery"]
    assert again.health()["status"] == "degraded"
    again.learn(*moons(5))  # it goes on
    again.close()


def test_without_any_snapshot_nothing_is_overwritten(tmp_path):
    taught(tmp_path, CALLS, snapshot_rows=5).close()
    for path in tmp_path.glob("snapshot-*.ks"):
        path.write_bytes(b"no model")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StoreError, match="none of its 2 snapshots"):
        DurableLearner(tmp_path, logistic())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_torn_end_of_the_log(tmp_path):
    learner = taught(tmp_path, CALLS)
    crash(learner)
    [path] = tmp_path.glob("log-*.bin")
    path.write_bytes(path.read_bytes()[:-5])  # the last call, of 2 rows, had not been acknowledged
    again = DurableLearner(tmp_path)
    assert again.total == learner.total - 2 and again.health()["status"] == "ok"
    again.learn(*CALLS[-1])
    assert same(again.champion.model, learner.champion.model)
    crash(again)
    last = DurableLearner(tmp_path)
    assert same(last.champion.model, learner.champion.model)
    last.close()


def test_damage_inside_the_log_is_said_and_the_rest_is_used(tmp_path):
    learner = taught(tmp_path, CALLS)
    crash(learner)
    [path] = tmp_path.glob("log-*.bin")
    content = bytearray(path.read_bytes())
    content[16 + 16 + 20] ^= 1  # in the first record, of one row
    path.write_bytes(bytes(content))
    again = DurableLearner(tmp_path)
    assert again.total == learner.total - 1
    assert "records 0 to 0" in again.health()["problems"]["recovery"]
    again.close()


def test_a_full_disk(tmp_path):
    """A real limit on files: what was acknowledged stays, answers go on, and learning too when there is room again."""
    script = """
import resource, signal, sys, numpy as np
from kernelstream import FeatureRegressor
from kernelstream.features import RandomFourier
from kernelstream.live import DurableLearner, LogError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = FeatureRegressor(features=RandomFourier(n_components=5), random_state=0)
learner = DurableLearner(sys.argv[1], model, snapshot_rows=10**6)
X = np.random.default_rng(0).normal(size=(10, 100))
learner.learn(X, X[:, 0])
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
total = 10
try:
    while True:
        total = learner.learn(X, X[:, 0]).total
except LogError as error:
    print("refused", error.errno)
assert learner.total == total and learner.predict(X).shape == (10,)
assert learner.health()["status"] == "degraded", learner.health()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert learner.learn(X, X[:, 0]).total == total + 10
assert learner.health()["status"] == "ok", learner.health()
print(total + 10, flush=True)
import os
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60)
    refused, total = done.stdout.splitlines()
    assert refused.startswith("refused") and int(total) > 40, done.stderr
    again = DurableLearner(tmp_path)
    assert again.total == int(total)
    undisturbed = FeatureRegressor(features=RandomFourier(n_components=5), random_state=0)
    X = np.random.default_rng(0).normal(size=(10, 100))
    for _ in range(int(total) // 10):
        undisturbed.learn(X, X[:, 0])
    assert same(again.champion.model, undisturbed)
    again.close()


def test_a_snapshot_that_fails_is_said_and_loses_nothing(tmp_path, monkeypatch):
    learner = DurableLearner(tmp_path, logistic(), snapshot_rows=10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "write_atomic", full)
    for X, y in CALLS:
        learner.learn(X, y)
    with pytest.raises(OSError):
        learner.snapshot()
    assert "No space" in learner.health()["problems"]["snapshot"]
    crash(learner)
    monkeypatch.undo()
    with DurableLearner(tmp_path) as again:
        assert same(again.champion.model, learner.champion.model)


def test_two_owners_are_refused(tmp_path):
    with DurableLearner(tmp_path, logistic()), pytest.raises(StoreError, match="in use"):
        DurableLearner(tmp_path)
    DurableLearner(tmp_path).close()


# -------------------------------------------------------------------- bad calls
def test_a_refused_call_leaves_the_model_and_the_replay_alone(tmp_path):
    """A call that only the model itself can refuse, behind the log, is not learned by a replay either."""
    learner = DurableLearner(tmp_path, FeatureRegressor(features=RandomFourier(n_components=10), random_state=0))
    X, _ = moons(20)
    learner.learn(X, X[:, 0])
    before = model_io.to_bytes(learner.champion.model)
    with pytest.raises(ValueError):
        learner.learn(X, np.array(["word"] * 20))
    assert model_io.to_bytes(learner.champion.model) == before and learner.total == 20
    learner.learn(X, X[:, 1])
    crash(learner)
    again = DurableLearner(tmp_path)
    assert same(again.champion.model, learner.champion.model) and again.total == 40
    again.close()


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
        ([{"a": 1.0, "b": 2.0, "c": 3.0}], [1], "by place only", None),
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
        with pytest.raises(RowError, match=r"row 0 has no column 'b' \(there is 'bb'\)") as wrong:
            learner.predict([{"a": 1.0, "bb": 2.0, "c": 3.0}])
        assert wrong.value.column == "b"
    with DurableLearner(tmp_path / "new", logistic()) as learner:  # the first row says what there is
        learner.learn([{"u": 1.0, "v": 2.0}], [1])
    with DurableLearner(tmp_path / "new") as learner:
        learner.learn([{"v": 2.0, "u": 1.0}], [0])
        assert learner.columns == ["u", "v"]


def test_what_cannot_learn_is_refused(tmp_path):
    model = FixedFeatureRegressor()
    with pytest.raises(ValueError, match="has no learn"):
        DurableLearner(tmp_path, model)
    with pytest.raises(StoreError, match="which model to start with"):
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


# -------------------------------------------------------------------- versions
def test_champion_and_challenger(tmp_path):
    """The challenger learns the same rows; promoted and called back, everything survives a crash at any moment."""
    X, y = moons(400)
    learner = taught(tmp_path, [(X[:100], y[:100])])
    rival = FeatureClassifier(loss="logistic", features=RandomFourier(n_components=50), random_state=5)
    learner.challenge(rival)
    learner.learn(X[100:200], y[100:200])
    rival.learn(X[100:200], y[100:200])
    crash(learner)
    learner = DurableLearner(tmp_path)
    assert same(learner.challenger.model, rival)
    assert learner.challenger.scores.rows == learner.against.rows == 100
    old = model_io.to_bytes(learner.champion.model)
    assert learner.promote() == 2 and learner.version == 2 and learner.challenger is None
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
    monkeypatch.setattr(DurableLearner, "_snapshot", lambda self, wait: None if self.total else kept(self, wait))
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


kept = DurableLearner._snapshot


def test_few_former_versions_are_kept(tmp_path):
    with taught(tmp_path, CALLS) as learner:
        for _ in range(8):
            learner.challenge(logistic())
            learner.promote()
        assert len(list(tmp_path.glob("version-*.ks"))) == 5
        assert [old["version"] for old in learner.retired] == [4, 5, 6, 7, 8]


def test_a_challenger_of_numbers_beside_a_champion_of_words(tmp_path):
    """It gets an encoder of its own; one that has learned rows of numbers cannot."""
    rows = [{"town": "Rome" if i % 3 else "Oslo", "size": float(i % 7)} for i in range(60)]
    y = [int(row["town"] == "Rome") for row in rows]
    with DurableLearner(tmp_path, make_stream(Columns(), OnlineRidge(random_state=0)), flush="request") as learner:
        learner.learn(rows, np.array(y, float))
        learner.challenge(OnlineRidge(random_state=1))
        learner.learn(rows, np.array(y, float))
        about = learner.describe()["challenger"]
        assert about["failures"] == 0 and about["class"] == "OnlineRidge" and about["scores"]["rows"] == 60
        with pytest.raises(ValueError, match="rows of numbers"):
            learner.challenge(OnlineRidge().fit(np.zeros((3, 2)), np.zeros(3)))


def test_a_challenger_that_fails_does_no_harm(tmp_path):
    X, y = moons(50)
    with taught(tmp_path, [(X, y)]) as learner:
        learner.challenge(logistic().fit(*moons(10, d=5)))  # it knows other rows
        answer = learner.learn(X, y)
        assert answer.learned == 50 and learner.challenger.failures == 1
        with pytest.raises(ValueError, match="classification"):
            learner.challenge(FeatureRegressor())


# -------------------------------------------------------------------- threads
def test_predictions_never_wait_for_learning(tmp_path):
    """While a call of learn takes its time, predictions are answered by the copy from before."""
    gate, inside = threading.Event(), threading.Event()
    with taught(tmp_path, CALLS, swap_ms=0) as learner:
        X, y = moons(10)
        before = learner.predict(X)
        model = learner.champion.model
        plain = type(model).learn

        def slow(self, *args):
            if self is model:
                with self._turns:
                    inside.set()
                    assert gate.wait(10)
            return plain(self, *args)

        type(model).learn = slow
        try:
            future = learner.learn_soon(X, y)
            assert inside.wait(10)
            assert (learner.predict(X) == before).all() and not future.done()
        finally:
            gate.set()
            future.result(10)
            type(model).learn = plain


def test_many_threads(tmp_path):
    """Calls from many threads share the log; each is learned once, and a replay gives the same model."""
    learner = DurableLearner(tmp_path, logistic(), snapshot_rows=50)
    X, y = moons(200)

    def teach(k):
        for i in range(k, 200, 8):
            learner.learn(X[i : i + 1], y[i : i + 1])
            learner.predict(X[:3])

    threads = [threading.Thread(target=teach, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.total == 200
    crash(learner)
    again = DurableLearner(tmp_path)
    assert same(again.champion.model, learner.champion.model)
    again.close()


def test_the_first_rows_are_there_at_once(tmp_path):
    """Whoever has taught the first rows may ask at once, however seldom readers get a copy."""
    with DurableLearner(tmp_path, logistic(), swap_ms=60_000) as learner:
        learner.learn(*moons(5))
        assert len(learner.predict(moons(3)[0])) == 3


def test_readers_follow(tmp_path):
    with taught(tmp_path, CALLS, swap_ms=1) as learner:
        learner.learn(*moons(5))
        until = time.monotonic() + 5
        while learner.view.rows < learner.total and time.monotonic() < until:
            time.sleep(0.001)
        assert same(learner.model, learner.champion.model)


def test_too_many_calls_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "WAITING", 0)
    with DurableLearner(tmp_path, logistic()) as learner, pytest.raises(Busy):
        learner.learn(*moons(5))


@pytest.mark.parametrize("flush", ["request", 2.0])
def test_policies(tmp_path, flush, monkeypatch):
    """fsync when it is due, not before every answer."""
    times = []
    real = os.fdatasync
    with DurableLearner(tmp_path, logistic(), flush=flush) as learner:
        monkeypatch.setattr(os, "fdatasync", lambda file: (times.append(file), real(file))[1])
        for _ in range(3):
            learner.learn(*moons(1))
        if flush == "request":
            time.sleep(0.05)
            assert not times
            learner.flush()
            assert len(times) == 1
        else:
            until = time.monotonic() + 5
            while not times and time.monotonic() < until:
                time.sleep(0.005)
            assert times


# -------------------------------------------------------------------- scores
def test_scores_are_those_of_the_rows_in_their_order(tmp_path):
    """Against the definition: predict each row, then learn it."""
    X, y = moons(1500)
    plain = logistic()
    plain.learn(X[:2], np.array([0, 1]))
    start = model_io.to_bytes(plain)
    mistakes, losses = [], []
    for i in range(len(y)):
        p = plain.predict_proba(X[i : i + 1])[0]
        mistakes.append(plain.predict(X[i : i + 1])[0] != y[i])
        losses.append(-np.log(p[y[i]]))
        plain.learn(X[i : i + 1], y[i : i + 1])
    with DurableLearner(tmp_path, model_io.load(io.BytesIO(start))) as learner:
        for i in range(0, 1500, 100):
            learner.learn(X[i : i + 100], y[i : i + 100])
        about = learner.champion.scores.summary()
        assert about["whole"] == pytest.approx(np.mean(mistakes)) and about["rows"] == 1500
        assert about["recent"] == pytest.approx(np.mean(mistakes[-1000:]))
        assert about["log_loss_whole"] == pytest.approx(np.mean(losses), rel=1e-6)
        assert about["log_loss_recent"] == pytest.approx(np.mean(losses[-1000:]), rel=1e-6)
        shown = learner.champion.scores.picture()
        assert sum(n for _, _, n in shown["calibration"]) == 1500
        assert [point[0] for point in shown["curve"]] == list(range(20, 1501, 20))
        assert shown["curve"][-1][1] == pytest.approx(np.mean(mistakes[-1000:]))


@pytest.mark.parametrize("model", [logistic(), FeatureRegressor(random_state=0)], ids=["labels", "numbers"])
def test_scores_do_not_depend_on_calls_or_looks(model):
    """Row by row, in calls of many sizes, looked at or not: the same numbers to the last bit."""
    X, y = moons(500)
    y = y if hasattr(model, "loss") and model.loss == "logistic" else X[:, 0]
    answers = model.learn(X, y)
    kinds = []
    for sizes, looks in (([500], False), ([1], False), ([1], True), ([3, 70, 1, 1, 20], False), ([7], True)):
        scores, at, i = Scores("classification" if y.dtype.kind == "i" else "regression"), 0, 0
        while at < 500:
            n = sizes[i % len(sizes)]
            scores.add(model, answers[at : at + n], y[at : at + n])
            at, i = at + n, i + 1
            if looks:
                scores.summary()
        notes = scores.to_notes()
        kinds.append(
            {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in notes.items()}
        )
    assert all(kind == kinds[0] for kind in kinds[1:]) and kinds[0]["rows"] == 500


def test_classes_that_appear_later_are_scored_as_they_were(tmp_path):
    """A third label: rows before it are counted by the two classes there were."""
    X, y = moons(100)
    with DurableLearner(tmp_path, logistic()) as learner:
        for i in range(100):
            learner.learn(X[i : i + 1], y[i : i + 1] if i != 70 else np.array([2]))
        assert learner.champion.scores.rows == 100
        assert learner.champion.scores.pairs[70][1] == 2
        assert [pair[1] for pair in list(learner.champion.scores.pairs)[:70]] == y[:70].tolist()


def test_curves_stay_short():
    scores = Scores("regression")
    scores.add(None, np.zeros(100_000), np.ones(100_000))
    rows = [point[0] for point in scores.curve]
    assert 150 < len(rows) <= 400 and len(set(np.diff(rows))) == 1 and scores.summary()["whole"] == 1.0


def test_changes_are_marked():
    """Mistakes of 10 %, then 45 %: marked soon after the change; none in 100,000 rows without one."""
    rng = np.random.default_rng(0)
    change = Change()
    assert not any(change(float(x)) for x in rng.random(100_000) < 0.1)
    change = Change()
    losses = np.concatenate([rng.random(5000) < 0.1, rng.random(5000) < 0.45]).astype(float)
    marks = [i for i, loss in enumerate(losses) if change(loss)]
    assert len(marks) == 1 and 5000 < marks[0] < 5150
    change = Change()
    heavy = rng.standard_t(3, 50_000) ** 2  # squares of heavy tails
    assert sum(change(float(x)) for x in heavy) <= 1


# -------------------------------------------------------------------- many learners
def test_a_store(tmp_path):
    """Learners go to sleep and wake up as they were."""
    X, y = moons(100)
    with Store(tmp_path, awake=3, flush="request") as store:
        for k in range(10):
            store.create(f"model-{k}", logistic())
        for k in range(10):
            with store.use(f"model-{k}") as learner:
                learner.learn(X[: 10 + k], y[: 10 + k])
            assert len(store.awake()) <= 3
        assert store.names() == [f"model-{k}" for k in range(10)]
    with Store(tmp_path, awake=3) as store:
        for k in range(10):
            with store.use(f"model-{k}") as learner:
                plain = logistic()
                plain.learn(X[: 10 + k], y[: 10 + k])
                assert learner.total == 10 + k and same(learner.champion.model, plain)
        with pytest.raises(KeyError):
            store.acquire("nobody")
        with pytest.raises(ValueError, match="already"):
            store.create("model-3", logistic())


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".", "..", "a b", "-x", "x" * 65, "a\n", 3, "né", "CON.ks"])
def test_names_are_no_paths(tmp_path, name):
    with Store(tmp_path / "store") as store:
        with pytest.raises(ValueError, match="a name is"):
            store.create(name, logistic())
        with pytest.raises(KeyError):
            store.acquire(name)
    assert list(tmp_path.iterdir()) == [tmp_path / "store"] and not list((tmp_path / "store").iterdir())


@pytest.mark.slow
def test_a_thousand_learners_in_two_gigabytes(tmp_path):
    script = """
import resource, sys, numpy as np
from kernelstream import FeatureClassifier
from kernelstream.live import Store
X = np.random.default_rng(0).normal(size=(200, 10)); y = (X[:, 0] > 0).astype(int)
with Store(sys.argv[1], awake=1000, flush="request") as store:
    for k in range(1000):
        store.create(f"m{k}", FeatureClassifier(random_state=k))
        with store.use(f"m{k}") as learner:
            learner.learn(X, y); learner.predict(X[:1])
    assert len(store.awake()) == 1000
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2000


def test_log_errors_are_os_errors():
    assert issubclass(LogError, OSError)


def test_a_model_behind_an_encoder_tells_its_columns_and_members(tmp_path):
    from kernelstream import KernelRegressor, make_stream
    from kernelstream.columns import Columns

    rows = [{"size": float(i % 7), "town": "ab"[i % 2]} for i in range(40)]
    model = make_stream(Columns(), KernelRegressor(size="small", random_state=0))
    model.partial_fit(rows, [row["size"] for row in rows])
    with DurableLearner(tmp_path / "s", model) as learner:
        about = learner.describe()
    assert about["class"] == "KernelRegressor" and about["kinds"]["town"] == "category"
    assert about["columns"] == ["size", "town"] and about["members"]["names"][0] == "cells"
    assert len(about["members"]["weights"]) == len(about["members"]["names"]) == 4
