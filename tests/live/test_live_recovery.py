"""A learner after a crash, a damaged file or a full disk."""

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from live_cases import CALLS, crash, logistic, moons, same, taught

from kernelstream import (
    BudgetClassifier,
    BudgetOneClass,
    FeatureClassifier,
    FeatureRegressor,
    MultiKernelClassifier,
    OnlineRidge,
    model_io,
)
from kernelstream.features import RandomFourier
from kernelstream.live import DurableLearner, StoreError, snapshots


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


@pytest.mark.parametrize("kills", [6, pytest.param(200, marks=pytest.mark.slow)])
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
