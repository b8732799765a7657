"""What an operator does with a store, while a server uses it."""

import contextlib
import json
import sqlite3
import threading

from command_line import err, out, run
from live_cases import CALLS, crash, logistic, moons, same, taught

from kernelstream_service import Dead, DurableLearner, Store, admin


def test_a_backup_while_it_learns(tmp_path):
    """Every backup is the learner at some moment: not damaged, and the model is that of the first so many calls."""
    learner = taught(tmp_path / "store" / "m", CALLS[:1], snapshot_rows=7)
    leave = threading.Event()

    def learn():
        seed = 0
        while not leave.is_set():
            learner.learn(*moons(2, seed))
            seed += 1

    thread = threading.Thread(target=learn, daemon=True)
    thread.start()
    try:
        for i in range(4):
            before = learner.total
            assert admin.backup(tmp_path / "store", tmp_path / f"backup{i}") == ["m"]
            assert admin.check(tmp_path / "store" / "m") == []
            assert admin.look(tmp_path / "store" / "m")["lost"] == 0
            assert admin.check(tmp_path / f"backup{i}" / "m") == []
            admin.restore(tmp_path / f"backup{i}", tmp_path / f"restored{i}")
            with DurableLearner(tmp_path / f"restored{i}" / "m") as copy:
                assert copy.total >= before and not copy.keeper.problems
                plain = logistic()
                plain.learn(*CALLS[0])
                for seed in range((copy.total - 1) // 2):
                    plain.learn(*moons(2, seed))
                assert same(copy.champion.model, plain)
    finally:
        leave.set()
        thread.join()
        learner.close()


def test_the_command(tmp_path, capsys):
    folder = tmp_path / "store"
    with Store(folder) as store:
        for name in ("first", "second"):
            store.create(name, logistic())
            with store.use(name) as learner:
                learner.learn(*moons(20))
                learner.snapshot()
                learner.learn(*moons(5), dead=[Dead("t/0", 7, "no JSON", b"\xff{")])
                about = json.loads(out(capsys, "store", "list", folder, "--json"))[name]  # while it is in use
                assert (about["rows"], about["calls"], about["dead"]) == (20, 1, 1)
        assert "in use" in err(capsys, 1, "store", "repair", folder)  # but not this
        crash(learner)
    assert "2 models: nothing is damaged" in out(capsys, "store", "check", folder)
    letter = json.loads(out(capsys, "store", "dead", folder).splitlines()[0])
    assert (letter["model"], letter["at"], letter["content"]) == ("first", 7, "\\xff{")
    out(capsys, "store", "backup", folder, tmp_path / "b")
    assert "already exists" in err(capsys, 1, "store", "backup", folder, tmp_path / "b")  # never over another one
    with contextlib.closing(sqlite3.connect(folder / "second" / "learner.db", isolation_level=None)) as db:
        db.execute("UPDATE calls SET checksum = checksum + 1 WHERE number = 1")
    assert "second: calls 1 to 1 of the journal are lost" in err(capsys, 1, "store", "check", folder)
    assert "move that away first" in err(capsys, 1, "store", "restore", folder, tmp_path / "b")
    assert "second: 1 lost calls acknowledged" in out(capsys, "store", "repair", folder)
    assert "nothing is damaged" in out(capsys, "store", "check", folder)
    model = min((folder / "first").glob("snapshot-*.ks"))
    model.write_bytes(model.read_bytes()[:-50])
    assert "first: the snapshot of call" in err(capsys, 1, "store", "check", folder)
    out(capsys, "store", "restore", tmp_path / "new", tmp_path / "b")
    with Store(tmp_path / "new") as store, store.use("second") as learner:
        assert learner.total == 25 and not learner.keeper.problems
    for wrong in (["backup", folder], ["list", folder, "x"]):
        assert run("store", *wrong) == 2
    assert run("store", "list", tmp_path / "nothing") == 1
