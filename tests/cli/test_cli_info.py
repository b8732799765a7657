"""What is said about models and algorithms: info, bench, datasets."""

import json

import pytest
from command_line import err, out, run

import kernelstream
from kernelstream import FeatureClassifier
from kernelstream_papers.rivals import KernelSDCAClassifier

pytestmark = pytest.mark.usefixtures("plain_default")


def test_info(home, tmp_path, capsys):
    model = tmp_path / "m.ks"
    data = ["--target", "kind", "--drop", "id,city"]
    out(capsys, "train", home / "flats.csv", *data, "-m", model, "-a", "nogd", "--budget", 30)
    brief, shown = out(capsys, "info", model), out(capsys, "info", model, "--full")
    assert len(brief.splitlines()) <= 12 and set(brief.splitlines()) <= set(shown.splitlines())
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
    kernelstream.save(KernelSDCAClassifier(), model)  # of another package
    assert "estimator      KernelSDCAClassifier\n" in out(capsys, "info", model)


def test_info_names_the_columns_that_matter(tmp_path, capsys):
    """Also where one of them has been empty so far."""
    (tmp_path / "t.csv").write_text("none,a,y\n" + "".join(f",{i % 7},{i % 7}.5\n" for i in range(200)))
    out(capsys, "train", tmp_path / "t.csv", "--target", "y", "-m", tmp_path / "m.ks", "-a", "auto", "--size", "small")
    assert "relevance      a 100%\n" in out(capsys, "info", tmp_path / "m.ks")


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


def test_bench(home, capsys):
    about = json.loads(
        out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd,perceptron", "--json", "--limit", 500)
    )
    rates = {r["algorithm"]: r["mistake_rate"] for r in about["results"]}
    assert list(rates) == sorted(rates, key=rates.get)
    assert set(rates) == {"fogd", "perceptron", "majority so far", "last label"}
    assert about["rows"] == 500
    assert "fogd" in out(capsys, "bench", "--algorithms", "fogd", "--rows", 1000)


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
    assert "none of the algorithms has 'nothing'" in err(capsys, 2, *argv, "--set", "nothing=1")


def test_named_data_sets(capsys, tmp_path):
    options = ("--shuffle", 0, "-m", tmp_path / "d.ks", "--json", "--set", "features__sampling=orthogonal")
    about = json.loads(out(capsys, "train", "dataset:digits", *options))
    assert about["task"] == "multiclass"
    assert about["rows"] == 1797
    assert kernelstream.load(tmp_path / "d.ks").features.sampling == "orthogonal"
    assert len(out(capsys, "predict", tmp_path / "d.ks", "dataset:digits").split()) == 1797


def test_tables_in_a_pipe_have_headings(home, capsys):
    lines = out(capsys, "bench", home / "flats.svm", "--algorithms", "fogd", "-q", "--limit", 100).splitlines()
    assert lines[1].split() == ["algorithm", "mistake", "rate", "terms", "seconds", "rows/s", "memory"]
    assert lines[-1].startswith("# terms: support vectors, or else weights") and "its file" in lines[-1]
