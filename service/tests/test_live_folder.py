"""The promise about folders: one that this format's first version wrote is read by every later version of the format.

``folder/`` holds such a store and what it must be, made once by ``python service/tests/test_live_folder.py``. It is
not to be made again while the number of the format stays the same. The log holds rows, which are learned when it is
read: where a learner learns otherwise than before, what it must be changes, and the store stays.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelstream import FeatureRegressor
from kernelstream.features import RandomFourier
from kernelstream_service import DurableLearner, Log, Store, StoreError, admin, records
from kernelstream_service.snapshots import FORMAT

HELD = Path(__file__).parent / "folder"


def rows(n, seed):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2)).round(6)
    return X, (X[:, 0] ** 2 - X[:, 1]).round(6)


def model(**options):
    return FeatureRegressor(RandomFourier(n_components=6), random_state=0, **options)


def make(folder):
    """A learner with its first snapshot and a log behind it that holds every kind of record."""
    with Store(folder / "store", flush="request") as store:
        store.create("m", model(), ["u", "v"], key="Rome / ü")
        with store.use("m") as learner:
            learner._snapshot = lambda wait: None  # those that follow a new champion
            learner.set_policy(share=0.25)
            learner.learn(*rows(30, 0), positions={"topic/0": 30})
            learner.challenge(model(update="ogd"))
            learner.learn(*rows(20, 1))
            learner.promote()
            learner.learn(*rows(10, 2), ids=list(range(10)))
            learner.rollback()
            learner.challenge(model(update="ogd"))
            learner.learn([{"u": 0.5, "v": 0.25}], [0.0], ids=["x"])
            with pytest.raises(ValueError):
                learner.learn(np.full((1, 2), 1e300), [1e300])  # refused by the model itself: a record that is void
            learner.learn(*rows(7, 3), positions={"topic/0": 99})
            X, _ = rows(5, 4)
            expected = {
                "total": learner.total, "version": learner.version, "retired": learner.retired,
                "positions": learner.positions, "policy": learner.policy, "columns": list(learner.view.columns),
                "error": learner.champion.scores.summary()["whole"], "rows": X.tolist(),
                "predictions": learner.latest().model.predict(X).tolist(),
                "challenger": learner.challenger.model.predict(X).tolist(),
            }  # fmt: skip
            shutil.copytree(folder / "store", folder / "held")  # as a killed process would have left it
    shutil.rmtree(folder / "store")
    (folder / "held").rename(folder / "store")
    (folder / "store" / "m" / "lock").unlink()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


@pytest.fixture
def held(tmp_path):
    shutil.copytree(HELD / "store", tmp_path / "store")
    return tmp_path / "store", json.loads((HELD / "expected.json").read_text())


def test_a_held_folder_is_read(held):
    folder, expected = held
    assert (folder / "m" / "format").read_text() == f"{FORMAT}\n"
    kinds = {records.unpack(payload)[0] for _, payload in Log(folder / "m").read()}
    assert kinds == records.FIELDS.keys() and admin.check(folder / "m") == []
    X = np.array(expected["rows"])
    with Store(folder) as store:
        assert store.keys() == {"m": "Rome / ü"}
        with store.use("m") as learner:
            for name in ("total", "version", "retired", "positions", "policy"):
                assert getattr(learner, name) == expected[name], name
            assert list(learner.view.columns) == expected["columns"] and learner.health()["status"] == "ok"
            assert learner.champion.scores.summary()["whole"] == pytest.approx(expected["error"], rel=1e-9)
            np.testing.assert_allclose(learner.predict(X), expected["predictions"], rtol=1e-9)
            np.testing.assert_allclose(learner.challenger.model.predict(X), expected["challenger"], rtol=1e-9)
            assert learner.learn([{"u": 0.5, "v": 0.25}], [0.0], ids=["x"]).repeated == 1
            assert learner.learn(*rows(5, 9)).total == expected["total"] + 5
            assert learner.rollback(1) == expected["version"] + 1


def test_a_folder_of_another_format_is_left_alone(held):
    folder, _ = held
    (folder / "m" / "format").write_text("2\n")
    before = {path: path.read_bytes() for path in (folder / "m").iterdir()}
    with pytest.raises(StoreError, match="has format '2', but this version of kernelstream reads format 1"):
        DurableLearner(folder / "m")
    with pytest.raises(StoreError, match="format '2'"):
        admin.check(folder / "m")
    assert {path: path.read_bytes() for path in (folder / "m").iterdir() if path.name != "lock"} == before


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HELD)
