"""Scores of a learner, and many learners."""

import io
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from live_cases import logistic, moons, same

from kernelstream import FeatureRegressor, model_io
from kernelstream_service import DurableLearner, Store
from kernelstream_service.scores import Scores


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

    def marks(task, losses):
        scores, model = Scores(task), SimpleNamespace(novel=lambda answers: answers < 0)
        scores.add(model, np.where(losses, -1, 1) if task == "novelty" else np.sqrt(losses), np.zeros(len(losses)))
        return scores.marks

    assert not marks("novelty", rng.random(100_000) < 0.1)
    found = marks("novelty", np.concatenate([rng.random(5000) < 0.1, rng.random(5000) < 0.45]))
    assert len(found) == 1 and 5000 < found[0] < 5150
    assert len(marks("regression", rng.standard_t(3, 50_000) ** 2)) <= 1  # squares of heavy tails
    assert not marks("regression", np.full(1000, np.inf))  # what overflows is counted, and no error


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
            store.use("nobody").__enter__()
        with pytest.raises(ValueError, match="already"):
            store.create("model-3", logistic())
        with pytest.raises(ValueError, match="object has no method learn"):
            store.create("stuck", object())
        assert "stuck" not in store


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".", "..", "a b", "-x", "x" * 65, "a\n", 3, "né", "CON.ks"])
def test_names_are_no_paths(tmp_path, name):
    with Store(tmp_path / "store") as store:
        with pytest.raises(ValueError, match="a name is"):
            store.create(name, logistic())
        with pytest.raises(KeyError):
            store.use(name).__enter__()
    assert list(tmp_path.iterdir()) == [tmp_path / "store"] and not list((tmp_path / "store").iterdir())


@pytest.mark.slow
def test_a_thousand_learners_in_two_gigabytes(tmp_path):
    script = """
import resource, sys, numpy as np
from kernelstream import FeatureClassifier
from kernelstream_service import Store
X = np.random.default_rng(0).normal(size=(200, 10)); y = (X[:, 0] > 0).astype(int)
with Store(sys.argv[1], awake=1000, flush="request") as store:
    for k in range(1000):
        store.create(f"m{k}", FeatureClassifier(random_state=k))
        with store.use(f"m{k}") as learner:
            learner.learn(X, y); learner.predict(X[:1])
    assert len(store.awake()) == 1000
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2000


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


def test_what_another_detector_knew_is_left(caplog):
    """The first version of the folder's format had another one."""
    notes = Scores("regression").to_notes()
    notes["change"] = {"rows": [0], "kept": [], "moments": [0.0, 0.0, 0.0], "sum": [0.0, 0.0]}
    scores, y = Scores.from_notes(notes), np.arange(3000.0) % 7
    scores.add(None, y + np.where(np.arange(3000) < 2000, 0.1, 1.0), y)
    assert scores.rows == 3000 and not caplog.records
    assert [2000 < row < 2200 for row in scores.marks] == [True]
