"""Experiments as files, runs that can be resumed, and the command."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import err
from scipy.ndimage import gaussian_filter
from sklearn.utils import Bunch
from small_experiment import TEXT, made_up, parsed, recorded, show, table

import kernelstream_papers as reproduce
from kernelstream import cli, datasets, zoo
from kernelstream.evaluate import prequential
from kernelstream_papers import _images, _job, _unbounded, report
from kernelstream_papers._peers import peer
from kernelstream_papers._records import Records
from kernelstream_papers._synthetic import hands, worth

small = pytest.fixture(parsed)

# experiments that take more than a second even when cut short
LONG = ("doubly-figure-6-bent", "doubly-figure-6", "doubly-figure-7", "doubly-figure-7-bent", "awv-figure-2",
        "thesis-table-5-3", "thesis-table-5-5")  # fmt: skip


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
    cells = table(experiment, tmp_path, only=[experiment.data[0].name])
    failed = {(c.algorithm, c.error) for c in cells if not c.values}
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
        ("repeats = 3", 'repeats = 3\nreduced = { iriss = "few" }', "reduced data sets that are not run: iriss"),
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
    cells = table(small, tmp_path)
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
    for cell in table(small, tmp_path):
        if cell.algorithm == "FOGD":
            data = next(d for d in small.data if d.name == cell.data)
            trials = {
                eta: _job.run_job(small, data, small.algorithms[2], {"n_components": 20, "eta": eta}, 1000)["value"]
                for eta in (0.001, 1.0)
            }
            assert cell.settings["eta"] == min(trials, key=trials.__getitem__)


def test_what_was_run_is_not_run_again_even_after_a_cut_line(small, tmp_path, monkeypatch):
    whole = recorded(small, tmp_path)
    path = tmp_path / "small.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-2]) + "\n" + lines[-2][:40])  # the last run is lost, the one before cut short
    again = recorded(small, tmp_path)
    assert len(path.read_text().splitlines()) == len(lines) + 1
    for cell, other in zip(reproduce.table(small, whole), reproduce.table(small, again)):
        assert cell.values == other.values
    monkeypatch.setattr("kernelstream_papers._runner.run_job", None)  # nothing is left to be called
    recorded(small, tmp_path)


def test_records_pass_over_what_is_none(tmp_path):
    records = Records(tmp_path, "x")
    records.add({"key": "a", "environment": {"python": "3"}})
    with open(tmp_path / "x.jsonl", "ab") as file:
        file.write(b'3\n[]\n"key"\n{"key": ["b"]}\n\xff\xfe\n{"key": "c"}\n{"key": "d", "val')
    found = Records(tmp_path, "x")
    assert len(found) == 2
    assert [found[key]["key"] for key in ("a", "c")] == ["a", "c"]
    assert found.environments() == [{"python": "3"}, {}]
    found.add({"key": "e", "text": "x" * 100_000})
    assert len(Records(tmp_path, "x")) == 3


def test_kept_runs_are_as_good_as_raw_ones(small, tmp_path, monkeypatch):
    whole = recorded(small, tmp_path)
    values = [cell.values for cell in reproduce.table(small, whole)]
    whole.keep()
    assert not (tmp_path / "small.jsonl").exists() and (tmp_path / "small.jsonl.xz").exists()
    monkeypatch.setattr("kernelstream_papers._runner.run_job", None)  # nothing is left to be called
    again = recorded(small, tmp_path)
    assert [cell.values for cell in reproduce.table(small, again)] == values
    first = next(iter(again))
    again.add(first | {"value": -1.0})  # a newer run takes the place of a kept one
    assert reproduce.Records(tmp_path, "small")[first["key"]]["value"] == -1.0


def test_worse_than_the_paper_counts_standard_errors(small):
    def rbp(values, printed, std):
        return [made_up("iris", "RBP", values, reproduce.Printed(printed, std))]

    errors, accuracies = small, reproduce.parse("small", TEXT.replace('measure = "mistakes"', 'measure = "accuracy"'))
    ours = [10.0, 12.0]  # mean 11, standard error 1; the paper's, of one order, is its deviation
    assert not reproduce.worse(errors, rbp(ours, 7.8, 0.4))  # 3.2 is less than 3 sqrt(1 + 0.16) = 3.23
    assert reproduce.worse(errors, rbp(ours, 7.7, 0.4))
    assert not reproduce.worse(errors, rbp(ours, 7.7, 0.6))
    assert not reproduce.worse(errors, rbp(ours, 6.8, 0.0))  # no deviation printed: ours, 3 sqrt(1 + 2) = 5.2
    assert not reproduce.worse(errors, rbp([11.0], 7.0, 1.0))  # a single run of ours: theirs, 3 sqrt 2 = 4.2
    assert reproduce.worse(errors, rbp([11.0], 6.7, 1.0))
    (many,) = rbp(ours, 7.8, 0.4)
    assert reproduce.worse(errors, [replace(many, orders=4)])  # 3 sqrt(1 + 0.04) = 3.06
    assert many.shown("mistakes") == "11.00 ± 1.41"
    assert replace(many, orders=4).shown("mistakes") == "11.00 ± 1.41 [2/4]"
    assert not reproduce.worse(errors, rbp(ours, 20.0, 0.1))  # better
    assert reproduce.worse(accuracies, rbp(ours, 20.0, 0.1))
    assert not reproduce.worse(accuracies, rbp(ours, 8.0, 0.1))
    assert not reproduce.worse(errors, rbp([3.001, 3.001], 3.0, 0.0))  # the same in the digits that are printed
    assert reproduce.worse(errors, rbp([3.006, 3.006], 3.0, 0.0))


def test_a_setting_that_fails_does_not_end_the_run(small, tmp_path):
    broken = reproduce.parse("small", TEXT.replace("eta = [0.001, 1.0]", "eta = [-1.0, 1.0]"))
    cells = {(c.data, c.algorithm): c for c in table(broken, tmp_path)}
    assert cells["iris", "FOGD"].settings["eta"] == 1.0
    assert len(cells["iris", "FOGD"].values) == 3


def test_a_run_whose_defaults_have_changed_is_run_again(small, tmp_path, monkeypatch):
    """A bandwidth that the library chooses by another rule gives no other key, and is noticed all the same."""
    small = replace(small, data=small.data[1:], algorithms=small.algorithms[2:], repeats=1)
    recorded(small, tmp_path)
    before = (tmp_path / "small.jsonl").read_text()
    assert recorded(small, tmp_path) and (tmp_path / "small.jsonl").read_text() == before
    whole = _job.build
    monkeypatch.setattr(_job, "build", lambda a, task, s, seed: whole(a, task, {"gamma": 3.0} | s, seed))
    recorded(small, tmp_path)
    after = (tmp_path / "small.jsonl").read_text()
    assert after.startswith(before) and after.count("\n") == 2 * before.count("\n") == 6  # two of a grid, one counted
    author = replace(small.algorithms[0], zoo=None, peer="usual")
    assert _job.trace(small, author, {}) is None  # versions of other tools are in the environment of a run


def test_a_process_of_its_own_tells_its_memory(tmp_path):
    text = TEXT.replace("repeats = 3", "repeats = 1\nisolate = true").replace('only = ["iris"]', 'only = ["wine"]')
    experiment = reproduce.parse("small", text)
    experiment = replace(experiment, algorithms=experiment.algorithms[:1])
    (alone,) = table(experiment, tmp_path, only=["iris"])
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


# ---------------------------------------------------------------------------------------------------- the command


def test_command(small, tmp_path, capsys, monkeypatch):
    assert cli.main(["reproduce", "--list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(reproduce.names())
    assert "which experiment" in err(capsys, 2, "reproduce")
    assert cli.main(["reproduce", "thesis-table-99"]) != 0
    assert "unknown experiment" in capsys.readouterr().err
    monkeypatch.setattr(reproduce, "load", lambda name: small)
    show(monkeypatch, small)
    pytest.importorskip("matplotlib")
    arguments = ["reproduce", "small", "--quick", "--results", str(tmp_path), "--jobs", "1", "--json", "--quiet"]
    assert cli.main(arguments) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["experiments"]["small"]["cells"] == 5 and (tmp_path / "index.html").exists()


def test_an_experiment_of_ones_own(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    show(monkeypatch)
    (tmp_path / "mine.toml").write_text(TEXT)
    folder = tmp_path / "out"
    arguments = ["--quick", "--results", str(folder), "--jobs", "1", "--quiet"]
    assert cli.main(["reproduce", str(tmp_path / "mine.toml"), *arguments]) == 0
    assert "mine: 5 cells" in capsys.readouterr().out
    assert "A small one" in (folder / "index.html").read_text() and (folder / "mine.jsonl").exists()
    assert "no.toml" in err(capsys, 1, "reproduce", tmp_path / "no.toml", *arguments)


def test_without_data_there_is_nothing_to_run(small, tmp_path, capsys, monkeypatch):
    """An error, not an empty table: for an experiment, for a data set that was asked for, for all experiments."""
    monkeypatch.setattr(datasets, "names", lambda: ["iris"])
    with pytest.warns(UserWarning, match="'wine' is not there and left out"):
        recorded(small, tmp_path, quick=True)
    with pytest.raises(reproduce.NoData, match=r"small: wine is not there: set KERNELSTREAM_DATA"):
        recorded(small, tmp_path, quick=True, only=["wine"])
    monkeypatch.setattr(datasets, "names", lambda: [])
    with pytest.raises(reproduce.NoData, match=r"iris, wine are not there"):
        recorded(small, tmp_path / "none", quick=True)
    command = ["reproduce", "--quick", "--results", str(tmp_path / "none"), "--quiet", "--jobs", "1"]
    assert "set KERNELSTREAM_DATA" in err(capsys, 1, *command, "thesis-table-4-4")
    assert cli.main([*command, "thesis-table-4-4", "thesis-table-3-2"]) == 1
    told = capsys.readouterr().err
    assert told.count("left out: ") == 2 and "error: " in told
    assert not (tmp_path / "none" / "index.html").exists()


@pytest.mark.parametrize("path", sorted(Path(reproduce.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_the_papers_use_the_public_interface_only(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "kernelstream":
            words = [*node.module.split("."), *(alias.name for alias in node.names)]
            assert not [word for word in words if word.startswith("_")], f"{path.name}, line {node.lineno}"


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
