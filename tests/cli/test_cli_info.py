"""What is said about models and algorithms: info, datasets."""

import json

import pytest
from command_line import out

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


def test_named_data_sets(capsys, tmp_path):
    options = ("--shuffle", 0, "-m", tmp_path / "d.ks", "--json", "--set", "features__sampling=orthogonal")
    about = json.loads(out(capsys, "train", "dataset:digits", *options))
    assert about["task"] == "multiclass"
    assert about["rows"] == 1797
    assert kernelstream.load(tmp_path / "d.ks").features.sampling == "orthogonal"
    assert len(out(capsys, "predict", tmp_path / "d.ks", "dataset:digits").split()) == 1797
