"""The commands that learn: train, predict, evaluate, bench, info."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import out, run

import kernelstream
from kernelstream import FeatureClassifier, streams, zoo
from kernelstream.cli import _algorithms
from kernelstream.cli._algorithms import options_of
from kernelstream.cli._targets import find_task
from kernelstream.cli._values import parameter, value
from kernelstream.kernels import Polynomial
from kernelstream.losses import Huber

pytestmark = pytest.mark.usefixtures("plain_default")

rng = np.random.default_rng(0)
N = 3000
SIZE, ROOMS = rng.uniform(20, 150, N), rng.integers(1, 6, N)
CITY = rng.choice(["Rome", "Oslo", "Paris"], N)
PRICE = 3 * SIZE + 20 * ROOMS + 100 * (CITY == "Oslo") + rng.normal(0, 5, N)
KIND = np.where(SIZE * ROOMS > 250, "large", "small")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rows = [f"{i},{CITY[i]},{SIZE[i]:.3f},{ROOMS[i]},{KIND[i]},{PRICE[i]:.4f}" for i in range(N)]
    (folder / "flats.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows]) + "\n")
    (folder / "part1.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows[:1000]]) + "\n")
    (folder / "part2.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows[1000:]]) + "\n")
    lines = [f"{'+1' if KIND[i] == 'large' else '-1'} 1:{SIZE[i] / 150:.4f} 2:{ROOMS[i] / 6:.4f}" for i in range(N)]
    (folder / "flats.svm").write_text("\n".join(lines) + "\n")
    return folder


PRICES = ["--target", "price", "--drop", "id,kind", "--hashed", "city:16"]


def test_train_predict_evaluate_a_table(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    about = json.loads(out(capsys, "train", home / "flats.csv", *PRICES, "--model", model, "--json"))
    assert about["task"] == "regression"
    assert about["rows"] == N
    assert about["model"] == str(model)
    predicted = [float(line) for line in out(capsys, "predict", model, home / "flats.csv").splitlines()]
    assert len(predicted) == N
    # the same by hand
    stream = streams.CSV(home / "flats.csv", "price", drop=["id", "kind"], hashed={"city": 16})
    X = np.concatenate([X.toarray() for X, _ in stream])
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


def test_info(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    out(
        capsys,
        "train",
        home / "flats.csv",
        "--target",
        "kind",
        "--drop",
        "id,city",
        "-m",
        model,
        "-a",
        "nogd",
        "--budget",
        30,
    )
    brief, shown = out(capsys, "info", model), out(capsys, "info", model, "--full")
    assert len(brief.splitlines()) <= 12 and set(brief.splitlines()) <= set(shown.splitlines())
    data = ["--target", "kind", "--drop", "id,city"]
    same = out(capsys, "evaluate", home / "flats.csv", *data, "-a", "nogd", "--budget", 30, "--json")
    assert f"mistake rate {json.loads(same)['mistake_rate']:.4g}, of rows before they were learned" in brief
    for line in (
        "estimator      NystroemClassifier",
        "  budget       30",
        "algorithm      nogd",
        "classes        large, small",
        "  columns      size, rooms, price",
        "rows learned   3,000",
        "  target       kind",
    ):
        assert line in shown, line
    about = json.loads(out(capsys, "info", model, "--json"))
    assert about["class"] == "estimators.NystroemClassifier"
    assert about["parameters"]["budget"] == 30
    assert about["classes"] == ["large", "small"]
    kernelstream.save(FeatureClassifier(), model)
    assert "has not learned anything" in out(capsys, "info", model)


def test_info_counts_the_rows_of_all_runs(home, tmp_path, capsys):
    """``train --from`` goes on: 1,000 rows and 2,000 more, and once more from a checkpoint."""
    first, second, third = tmp_path / "1.ks", tmp_path / "2.ks", tmp_path / "3.ks"
    options = ("--target", "price", "--drop", "id,kind,city", "-q")
    out(capsys, "train", home / "part1.csv", *options, "-m", first)
    out(capsys, "train", home / "part2.csv", "-q", "--from", first, "-m", second)
    assert "rows learned   3,000" in out(capsys, "info", second)
    out(capsys, "train", home / "part1.csv", "-q", "--from", second, "-m", third, "--checkpoint", tmp_path / "run")
    assert "rows learned   4,000" in out(capsys, "info", third)
    assert kernelstream.load(third).state_["t"] == 4000
    # a model that the library saved, without notes
    kernelstream.save(kernelstream.load(first), first)
    out(capsys, "train", home / "part2.csv", *options, "--from", first, "-m", second)
    assert "rows learned   3,000" in out(capsys, "info", second)


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
        assert run(*argv, "--resume", tmp_path / "rows.csv") == 1
        assert "the target has a third label, 'Oslo'" in capsys.readouterr().err
        return
    else:
        more = {"train": model, "bench": ("--algorithms", "fogd")}.get(command, ())
        argv = (command, *city, *more)
    assert run(*argv, home / "flats.csv", "--task", "binary") == 1
    assert "the target has a third label, " in capsys.readouterr().err
    assert run(*argv, home / "flats.csv") == 0
    if command == "train":
        assert list(kernelstream.load(tmp_path / "m.ks").classes_) == ["Oslo", "Paris", "Rome"]


def test_bench(home, capsys):
    about = json.loads(
        out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--json", "--limit", 500)
    )
    rates = {r["algorithm"]: r["mistake_rate"] for r in about["results"]}
    assert list(rates) == sorted(rates, key=rates.get)
    assert set(rates) == {"fogd", "perceptron", "majority so far", "last label"}
    assert about["rows"] == 500
    shown = out(capsys, "bench", "--algorithms", "fogd", "--rows", 1000)
    assert "fogd" in shown


def test_bench_beside_answers_that_look_at_no_row(tmp_path, capsys):
    """The baselines, counted by hand: a, b, b, a, b with ties for the label that came first; 1, 3, 2 for numbers."""
    (tmp_path / "labels.csv").write_text("x,y\n1,a\n2,b\n3,b\n4,a\n5,b\n")
    argv = ("bench", tmp_path / "labels.csv", "--target", "y", "--algorithms", "window", "--json", "-q")
    found = {r["algorithm"]: r["mistake_rate"] for r in json.loads(out(capsys, *argv))["results"]}
    # nothing, a, a (a tie), b, b (a tie: a came first)
    assert found["majority so far"] == 1.0 and found["last label"] == 4 / 5
    (tmp_path / "numbers.csv").write_text("x,y\n1,1.5\n2,3.5\n3,2.0\n")
    argv = ("bench", tmp_path / "numbers.csv", "--target", "y", "--algorithms", "window", "--json", "-q")
    found = {r["algorithm"]: r["mse"] for r in json.loads(out(capsys, *argv))["results"]}
    assert found["mean so far"] == pytest.approx((1.5**2 + 2.0**2 + 0.5**2) / 3)
    assert found["last value"] == pytest.approx((1.5**2 + 2.0**2 + 1.5**2) / 3)


def test_bench_keeps_what_is_finished(home, capsys, monkeypatch):
    """An algorithm that fails, or time that is up, takes nothing from the others."""
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,falkon,perceptron", "--limit", 300, "--json", "-q")
    assert run(*argv) == 1
    shown = capsys.readouterr()
    assert "falkon: " in shown.err and "falkon failed" in shown.err
    assert {"fogd", "perceptron"} < {r["algorithm"] for r in json.loads(shown.out)["results"]}
    ticks = iter(range(0, 10_000, 4))
    monkeypatch.setattr("kernelstream.cli.bench.time.monotonic", lambda: next(ticks))
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--block", 50, "--json", "-q")
    assert run(*argv, "--seconds", 10) == 0
    shown = capsys.readouterr()
    rows = {r["algorithm"]: r["rows"] for r in json.loads(shown.out)["results"]}
    assert 0 < rows["fogd"] < rows["last label"] and "perceptron" not in rows and "perceptron" in shown.err


def test_bench_sets_parameters(home, capsys):
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--limit", 100, "--json", "-q")
    sizes = []
    for more in ((), ("--set", "n_components=7")):
        found = json.loads(out(capsys, *argv, *more))["results"]
        sizes.append({r["algorithm"]: r["model_bytes"] for r in found})
    assert sizes[1]["fogd"] < sizes[0]["fogd"] and sizes[1]["perceptron"] == sizes[0]["perceptron"]
    assert run(*argv, "--set", "nothing=1") == 2
    assert "none of the algorithms has 'nothing'" in capsys.readouterr().err


def test_a_word_about_every_option():
    lacking = []
    for name in zoo.names():
        said = _algorithms.words_about(zoo.get(name))
        lacking += [(name, option) for option in _algorithms.options_of(zoo.get(name)) if not said.get(option)]
    assert lacking == []


def test_named_data_sets(capsys, tmp_path):
    about = json.loads(
        out(
            capsys,
            "train",
            "dataset:digits",
            "--shuffle",
            0,
            "-m",
            tmp_path / "d.ks",
            "--json",
            "--set",
            "features__sampling=orthogonal",
        )
    )
    assert about["task"] == "multiclass"
    assert about["rows"] == 1797
    assert kernelstream.load(tmp_path / "d.ks").features.sampling == "orthogonal"
    assert len(out(capsys, "predict", tmp_path / "d.ks", "dataset:digits").split()) == 1797


def test_a_model_can_go_on(home, tmp_path, capsys):
    whole, first, second = (tmp_path / name for name in ("a.ks", "b.ks", "c.ks"))
    out(capsys, "train", home / "flats.csv", *PRICES, "-m", whole, "--block", 1000)
    out(capsys, "train", home / "part1.csv", *PRICES, "-m", first, "--block", 1000)
    out(capsys, "train", home / "part2.csv", "--from", first, "-m", second, "--block", 1000)
    np.testing.assert_array_equal(kernelstream.load(whole).state_["w"], kernelstream.load(second).state_["w"])


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["train"], 2, "--model"),
        (["train", "-m", "m.ks"], 2, "which data"),
        (["train", "flats.csv", "-m", "m.ks"], 2, "--target: which column of flats.csv is to be learned"),
        (["train", "flats.csv", "--target", "prise", "-m", "m.ks"], 1, "did you mean 'price'"),
        (
            ["train", "flats.csv", "--target", "price", "--missing", "0", "-m", "m.ks"],
            1,
            "flats.csv, line 2: column 'city': ",
        ),
        (["train", "missing.csv", "-m", "m.ks"], 1, "missing.csv: No such file"),
        (["train", "flats.svm", "-m", "no/such/folder/m.ks"], 2, "no folder no/such/folder"),
        (["train", "flats.svm", "-m", "."], 2, "is a folder"),
        (["train", "flats.svm", "-m", "m.ks", "--resume"], 2, "--resume needs --checkpoint"),
        (["train", "flats.svm", "-m", "m.ks", "--budget", "3"], 2, "unknown argument --budget"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--gama", "3"], 2, "did you mean --gamma?"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fodg"], 2, "did you mean 'fogd'"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gausian"], 2, "did you mean 'gaussian'"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gaussian(3"], 2, "unknown kernel"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gaussian(nope=3)"], 2, "nope"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--n-components", "many"], 1, "n_components"),
        (["train", "flats.svm", "-m", "m.ks", "--set", "nothing=3"], 2, "nothing"),
        (
            ["train", "flats.csv", "--target", "kind", "--drop", "city", "-m", "m.ks", "--task", "regression"],
            1,
            "is not a number",
        ),
        (
            ["train", "flats.csv", "--target", "price", "--drop", "city,kind", "-m", "m.ks", "--task", "binary"],
            1,
            "is not a label",
        ),
        (["train", "flats.svm", "-m", "m.ks", "--shuffle", "3"], 2, "--shuffle"),
        (["predict", "flats.svm", "flats.svm"], 1, "flats.svm: this is not a kernelstream model file"),
        (["predict", "ok.ks"], 2, "a model file and data"),
        (["predict", "numbers.ks", "flats.csv", "--what", "probability"], 2, "has none"),
        (["train", "ok.ks", "-m", "m.ks"], 1, "is a model, not data"),
        (["evaluate", "flats.csv", "-m", "ok.ks"], 2, "--target"),
        (["bench", "flats.svm", "--algorithms", "nothing"], 1, "unknown algorithm 'nothing'"),
        (["info", "missing.ks"], 1, "missing.ks: No such file"),
        (["info", "flats.csv"], 1, "not a kernelstream model file"),
        (["train", "dataset:nothing", "-m", "m.ks"], 1, "unknown data set 'nothing'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(argv, code, message, home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    if not (home / "ok.ks").exists():
        run("train", "flats.svm", "-m", "ok.ks", "-q")
        run("train", "flats.csv", "--target", "price", "--drop", "city,kind", "-m", "numbers.ks", "-q")
    try:
        found = run(*argv)
    except SystemExit as stop:
        found = stop.code
    shown = capsys.readouterr().err
    assert found == code, shown
    assert message in shown
    assert "Traceback" not in shown
    assert not (home / "m.ks").exists()


def test_bad_rows(tmp_path, capsys):
    (tmp_path / "bad.svm").write_text("1 1:1\noops\n-1 2:1\n1 1:x\n")
    assert run("train", tmp_path / "bad.svm", "-m", tmp_path / "m.ks") == 1
    assert "bad.svm, line 2: the label is not a number" in capsys.readouterr().err
    assert "2 bad rows left out" in out(
        capsys, "train", tmp_path / "bad.svm", "-m", tmp_path / "m.ks", "--on-error", "skip"
    )
    assert run("predict", tmp_path / "m.ks", tmp_path / "bad.svm", "--on-error", "skip") == 0
    got = capsys.readouterr()
    assert got.out == "1\n\n-1\n\n"  # a line for every row, empty for those that cannot be read
    assert "2 bad rows have no prediction" in got.err


# ---------------------------------------------------------------------- options from the registry
@pytest.mark.parametrize("name", [name for name in zoo.names() if name not in zoo.names("novelty")])
def test_every_algorithm_has_its_options(name, home, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        run("train", "--algorithm", name, "--help")
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for option in options_of(zoo.get(name)):
        assert f"--{option.replace('_', '-')}" in shown
    task = zoo.get(name).tasks[0]
    data = home / "flats.svm"
    if task == "regression":
        data = tmp_path / "r.csv"
        data.write_text("a,y\n" + "".join(f"{i % 17},{(i % 17) ** 2 / 7}\n" for i in range(300)))
    options = ["--target", "y"] if task == "regression" else []
    if name.startswith("doubly"):  # they choose by trials, of this size
        options += ["--batch-size", "16", "--block-size", "8"]
    model = tmp_path / "m.ks"
    text = out(capsys, "train", data, *options, "--task", task, "-a", name, "-m", model, "--limit", 60, "--json")
    assert json.loads(text)["rows"] == 60
    assert len(out(capsys, "predict", model, data, "--limit", 20).split()) == 20


def test_values_of_options():
    assert [value(t) for t in ("3", "-2", "1_000", "0.5", "1e-3", "none", "True", "inf", "median", "a b")] == [
        3, -2, 1000, 0.5, 0.001, None, True, float("inf"), "median", "a b"]  # fmt: skip
    assert repr(parameter("polynomial(degree=3, c=2.0)")) == repr(Polynomial(degree=3, c=2.0))
    assert repr(parameter("huber(2)")) == repr(Huber(2))
    assert repr(parameter("averaged(ogd(eta=0.5))")) == "Averaged(update=OGD(eta=0.5))"


def test_tasks():
    assert find_task(np.array([1.0, 2, 3])) == "multiclass"
    assert find_task(np.arange(100.0)) == "regression"
    assert find_task(np.array([0.5])) == "regression"
    assert find_task(np.array([1, 1])) == "binary"
    assert find_task(np.array(["a", "b"])) == "binary"


# ---------------------------------------------------------------------- as a process
COMMAND = [sys.executable, "-m", "kernelstream.cli"]


def process(*argv, **options):
    return subprocess.run([*COMMAND, *map(str, argv)], capture_output=True, check=False, **options)


def test_pipes(home, tmp_path):
    model = tmp_path / "m.ks"
    done = process("train", "-", "-a", "fogd", "-m", model, input=gzip.compress((home / "flats.svm").read_bytes()))
    assert done.returncode == 0, done.stderr
    assert b"rows/s" in done.stdout
    shell = f"set -o pipefail; {' '.join(COMMAND)} predict {model} - < {home / 'flats.svm'} | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout in (b"1\n", b"-1\n")


def test_a_model_on_standard_output(home, tmp_path):
    command = ["train", str(home / "flats.svm"), "-a", "fogd", "--limit", "500", "--model"]
    assert run(*command, tmp_path / "m.ks", "-q") == 0
    expected = (tmp_path / "m.ks").read_bytes()
    for options in ([], ["--json"]):  # words go elsewhere
        done = subprocess.run([*COMMAND, *command, "/dev/stdout", *options], capture_output=True, check=True)
        assert done.stdout == expected
        assert b"mistake" in done.stderr


def test_where_a_model_goes(home, tmp_path, capsys):
    link = tmp_path / "link.ks"
    link.symlink_to(tmp_path / "m.ks")
    assert "link.ks (" in out(capsys, "train", home / "flats.svm", "--model", link)
    assert link.is_symlink()
    kernelstream.load(tmp_path / "m.ks")
    assert out(capsys, "train", home / "flats.svm", "--model", os.devnull).endswith(f"; {os.devnull}\n")
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    assert run("train", home / "flats.svm", "--model", ring) == 2  # before anything is read
    assert "--model" in capsys.readouterr().err


def test_files_that_are_not_what_they_should_be(home, tmp_path, capsys):
    kernelstream.save(FeatureClassifier(), tmp_path / "checkpoint-000000000100.ks")
    assert run("train", home / "flats.svm", "--checkpoint", tmp_path, "--resume") == 1
    assert "is a model and not a checkpoint" in capsys.readouterr().err
    (tmp_path / "wide.svm").write_text("+1 1:1 2000000000:1\n-1 1:2\n")
    assert run("train", tmp_path / "wide.svm", "--model", tmp_path / "m.ks") == 1
    assert "line 1: the index of a feature is larger than 134,217,728" in capsys.readouterr().err


def test_out_of_memory_is_an_error_message(home, tmp_path, capsys, monkeypatch):
    def full(*args, **kwargs):
        raise MemoryError("Unable to allocate 5.82 TiB")

    kernelstream.save(FeatureClassifier(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]), tmp_path / "m.ks")
    monkeypatch.setattr(FeatureClassifier, "predict", full)
    assert run("predict", tmp_path / "m.ks", home / "flats.svm") == 1
    assert capsys.readouterr().err == "kernelstream: error: there is not enough memory: Unable to allocate 5.82 TiB\n"


def test_interrupted_and_resumed(home, tmp_path):
    big = tmp_path / "big.svm"
    big.write_bytes((home / "flats.svm").read_bytes() * 25)
    plain, model, folder = tmp_path / "plain.ks", tmp_path / "m.ks", tmp_path / "run"
    options = ["-a", "fogd", "--every", "4_000", "--block", "500"]
    assert run("train", big, "-m", plain, "-q", *options) == 0
    command = [*COMMAND, "train", str(big), "-m", str(model), "--checkpoint", str(folder), *options, "--resume"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(folder.glob("checkpoint-*.ks")) and time.monotonic() < until:
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=60)
    assert child.returncode == 130, (shown, errors)
    assert "stopped after" in errors
    assert not model.exists()
    rows = int(sorted(folder.glob("*.ks"))[-1].stem.removeprefix("checkpoint-"))
    assert f"stopped after {rows:,} rows" in errors
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"going on from row {rows:,}" in done.stderr
    assert model.read_bytes() == plain.read_bytes()
    # it is finished: once more changes nothing, and other options are refused
    assert run(*command[3:]) == 0
    assert model.read_bytes() == plain.read_bytes()
    assert run(*command[3:], "--gamma", "3") == 1
    assert run(*command[3:-1]) == 1


@pytest.mark.parametrize("kind", ["npz", "parquet", "arrow"])
def test_tables_edited_behind_their_beginning_are_not_gone_on_with(kind, tmp_path, capsys):
    """A single number of the last row."""
    X = np.random.default_rng(0).standard_normal((3000, 3))
    y = (X[:, 0] > 0).astype(float)

    def write(X):
        at = tmp_path / f"rows.{kind}"
        if kind == "npz":
            np.savez(at, X=X, y=y)
        else:
            pa = pytest.importorskip("pyarrow")
            table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
            if kind == "parquet":
                pytest.importorskip("pyarrow.parquet").write_table(table, at)
            else:
                pytest.importorskip("pyarrow.feather").write_feather(table, str(at), compression="uncompressed")
        return at

    at = write(X)
    target = [] if kind == "npz" else ["--target", "y"]
    command = ["train", at, "-m", tmp_path / "m.ks", "--checkpoint", tmp_path / "run", "-a", "fogd", *target]
    assert run(*command) == 0
    assert run(*command, "--resume") == 0
    X[-1, 1] += 0.5
    write(X)
    assert run(*command, "--resume") == 1
    assert "data" in capsys.readouterr().err


def test_without_checkpoints_an_interrupt_keeps_the_model(home, tmp_path, monkeypatch, capsys):
    read, calls = streams.LibSVM.read, []

    def interrupting(self):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return read(self)

    monkeypatch.setattr(streams.LibSVM, "read", interrupting)
    assert run("train", home / "flats.svm", "-m", tmp_path / "m.ks", "--block", 500) == 130
    assert "holds what was learned" in capsys.readouterr().err
    assert kernelstream.load(tmp_path / "m.ks").state_["t"] in (1000, 1500)
    assert "(interrupted)" in out(capsys, "info", tmp_path / "m.ks")


SLOW = """
import ctypes
from kernelstream import FeatureClassifier, checkpoint

checkpoint.LONG = -1.0
learn = FeatureClassifier.learn

def slow(self, X, y, **options):
    if getattr(self, "n_features_in_", 0) and self.state_["t"] == 1000:
        print("sleeping", flush=True)
        for _ in range(600):
            ctypes.CDLL(None).usleep(10**5)  # a signal ends it
    return learn(self, X, y, **options)

FeatureClassifier.learn = slow
"""


@pytest.mark.parametrize("stopper, checkpoints", [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_a_signal_inside_a_long_block(home, tmp_path, stopper, checkpoints):
    """A call that takes long, and does not come back to Python: what was learned before it is kept."""
    (tmp_path / "slow.py").write_text(SLOW)
    kept = ["--checkpoint", str(tmp_path / "run")] if checkpoints else []
    train = ["train", str(home / "flats.svm"), "-a", "fogd", "--block", "500"]
    command = [*COMMAND, *train, "-m", str(tmp_path / "m.ks"), *kept, "--import", "slow"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as slow:
        assert slow.stdout.readline() == "sleeping\n"
        slow.send_signal(stopper)
        _, said = slow.communicate(timeout=50)
    assert slow.returncode == 128 + stopper
    assert stopper.name in said
    (rows,) = re.findall(r"stopped after ([\d,]+) rows, inside a block that takes long", said)
    assert rows in ("500", "1,000")  # copies take a twentieth of the time at most, so not every block has one
    if not checkpoints:
        assert kernelstream.load(tmp_path / "m.ks").state_["t"] == int(rows.replace(",", ""))
        return
    assert run(*train, "-m", tmp_path / "m.ks", *kept, "--resume", "-q") == 0
    assert run(*train, "-m", tmp_path / "whole.ks", "-q") == 0
    assert (tmp_path / "m.ks").read_bytes() == (tmp_path / "whole.ks").read_bytes()


def test_a_signal_while_rows_are_waited_for(home, tmp_path):
    """A pipe that brings nothing more: what was learned is written."""
    command = [*COMMAND, "train", "-", "-a", "fogd", "-m", tmp_path / "m.ks", "--block", "100", "--checkpoint"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*command, tmp_path / "run", "--every", str(N)], **pipes) as child:
        child.stdin.write((home / "flats.svm").read_bytes() * 2 + b"+1 1:2\n")
        child.stdin.flush()
        until = time.monotonic() + 60
        while not (tmp_path / "run" / f"checkpoint-{2 * N:012d}.ks").exists() and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 143
        assert f"stopped after {2 * N:,} rows by SIGTERM" in child.stderr.read().decode()


def test_what_may_have_been_meant(home, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        run("trian", home / "flats.svm")
    assert stop.value.code == 2 and "did you mean 'train'?" in capsys.readouterr().err
    train = ["train", home / "flats.svm", "-m", tmp_path / "m.ks"]
    for options, meant in (
        (["-a", "auto", "--set", "sise=small"], "size"),
        (["-a", "nogd", "--loss", "log_loss"], "logistic"),
        (["-a", "ridge", "--set", "C=1"], "lam"),
    ):
        assert run(*train, *options) == 2
        assert f"did you mean {meant!r}?" in capsys.readouterr().err


def test_tables_in_a_pipe_have_headings(home, capsys):
    lines = out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd", "-q", "--limit", 100).splitlines()
    assert lines[1].split() == ["algorithm", "mistake", "rate", "rows/s", "model"]


def test_help_is_quick_and_short():
    started = time.perf_counter()
    done = process("--help")
    assert done.returncode == 0
    assert time.perf_counter() - started < 20
    code = "import sys, kernelstream.cli; kernelstream.cli._parser(['list']); print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert max(map(len, done.stdout.decode().splitlines())) <= 100


def test_progress_bar_goes_to_stderr(home, tmp_path, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("kernelstream._progress.PATIENCE", 0.0)
    assert run("train", home / "flats.svm", "-m", tmp_path / "m.ks", "--block", 100) == 0
    for word in ("fogd", "rows/s", "mistakes"):
        assert word in screen.getvalue()
    assert "rows/s" in capsys.readouterr().out
