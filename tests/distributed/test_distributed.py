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
from kernelstream.features import Nystroem, RandomFourier, TaylorFeatures

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
    parts = distributed.files(files / "part-*.svm", n_features=4)
    found = distributed.fit(clone(est), parts, client=client)
    from scipy.sparse import csr_array

    close(found.coef_, est.fit(csr_array(X), LABELS.astype(float), shuffle=False).coef_)
    assert found.classes_.tolist() == [5.0, 6.0, 7.0]


@pytest.mark.usefixtures("clean")
def test_landmarks_are_given(client):
    features = Nystroem(landmarks=X[::120], gamma=0.3)
    model = distributed.fit(ks.OnlineRidge(features, lam=0.1, random_state=3), DX, DY, client=client)
    Z = features.fit(X).transform(X)
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
    answers = distributed.predict(model, parts[list("abcd")])
    assert np.array_equal(answers.compute(scheduler=client), est.predict(frame[list("abcd")]))
    with pytest.raises(ValueError, match="in the same order"):
        distributed.predict(model, parts[list("dcba")])
    with pytest.raises(ValueError, match="y must name the target"):
        distributed.fit(clone(est), parts, client=client)
    with pytest.raises(ValueError, match="column 'label' holds no numbers"):
        distributed.fit(clone(est), parts, "a", client=client)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "est",
    [
        ks.OnlineRidge(RandomFourier(n_components=20, gamma=0.3), random_state=0),
        ks.FalkonRegressor(gamma=0.2, n_centers=30, lam=0.1, tol=1e-11, random_state=1),
    ],
    ids=["ridge", "falkon"],
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
        (ks.OnlineRidge(Nystroem(landmarks="uniform")), "give the landmarks as an array"),
        (ks.OnlineRidge("nystroem"), "give the landmarks as an array"),
        (ks.BinningRegressor(), "keeps no sums over rows"),
        (ks.FeatureRegressor(), "keeps no sums over rows"),
        (ks.KernelClassifier(), "keeps no sums over rows"),
        (ks.KernelAWV(), "KernelAWV"),
    ],
)
def test_what_is_no_sum_over_rows_is_refused(client, est, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(est, DX, DY, client=client)
    assert not hasattr(est, "state_")


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("est", [ks.OnlineRidgeClassifier(), ks.FalkonClassifier(n_centers=20)])
def test_labels_other_than_the_classes_are_named(client, est):
    with pytest.raises(ValueError, match=r"labels outside classes=\[5 6\]: \[7\]"):
        distributed.fit(est, DX, DLABELS, client=client, classes=[5, 6])


@pytest.mark.usefixtures("clean")
def test_columns_of_different_units_are_named_and_left_alone(client):
    est, units = ks.OnlineRidge(RandomFourier(n_components=20), random_state=0), np.array([1e-3, 1.0, 1.0, 1e3])
    with pytest.warns(UserWarning, match=r"different units, 3 \(.*, 0 \("):
        model = distributed.fit(clone(est), DX * units, DY, client=client)
    close(model.coef_, est.set_params(standardize=False).fit(X * units, Y, shuffle=False).coef_)


# -------------------------------------------------------------------- answers


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "est, method",
    [
        (ks.OnlineRidge(RandomFourier(n_components=30, gamma=0.2), random_state=0), "predict"),
        (ks.FeatureClassifier(random_state=0), "predict_proba"),
    ],
    ids=["numbers", "probabilities"],
)
def test_answers_partition_by_partition(client, est, method):
    est.fit(X, LABELS if method == "predict_proba" else Y)
    lazy = distributed.predict(est, DX, method)
    expected = getattr(est, method)(X)
    assert lazy.shape == expected.shape and lazy.chunks[0] == DX.chunks[0]
    close(lazy.compute(scheduler=client), expected)


# -------------------------------------------------------------------- the command


@pytest.mark.usefixtures("clean")
def test_train_on_workers(client, files, tmp_path, capsys):
    model = tmp_path / "model.ks"
    words = ["--algorithm", "ridge", "--n-components", "30", "--model", str(model), "--json"]
    data = str(files / "part-*.svm")
    address = client.scheduler.address
    assert cli.main(["train", data, "--task", "multiclass", "--dask", address, "--n-features", "4", *words]) == 0
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
