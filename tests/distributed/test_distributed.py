"""Many machines: two worker processes of this one, compared with dense formulas and with one-machine fits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import own_parts
import pytest
from sklearn.base import clone

pytest.importorskip("distributed")
from two_workers import DLABELS, DX, DY, LABELS, N, X, Y, close

import kernelstream as ks
from kernelstream import cli, distributed
from kernelstream.features import Nystroem, RandomBinning, RandomFourier, TaylorFeatures
from kernelstream.solvers import ConjugateGradient

# -------------------------------------------------------------------- ridge


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "features",
    [RandomFourier(n_components=60, gamma=0.3), TaylorFeatures(degree=3, gamma=0.5)],
    ids=["fourier", "taylor"],
)
def test_ridge_solves_the_normal_equations(client, features):
    model = distributed.fit(ks.OnlineRidge(features, lam=0.7, random_state=1), DX, DY, client=client)
    Z = clone(features).set_params(**({"random_state": 1} if "random_state" in features.get_params() else {}))
    Z = Z.fit_transform(X)
    w = np.linalg.solve(Z.T @ Z + 0.7 * np.eye(Z.shape[1]), Z.T @ Y)
    close(model.coef_, w)
    assert model.state_["t"] == N
    # the model goes on like any other
    other = ks.OnlineRidge(features, lam=0.7, random_state=1).fit(X, Y)
    close(model.partial_fit(X[:10], Y[:10]).coef_, other.partial_fit(X[:10], Y[:10]).coef_)


@pytest.mark.usefixtures("clean")
def test_bandwidths_and_labels_as_on_one_machine(client, files):
    """The median rule looks at the first rows; labels appear in any partition; rows are CSR."""
    est = ks.OnlineRidgeClassifier(RandomFourier(n_components=40), lam=0.5, intercept=True, random_state=2)
    found = distributed.fit(clone(est), str(files / "part-*.svm"), client=client)
    from scipy.sparse import csr_array

    close(found.coef_, est.fit(csr_array(X), LABELS.astype(float), shuffle=False).coef_)
    assert found.classes_.tolist() == [5.0, 6.0, 7.0]
    ours = distributed.score(found, str(files / "part-*.svm"), client=client)
    assert ours == est.score(csr_array(X), LABELS)
    narrow = files / "narrow.svm"  # the last column is zero in all rows: the model says that it is there
    narrow.write_text("5 1:1 2:0.5\n6 1:-1\n")
    assert distributed.predict(found, str(narrow)).compute(scheduler=client).shape == (2,)


@pytest.mark.usefixtures("clean")
def test_landmarks_come_from_all_partitions(client):
    features = Nystroem(n_components=25, landmarks="uniform", random_state=3)
    model = distributed.fit(ks.OnlineRidge(features, lam=0.1, random_state=3), DX, DY, client=client)
    alone = features.fit(X)
    assert np.array_equal(model.state_["map_landmarks"], alone.entries_["landmarks"])
    homes = {int(np.flatnonzero((row == X).all(axis=1))[0]) // 700 for row in alone.entries_["landmarks"]}
    assert len(homes) > 2
    Z = alone.transform(X)
    close(model.predict(X), Z @ np.linalg.solve(Z.T @ Z + 0.1 * np.eye(Z.shape[1]), Z.T @ Y))


@pytest.mark.usefixtures("clean")
def test_frames(client):
    dd = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(label=np.where(LABELS > 5, "high", "low"))
    parts = dd.from_pandas(frame, npartitions=3)
    est = ks.OnlineRidgeClassifier(RandomFourier(n_components=30), random_state=0)
    model = distributed.fit(clone(est), parts, "label", client=client)
    est.fit(frame[list("abcd")], frame["label"], shuffle=False)
    close(model.coef_, est.coef_)
    assert model.feature_names_in_.tolist() == list("abcd")
    again = distributed.fit(clone(est), parts[list("abcd")], parts["label"], client=client)
    assert np.array_equal(again.predict(frame[list("abcd")]), model.predict(frame[list("abcd")]))
    assert distributed.score(model, parts, "label", client=client) == est.score(frame[list("abcd")], frame["label"])
    with pytest.raises(ValueError, match="the model has learned"):
        distributed.predict(model, parts[list("dcba")])
    with pytest.raises(ValueError, match="column 'label' holds no numbers"):
        distributed.fit(clone(est), parts, client=client)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "est",
    [
        ks.OnlineRidge(RandomFourier(n_components=20, gamma=0.3), random_state=0),
        ks.BinningRegressor(gamma=0.2, lam=50.0, n_components=5, solver=ConjugateGradient(tol=1e-11), random_state=1),
        ks.KernelRegressor(size="small", random_state=5),
    ],
    ids=["ridge", "binning", "default"],
)
def test_empty_partitions(client, est):
    """The first two have no rows, which leaves a worker without any."""
    dd = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:400], columns=list("abcd")).assign(y=Y[:400]).sort_values("a", ignore_index=True)
    some = frame[frame["a"] > frame["a"].median()]
    parts = dd.from_pandas(frame, npartitions=4)
    model = distributed.fit(clone(est), parts[parts["a"] > frame["a"].median()], "y", client=client)
    rows = some[list("abcd")]
    close(model.predict(rows), clone(est).fit(rows, some["y"]).predict(rows))
    empty = distributed.predict(model, parts[parts["a"] > 100][list("abcd")])
    assert empty.compute(scheduler=client).shape == (0,)
    with pytest.raises(ValueError, match="there are no rows"):
        distributed.fit(clone(est), parts[parts["a"] > 100], "y", client=client)


@pytest.mark.parametrize(
    "est, words",
    [
        (ks.OnlineRidge(lam="auto"), "several values of lam"),
        (ks.OnlineRidge(forgetting=0.9), "forgetting"),
        (ks.OnlineRidge(standardize=True), "standardize"),
        (ks.OnlineRidgeClassifier(class_weight="balanced"), "balanced"),
        (ks.OnlineRidge(Nystroem(landmarks="kmeans++")), "landmarks='uniform'"),
        (ks.BinningRegressor(solver="cd"), "solver='cg'"),
        (ks.FeatureRegressor(), "depends on the order of the rows"),
        (ks.KernelAWV(), "KernelAWV"),
    ],
)
def test_what_depends_on_the_order_of_rows_is_refused(client, est, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(est, DX, DY, client=client)
    assert not hasattr(est, "state_")


@pytest.mark.usefixtures("clean")
def test_columns_of_different_units_are_named_and_left_alone(client):
    est, units = ks.OnlineRidge(RandomFourier(n_components=20), random_state=0), np.array([1e-3, 1.0, 1.0, 1e3])
    with pytest.warns(UserWarning, match=r"different units, 3 \(.*, 0 \("):
        model = distributed.fit(clone(est), DX * units, DY, client=client)
    close(model.coef_, est.set_params(standardize=False).fit(X * units, Y, shuffle=False).coef_)


# -------------------------------------------------------------------- random binning


def weights_by_cell(model):
    state = model.state_
    grids = np.repeat(np.arange(len(state["starts"]) - 1), np.diff(state["starts"]))
    order = np.lexsort([state["cells"], grids])
    return np.rec.fromarrays([grids[order], state["cells"][order]]), state["w"][order]


@pytest.mark.usefixtures("clean")
def test_conjugate_gradients_with_the_cells_on_the_workers(client):
    """Several outputs, weights of classes; against one machine. CG amplifies rounding: hence the small tolerance."""
    tight = ConjugateGradient(tol=1e-11)
    common = {"n_components": 8, "random_state": 4, "gamma": 0.2, "lam": 30.0, "class_weight": "balanced"}
    est = ks.BinningClassifier(**common, solver=tight)
    model = distributed.fit(clone(est), DX, DLABELS, client=client)
    est.fit(X, LABELS)
    cells, W = weights_by_cell(model)
    expected, V = weights_by_cell(est)
    assert np.array_equal(cells, expected) and abs(model.n_iter_ - est.n_iter_) <= 1
    close(W, V)
    assert np.array_equal(model.classes_, [5, 6, 7]) and model.score(X, LABELS) == est.score(X, LABELS)


@pytest.mark.usefixtures("clean")
def test_conjugate_gradients_solve_the_normal_equations(client, files):
    est = ks.BinningRegressor(gamma=0.2, lam=50.0, n_components=5, solver=ConjugateGradient(tol=1e-11), random_state=1)
    model = distributed.fit(est, str(files / "part-*.csv"), target="y", client=client)
    Z = RandomBinning(gamma=0.2, n_components=5, random_state=1).fit_transform(X).toarray()
    w = np.linalg.solve(Z.T @ Z + 50.0 * np.eye(Z.shape[1]), Z.T @ (Y - Y.mean()))
    close(model.predict(X), Y.mean() + Z @ w)


@pytest.mark.usefixtures("clean")
def test_bandwidth_and_penalty_of_binning_are_searched_for(client):
    est = ks.BinningRegressor(n_components=8, solver=ConjugateGradient(tol=0.03), random_state=1)
    model = distributed.fit(clone(est), DX, DY, client=client)
    est.fit(X, Y)
    assert (model.gamma_, model.lam_) == (est.gamma_, est.lam_)
    assert model.score(X, Y) == pytest.approx(est.score(X, Y), abs=1e-3)


# -------------------------------------------------------------------- answers


@pytest.mark.usefixtures("clean")
def test_answers_partition_by_partition(client, files):
    est = ks.OnlineRidge(RandomFourier(n_components=30, gamma=0.2), random_state=0).fit(X, Y)
    lazy = distributed.predict(est, DX)
    assert lazy.chunks[0] == DX.chunks[0]
    close(lazy.compute(scheduler=client), est.predict(X))
    close(distributed.predict(est, str(files / "part-*.csv"), target="y").compute(scheduler=client), est.predict(X))
    assert distributed.score(est, DX, DY, client=client) == pytest.approx(est.score(X, Y), rel=1e-12)


# -------------------------------------------------------------------- the command


@pytest.mark.usefixtures("clean")
def test_train_on_workers(client, files, tmp_path, capsys):
    model = tmp_path / "model.ks"
    words = ["--algorithm", "ridge", "--n-components", "30", "--model", str(model), "--json"]
    data = str(files / "part-*.svm")
    address = client.scheduler.address
    assert cli.main(["train", data, "--task", "multiclass", "--dask", address, *words]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["rows"] == N and about["files"] == 5
    there = ks.load(model)
    alone = sorted(str(path) for path in files.glob("part-*.svm"))
    assert cli.main(["train", *alone, "--task", "multiclass", "--n-features", "4", *words]) == 0
    close(there.coef_, ks.load(model).coef_)
    assert there.classes_.tolist() == [5, 6, 7]
    assert cli.main(["train", "-", "--dask", "local", *words]) != 0
    assert "workers read files" in capsys.readouterr().err


@pytest.mark.slow
def test_the_example_that_starts_a_cluster_from_a_shell(tmp_path):
    script = Path(__file__).parents[2] / "examples" / "dask_cluster.sh"
    command, python = ["sh", script, tmp_path], os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(command, env=python, capture_output=True, text=True, timeout=300, check=True)
    words = done.stdout.split()
    assert "40,000 rows of 8 files" in done.stdout and float(words[words.index("accuracy") + 1]) > 0.95


def test_workers_import_parts_of_ones_own(client, files, tmp_path, monkeypatch, capsys):
    """``--import``: a kernel that is known by name here is known there."""
    own_parts.written(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = f"--target y --dask {client.scheduler.address} -a ridge --kernel sech -m model.ks -q".split()
    with own_parts.undone():
        assert cli.main(["train", f"{files}/part-*.csv", "--import", own_parts.NAME, *words]) == 0, (
            capsys.readouterr().err
        )
        assert ks.load("model.ks").state_["t"] == N
