"""The command: its subcommands, its errors, and the picture the demonstration writes."""

import io
import sys
from unittest.mock import Mock

import numpy as np
import pytest
from command_line import err, out
from rich.console import Console
from sklearn.preprocessing import StandardScaler

import kernelstream
from kernelstream import budgets, cli, datasets, demo, drift, features, kernels, losses, plots, updates, zoo
from kernelstream.cli import packages
from kernelstream.cli.base import COMMANDS
from kernelstream.evaluate import Curve, Result, prequential


def test_version(capsys):
    assert out(capsys, "--version") == f"kernelstream {kernelstream.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["demo", "--rows", "0"], ["demo", "--rows", "many"]])
def test_bad_usage_exits_with_2(argv, capsys):
    assert "usage: kernelstream" in err(capsys, 2, *argv)


def test_list_has_one_line_for_everything(capsys):
    lines = out(capsys, "list").splitlines()
    registries = (zoo, kernels, features, losses, updates, budgets)
    everything = [name for registry in registries for name in registry.names()]
    everything += [name for name in kernelstream.__all__ if isinstance(getattr(kernelstream, name), type)]
    assert len(lines) == len(everything) + 7  # and a heading for each list
    described = {line.split()[0] for line in lines if len(line.split()) > 2}
    assert described == set(everything)


def test_list_of_one_kind(capsys):
    assert len(out(capsys, "list", "losses").splitlines()) == len(losses.names()) + 1


def test_datasets(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    shown = out(capsys, "datasets")
    assert "digits" in shown
    assert "Set KERNELSTREAM_DATA" in shown
    np.savez(tmp_path / "mine.npz", X=np.ones((1234, 3)), y=np.ones(1234))
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    lines = [line.split() for line in out(capsys, "datasets").splitlines()]
    assert ["mine", "regression", "1,234", "3", "dense"] in lines


def test_errors_of_the_user_are_one_line(capsys, monkeypatch):
    assert err(capsys, 2, "list", "colours") == (
        "kernelstream: error: there is no list of 'colours': choose from estimators, algorithms, kernels, "
        "features, losses, updates, budgets\n"
    )
    with pytest.raises(ValueError, match="no list of 'colours'"):
        cli.main(["--debug", "list", "colours"])
    monkeypatch.setenv("KERNELSTREAM_DATA", "/no/such/folder")
    assert "not a folder" in err(capsys, 1, "datasets")


def test_interrupt(monkeypatch, capsys):
    monkeypatch.setattr(demo, "run", Mock(side_effect=KeyboardInterrupt))
    assert cli.main(["demo"]) == 130


def test_tables_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, out(capsys, "list", "losses").splitlines())) < 120


def test_demo(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    picture = tmp_path / "new folder" / "demo.png"
    text = io.StringIO()
    results = demo.run(picture, n_rows=600, console=Console(file=text, width=120))
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = text.getvalue()
    assert str(picture) in shown.replace("\n", "")
    for heading in ("mistake rate", "rows/s", "model size", "electricity", "drift"):
        assert heading in shown
    assert all(result.n_rows == 600 for result in results)
    alone, last_label, _hills = (results[i : i + len(results) // 3] for i in range(0, len(results), len(results) // 3))
    assert [result.name for result in alone] == [result.name for result in last_label]
    y = datasets.load("electricity", return_X_y=True)[1][:600]
    assert alone[-1].mistakes == last_label[-1].mistakes == np.count_nonzero(np.diff(y)) + (y[0] != 0)
    for learner in (alone[0], alone[1], last_label[0]):  # scaled by all rows so far, a linear model is a fair rival
        assert learner.mistakes < alone[-1].mistakes


def test_demo_without_the_compiled_core_takes_less_data(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "has_native", lambda: False)
    monkeypatch.setattr(demo, "STREAM_ROWS_IN_PYTHON", 2000)
    monkeypatch.setattr(demo, "_learners", lambda stage, console: [("fogd", zoo.make("fogd", gamma=0.5), stage.X)])
    text = io.StringIO()
    results = demo.run(tmp_path / "demo.png", console=Console(file=text))
    assert [result.n_rows for result in results] == [2000] * 3
    assert "The compiled core is not installed" in text.getvalue()


def test_demo_scales_the_others_as_a_running_scaler_does(rng):
    X = np.column_stack([rng.normal(1e4, 1.0, 50), rng.uniform(size=50), np.ones(50)])
    scaler, expected = StandardScaler(), []
    for row in X:
        expected += [scaler.partial_fit(row[None]).transform(row[None])[0]]
    assert demo.scaled_by_rows_so_far(X) == pytest.approx(np.array(expected), abs=1e-6)


def test_demo_shows_the_others_the_label_of_the_row_before_and_no_other():
    y = np.array([1, 0, 0, 1, 1])
    stage = demo.Stage("", np.zeros((5, 1)), y, last_label=True)
    assert stage.columns[1:, 1].tolist() == y[:-1].tolist()
    for i in range(5):  # a row knows nothing of its own label
        other = demo.Stage("", stage.X, np.where(np.arange(5) < i, y, 1 - y), last_label=True)
        assert other.columns[: i + 1].tolist() == stage.columns[: i + 1].tolist()


def test_demo_without_river_leaves_its_forest_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.forest", None)
    text, stage = io.StringIO(), demo.Stage("", np.zeros((5, 1)), np.arange(5) % 2, last_label=False)
    names = [name for name, *_ in demo._learners(stage, Console(file=text, width=120))]
    assert names == ["KernelClassifier", "SGDClassifier", "RBFSampler, SGDClassifier", "the last label"]
    assert "River is not installed" in text.getvalue()


def test_plots_choose_metric_and_labels(tmp_path):
    result = _result()
    figure = plots.curves({"mine": result, "other": result}, tmp_path / "a.svg", windows=5)
    (ax,) = figure.axes
    assert [line.get_label() for line in ax.get_lines()] == ["mine", "other"]
    assert len(ax.get_lines()[0].get_xdata()) == 5
    assert (tmp_path / "a.svg").stat().st_size > 1000
    (ax,) = plots.curves([result], metric="accuracy").axes
    assert ax.get_ylabel() == "accuracy so far"
    assert plots.curves(result, ax=ax).axes == [ax]


def test_plot_errors(monkeypatch):
    with pytest.raises(ValueError, match="no results"):
        plots.curves([])
    with pytest.raises(ValueError, match="has no metric 'mse'; it has mistake_rate, accuracy"):
        plots.curves(_result(), metric="mse")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"kernelstream\[plots\]"):
        plots.figure()


def _result():
    rows = np.arange(10, 110, 10)
    wrong = Curve(rows, np.sqrt(rows))
    return Result(
        "r", "classification", 100, 1.0, 1, {"mistake_rate": 0.1}, {"mistake_rate": wrong, "accuracy": wrong}, 10
    )


def test_a_result_of_a_run_can_be_drawn():
    result = prequential(zoo.make("fogd", random_state=0), drift.generate(1000, 100), classes=[-1, 1])
    (ax,) = plots.curves(result).axes
    assert ax.get_lines()[0].get_ydata()[-1] == result.mistake_rate


def test_a_warning_is_one_line(capsys, tmp_path):
    """The shell shows what is said, not the line of code that says it."""
    table, model = tmp_path / "rows.csv", tmp_path / "m.ks"
    table.write_text("a,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(300)) + "3,-999999\n")
    (line,) = err(capsys, 0, "train", table, "--target", "y", "--task", "regression", "-m", model, "-q").splitlines()
    assert line.startswith("kernelstream: warning: a target lies far outside the others")


def test_reproduce_knows_its_data_sets(capsys):
    assert "no data set 'germna'" in err(capsys, 2, "reproduce", "thesis-table-4-4", "--data", "germna")
    assert "--page runs nothing" in err(capsys, 2, "reproduce", "--all", "--page")  # it would run for hours


def test_rivals_of_the_papers_say_where_they_come_from(capsys, monkeypatch):
    from kernelstream.zoo import _registry

    assert set(zoo.RIVALS) <= set(zoo.names())  # the papers are installed
    ours = {name: found for name, found in _registry.CATALOGUE.parts.items() if name not in zoo.RIVALS}
    assert not [name for name, found in ours.items() if found.compose.__module__.startswith("kernelstream_papers")]
    monkeypatch.setattr(_registry.CATALOGUE, "parts", ours)
    with pytest.raises(ValueError, match="'r_sdca' comes with the papers' experiments: run 'pip install"):
        zoo.make("r_sdca")
    told = out(capsys, "list", "algorithms")
    assert "ksdca, llsvm, metagrad, n_cd, " in told and "pip install . ./papers" in told and "kernel_awv" in told


def test_reproduce_says_how_to_install_the_papers(capsys, monkeypatch):
    monkeypatch.setattr("kernelstream.cli.packages._points", lambda **which: ())
    for name in packages.OTHERS:
        monkeypatch.delitem(COMMANDS, name, raising=False)
    assert "pip install . ./papers" in err(capsys, 2, "reproduce", "--list")
