"""The commands that learn and answer: train, predict, evaluate."""

import json

import numpy as np
import pytest
from command_line import err, out, run
from flats import KIND, PRICE, PRICES, N

import kernelstream
from kernelstream import streams, zoo

pytestmark = pytest.mark.usefixtures("plain_default")


def test_train_predict_evaluate_a_table(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    about = json.loads(out(capsys, "train", home / "flats.csv", *PRICES, "--model", model, "--json"))
    assert about["task"] == "regression"
    assert about["rows"] == N
    assert about["model"] == str(model)
    predicted = [float(line) for line in out(capsys, "predict", model, home / "flats.csv").splitlines()]
    assert len(predicted) == N
    # the same by hand
    stream = streams.CSV(home / "flats.csv", "price", drop=["id", "kind", "city"])
    X = np.concatenate([X for X, _ in stream])
    np.testing.assert_allclose(kernelstream.load(model).predict(X), predicted, rtol=1e-12)
    held = json.loads(out(capsys, "evaluate", home / "flats.csv", "--model", model, "--json"))
    error = np.array(predicted) - np.round(PRICE, 4)
    assert held["mse"] == pytest.approx(np.mean(error**2))
    assert held["mae"] == pytest.approx(np.mean(np.abs(error)))
    assert held["r2"] == pytest.approx(1 - np.sum(error**2) / np.sum((PRICE - PRICE.mean()) ** 2), abs=1e-6)
    # rows to predict need neither the target nor the columns in the same order
    table = [line.split(",") for line in (home / "flats.csv").read_text().splitlines()[:11]]
    (tmp_path / "new.csv").write_text("\n".join(",".join([row[3], row[1], row[2]]) for row in table) + "\n")
    again = [float(line) for line in out(capsys, "predict", model, tmp_path / "new.csv").splitlines()]
    np.testing.assert_allclose(again, predicted[:10])
    assert out(capsys, "predict", tmp_path / "new.csv", "--model", model).splitlines() == [str(v) for v in again]


def test_labels_scores_and_probabilities(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    options = ["--target", "kind", "--drop", "id,city,price", "--standardize", "--loss", "logistic"]
    assert "mistake rate 0.0" in out(capsys, "train", home / "flats.csv", *options, "-m", model)
    labels = out(capsys, "predict", model, home / "flats.csv").split()
    assert set(labels) == {"large", "small"}
    assert np.mean(np.array(labels) == KIND) > 0.95
    scores = np.array(out(capsys, "predict", model, home / "flats.csv", "--what", "score").split(), float)
    np.testing.assert_array_equal(np.where(scores >= 0, "small", "large"), labels)
    lines = out(capsys, "predict", model, home / "flats.csv", "--what", "probability").splitlines()
    assert lines[0] == "large\tsmall"
    p = np.array([line.split("\t") for line in lines[1:]], float)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-9)
    target = tmp_path / "answers.txt"
    assert out(capsys, "predict", model, home / "flats.csv", "--out", target) == ""
    assert target.read_text().split() == labels
    held = json.loads(out(capsys, "evaluate", home / "flats.csv", "-m", model, "--json"))
    assert held["mistake_rate"] == pytest.approx(np.mean(np.array(labels) != KIND))
    truth = p[np.arange(N), (KIND == "small").astype(int)]
    assert held["log_loss"] == pytest.approx(-np.mean(np.log(truth)))


def test_several_files_are_one_stream(home, tmp_path, capsys):
    whole, parts = tmp_path / "whole.ks", tmp_path / "parts.ks"
    out(capsys, "train", home / "flats.csv", *PRICES, "-m", whole, "--block", 1000, "-q")
    out(capsys, "train", home / "part1.csv", home / "part2.csv", *PRICES, "-m", parts, "--block", 1000, "-q")
    a, b = kernelstream.load(whole), kernelstream.load(parts)
    np.testing.assert_array_equal(a.state_["w"], b.state_["w"])
    (tmp_path / "other.csv").write_text("x,price\n1,2\n")
    assert run("train", home / "part1.csv", tmp_path / "other.csv", *PRICES, "-m", parts) == 1


def test_prequential(home, tmp_path, capsys):
    curve = tmp_path / "curve.csv"
    about = json.loads(out(capsys, "evaluate", home / "flats.svm", "--json", "--gamma", 2, "--curve", curve))
    est = zoo.make("fogd", gamma=2, random_state=0)
    stream = streams.LibSVM(home / "flats.svm")
    wrong = sum(int(np.sum(np.where(est.learn(X, y.astype(int)) >= 0, 1, -1) != y)) for X, y in stream)
    assert about["mistake_rate"] == wrong / N
    lines = curve.read_text().splitlines()
    assert lines[0] == "rows,mistake_rate"
    assert lines[-1] == f"{N},{wrong / N!r}"
    assert "rows per second" in out(capsys, "evaluate", home / "flats.svm", "--gamma", 2)
    assert run("evaluate", home / "flats.svm", "--curve", tmp_path / "c.png", "-q") == 0
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_a_resumed_run_counts_the_rows_before_it(home, tmp_path, capsys):
    """A run that went on with a model was killed, and goes on from its checkpoint."""
    options = ("--target", "price", "--drop", "id,kind,city", "-q", "--block", 500)
    out(capsys, "train", home / "part1.csv", *options, "-m", tmp_path / "1.ks")
    run_ = ("--checkpoint", tmp_path / "run", "-m", tmp_path / "2.ks")
    out(capsys, "train", home / "flats.csv", *options, "--limit", 1000, "--from", tmp_path / "1.ks", *run_)
    out(capsys, "train", home / "flats.csv", *options, "--resume", *run_)
    assert "rows learned   4,000" in out(capsys, "info", tmp_path / "2.ks")
    assert kernelstream.load(tmp_path / "2.ks").state_["t"] == 4000


@pytest.mark.parametrize("command", ["train", "evaluate", "bench", "from", "resume"])
def test_a_binary_task_has_two_labels(command, home, tmp_path, capsys):
    """Three where two were promised are an error; unless they were, a third is learned when it comes."""
    city = ("--target", "city", "--drop", "id,kind", "-q", "--block", 200)
    model = ("-m", tmp_path / "m.ks")
    if command == "from":  # two labels in the first rows, Oslo after them
        lines = (home / "flats.csv").read_text().splitlines(keepends=True)
        (tmp_path / "two.csv").write_text("".join(line for line in lines[:300] if ",Oslo," not in line))
        assert run("train", tmp_path / "two.csv", *city, *model, "--task", "binary") == 0
        argv = ("train", *city, "--from", tmp_path / "m.ks", *model)
    elif command == "resume":
        lines = (home / "flats.csv").read_text().splitlines(keepends=True)
        kept = [line for line in lines[:800] if ",Oslo," not in line][:401]
        (tmp_path / "rows.csv").write_text("".join(kept))
        argv = ("train", *city, *model, "--checkpoint", tmp_path / "run", "--task", "binary")
        assert run(*argv, tmp_path / "rows.csv") == 0
        with open(tmp_path / "rows.csv", "a") as file:
            file.writelines(line for line in lines[800:] if ",Oslo," in line)
        assert "the target has a third label, 'Oslo'" in err(capsys, 1, *argv, "--resume", tmp_path / "rows.csv")
        return
    else:
        more = {"train": model, "bench": ("--algorithms", "fogd")}.get(command, ())
        argv = (command, *city, *more)
    assert "the target has a third label, " in err(capsys, 1, *argv, home / "flats.csv", "--task", "binary")
    assert run(*argv, home / "flats.csv") == 0
    if command == "train":
        assert list(kernelstream.load(tmp_path / "m.ks").classes_) == ["Oslo", "Paris", "Rome"]


def test_a_model_can_go_on(home, tmp_path, capsys):
    whole, first, second = (tmp_path / name for name in ("a.ks", "b.ks", "c.ks"))
    out(capsys, "train", home / "flats.csv", *PRICES, "-m", whole, "--block", 1000)
    out(capsys, "train", home / "part1.csv", *PRICES, "-m", first, "--block", 1000)
    out(capsys, "train", home / "part2.csv", "--from", first, "-m", second, "--block", 1000)
    np.testing.assert_array_equal(kernelstream.load(whole).state_["w"], kernelstream.load(second).state_["w"])
