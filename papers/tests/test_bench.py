"""The papers' table on one's own file: orders, held-out rows, chosen parameters, formats and curves."""

import csv
import io
import json

import numpy as np
import pytest
import scipy.io
from command_line import err, out, run

from kernelstream import streams, zoo
from kernelstream.evaluate import prequential

rng = np.random.default_rng(3)
X = rng.normal(size=(240, 3)).round(4)
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=240) > 0, "up", "down")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    lines = [",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), Y, strict=True)]
    for name, part in (("train.csv", lines[:200]), ("test.csv", lines[200:])):
        (folder / name).write_text("\n".join(["a,b,c,y", *part]) + "\n")
    return folder


def bench(capsys, *argv):
    return {one["algorithm"]: one for one in json.loads(out(capsys, "bench", *argv, "--json", "-q"))["results"]}


def by_hand(order, **params):
    est = zoo.make("rbp", "binary", random_state=order, **params)
    rows = np.random.default_rng(order).permutation(200)
    result = prequential(est, X[rows], Y[rows], block_size=1024)
    return est, result.mistake_rate


def test_the_table_is_the_mean_over_orders(files, capsys):
    """Each number from a loop over permutations with the library's own calls."""
    argv = (files / "train.csv", "--target", "y", "--algorithms", "rbp,perceptron", "--repeat", 3)
    found = bench(capsys, *argv, "--test", files / "test.csv", "--set", "budget=20")
    runs = [by_hand(order, budget=20) for order in range(3)]
    rates = [rate for _, rate in runs]
    tests = [np.mean(est.predict(X[200:]) != Y[200:]) for est, _ in runs]
    assert found["rbp"]["mistake_rate"] == pytest.approx(np.mean(rates), abs=1e-15)
    assert found["rbp"]["mistake_rate_std"] == pytest.approx(np.std(rates, ddof=1))
    assert found["rbp"]["test_mistake_rate"] == pytest.approx(np.mean(tests))
    assert found["rbp"]["size"] == 20 and found["rbp"]["orders"] == 3 and found["rbp"]["seconds"] > 0
    assert "test_mistake_rate" not in found["last label"] and found["last label"]["orders"] == 3


def test_a_budget_leaves_unbounded_learners_alone(files, capsys):
    """With one they would be Stoptron, which stops at 20 rows."""
    argv = (files / "train.csv", "--target", "y", "--algorithms", "perceptron,ogd,stoptron", "--json", "-q")
    assert run("bench", *argv) == 0
    free = {one["algorithm"]: one for one in json.loads(capsys.readouterr().out)["results"]}
    assert run("bench", *argv, "--set", "budget=20") == 0
    shown = capsys.readouterr()
    found = {one["algorithm"]: one for one in json.loads(shown.out)["results"]}
    assert "--set budget: perceptron, ogd have no budget and are left unchanged" in shown.err
    for name in ("perceptron", "ogd"):
        assert found[name]["size"] == free[name]["size"] > 20
        assert found[name]["mistake_rate"] == free[name]["mistake_rate"]
    assert found["stoptron"]["size"] == 20
    said = err(capsys, 2, "bench", *argv[:3], "--algorithms", "perceptron", "--set", "budget=20")
    assert "none of the algorithms has 'budget'" in said


@pytest.mark.parametrize("folds", [None, 4])
def test_parameters_are_chosen_on_an_order_of_their_own(files, capsys, folds):
    argv = (files / "train.csv", "--target", "y", "--algorithms", "fogd,perceptron", "--set", "n_components=30")
    grid = (0.001, 0.3, 10.0)
    more = ("--folds", folds) if folds else ()
    found = bench(capsys, *argv, "--repeat", 1, "--tune", "eta=0.001,0.3,10", *more)
    order, errors = np.random.default_rng(1000).permutation(200), []
    for eta in grid:
        if folds is None:
            est = zoo.make("fogd", "binary", n_components=30, eta=eta, random_state=1000)
            errors.append(prequential(est, X[order], Y[order], block_size=1024).mistakes)
            continue
        wrong = 0
        for fold in range(folds):
            out_of = np.arange(200) % folds == fold
            est = zoo.make("fogd", "binary", n_components=30, eta=eta, random_state=1000)
            est.partial_fit(X[order[~out_of]], Y[order[~out_of]])
            wrong += np.count_nonzero(est.predict(X[order[out_of]]) != Y[order[out_of]])
        errors.append(wrong)
    assert found["fogd"]["chosen"]["eta"] == grid[int(np.argmin(errors))]
    assert run("bench", *argv, "--folds", 4) == 2 and "--folds chooses among" in capsys.readouterr().err


def test_orders_of_a_matlab_file_are_used(tmp_path, capsys):
    orders = np.array([np.random.default_rng(50 + i).permutation(200) for i in range(2)])
    y = np.where(Y[:200] == "up", 1.0, -1.0)
    scipy.io.savemat(tmp_path / "a.mat", {"data": np.column_stack([y, X[:200]]), "ID_ALL": orders + 1.0})
    found = bench(capsys, tmp_path / "a.mat", "--algorithms", "perceptron", "--repeat", 2)
    rates = [prequential(zoo.make("perceptron"), X[order], y[order].astype(int)).mistake_rate for order in orders]
    assert found["perceptron"]["mistake_rate"] == pytest.approx(np.mean(rates), abs=1e-15)


def test_rows_with_words_and_sparse_rows_in_many_orders(tmp_path, capsys):
    words = np.where(X[:200, 2] > 0, "red", "blue")
    lines = [f"{row[0]},{word},{label}" for row, word, label in zip(X[:200].tolist(), words, Y[:200], strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["a,colour,y", *lines]) + "\n")
    argv = ("--algorithms", "fogd", "--repeat", 2, "--block", 60)
    found = bench(capsys, tmp_path / "a.csv", "--target", "y", "--test", tmp_path / "a.csv", *argv)
    assert found["fogd"]["rows"] == 200 and 0 < found["fogd"]["test_mistake_rate"] < 0.7
    rows = [
        f"{1 if label == 'up' else -1} 1:{row[0]} {2 + i // 70}:1" for i, (row, label) in enumerate(zip(X.tolist(), Y))
    ]
    (tmp_path / "a.svm").write_text("\n".join(rows) + "\n")  # wider from block to block
    found = bench(capsys, tmp_path / "a.svm", "--test", tmp_path / "a.svm", *argv)
    assert found["fogd"]["rows"] == 240
    assert next(iter(streams.open(tmp_path / "a.svm", block=60)))[0].shape[1] == 2


def test_formats_and_curves_say_the_same(files, tmp_path, capsys):
    argv = ("bench", files / "train.csv", "--target", "y", "--algorithms", "rbp", "--repeat", 2, "-q")
    rates = [by_hand(order)[1] for order in range(2)]
    cell = f"{np.mean(rates):.4f} ± {np.std(rates, ddof=1):.4f}"
    assert cell in out(capsys, *argv) and f"| rbp | {cell} |" in out(capsys, *argv, "--table", "markdown")
    latex = out(capsys, *argv, "--table", "latex")
    assert f"rbp & {cell.replace('±', '$' + chr(92) + 'pm$')} &" in latex and latex.rstrip().endswith("\\end{tabular}")
    table = list(csv.DictReader(io.StringIO(out(capsys, *argv, "--table", "csv", "--curve", tmp_path / "c.csv"))))
    rbp = next(row for row in table if row["algorithm"] == "rbp")
    assert float(rbp["mistake_rate"]) == pytest.approx(np.mean(rates))
    curve = list(csv.DictReader((tmp_path / "c.csv").open()))
    assert int(curve[-1]["rows"]) == 200 and float(curve[-1]["mistake_rate"]) == pytest.approx(np.mean(rates))
    assert float(curve[-1]["seconds"]) == pytest.approx(float(rbp["seconds"]))
    pytest.importorskip("matplotlib")
    out(capsys, *argv, "--curve", tmp_path / "c.svg")
    assert "seconds" in (tmp_path / "c.svg").read_text()


@pytest.mark.usefixtures("plain_default")
def test_bench(home, capsys):
    about = json.loads(
        out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--json", "--limit", 500)
    )
    rates = {r["algorithm"]: r["mistake_rate"] for r in about["results"]}
    assert list(rates) == sorted(rates, key=rates.get)
    assert set(rates) == {"fogd", "perceptron", "majority so far", "last label"}
    assert about["rows"] == 500
    assert "fogd" in out(capsys, "bench", "--algorithms", "fogd", "--rows", 1000)


@pytest.mark.usefixtures("plain_default")
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


@pytest.mark.usefixtures("plain_default")
def test_bench_keeps_what_is_finished(home, capsys, monkeypatch):
    """An algorithm that fails, or time that is up, takes nothing from the others."""
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,falkon,perceptron", "--limit", 300, "--json", "-q")
    assert run(*argv) == 1
    shown = capsys.readouterr()
    assert "falkon: " in shown.err and "falkon failed" in shown.err
    assert {"fogd", "perceptron"} < {r["algorithm"] for r in json.loads(shown.out)["results"]}
    ticks = iter(range(0, 10_000, 4))
    monkeypatch.setattr("kernelstream_papers.bench.time.monotonic", lambda: next(ticks))
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--block", 50, "--json", "-q")
    assert run(*argv, "--seconds", 10) == 0
    shown = capsys.readouterr()
    rows = {r["algorithm"]: r["rows"] for r in json.loads(shown.out)["results"]}
    assert 0 < rows["fogd"] < rows["last label"] and "perceptron" not in rows and "perceptron" in shown.err


@pytest.mark.usefixtures("plain_default")
def test_bench_sets_parameters(home, capsys):
    argv = ("bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--limit", 100, "--json", "-q")
    sizes = []
    for more in ((), ("--set", "n_components=7")):
        found = json.loads(out(capsys, *argv, *more))["results"]
        sizes.append({r["algorithm"]: r["model_bytes"] for r in found})
    assert sizes[1]["fogd"] < sizes[0]["fogd"] and sizes[1]["perceptron"] == sizes[0]["perceptron"]
    assert "none of the algorithms has 'nothing'" in err(capsys, 2, *argv, "--set", "nothing=1")


@pytest.mark.usefixtures("plain_default")
def test_tables_in_a_pipe_have_headings(home, capsys):
    lines = out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd", "-q", "--limit", 100).splitlines()
    assert lines[1].split() == ["algorithm", "mistake", "rate", "terms", "seconds", "rows/s", "memory"]
    assert lines[-1].startswith("# terms: support vectors, or else weights") and "its file" in lines[-1]
