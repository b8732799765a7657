"""A learner after a crash, a damaged file or a full disk."""

import contextlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from live_cases import CALLS, crash, killed, logistic, moons, same, taught

import kernelstream as ks
from kernelstream import model_io
from kernelstream.features import RandomFourier
from kernelstream_service import DurableLearner, LogError, Store, StoreError, snapshots

# -------------------------------------------------------------------- recovery
MODELS = {
    "logistic": logistic(),
    "no seed": ks.FeatureClassifier(),  # it is left to chance
    "budget": ks.BudgetClassifier(budget=10),
    "ensemble": ks.MultiKernelClassifier(),
    "standardize": ks.FeatureClassifier(standardize=True, features=RandomFourier(n_components=10)),
    "regressor": ks.OnlineRidge(features=RandomFourier(n_components=10), random_state=0),
    "detector": ks.BudgetOneClass(budget=10),
}


@pytest.mark.parametrize(
    "name, snapshot_rows", [("logistic", 1), ("logistic", 10**6), *((name, 60) for name in MODELS), ("ensemble", 1)]
)
def test_a_crash_at_any_call_changes_nothing(tmp_path, name, snapshot_rows):
    """The model after a crash behind every call equals one that was never disturbed."""
    learner = DurableLearner(tmp_path / "a", MODELS[name], snapshot_rows=snapshot_rows)
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


SLOW = ("steps,6,1,1", "http,6,1,1")


@pytest.fixture(scope="module")
def kill_at(tmp_path_factory):
    """The library that kills, to be preloaded."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    made = tmp_path_factory.mktemp("kill") / "kill_at.so"
    source = Path(__file__).with_name("kill_at.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


@pytest.mark.parametrize(
    "jobs", [("steps,1,13,19", "http,1,60,120"), *(pytest.param((job,), marks=pytest.mark.slow) for job in SLOW)]
)
def test_kill_9(tmp_path, kill_at, jobs):
    """Killed at operations on files, SQLite's own too: no acknowledged row is lost, none is learned twice, and the
    model is the same to the bit. live_killed.py asserts it, in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("live_killed.py")), str(tmp_path), *jobs]
    environment = os.environ | {"LD_PRELOAD": str(kill_at)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    kills = {tuple(words[:2]): int(words[2]) for words in map(str.split, done.stdout.splitlines())}
    assert {job for job, _ in kills} == {job.split(",")[0] for job in jobs}
    assert sum(kills.values()) >= (20 if len(jobs) > 1 else 200), kills
    assert len(jobs) > 1 or all(kills.values()), kills  # every phase is aimed at


def query(folder, statement):
    with contextlib.closing(sqlite3.connect(folder / "learner.db", isolation_level=None)) as db:
        return db.execute(statement).fetchall()


def test_a_death_at_birth_is_a_new_start(tmp_path):
    """A journal that never held anything, without a snapshot: whoever made it died before it was used."""
    taught(tmp_path, []).close()
    query(tmp_path, "DELETE FROM snapshots")
    with pytest.raises(StoreError, match="give a model to start with"):
        DurableLearner(tmp_path)
    with taught(tmp_path, CALLS[:2]) as learner:
        assert learner.total == 8 and not learner.keeper.problems
        learner.snapshot()
        learner.learn(*CALLS[2])
        killed(learner, tmp_path / "k")
    query(tmp_path / "k", "DELETE FROM snapshots")
    with pytest.raises(StoreError, match="calls without a snapshot"):  # but what has held rows is not begun again
        DurableLearner(tmp_path / "k", logistic())


def test_a_death_between_two_ways_of_writing(tmp_path):
    """Before its file has a log, SQLite keeps what a transaction overwrites beside it; a reader puts that back."""
    taught(tmp_path / "a" / "m", CALLS[:2]).close()
    (tmp_path / "b").mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "a" / "m" / "learner.db", isolation_level=None)) as db:
        for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "BEGIN"):
            db.execute(statement)
        db.executemany("INSERT INTO calls VALUES (?, 0, zeroblob(9000))", [(number,) for number in range(50, 90)])
        shutil.copytree(tmp_path / "a" / "m", tmp_path / "b" / "m")
    assert (tmp_path / "b" / "m" / "learner.db-journal").exists()
    with Store(tmp_path / "b") as store, store.use("m") as learner:
        assert learner.total == 8 and store.health()["status"] == "ok"


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
    assert query(tmp_path, "SELECT count(*) FROM snapshots") == [(2,)]
    assert query(tmp_path, "SELECT count(*) FROM calls")[0][0] <= 3


# -------------------------------------------------------------------- what can go wrong with a disk
def test_a_damaged_snapshot_is_passed_over(tmp_path, caplog):
    """The older one and a longer replay give the same model; health and log say so."""
    learner = taught(tmp_path, CALLS, snapshot_rows=5)
    learner.close()
    newest = max(tmp_path.glob("snapshot-*.ks"))
    newest.write_bytes(newest.read_bytes()[:-100])
    with caplog.at_level(logging.ERROR, "kernelstream_service"):
        again = DurableLearner(tmp_path)
    assert same(again.champion.model, learner.champion.model) and again.total == learner.total
    what = f"the snapshot of call {int(newest.stem[9:])} cannot be read"
    assert what in caplog.text and what in again.health()["problems"]["recovery"]
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


def test_a_journal_that_is_gone_is_not_begun_again(tmp_path):
    """Models without their journal may be all that is left: they are kept."""
    taught(tmp_path, CALLS).close()
    (tmp_path / "learner.db").unlink()
    with pytest.raises(StoreError, match="models without a journal"):
        DurableLearner(tmp_path, logistic())
    assert len(list(tmp_path.glob("snapshot-*.ks"))) == 2


def test_a_torn_end_of_the_journal(tmp_path):
    """The last transaction was cut off before it was acknowledged."""
    learner = taught(tmp_path / "a", CALLS[:-1])
    wal, mark = (tmp_path / "a" / name for name in ("learner.db-wal", "lock"))
    before, size = mark.read_bytes(), wal.stat().st_size
    learner.learn(*CALLS[-1])
    killed(learner, tmp_path / "b")
    with open(tmp_path / "b" / "learner.db-wal", "r+b") as file:
        file.truncate(size + 100)
    (tmp_path / "b" / "lock").write_bytes(before)
    again = DurableLearner(tmp_path / "b")
    assert again.total == learner.total - 2 and again.health()["status"] == "ok"
    again.learn(*CALLS[-1])
    assert same(again.champion.model, learner.champion.model)
    crash(again)
    with DurableLearner(tmp_path / "b") as last:
        assert same(last.champion.model, learner.champion.model)


def flip(wal):
    """Another bit in call 3, where it is."""
    query(
        wal.parent, "UPDATE calls SET content = substr(content, 1, 20) || 'x' || substr(content, 22) WHERE number = 3"
    )


HARMS = {  # and how many calls are lost
    "deleted": (lambda wal: wal.unlink(), 4),
    "emptied": (lambda wal: wal.write_bytes(b""), 4),
    "zeros": (lambda wal: wal.write_bytes(bytes(wal.stat().st_size)), 4),
    "cut": (lambda wal: wal.write_bytes(wal.read_bytes()[:40]), 4),
    "flipped": (flip, 1),  # the rest is used
}


@pytest.mark.parametrize("harm, lost", HARMS.values(), ids=HARMS)
def test_what_is_lost_stays_known_until_it_is_acknowledged(tmp_path, harm, lost):
    """The newest log is harmed: the calls in it are counted, over restarts and snapshots, and not as new ones."""
    folder, named = tmp_path / "store" / "m", f"calls 3 to {2 + lost} "
    with taught(tmp_path / "m", CALLS[:3]) as learner:
        learner.snapshot()
        learner._do(lambda: learner.keeper.journal.db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        for X, y in CALLS[3:]:  # four calls
            learner.learn(X, y)
        folder.parent.mkdir()
        killed(learner, folder)
    harm(folder / "learner.db-wal")
    for snapshot in (False, True, False):
        again = DurableLearner(folder)
        assert again.total == sum(len(y) for _, y in [*CALLS[:3], *CALLS[3 + lost :]])
        health = again.health()
        assert (health["status"], health["lost"]) == ("degraded", lost), health
        assert named in health["problems"]["lost"]
        if snapshot:
            again.snapshot()
        crash(again)
    with Store(tmp_path / "store") as store:  # which need not wake a learner to know what it has lost
        assert named in store.health()["problems"]["m"]["lost"]
        with store.use("m") as again:
            assert again.acknowledge() == lost and again.acknowledge() == 0
        assert store.health()["status"] == "ok"
    with DurableLearner(folder) as again:
        assert again.health()["status"] == "ok" and again.learn(*CALLS[0]).learned == 1


def test_a_lost_mark_is_said(tmp_path):
    """Without it nobody knows whether the end of the journal is the end of what was acknowledged."""
    taught(tmp_path, CALLS).close()
    (tmp_path / "lock").write_bytes(bytes(24))
    with DurableLearner(tmp_path) as again:
        assert "unknown number of calls from 7 on" in again.health()["problems"]["lost"]


@pytest.mark.parametrize("record", [b"Z", b"R\x02\0\0\0{}", b"L\x02\0\0\0{}", b"P\x02\0\0\0[]"])
def test_records_of_another_version_are_refused(tmp_path, record):
    learner = taught(tmp_path, CALLS)
    learner.keeper.journal.append([record])
    crash(learner)
    with pytest.raises(StoreError, match="call 7 of the journal cannot be used"):
        DurableLearner(tmp_path)


@pytest.fixture
def small_disk():
    """Called, it limits the size of files, as a full disk would; with None, no longer."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, before if size is None else (size, before[1]))

    yield limit
    limit(None)


def test_a_full_disk(tmp_path, small_disk):
    """A real limit on files: what was acknowledged stays, answers go on, and learning too when there is room again."""
    model = ks.FeatureRegressor(features=RandomFourier(n_components=5), random_state=0)
    learner = DurableLearner(tmp_path, model, snapshot_rows=10**6)
    X = np.random.default_rng(0).normal(size=(10, 100))
    total = learner.learn(X, X[:, 0]).total
    small_disk((tmp_path / "learner.db-wal").stat().st_size + 120_000)
    with contextlib.suppress(LogError):
        while total < 1000:
            total = learner.learn(X, X[:, 0]).total
    assert 1000 > learner.total == total > 40 and learner.predict(X).shape == (10,)
    assert learner.health()["status"] == "degraded"
    small_disk(None)
    assert learner.learn(X, X[:, 0]).total == total + 10
    assert learner.health()["status"] == "ok"
    crash(learner)
    with DurableLearner(tmp_path) as again:
        assert again.total == total + 10
        for _ in range(again.total // 10):
            model.learn(X, X[:, 0])
        assert same(again.champion.model, model)


def test_a_snapshot_that_fails_is_said_and_loses_nothing(tmp_path, monkeypatch):
    learner = DurableLearner(tmp_path, logistic(), snapshot_rows=10)
    monkeypatch.setattr(snapshots, "write_atomic", Mock(side_effect=OSError(28, "No space left on device")))
    for X, y in CALLS:
        learner.learn(X, y)
    with pytest.raises(OSError):
        learner.snapshot()
    assert "No space" in learner.health()["problems"]["snapshot"]
    crash(learner)
    monkeypatch.undo()
    with DurableLearner(tmp_path) as again:
        assert same(again.champion.model, learner.champion.model)


def test_a_snapshot_that_fails_late_leaves_no_challenger(tmp_path, monkeypatch):
    """A full disk is not filled further: the challenger of a snapshot that is not there is of no use."""
    learner = DurableLearner(tmp_path, logistic())
    learner.challenge(logistic())
    learner.learn(*CALLS[0])
    write = snapshots.write_atomic

    def full(path, content):
        if path.name.startswith("snapshot"):
            raise OSError(28, "No space left on device")
        write(path, content)

    learner.snapshot()
    kept = sorted(path.name for path in tmp_path.glob("*-*.ks"))
    assert any(name.startswith("challenger") for name in kept)
    monkeypatch.setattr(snapshots, "write_atomic", full)
    for more in ([], CALLS[1:2]):  # the same number again, and a later one
        for X, y in more:
            learner.learn(X, y)
        with pytest.raises(OSError, match="No space"):
            learner.snapshot()
        assert sorted(path.name for path in tmp_path.glob("*-*.ks")) == kept
    learner.keeper.problems.clear()
    monkeypatch.setattr(type(tmp_path), "unlink", Mock(side_effect=PermissionError))
    with pytest.raises(OSError, match="No space"):
        learner.snapshot()
    assert "No space" in learner.keeper.problems["snapshot"]  # whatever becomes of the challenger
    crash(learner)
    monkeypatch.undo()
    with DurableLearner(tmp_path) as again:
        assert again.champions.challenger is not None and same(
            again.champions.challenger.model, learner.champions.challenger.model
        )


def test_two_owners_are_refused(tmp_path):
    with DurableLearner(tmp_path, logistic()), pytest.raises(StoreError, match="in use"):
        DurableLearner(tmp_path)
    DurableLearner(tmp_path).close()
