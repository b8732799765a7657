"""Streams in their own order: figures by formula, forecasts without a look ahead, generators, tables from records."""

import importlib.util
import json
import mmap
import re
from dataclasses import replace

import numpy as np
import pytest
from command_line import err
from pages import ROOT
from sklearn.metrics import cohen_kappa_score, log_loss, mean_absolute_error, r2_score, root_mean_squared_error
from small_experiment import recorded, show, table

import kernelstream_papers as reproduce
from kernelstream import datasets
from kernelstream_papers import _arena, _arena_peers, _arena_table, report
from kernelstream_papers._arena import Ours, Stream, curve_rows, label_figures, label_losses, number_figures
from kernelstream_papers._arena_files import label_metrics, number_metrics, write_files
from kernelstream_papers._arena_peers import arena_peer
from kernelstream_papers._experiment import Algorithm, Data


def there(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"needs {package}")


# -------------------------------------------------------------------------------------------------------- figures


def test_log_loss_and_mistakes_are_scikit_learns():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), 500), rng.integers(0, 4, 500)
    wrong, loss = label_losses(p, y)
    told = label_figures(wrong, loss, np.array([100, 500]))
    for i, n in enumerate((100, 500)):
        np.testing.assert_allclose(told["log_loss"][i], log_loss(y[:n], p[:n], labels=range(4)), rtol=1e-12)
        np.testing.assert_allclose(told["mistakes"][i], 100 * np.mean(p[:n].argmax(axis=1) != y[:n]), rtol=1e-12)


def test_no_probability_counts_as_less_than_the_floor_and_certainty_is_free():
    _, loss = label_losses(np.array([[1.0, 0.0], [1.0, 0.0], [1 - 1e-9, 1e-9]]), np.array([0, 1, 1]))
    np.testing.assert_allclose(loss, [0.0, -np.log(1e-7), -np.log(1e-7)])


def test_rmse_and_r2_are_scikit_learns_also_far_from_zero():
    rng = np.random.default_rng(1)
    y = 1e6 + rng.normal(size=400)
    forecast = y + rng.normal(scale=0.5, size=400)
    told = number_figures(y, forecast, np.array([50, 400]))
    for i, n in enumerate((50, 400)):
        np.testing.assert_allclose(told["rmse"][i], root_mean_squared_error(y[:n], forecast[:n]), rtol=1e-10)
        np.testing.assert_allclose(told["r2"][i], r2_score(y[:n], forecast[:n]), rtol=1e-8)


@pytest.mark.parametrize("n", [1, 7, 150, 13_750, 50_000, 100_000, 539_383, 581_012])
def test_a_curve_has_about_fifty_round_rows_and_the_last(n):
    at = curve_rows(n)
    assert at[-1] == n and len(at) <= _arena.POINTS + 1 and (n < 60 or len(at) >= 25)
    assert np.all(np.diff(at) > 0) and len(set(np.diff(at[:-1]))) <= 1
    if n > 100_000:
        assert 100_000 in at  # runs of the first rows can be compared there


# ------------------------------------------------------------------------------------------------- asked, then told


def stream(labels, n=200):
    """Rows with a category, a target that depends on them, three labels or numbers."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 4, n)]).astype(np.float32)
    score = X[:, 0] + np.where(X[:, 3] == 2, 1.0, -0.5) + 0.3 * rng.normal(size=n)
    y = np.digitize(score, [-1.0, 0.5]) if labels else 100.0 + 20.0 * score.astype(np.float64)
    return Stream(X, y, 3 if labels else 0, (3,))


def learners(labels):
    ours = ("fogd", "rrf", "ridge")
    plain = [("shares", {}), ("last", {}), ("rbf_sampler_sgd", {"n_components": 20})]
    plain += [("last_counts", {})] if labels else []
    peers = [pytest.param(name, settings, id=name) for name, settings in plain]
    peers += [pytest.param("lightgbm_doubling", {}, id="lightgbm", marks=there("lightgbm"))]
    peers += [pytest.param("river_arf", {"n_models": 2}, id="river", marks=there("river"))]
    kind = "classifier" if labels else "regressor"
    forests = ("HoeffdingAdaptiveTree", "AdaptiveRandomForestClassifier", "StreamingRandomPatches")
    forests = (*forests, "StreamingGradientBoostedTrees") if labels else ("AdaptiveRandomForestRegressor", "SOKNL")
    peers += [pytest.param("capymoa", {kind: name}, id=name, marks=there("capymoa")) for name in forests]
    if labels:
        declared = {kind: "HoeffdingAdaptiveTree", "nominal": True}
        peers += [pytest.param("capymoa", declared, id="categories", marks=there("capymoa"))]
    return [pytest.param(name, None, id=name) for name in ours] + peers


def make(name, settings, rows):
    return Ours(name, rows, {"standardize": True}, 1) if settings is None else arena_peer(name, rows, settings, 1)


def no_look_ahead(name, settings, labels):
    rows, k = stream(labels), 150  # past the first refit of what is fitted again, inside a block
    changed_y = rows.y.copy()
    changed_y[k:] = (changed_y[k:] + 1) % 3 if labels else -changed_y[k:]
    changed_X = rows.X.copy()
    changed_X[k + 1 :, :3] *= -7.0
    other = replace(rows, X=changed_X, y=changed_y)
    forecasts = []
    for case in (rows, other):
        learner = make(name, settings, case)
        parts = [learner.forecasts(case.X[a:b], case.y[a:b]) for a, b in ((0, 90), (90, 200))]
        forecasts.append(np.concatenate(parts))
    np.testing.assert_array_equal(forecasts[0][: k + 1], forecasts[1][: k + 1])
    if name != "shares":  # a learner that never looks at anything would pass as well
        assert not np.array_equal(forecasts[0][k + 1 :], forecasts[1][k + 1 :])
    assert np.isfinite(forecasts[0]).all()
    if labels:
        np.testing.assert_allclose(forecasts[0].sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name, settings", learners(True))
def test_no_forecast_of_labels_knows_what_comes(name, settings):
    no_look_ahead(name, settings, True)


@pytest.mark.parametrize("name, settings", learners(False))
def test_no_forecast_of_numbers_knows_what_comes(name, settings):
    no_look_ahead(name, settings, False)


def test_a_learner_that_looks_is_found_out(monkeypatch):
    class Cheat(_arena_peers.Rows):
        name = "cheat"

        def __init__(self, rows, seed):
            super().__init__(rows)

        def forecasts(self, X, y):
            return y.astype(float)

    monkeypatch.setitem(_arena_peers._PEERS, "cheat", Cheat)
    with pytest.raises(AssertionError):
        no_look_ahead("cheat", {}, False)


def test_asked_before_learned_row_by_row():
    calls = []

    class Diary(_arena_peers.Rows):
        def ask(self, x):
            calls.append(("ask", float(x[0])))

        def tell(self, x, target):
            calls.append(("tell", float(x[0])))

    rows = stream(True, 5)
    first = Diary(rows).forecasts(rows.X, rows.y)
    assert calls == [(what, float(x)) for x in rows.X[:, 0] for what in ("ask", "tell")]
    np.testing.assert_allclose(first, 1 / 3)  # no forecast yet: equal ones


# ------------------------------------------------------------------------------------------------ known figures


@pytest.mark.skipif(datasets.folder() is None, reason="needs KERNELSTREAM_DATA")
@pytest.mark.parametrize(
    "data, peer, figures",
    [  # as the board prints them: shares is its MajorityClass and TargetMean, last its NoChange
        ("electricity", "last", {"log_loss": 2.3644437442423674, "mistakes": 100 - 85.32838983050848}),
        ("electricity", "shares", {"log_loss": 0.682}),
        ("nomao", "last", {"log_loss": 0.8329325838252751, "mistakes": 100 - 94.829537211664}),
        ("california", "shares", {"rmse": 115454.756}),
        ("kings_county", "shares", {"rmse": 367196.633}),
    ],
)
def test_baselines_have_the_boards_figures(data, peer, figures):
    if not {data} <= set(datasets.names()):
        pytest.skip(f"{data} is not there")
    run = _arena.run_stream(Data(data), Algorithm(peer, peer=peer), {}, 0)
    for name, value in figures.items():
        assert run["figures"][name] == pytest.approx(value, rel=1e-3 if value == 0.682 else 1e-7)


def test_lightgbm_is_fitted_at_every_doubling(monkeypatch):
    seen = []

    class Spy:
        def __init__(self, **settings):
            pass

        def fit(self, X, y):
            seen.append(len(y))
            self.mean = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean)

    module = type("lightgbm", (), {"LGBMRegressor": Spy, "LGBMClassifier": Spy})
    monkeypatch.setattr(_arena_peers, "needed", lambda name, package: module)
    rows = stream(False, 1100)
    learner = arena_peer("lightgbm_doubling", rows, {}, 1)
    forecast = np.concatenate(
        [learner.forecasts(rows.X[a : a + 300], rows.y[a : a + 300]) for a in range(0, 1100, 300)]
    )
    assert seen == [128, 256, 512, 1024]
    before = np.concatenate([[0.0], np.cumsum(rows.y[:127]) / np.arange(1, 128)])
    np.testing.assert_allclose(forecast[:128], before)
    for start in seen:
        np.testing.assert_allclose(forecast[start : min(2 * start, 1100)], rows.y[:start].mean())


# ------------------------------------------------------------------------------------------------------- streams


@there("river")
def test_generated_streams_are_the_same_every_time_and_change_as_declared():
    experiment = reproduce.load("streams-arena")
    made = {d.name: d for d in experiment.data if d.river is not None}
    assert set(made) == {"sea", "hyperplane", "moving_rbf", "friedman_drift"}
    for data in made.values():
        first, second = (_arena.open_stream(replace(data, rows=300)) for _ in range(2))
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)
        assert first.n_classes == {"moving_rbf": 5, "friedman_drift": 0}.get(data.name, 2)
    sea = _arena.open_stream(replace(made["sea"], rows=8000))
    sums = sea.X[:, 0] + sea.X[:, 1]
    for part, threshold in enumerate((8.0, 9.0, 7.0, 9.5)):  # of SEA's four variants; a tenth of the labels is turned
        rows = slice(2000 * part, 2000 * (part + 1))
        assert np.mean((sums[rows] > threshold) == sea.y[rows]) == pytest.approx(0.9, abs=0.025)


def test_labels_are_codes_and_all_known_though_only_the_first_rows_are_taken():
    whole = datasets.load("iris")
    first = _arena.open_stream(Data("iris", rows=20))
    assert first.n_classes == 3 and set(first.y) == {0} and len(first.X) == 20
    np.testing.assert_array_equal(first.X, whole.X[:20])  # the file's own order


# --------------------------------------------------------------------------------------------- a run and its tables

TEXT = """
title = "Small"
source = "tests"
place = "board"
kind = "arena"
measure = "arena"
repeats = 1

[[data]]
name = "wine"

[[data]]
name = "iris"

[[data]]
name = "diabetes"

[[algorithm]]
label = "FOGD"
zoo = "fogd"
parameters = { standardize = true }

[[algorithm]]
label = "shares"
peer = "shares"

[[algorithm]]
label = "again"
peer = "shares"

[[algorithm]]
label = "last"
peer = "last"
rows = { diabetes = 100, wine = 50 }

[printed.iris]
shares = 1.234
"""


@pytest.fixture
def small(tmp_path):
    experiment = reproduce.parse("small", TEXT)
    return experiment, table(experiment, tmp_path)


def test_a_record_has_all_that_is_told(small, tmp_path):
    runs = [json.loads(line) for line in (tmp_path / "small.jsonl").read_text().splitlines()]
    assert len(runs) == 12
    for run in runs:
        assert run["value"] == run["figures"]["rmse" if run["data"] == "diabetes" else "log_loss"]
        assert set(run["figures"]) == ({"rmse", "r2"} if run["data"] == "diabetes" else {"log_loss", "mistakes"})
        at, values = run["curve"]
        assert at[-1] == run["rows"] and values[-1] == pytest.approx(run["value"], rel=1e-4)
        assert all(len(curve) == len(at) for curve in run["curves"].values())
        assert run["cpu_seconds"] >= 0 and run["seconds"] > 0 and run["process_mb"] >= run["peak_mb"]
        assert run["environment"]["versions"]["scikit-learn"]
    rows = {(run["data"], run["algorithm"]): run["rows"] for run in runs}
    assert rows["diabetes", "last"] == 100 and rows["wine", "last"] == 50 and rows["iris", "last"] == 150
    assert rows["diabetes", "FOGD"] == 442


def cell(data, algorithm, value, rows=100, printed=None, **figures):
    figures = figures or {"log_loss": value, "mistakes": 12.34}
    return reproduce.Cell(data, algorithm, {}, [value], [1234.5], None, 67.8, {}, printed, rows=rows, figures=figures)


CELLS = [
    cell("s", "A", 0.25, printed=reproduce.Printed(0.252)),
    cell("s", "B", 0.5),
    cell("s", "C", 0.5),
    cell("s", "D", 0.1, rows=50),  # the first rows only
    cell("t", "A", 0.75),
    cell("t", "B", 0.5),
    cell("u", "A", 61234.5, rmse=61234.5, r2=0.7083),
]


def test_places_by_hand():
    assert _arena_table.places(CELLS) == {
        ("s", "A"): 1, ("s", "B"): 2.5, ("s", "C"): 2.5, ("t", "A"): 2, ("t", "B"): 1, ("u", "A"): 1,
    }  # fmt: skip
    means = _arena_table.mean_places(CELLS[:6])
    assert means == {"A": (1.5, 2), "B": (1.75, 2), "C": (2.5, 1), "D": (float("inf"), 0)}
    assert list(means) == ["A", "B", "C", "D"]  # the best first


def test_tables_by_hand(small):
    lines = _arena_table.arena_tables(small[0], CELLS)
    start = lines.index("| log-loss (place) [the board's] | s | t | mean place | streams |")
    assert lines[start + 2 : start + 6] == [
        "| A | **0.25** (1) [0.252] | 0.75 (2) | 1.50 | 2 |",
        "| B | 0.5 (2.5) | **0.5** (1) | 1.75 | 2 |",
        "| C | 0.5 (2.5) |  | 2.50 | 1 |",
        "| D | 0.1\\* |  |  | 0 |",
    ]
    start = lines.index("| mistakes, % | s | t |")
    assert lines[start + 2] == "| A | 12.3 | 12.3 |" and lines[start + 5] == "| D | 12.3\\* |  |"
    assert "\\* the first rows only, and so without a place: D on s 50." in lines
    for line in ("| A | **61,234** (1) | 1.00 | 1 |", "| A | 0.708 |", "| A | 1,234 |", "| A | 68 |"):
        assert line in lines[lines.index("| RMSE (place) [the board's] | u | mean place | streams |") :]


def test_tables_are_written_from_records(small, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    experiment, cells = small
    show(monkeypatch, experiment)
    page = report.write(tmp_path).read_text()
    tables = (tmp_path / "tables.md").read_text()
    assert "\n".join(_arena_table.arena_tables(experiment, cells)) in tables
    for c in cells:
        assert _arena_table.figure(c.mean) in tables and _arena_table.figure(c.mean) in page
    assert "last on wine 50." in tables and "last on diabetes 100." in tables
    assert "0 of 1 cells" in page  # a peer's figure elsewhere is nothing to fall behind


def test_only_the_algorithms_asked_for_and_a_typo_is_named(tmp_path, capsys, monkeypatch):
    experiment = reproduce.parse("small", TEXT)
    recorded(experiment, tmp_path, only=["iris"], algorithms=["shares"])
    assert len(reproduce.Records(tmp_path, "small")) == 1
    monkeypatch.setattr(reproduce, "load", lambda name: experiment)
    assert "no algorithm 'share'" in err(capsys, 2, "reproduce", "small", "--results", tmp_path, "--algorithm", "share")


def test_a_data_set_that_is_not_there_is_told_of_only_if_it_was_asked_for(tmp_path, recwarn):
    experiment = reproduce.parse("small", TEXT.replace('name = "wine"', 'name = "vine"'))
    recorded(experiment, tmp_path, only=["iris"], algorithms=["shares"])
    assert not [w for w in recwarn if "vine" in str(w.message)]
    with pytest.raises(reproduce.NoData, match="vine is not there"):
        recorded(experiment, tmp_path, only=["vine"])
    with pytest.warns(UserWarning, match="'vine' is not there"):
        recorded(experiment, tmp_path, algorithms=["shares"])


def test_a_run_that_lacked_a_package_is_tried_again(tmp_path, monkeypatch):
    experiment = reproduce.parse("small", TEXT)
    experiment = replace(experiment, algorithms=(Algorithm("trees", peer="river_arf"),), data=experiment.data[:1])

    def missing(name, package):
        raise ImportError(f"this comparison needs {package}: pip install './papers[peers]'")

    with monkeypatch.context() as patch:
        patch.setattr(_arena_peers, "needed", missing)
        (cell,) = table(experiment, tmp_path)
        assert not cell.values and "pip install" in cell.error
        assert "Without a figure: trees on wine: ImportError" in "\n".join(
            _arena_table.arena_tables(experiment, [cell])
        )
    monkeypatch.setitem(_arena_peers._PEERS, "river_arf", _arena_peers.Shares)
    (cell,) = table(experiment, tmp_path)
    assert cell.values


def test_memory_of_a_large_array_is_seen():
    if not _arena.peak_mb():
        pytest.skip("the system does not tell")
    before = _arena.forget_peak()
    with mmap.mmap(-1, 60_000_000) as pages:  # memory of its own: an array may get what others have left
        np.frombuffer(pages, np.uint8)[:] = 1
    assert 40 < _arena.peak_mb() - before < 200


# ------------------------------------------------------------------------------------------------ files of the board


def test_kappas_are_gains_over_chance_the_last_label_and_the_usual_one():
    rng = np.random.default_rng(2)
    y = np.repeat(rng.integers(0, 3, 60), 5)
    guess = np.where(rng.random(300) < 0.7, y, rng.integers(0, 3, 300))
    told = label_metrics(guess, y, 3)
    right = last = usual = 0
    before, counts = 0, [0, 0, 0]
    for t in range(300):  # as MOA counts: the majority includes the row itself, the first row comes after class 0
        counts[y[t]] += 1
        right += guess[t] == y[t]
        last += before == y[t]
        usual += counts.index(max(counts)) == y[t]
        before = y[t]
    assert told["accuracy"] == pytest.approx(100 * right / 300)
    assert told["kappa"] == pytest.approx(100 * cohen_kappa_score(y, guess))
    assert told["kappa_t"] == pytest.approx(100 * (right - last) / (300 - last))
    assert told["kappa_m"] == pytest.approx(100 * (right - usual) / (300 - usual))
    z = rng.normal(size=300)
    assert number_metrics(z, y)["mae"] == pytest.approx(mean_absolute_error(y, z))


def documented_fields():
    """Field -> type of the page's table, and the metrics of each task."""
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    part = page[page.index("### Files for the board") :]
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in part.splitlines() if line.startswith("| `")]
    types = {"string": str, "integer": int, "number": (int, float), "object": dict}
    told = {name.strip("`"): what for name, _, what in rows}
    labels, numbers = (re.findall(r"`(\w+)`", text) for text in told["metrics"].split(";"))
    return {row[0].strip("`"): types[row[1]] for row in rows}, {"classification": labels, "regression": numbers}


def test_result_files_are_as_the_page_says(tmp_path, monkeypatch):
    experiment = reproduce.load("streams-arena")
    ours = next(a for a in experiment.algorithms if a.zoo == "auto")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    streams = {"electricity": Stream(X, (X[:, 0] > 0).astype(int), 2, ()), "fried": Stream(X, X[:, 1] * 1.0, 0, ())}
    monkeypatch.setattr(_arena, "open_stream", lambda data: streams[data.name])
    records = []
    for name in streams:
        data = next(d for d in experiment.data if d.name == name)
        found = _arena.run_stream(data, ours, {}, 0)
        head = {"data": name, "algorithm": ours.label, "order": 0, "settings": {}, "environment": {}}
        records += [head | found, head | {k: v for k, v in found.items() if k != "board"}]
    records.append(records[0] | {"data": "sea"})  # of a generator
    records.append(records[2] | {"data": "diamonds"})  # of an earlier board
    records.append(records[0] | {"algorithm": "River ARF"})
    paths, without = write_files(experiment, records, tmp_path)
    assert without == 2
    assert [path.name for path in paths] == ["real__electricity__seed1.json", "synth__fried__seed1.json"]
    fields, metrics = documented_fields()
    for path in paths:
        line = json.loads(path.read_text())
        assert line.keys() == fields.keys()
        for name, kind in fields.items():
            assert isinstance(line[name], kind), name
        assert set(metrics[line["task"]]) == line["metrics"].keys()
        assert all(np.isfinite(value) for value in line["metrics"].values())
        assert {"author", "contact_or_repo", "library_versions", "notes"} == line["submission"].keys()
        assert {"members", "size", "recent", "random_state"} <= line["hyperparameters"].keys()
        assert path.parent.name == line["algorithm"] and line["dataset"].replace("/", "__") in path.name
    numbers = json.loads(paths[1].read_text())["metrics"]
    assert 0 < numbers["mae"] <= numbers["rmse"]
    assert write_files(experiment.quick(), records, tmp_path)[0] == []  # the first rows are no stream of the board


def test_files_need_an_experiment_on_streams(tmp_path, capsys):
    assert "streams-arena" in err(capsys, 2, "reproduce", "thesis-table-3-2", "--quick", "--files", tmp_path)
