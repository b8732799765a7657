"""Novelty detection on the command line: rows without a target."""

import json

import numpy as np
import pytest
from command_line import err, out

import kernelstream
from kernelstream import BudgetOneClass, KernelNovelty, checkpoint, streams

rng = np.random.default_rng(0)
NORMAL = rng.normal(size=(2000, 2))
MIXED = np.concatenate([rng.normal(size=(300, 2)), rng.normal(9.0, 0.5, (100, 2))])  # the last 100 are far off


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("novelty")
    kinds = ["fine"] * 300 + ["odd"] * 100
    rows = [f"{i},{a!r},{b!r}" for i, (a, b) in enumerate(NORMAL.tolist())]
    (folder / "normal.csv").write_text("\n".join(["id,a,b", *rows]) + "\n")
    rows = [f"{a!r},{b!r},{kind}" for (a, b), kind in zip(MIXED.tolist(), kinds, strict=True)]
    (folder / "mixed.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    lines = [f"0 1:{a!r} 2:{b!r}" for a, b in NORMAL.tolist()]
    (folder / "normal.svm").write_text("\n".join(lines) + "\n")
    return folder


def test_train_predict_evaluate(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    train = ["train", home / "normal.csv", "--task", "novelty", "--drop", "id", "--model", model, "--json"]
    about = json.loads(out(capsys, *train))
    assert (about["task"], about["algorithm"], about["rows"]) == ("novelty", "kernel_novelty", 2000)
    scores = KernelNovelty(random_state=0).learn(NORMAL)
    assert about["novelty_rate"] == pytest.approx(np.mean(scores > 0.95))
    labels = np.array(out(capsys, "predict", model, home / "mixed.csv").split(), int)
    scores = np.array(out(capsys, "predict", model, home / "mixed.csv", "--what", "score").split(), float)
    np.testing.assert_array_equal(labels, np.where(scores < 0, -1, 1))
    assert (labels[300:] == -1).all()
    np.testing.assert_array_equal(labels, kernelstream.load(model).predict(MIXED))
    held = json.loads(out(capsys, "evaluate", home / "mixed.csv", "-m", model, "--target", "kind", "--json"))
    assert held["novelty_rate"] == pytest.approx(np.mean(labels < 0))
    assert held["novelty_rate of odd"] == 1
    assert held["novelty_rate of fine"] == pytest.approx(np.mean(labels[:300] < 0))
    held = json.loads(out(capsys, "evaluate", home / "mixed.csv", "-m", model, "--json"))
    assert "novelty_rate of odd" not in held
    assert "novelty" in out(capsys, "info", model)


def test_the_algorithm_says_the_task_and_targets_are_not_looked_at(home, tmp_path, capsys):
    files = {"--drop=id": "normal.csv", "--target=id": "normal.csv", "--block=77": "normal.svm"}
    for i, (option, name) in enumerate(files.items()):
        out(capsys, "train", home / name, "-a", "norma_novelty", option, "--model", tmp_path / f"{i}.ks")
    first, *rest = (kernelstream.load(tmp_path / f"{i}.ks").decision_function(MIXED) for i in range(3))
    for scores in rest:
        np.testing.assert_allclose(scores, first, rtol=1e-9)
    before = first.copy()
    out(capsys, "train", home / "mixed.csv", "--from", tmp_path / "1.ks", "--target", "kind", "-m", tmp_path / "3.ks")
    assert not np.array_equal(kernelstream.load(tmp_path / "3.ks").decision_function(MIXED), before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "mixed.csv", "--task", "novelty", "-a", "fogd", "--target", "kind", "-m"], "not novelty"),
        (["train", "mixed.csv", "-a", "norma_novelty", "--task", "binary", "--target", "kind", "-m"], "not binary"),
        (["train", "normal.csv", "--task", "novelty", "--contamination", "2", "-m"], "contamination must be"),
        (["train", "normal.csv", "--task", "novelty", "--dask", "local", "-m"], "without workers"),
        (["evaluate", "normal.csv", "--task", "novelty", "--curve"], "no target to compare with"),
    ],
)
def test_what_cannot_be(home, tmp_path, capsys, words, message):
    command, name, *rest = words
    assert message in err(capsys, 2, command, home / name, *rest, tmp_path / "m.ks")
    assert not (tmp_path / "m.ks").exists()


def test_checkpoints(tmp_path):
    whole = checkpoint.train(BudgetOneClass(), streams.Arrays(NORMAL, None, 100))
    assert whole.metric == "novelty_rate"
    asked = iter([False] * 7 + [True])
    checkpoint.train(BudgetOneClass(), streams.Arrays(NORMAL, None, 100), tmp_path, every=300, stop=lambda: next(asked))
    again = checkpoint.train(BudgetOneClass(), streams.Arrays(NORMAL, None, 100), tmp_path, resume=True)
    assert again.resumed == 700
    assert again.value == whole.value
    np.testing.assert_array_equal(again.model.decision_function(MIXED), whole.model.decision_function(MIXED))
