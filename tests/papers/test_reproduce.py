"""Experiments as files, runs that can be resumed, tables, and the page."""

import ast
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.utils import Bunch

import kernelstream_papers as reproduce
from kernelstream import cli, datasets, zoo
from kernelstream.evaluate import prequential
from kernelstream_papers import _images, _job, _unbounded, _where, report
from kernelstream_papers._peers import peer
from kernelstream_papers._synthetic import hands, worth

TEXT = """
title = "A small one"
source = "tests"
place = "Table 0"
kind = "online"
measure = "mistakes"
repeats = 3

[[data]]
name = "iris"
scale = "minmax"
values = { B = 20 }

[[data]]
name = "wine"
scale = "standard"
values = { B = 30 }

[[algorithm]]
label = "Perceptron"
zoo = "perceptron"
parameters = { gamma = 1.0 }

[[algorithm]]
label = "RBP"
zoo = "rbp"
parameters = { gamma = 1.0, budget = "$B" }
only = ["iris"]

[[algorithm]]
label = "FOGD"
zoo = "fogd"
parameters = { n_components = 20 }
grid = { eta = [0.001, 1.0] }

[printed.iris]
Perceptron = [1.0, 0.1, 5.0, 100]
RBP = [99.0, 0.5]

[why]
"iris/Perceptron" = "The figure is made up."
"""


# experiments that take more than a second even when cut short
LONG = (
    "doubly-figure-6-bent",
    "doubly-figure-6",
    "doubly-figure-7",
    "awv-figure-2",
    "thesis-table-5-3",
    "thesis-table-5-5",
)


@pytest.fixture
def small():
    return reproduce.parse("small", TEXT)


@pytest.mark.parametrize("name", reproduce.names())
def test_every_file_can_be_read_and_names_what_exists(name):
    experiment = reproduce.load(name)
    for data in experiment.data:
        for algorithm in experiment.algorithms:
            if not algorithm.serves(data.name) or algorithm.zoo is None:
                continue
            for point in algorithm.points():
                settings = experiment.settings(data, algorithm, point) | algorithm.candidates()[0]
                task = "regression" if experiment.measure in ("mse", "rmse", "regret", "relative") else "binary"
                _job.build(algorithm, task, settings, 0)


@pytest.mark.skipif(datasets.folder() is None, reason="needs KERNELSTREAM_DATA")
@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in reproduce.names()]
)
def test_every_experiment_runs(name, tmp_path):
    rows = 5 if "awv-figure-2" in name else 20 if name.startswith("doubly") else 50
    experiment = replace(reproduce.load(name).quick(rows=rows, repeats=1), isolate=False)
    records = reproduce.run(experiment, tmp_path, n_jobs=1, progress=False, only=[experiment.data[0].name])
    failed = {(c.algorithm, c.error) for c in reproduce.table(experiment, records) if not c.values}
    assert all("pip install" in error for _, error in failed), failed  # a peer that is not there


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('kind = "online"', 'kind = "offline"', "kind must be one of"),
        ('measure = "mistakes"', 'measure = "luck"', "measure must be one of"),
        ("repeats = 3", "repeat = 3", "has no entry repeat"),
        ('zoo = "rbp"', 'zoo = "rbp"\npeer = "svc"', "either zoo or peer"),
        ("RBP = [99.0, 0.5]", "RPB = [99.0, 0.5]", "not run: .'RPB'"),
        ('"iris/Perceptron"', '"iris/Perceptrons"', "belongs to no cell"),
        ('zoo = "rbp"', 'zoo = "rbp"\ninstead = "PBR"', "instead of 'PBR', which is no line"),
    ],
)
def test_a_mistake_in_a_file_is_named(old, new, message):
    with pytest.raises(ValueError, match=message):
        reproduce.parse("small", TEXT.replace(old, new))


def test_unknown_names_and_values(small):
    with pytest.raises(ValueError, match="did you mean 'thesis-table-4-4'"):
        reproduce.load("thesis-table-44")
    missing = reproduce.parse("small", TEXT.replace("values = { B = 20 }", ""))
    with pytest.raises(ValueError, match=r"iris has no value for \$B"):
        missing.settings(missing.data[0], missing.algorithms[1], {})
    with pytest.raises(ValueError, match="unknown peer"):
        peer("abacus", "binary", {}, 0)


def test_runs_equal_a_loop_by_hand(small, tmp_path):
    records = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    cells = reproduce.table(small, records)
    assert [(c.data, c.algorithm) for c in cells] == [
        ("iris", "Perceptron"), ("iris", "RBP"), ("iris", "FOGD"), ("wine", "Perceptron"), ("wine", "FOGD"),
    ]  # fmt: skip
    wine = datasets.load("wine", scale="standard")
    rates = []
    for order in range(3):
        rows = np.random.default_rng(order).permutation(len(wine.y))
        est = zoo.make("perceptron", task="multiclass", gamma=1.0, random_state=order)
        X, y, wrong = wine.X[rows], wine.y[rows], 0
        for i in range(len(y)):  # predict a row, then learn it
            wrong += int(y[i] != (est.predict(X[i : i + 1])[0] if i else min(y)))
            est.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y))
        rates.append(100 * wrong / len(y))
    cell = cells[3]
    np.testing.assert_allclose(cell.values, rates, atol=1e-4)
    np.testing.assert_allclose([cell.mean, cell.std], [np.mean(rates), np.std(rates, ddof=1)], rtol=1e-5)


def test_rows_as_an_experiment_wants_them():
    """Blurred images by the formula: a pixel is the mean of all, with weights that fall like a Gaussian."""
    plain = reproduce.Data("digits", scale="minmax")
    X, y, *_ = _job.rows_of(plain, 0, "online")
    blurred, same, *_ = _job.rows_of(replace(plain, blur=0.75), 0, "online")
    np.testing.assert_array_equal(same, y)
    far = np.arange(-50, 51)  # as good as endless
    w = (
        np.exp(-(np.subtract.outer(np.arange(8), np.arange(8)) ** 2) / (2 * 0.75**2))
        / np.exp(-(far**2) / (2 * 0.75**2)).sum()
    )
    np.testing.assert_allclose(blurred[:9], 2 * (w @ X[:9].reshape(-1, 8, 8) @ w).reshape(9, 64) - 1, atol=1e-6)
    doubled, *_ = _job.rows_of(replace(plain, dtype="float64"), 0, "online")
    assert X.dtype == np.float32 and doubled.dtype == np.float64
    np.testing.assert_array_equal(doubled, X)
    numbers = reproduce.Data("diabetes", target="minmax-sym")
    raw, ends = (_job.rows_of(d, 0, "online")[1] for d in (replace(numbers, target=None), numbers))
    np.testing.assert_allclose(ends, 2 * (raw - raw.min()) / np.ptp(raw) - 1, atol=1e-12)
    with pytest.raises(ValueError, match="square images, and 13 columns"):
        _job.rows_of(reproduce.Data("wine", blur=1.0), 0, "online")


def test_bent_images_are_training_rows_with_the_label_of_their_original(tmp_path, monkeypatch):
    """A pixel of a bent image is its neighbours' mean where the field says: here by hand for one pixel of each."""
    X = np.random.default_rng(0).random((12, 64)).astype(np.float32)
    y, is_test = np.arange(12) % 3, np.arange(12) >= 9
    monkeypatch.setattr(_job.datasets, "load", lambda *a, **k: Bunch(X=X, y=y, is_test=is_test, task="multiclass"))
    _job._load.cache_clear()
    data = reproduce.Data("bent", bends=2)
    rows, labels, test, _, _ = _job.rows_of(data, 0, "holdout")
    _job._load.cache_clear()
    assert len(rows) == 27 and sorted(map(tuple, test)) == sorted(map(tuple, X[9:]))
    rng = np.random.default_rng(0)
    made = np.concatenate([_images.bent(X[:9], rng) for _ in range(2)])
    found = {tuple(row): label for row, label in zip(rows, labels, strict=True)}
    assert all(found[tuple(row)] == y[i % 9] for i, row in enumerate([*X[:9], *made]))
    field = _images.REACH * gaussian_filter(
        np.random.default_rng(0).uniform(-1, 1, (2, 9, 8, 8)), (0, 0, 4.0, 4.0), mode="constant"
    )
    i, j, image = 4, 3, X[5].reshape(8, 8)
    a, b = i + field[0, 5, i, j], j + field[1, 5, i, j]
    p, q = int(np.floor(a)), int(np.floor(b))
    corners = np.pad(image, 8)[p + 8 : p + 10, q + 8 : q + 10]
    inside = 0 <= a <= 7 and 0 <= b <= 7
    expected = np.array([1 + p - a, a - p]) @ corners @ np.array([1 + q - b, b - q]) if inside else 0.0
    np.testing.assert_allclose(made[5].reshape(8, 8)[i, j], expected, atol=1e-5)
    with pytest.raises(ValueError, match="square images, and 63 columns"):
        _images.squares(X[:, :63])


def test_numbers_become_labels_and_a_line_has_rows_of_its_own_for_its_grid(small):
    late = reproduce.Data("diabetes", above=140.0)
    _, y, _, _, task = _job.rows_of(late, 0, "online")
    assert task == "binary" and (y == 1).sum() == (datasets.load("diabetes").y > 140).sum()
    searched = replace(small, tune_rows=7)
    assert [searched.tuned_on(a) for a in (small.algorithms[2], replace(small.algorithms[2], tune_rows=9))] == [7, 9]


def test_the_best_of_the_grid_is_used(small, tmp_path):
    records = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    for cell in reproduce.table(small, records):
        if cell.algorithm == "FOGD":
            data = next(d for d in small.data if d.name == cell.data)
            trials = {
                eta: _job.run_job(small, data, small.algorithms[2], {"n_components": 20, "eta": eta}, 1000)["value"]
                for eta in (0.001, 1.0)
            }
            assert cell.settings["eta"] == min(trials, key=trials.__getitem__)


def test_what_was_run_is_not_run_again_even_after_a_cut_line(small, tmp_path, monkeypatch):
    whole = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    path = tmp_path / "small.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-2]) + "\n" + lines[-2][:40])  # the last run is lost, the one before cut short
    again = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    assert len(path.read_text().splitlines()) == len(lines) + 1
    for cell, other in zip(reproduce.table(small, whole), reproduce.table(small, again)):
        assert cell.values == other.values
    monkeypatch.setattr("kernelstream_papers._runner.run_job", None)  # nothing is left to be called
    reproduce.run(small, tmp_path, n_jobs=1, progress=False)


def test_kept_runs_are_as_good_as_raw_ones(small, tmp_path, monkeypatch):
    whole = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    values = [cell.values for cell in reproduce.table(small, whole)]
    whole.keep()
    assert not (tmp_path / "small.jsonl").exists() and (tmp_path / "small.jsonl.xz").exists()
    monkeypatch.setattr("kernelstream_papers._runner.run_job", None)  # nothing is left to be called
    again = reproduce.run(small, tmp_path, n_jobs=1, progress=False)
    assert [cell.values for cell in reproduce.table(small, again)] == values
    first = next(iter(again))
    again.add(first | {"value": -1.0})  # a newer run takes the place of a kept one
    assert reproduce.Records(tmp_path, "small")[first["key"]]["value"] == -1.0


def test_worse_than_the_paper_counts_deviations(small):
    def cell(values, printed, std):
        return reproduce.Cell("iris", "RBP", {}, values, [1.0], None, None, {}, reproduce.Printed(printed, std))

    errors = small
    accuracies = reproduce.parse("small", TEXT.replace('measure = "mistakes"', 'measure = "accuracy"'))
    ours = [10.0, 12.0]  # mean 11, deviation sqrt 2
    assert not reproduce.worse(errors, [cell(ours, 10.0, 0.4)])  # ours spread more: 1 is less than 2 sqrt 2
    assert reproduce.worse(errors, [cell(ours, 8.0, 0.4)])
    assert not reproduce.worse(errors, [cell(ours, 8.0, 1.6)])
    assert not reproduce.worse(errors, [cell(ours, 20.0, 0.1)])  # better
    assert reproduce.worse(accuracies, [cell(ours, 20.0, 0.1)])
    assert not reproduce.worse(accuracies, [cell(ours, 8.0, 0.1)])
    assert not reproduce.worse(errors, [cell([3.001, 3.001], 3.0, 0.0)])  # the same in the digits that are printed
    assert reproduce.worse(errors, [cell([3.006, 3.006], 3.0, 0.0)])


def test_a_setting_that_fails_does_not_end_the_run(small, tmp_path):
    broken = reproduce.parse("small", TEXT.replace("eta = [0.001, 1.0]", "eta = [-1.0, 1.0]"))
    records = reproduce.run(broken, tmp_path, n_jobs=1, progress=False)
    cells = {(c.data, c.algorithm): c for c in reproduce.table(broken, records)}
    assert cells["iris", "FOGD"].settings["eta"] == 1.0
    assert len(cells["iris", "FOGD"].values) == 3


def test_a_process_of_its_own_tells_its_memory(tmp_path):
    text = TEXT.replace("repeats = 3", "repeats = 1\nisolate = true").replace('only = ["iris"]', 'only = ["wine"]')
    experiment = reproduce.parse("small", text)
    experiment = replace(experiment, algorithms=experiment.algorithms[:1])
    (alone,) = reproduce.table(experiment, reproduce.run(experiment, tmp_path, n_jobs=1, progress=False, only=["iris"]))
    plain = _job.run_job(
        replace(experiment, isolate=False), experiment.data[0], experiment.algorithms[0], alone.settings, 0
    )
    assert alone.peak_mb >= 0 and alone.values == [plain["value"]]


@pytest.mark.parametrize("name", ["rbf_sampler_sgd", "nystroem_sgd", "svc", "kernel_ridge", "river_tree"])
def test_peers_learn(name):
    pytest.importorskip("river") if name.startswith("river") else None
    digits = datasets.load("digits", scale="minmax")
    rows = np.random.default_rng(0).permutation(len(digits.y))
    X, y = digits.X[rows], digits.y[rows]
    est = peer(name, "multiclass", {}, 0).fit(X[:1200], y[:1200])
    assert np.mean(est.predict(X[1200:]) == y[1200:]) > 0.5


@pytest.mark.parametrize("name", ["rbf_sampler_sgd", "svc", "river_linear", "river_tree", "vw_ksvm"])
def test_peers_tell_two_classes_apart_row_by_row(name):
    """Labels are -1 and 1, whatever the peer calls its classes."""
    for start, package in (("river", "river"), ("vw", "vowpalwabbit")):
        if name.startswith(start):
            pytest.importorskip(package)
    iris = datasets.load("iris", scale="minmax")
    rows = np.random.default_rng(0).permutation(np.flatnonzero(iris.y < 2))
    X, y = iris.X[rows], np.where(iris.y[rows] == 1, 1, -1)
    est = peer(name, "binary", {}, 0)
    if hasattr(est, "partial_fit"):
        for row in range(80):
            est.partial_fit(X[row : row + 1], y[row : row + 1], classes=np.array([-1, 1]))
    else:
        est.fit(X[:80], y[:80])
    assert np.mean(est.predict(X[80:]) == y[80:]) > 0.8


def test_baselines_look_at_no_column():
    """The majority so far (the first of equals) and the row before, by hand; the mean for numbers."""
    labels = np.array([3, 1, 1, 2, 2, 2, 1, 1])
    X = np.zeros((8, 1))
    answers = {"usual": [0, 3, 3, 1, 1, 1, 2, 1], "last": [0, 3, 1, 1, 2, 2, 2, 1]}
    for name, expected in answers.items():
        est, found = peer(name, "multiclass", {}, 0), []
        for i in range(8):
            found.append(est.predict(X[i : i + 1])[0])
            est.partial_fit(X[i : i + 1], labels[i : i + 1])
        assert found == expected, name
        assert prequential(peer(name, "multiclass", {}, 0), X, labels, block_size=1).mistakes == sum(
            a != b for a, b in zip([min(labels), *expected[1:]], labels)
        )
    numbers = np.array([1.0, 2.0, 6.0])
    assert peer("usual", "regression", {}, 0).fit(X[:3], numbers).predict(X[:2]).tolist() == [3.0, 3.0]
    assert peer("last", "regression", {}, 0).fit(X[:3], numbers).predict(X[:2]).tolist() == [6.0, 6.0]


def test_baselines_stand_in_every_table_of_peers():
    for name in reproduce.names():
        found = reproduce.load(name)
        if found.source == "peers":
            have = {a.peer for a in found.algorithms}
            assert "usual" in have and (found.kind != "online" or "last" in have), name
            assert all(a.block == 1 for a in found.algorithms if a.peer in ("usual", "last") and found.kind == "online")
            # rows that came one after another stay so
            assert all(d.order == "file" for d in found.data if d.name == "elec2"), name


def test_streams_keep_their_order(small):
    iris = datasets.load("iris")
    kept = replace(small.data[0], scale=None, order="file", rows=70)
    for order in (0, 1):
        X, y, *_ = _job.rows_of(kept, order, "online")
        assert np.array_equal(X, iris.X[:70]) and np.array_equal(y, iris.y[:70])
    shuffled = _job.rows_of(replace(kept, order=None), 0, "online")[0]
    assert not np.array_equal(shuffled, iris.X[:70])
    declared = TEXT.replace('scale = "minmax"\n', 'scale = "minmax"\norder = "file"\n')
    cell = reproduce.parse("small", declared)
    assert report._heading(cell, "iris") == "iris, in its order" and report._heading(cell, "wine") == "wine"
    for wrong in (declared.replace('"file"', '"time"'), declared.replace('"online"', '"holdout"')):
        with pytest.raises(ValueError, match="order of iris must be 'file', in an online run"):
            reproduce.parse("small", wrong)


# ---------------------------------------------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("page")
    sweep = TEXT.replace("parameters = { n_components = 20 }", "sweep = { n_components = [10, 20, 40] }")
    experiments = {"small": reproduce.parse("small", TEXT), "swept": reproduce.parse("swept", sweep)}
    for experiment in experiments.values():
        reproduce.run(experiment, folder, n_jobs=1, progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "names", lambda: sorted(experiments))
        patch.setattr(report, "load", experiments.__getitem__)
        return report.write(folder)


def test_the_page_says_what_the_records_say(small, page):
    text = page.read_text()
    cells = reproduce.table(small, reproduce.Records(page.parent, "small"))
    for cell in cells:
        assert f"{cell.mean:.2f} ± {cell.std:.2f}" in text
    assert "The figure is made up." in text and "1.00 ± 0.10" in text
    assert "1 of 2 cells" not in text and "2 of 4 cells" in text  # the perceptron in both files; 99 % is no feat
    assert "kernelstream reproduce small" in text
    assert text.count("<svg") == 6  # of each file: over rows, over seconds, and where the runs end
    assert "http://" not in text.replace("http://www.w3.org", "") and "<script" not in text
    tables = (page.parent / "tables.md").read_text()
    assert f"{cells[0].mean:.2f} ± {cells[0].std:.2f} (1.00)" in tables.replace("**", "")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_page_opens_in_a_browser_without_complaints(page, tmp_path):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               f"--user-data-dir={tmp_path}/profile", "--enable-logging=stderr", "--window-size=390,800"]  # fmt: skip
    done = subprocess.run(
        ["chromium", *options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") == page.read_text().count("<svg") > 0
    assert "Behind the papers" in done.stdout


# ---------------------------------------------------------------------------------------------------- the command


def test_command(tmp_path, capsys, monkeypatch):
    assert cli.main(["reproduce", "--list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(reproduce.names())
    assert cli.main(["reproduce"]) == 2
    assert "which experiment" in capsys.readouterr().err
    assert cli.main(["reproduce", "thesis-table-99"]) != 0
    assert "unknown experiment" in capsys.readouterr().err
    small = reproduce.parse("small", TEXT)
    monkeypatch.setattr(reproduce, "load", lambda name: small)
    monkeypatch.setattr(report, "load", lambda name: small)
    monkeypatch.setattr(report, "names", lambda: ["small"])
    pytest.importorskip("matplotlib")
    arguments = ["reproduce", "small", "--quick", "--results", str(tmp_path), "--jobs", "1", "--json", "--quiet"]
    assert cli.main(arguments) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["experiments"]["small"]["cells"] == 5 and (tmp_path / "index.html").exists()


def test_an_experiment_of_ones_own(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(report, "names", lambda: [])
    (tmp_path / "mine.toml").write_text(TEXT)
    folder = tmp_path / "out"
    arguments = ["--quick", "--results", str(folder), "--jobs", "1", "--quiet"]
    assert cli.main(["reproduce", str(tmp_path / "mine.toml"), *arguments]) == 0
    assert "mine: 5 cells" in capsys.readouterr().out
    assert "A small one" in (folder / "index.html").read_text() and (folder / "mine.jsonl").exists()
    assert cli.main(["reproduce", str(tmp_path / "no.toml"), *arguments]) == 1
    assert "no.toml" in capsys.readouterr().err


def test_without_data_there_is_nothing_to_run(small, tmp_path, capsys, monkeypatch):
    """An error, not an empty table: for an experiment, for a data set that was asked for, for all experiments."""
    monkeypatch.setattr(datasets, "names", lambda: ["iris"])
    with pytest.warns(UserWarning, match="'wine' is not there and left out"):
        reproduce.run(small, tmp_path, n_jobs=1, quick=True, progress=False)
    with pytest.raises(reproduce.NoData, match=r"small: wine is not there: set KERNELSTREAM_DATA"):
        reproduce.run(small, tmp_path, n_jobs=1, quick=True, progress=False, only=["wine"])
    monkeypatch.setattr(datasets, "names", lambda: [])
    with pytest.raises(reproduce.NoData, match=r"iris, wine are not there"):
        reproduce.run(small, tmp_path / "none", n_jobs=1, quick=True, progress=False)
    command = ["reproduce", "--quick", "--results", str(tmp_path / "none"), "--quiet", "--jobs", "1"]
    assert cli.main([*command, "thesis-table-4-4"]) == 1
    assert "set KERNELSTREAM_DATA" in capsys.readouterr().err
    assert cli.main([*command, "thesis-table-4-4", "thesis-table-3-2"]) == 1
    told = capsys.readouterr().err
    assert told.count("left out: ") == 2 and "error: " in told
    assert not (tmp_path / "none" / "index.html").exists()


def test_the_page_escapes_what_a_machine_says_of_itself(tmp_path):
    """Records are text that may come from anywhere."""
    records = reproduce.Records(tmp_path, "small")
    names = ("processor", "machine", "cores", "python")
    where = {name: f"<script>{name}</script>" for name in names} | {"versions": {"<i>": "<b>"}}
    records.add({"key": "a", "environment": where})
    written = report._machines([(None, [], records)])
    assert written.count("&lt;script&gt;") == 4 and "&lt;i&gt; &lt;b&gt;" in written
    assert not any(tag in written for tag in ("<script", "<i>", "<b>"))


@pytest.mark.parametrize("path", sorted(Path(reproduce.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_the_papers_use_the_public_interface_only(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "kernelstream":
            words = [*node.module.split("."), *(alias.name for alias in node.names)]
            assert not [word for word in words if word.startswith("_")], f"{path.name}, line {node.lineno}"


def test_every_point_of_a_sweep_has_a_line():
    experiment = reproduce.load("rrf-figure-2")
    points = [{"n_components": n} for n in (10, 400)]
    cells = [
        reproduce.Cell("cod-rna", "RRF", point, [4.0 - i], [1.0], None, None, {}, None)
        for i, point in enumerate(points)
    ]
    lines = report.markdown_table(experiment, cells)
    assert "| RRF, n_components 10 | 4.00 |" in lines and "| RRF, n_components 400 | **3.00** |" in lines


# ---------------------------------------------------------------------------------------------------- the whole record


def test_the_pages_in_the_repository_are_those_of_its_records():
    """tables.md and where.md, written again: no figure is typed, none is stale."""
    folder = Path(__file__).parents[2] / "papers" / "results"
    for name, text in report.texts(folder).items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name} is stale: kernelstream reproduce --page"


def test_every_experiment_of_a_paper_has_its_place_on_the_page():
    told = _where.contents()
    named = {name for paper in told["paper"] for item in paper["item"] for name in item.get("experiments", [])}
    sources = {paper["source"] for paper in told["paper"]}
    assert named == {name for name in reproduce.names() if reproduce.load(name).source in sources}
    for paper in told["paper"]:
        for item in paper["item"]:
            assert set(item.get("absent", {})) <= set(told["absent"]), item["place"]
            assert set(item.get("recipes", [])) <= set(zoo.names()), item["place"]
            reasons = ("experiments", "recipes", "note")
            assert any(item.get(kind) for kind in reasons), f"{item['place']} is missing without a reason"


# What is numbered in each paper.
NUMBERED = {
    "thesis": {
        "Algorithm": [str(k) for k in range(1, 19)],
        "Figure": ["1.1", "3.1", "3.2", *(f"4.{k}" for k in range(1, 8)), "5.1", "5.2"],
        "Table": ["2.1", "3.1", "3.2", "3.3", *(f"4.{k}" for k in range(1, 9)), *(f"5.{k}" for k in range(1, 7))],
    },
    "RRF": {"Algorithm": ["1"], "Figure": ["1", "2"], "Table": ["1", "2"]},
    "random binning": {"Algorithm": ["1", "2"], "Figure": list("123456"), "Table": ["1"]},
    "Taylor-AWV": {"Algorithm": ["1"], "Figure": list("1234"), "Table": []},
    "doubly stochastic": {"Algorithm": ["1", "2"], "Figure": list("12345678"), "Table": list("1234")},
}


@pytest.mark.parametrize("paper", _where.contents()["paper"], ids=lambda paper: paper["source"])
def test_all_that_a_paper_numbers_has_its_place_on_the_page(paper):
    found = {kind: [] for kind in NUMBERED[paper["source"]]}
    for place in (part for item in paper["item"] for part in item["place"].split("; ")):
        kind, _, numbers = place.partition(" ")
        if kind.rstrip("s") in found:
            first, _, last = numbers.partition(" to ")
            new = range(int(first), int(last) + 1) if last else numbers.split(", ")
            found[kind.rstrip("s")] += map(str, new)
    assert {kind: sorted(numbers) for kind, numbers in found.items()} == {
        kind: sorted(numbers) for kind, numbers in NUMBERED[paper["source"]].items()
    }


def test_the_page_counts_cells_and_gives_causes(monkeypatch):
    """Four printed cells, by hand: level, ahead, behind with its cause, and one that was not run."""
    text = TEXT.replace(
        "RBP = [99.0, 0.5]", "RBP = [99.0, 0.5]\nFOGD = 7.0\n\n[printed.wine]\nPerceptron = [10.0, 0.5]"
    )
    small = reproduce.parse("small", text)

    def cell(data, algorithm, values):
        printed = small.printed[data][algorithm]
        return reproduce.Cell(data, algorithm, {}, values, [1.0], None, None, {}, printed)

    cells = [
        cell("iris", "Perceptron", [3.0, 3.2]),
        cell("iris", "RBP", [50.0, 51.0]),
        cell("wine", "Perceptron", [10.1, 10.9]),
    ]
    item = {"place": "Table 0", "what": "x", "experiments": ["small"], "absent": {"lost": 4}}
    told = {"absent": {"lost": "gone"}, "paper": [{"source": "tests", "title": "T", "item": [item]}]}
    told |= {"differs": [{"algorithm": "A", "printed": "p", "ours": "o"}], "lacks": [{"what": "W", "where": "here"}]}
    monkeypatch.setattr(_where, "contents", lambda: told)
    monkeypatch.setattr(_where, "load", lambda name: small)
    page = _where.where({"small": cells})
    assert "| tests | 8 | 3 | 1 | 0 | 1 | 1 | 1 | 4 |" in page
    assert "| iris | Perceptron | `perceptron` | 1.00 ± 0.10 | 3.10 ± 0.14 | behind | The figure is made up. |" in page
    assert "| iris | FOGD | `fogd` | 7.00 |  | not run |  |" in page and "lost: 4 (gone)" in page
    assert "Rows in float32." in page and "| A | p | o |" in page and "| W | here |" in page
    line = '\n[[algorithm]]\nlabel = "P, author\'s rules"\npeer = "author"\ninstead = "Perceptron"\n\n[printed.iris]'
    small = reproduce.parse("small", text.replace("\n[printed.iris]", line))
    theirs = replace(cells[0], algorithm="P, author's rules", printed=None)
    page = _where.where({"small": [*cells, replace(theirs, values=[1.1, 1.0])]})
    assert "| tests | 8 | 3 | 1 | 1 | 1 | 0 | 1 | 4 |" in page
    assert "| by the author's rules | By the author's rules 1.05 ± 0.07. The figure is made up. |" in page
    page = _where.where({"small": [*cells, replace(theirs, values=[2.0, 2.1])]})  # no cause that explains enough
    assert "| tests | 8 | 3 | 1 | 0 | 1 | 1 | 1 | 4 |" in page


def test_the_type_of_the_rows_is_what_is_loaded(small):
    """The sentence under every table, against the arrays themselves."""
    mixed = reproduce.parse("small", TEXT.replace('scale = "minmax"\n', 'scale = "minmax"\ndtype = "float64"\n'))
    assert mixed.about.endswith("Rows in float32, of iris in float64.") and small.about.endswith("Rows in float32.")
    for data, dtype in zip(mixed.data, ("float64", "float32"), strict=True):
        assert _job.rows_of(data, 0, "online")[0].dtype == dtype


def test_a_search_of_a_held_out_run_never_sees_a_test_row():
    data = reproduce.Data("wine")
    X, _, X_test, _, _ = _job.rows_of(data, 0, "holdout")
    trained, _, judged, _, _ = _job.rows_of(data, 5, "holdout", search=True)
    few, _, others, _, _ = _job.rows_of(replace(data, rows=40), 5, "holdout", search=True)
    training = {row.tobytes() for row in X}
    assert {row.tobytes() for row in trained} | {row.tobytes() for row in judged} == training
    assert (len(trained), len(judged)) == (len(X) * 4 // 5, len(X) - len(X) * 4 // 5)
    assert (len(few), len(others)) == (40, len(X) - 40)
    assert not training & {row.tobytes() for row in X_test}


def test_a_split_can_be_scaled_by_its_own_rows(tmp_path, monkeypatch):
    X = np.array([[0.0], [1.0], [2.0], [10.0]], np.float32)
    np.savez(tmp_path / "two.npz", X=X, y=np.array([0, 1, 0, 1], np.int8), is_test=np.array([True, True, True, False]))
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    test = reproduce.Data("two", scale="minmax-sym", split="test")
    assert sorted(_job.rows_of(test, 0, "online")[0].ravel()) == pytest.approx([-1.0, -0.8, -0.6])
    assert sorted(_job.rows_of(replace(test, scaled="split"), 0, "online")[0].ravel()) == [-1.0, 0.0, 1.0]


def test_dealt_hands_are_five_different_cards_with_the_chances_of_poker():
    X, y = hands(200_000, np.random.default_rng(0))
    cards = np.sort((X[:, ::2] - 1) * 13 + X[:, 1::2] - 1, axis=1)
    assert (np.diff(cards, axis=1) > 0).all()
    assert (cards.min(), cards.max()) == (0, 51)
    ways = [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 36, 4]  # of the 2,598,960 hands
    expected = np.array(ways) * len(y) / 2_598_960
    assert (np.abs(np.bincount(y, minlength=10) - expected) < 5 * np.sqrt(expected) + 3).all()
    hand = np.array(
        [[1, 1, 1, 10, 1, 11, 1, 12, 1, 13], [1, 1, 2, 10, 1, 11, 1, 12, 1, 13], [3, 5, 3, 2, 3, 3, 3, 4, 3, 6]]
    )
    assert worth(hand).tolist() == [9, 4, 8]


@pytest.mark.parametrize(("rule", "step"), [("perceptron", {}), ("ogd", {"eta": 0.3}), ("pa1", {"C": 0.3})])
def test_expansions_in_blocks_are_those_of_the_recipes(rule, step, monkeypatch):
    monkeypatch.setattr(_unbounded, "BLOCK", 37)
    monkeypatch.setattr(_unbounded, "COLUMNS", 50)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    learner = _unbounded.Unbounded(rule, 0.5, 0.3)
    scores = np.concatenate([learner.learn(X[:100], y[:100]), learner.learn(X[100:], y[100:])])
    recipe = zoo.make(rule, task="binary", gamma=0.5, **step)
    np.testing.assert_allclose(scores, recipe.learn(X, y, classes=[-1, 1]), atol=1e-10)
    assert learner.size_ == len(recipe.support_vectors_)


def test_one_block_is_kernel_ridge_regression_and_many_are_one_for_each_cluster():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 50.0])
    y = np.sin(X[:, 0]) + 3.0
    K = np.exp(-0.7 * np.abs(X[:, None] - X).sum(axis=2))
    exact = y.mean() + K @ np.linalg.solve(K + 0.1 * np.eye(80), y - y.mean())
    for rows in (80, 40):  # the two clusters are so far from each other that the kernel between them is 0
        model = peer("blocks", "regression", {"rows": rows, "gamma": 0.7, "lam": 0.1}, 3)
        np.testing.assert_allclose(model.fit(X, y).predict(X), exact, atol=1e-8)


# ------------------------------------------------------------------------------------------------------- equal time


class _Batches:
    """A learner that takes a millisecond for a row, by a clock of the test."""

    now, rows = 0.0, 0

    def partial_fit(self, X, y, classes):
        assert len(classes) == 2
        self.rows += len(y)
        _Batches.now += 0.001 * len(y)


class _Whole:
    """A learner of all rows, whose seconds grow with the square of their number."""

    def fit(self, X, y):
        self.rows = len(y)
        _Batches.now += (0.001 * len(y)) ** 2


def test_a_rival_has_the_seconds_it_is_given(monkeypatch):
    X, y = np.zeros((10_000, 1)), np.arange(10_000) % 2
    monkeypatch.setattr(_job, "time", type("Clock", (), {"perf_counter": staticmethod(lambda: _Batches.now)}))
    est, spent = _job.fitted_within(_Batches, X[:1000], y[:1000], 2.5)
    assert est.rows == 2512 and spent == pytest.approx(2.512)  # 1000, 1000 and two batches of 256
    est, spent = _job.fitted_within(_Whole, X, y, 20.0)
    assert est.rows == 4096 and spent == pytest.approx(16.78, abs=0.01)  # 8192 would take 67
    assert _job.fitted_within(_Whole, X, y, 1000.0)[0].rows == 10_000


def test_equal_time_is_that_of_the_first_line():
    text = TEXT.replace('kind = "online"', 'kind = "holdout"')
    line = '\n[[algorithm]]\nlabel = "Again"\nzoo = "perceptron"\nsweep = { within = [1.0] }\n\n[printed.iris]'
    equal = reproduce.parse("small", text.replace("\n[printed.iris]", line, 1))
    again, data = equal.algorithms[-1], equal.data[0]
    outcome = _job.run_job(equal, data, again, equal.settings(data, again, {"within": 20.0}), 0)
    whole = _job.run_job(equal, data, equal.algorithms[0], equal.settings(data, equal.algorithms[0], {}), 0)
    assert outcome["value"] >= 0 and outcome["seconds"] > whole["seconds"] > 0
