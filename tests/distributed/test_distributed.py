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
import dask.array as da
from two_workers import DLABELS, DX, DY, LABELS, N, X, Y, close

import kernelstream
from kernelstream import (
    BinningClassifier,
    BinningRegressor,
    DoublyStochasticClassifier,
    DoublyStochasticRegressor,
    FeatureClassifier,
    FeatureRegressor,
    OnlineRidge,
    OnlineRidgeClassifier,
    cli,
    distributed,
    evaluate,
)
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import Nystroem, RandomBinning, RandomFourier, TaylorFeatures
from kernelstream.solvers import ConjugateGradient, CoordinateDescent
from kernelstream.updates import OGD, AdaGrad, NormAdaGrad

# -------------------------------------------------------------------- ridge


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "features",
    [RandomFourier(n_components=60, gamma=0.3), TaylorFeatures(degree=3, gamma=0.5)],
    ids=["fourier", "taylor"],
)
def test_ridge_solves_the_normal_equations(client, features):
    model = distributed.fit(OnlineRidge(features, lam=0.7, random_state=1), DX, DY, client=client)
    Z = clone(features).set_params(**({"random_state": 1} if "random_state" in features.get_params() else {}))
    Z = Z.fit_transform(X)
    w = np.linalg.solve(Z.T @ Z + 0.7 * np.eye(Z.shape[1]), Z.T @ Y)
    close(model.coef_, w)
    assert model.state_["t"] == N
    # the model goes on like any other
    other = OnlineRidge(features, lam=0.7, random_state=1).fit(X, Y)
    close(model.partial_fit(X[:10], Y[:10]).coef_, other.partial_fit(X[:10], Y[:10]).coef_)


@pytest.mark.usefixtures("clean")
def test_bandwidths_and_labels_as_on_one_machine(client, files):
    """The median rule looks at the first rows; labels appear in any partition; rows are CSR."""
    est = OnlineRidgeClassifier(RandomFourier(n_components=40), lam=0.5, intercept=True, random_state=2)
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
@pytest.mark.parametrize("how", ["uniform", "leverage"])
def test_landmarks_come_from_all_partitions(client, how):
    features = Nystroem(n_components=25, landmarks=how, random_state=3)
    alone = clone(features).fit(X)
    chosen = distributed.fit_map(features, DX, client=client)
    assert np.array_equal(chosen.landmarks, alone.entries_["landmarks"])
    homes = {int(np.flatnonzero((row == X).all(axis=1))[0]) // 700 for row in chosen.landmarks}
    assert len(homes) > 2
    model = distributed.fit(OnlineRidge(features, lam=0.1), DX, DY, client=client)
    Z = alone.transform(X)
    close(model.predict(X), Z @ np.linalg.solve(Z.T @ Z + 0.1 * np.eye(Z.shape[1]), Z.T @ Y))
    close(kernelstream.OnlineRidge(chosen, lam=0.1).fit(X, Y).predict(X), model.predict(X))


@pytest.mark.usefixtures("clean")
def test_frames(client):
    dd = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(label=np.where(LABELS > 5, "high", "low"))
    parts = dd.from_pandas(frame, npartitions=3)
    est = OnlineRidgeClassifier(RandomFourier(n_components=30), random_state=0)
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
        OnlineRidge(RandomFourier(n_components=20, gamma=0.3), random_state=0),
        BinningRegressor(gamma=0.2, lam=50.0, n_components=5, solver=ConjugateGradient(tol=1e-11), random_state=1),
        DoublyStochasticRegressor(
            gamma=0.3, step=DoublyStep(eta=2.0), schedule=DoublySchedule(block_size=32, passes=1.0), random_state=5
        ),
    ],
    ids=["ridge", "binning", "doubly"],
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
        (OnlineRidge(lam="auto"), "several values of lam"),
        (OnlineRidge(forgetting=0.9), "forgetting"),
        (OnlineRidge(standardize=True), "standardize"),
        (OnlineRidgeClassifier(class_weight="balanced"), "balanced"),
        (OnlineRidge(Nystroem(landmarks="kmeans++")), "'uniform' or 'leverage'"),
        (kernelstream.baselines.KernelAWV(), "KernelAWV"),
    ],
)
def test_what_depends_on_the_order_of_rows_is_refused(client, est, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(est, DX, DY, client=client)
    assert not hasattr(est, "state_")


@pytest.mark.usefixtures("clean")
def test_columns_of_different_units_are_named_and_left_alone(client):
    est, units = OnlineRidge(RandomFourier(n_components=20), random_state=0), np.array([1e-3, 1.0, 1.0, 1e3])
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
    est = BinningClassifier(**common, solver=tight)
    model = distributed.fit(clone(est), DX, DLABELS, client=client)
    est.fit(X, LABELS)
    cells, W = weights_by_cell(model)
    expected, V = weights_by_cell(est)
    assert np.array_equal(cells, expected) and abs(model.n_iter_ - est.n_iter_) <= 1
    close(W, V)
    assert np.array_equal(model.classes_, [5, 6, 7]) and model.score(X, LABELS) == est.score(X, LABELS)


@pytest.mark.usefixtures("clean")
def test_conjugate_gradients_solve_the_normal_equations(client, files):
    est = BinningRegressor(gamma=0.2, lam=50.0, n_components=5, solver=ConjugateGradient(tol=1e-11), random_state=1)
    model = distributed.fit(est, str(files / "part-*.csv"), target="y", client=client)
    Z = RandomBinning(gamma=0.2, n_components=5, random_state=1).fit_transform(X).toarray()
    w = np.linalg.solve(Z.T @ Z + 50.0 * np.eye(Z.shape[1]), Z.T @ (Y - Y.mean()))
    close(model.predict(X), Y.mean() + Z @ w)


@pytest.mark.usefixtures("clean")
def test_bandwidth_and_penalty_of_binning_are_searched_for(client):
    est = BinningRegressor(n_components=8, solver=ConjugateGradient(tol=0.03), random_state=1)
    model = distributed.fit(clone(est), DX, DY, client=client)
    est.fit(X, Y)
    assert (model.gamma_, model.lam_) == (est.gamma_, est.lam_)
    assert model.score(X, Y) == pytest.approx(est.score(X, Y), abs=1e-3)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("task", ["lasso", "svm"])
def test_sparse_models_reach_the_sequential_objective(client, task):
    common = {"n_components": 6, "random_state": 4, "gamma": 0.3, "lam": 30.0, "solver": CoordinateDescent(tol=1e-2)}
    est, y, dy = BinningRegressor(**common), Y, DY
    if task == "svm":
        est, y, dy = BinningClassifier(**common), Y > 0, da.from_array(Y > 0, chunks=800)
    model = distributed.fit(clone(est), DX, dy, client=client)
    est.fit(X, y)

    def objective(fitted):
        f = fitted.predict(X) if task == "lasso" else fitted.decision_function(X)
        t = Y if task == "lasso" else np.where(Y > 0, 1, -1)
        loss = 0.5 * (f - t) ** 2 if task == "lasso" else 0.5 * np.maximum(0, 1 - t * f) ** 2
        return loss.sum() + 30.0 * np.abs(fitted.coef_).sum()

    assert objective(model) == pytest.approx(objective(est), rel=1e-3)
    assert (np.diff(model.history_) <= 1e-9 * model.history_[0]).all()  # safe: it never rises
    assert 0 < model.coef_.nnz < model.state_["n_columns"]


# -------------------------------------------------------------------- doubly stochastic gradients


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("task", ["regression", "classes"])
def test_doubly_stochastic_gradients_of_the_same_batches(client, files, task):
    common = {
        "gamma": 0.3,
        "step": DoublyStep(eta=2.0),
        "schedule": DoublySchedule(block_size=32, passes=1.0),
        "random_state": 5,
    }
    if task == "regression":
        est = DoublyStochasticRegressor(**common)
        model = distributed.fit(clone(est), str(files / "part-*.csv"), target="y", client=client)
        close(model.predict(X), est.fit(X, Y).predict(X))
    else:
        est = DoublyStochasticClassifier(**common, class_weight={5: 2.0})
        model = distributed.fit(clone(est), DX, DLABELS, client=client)
        close(model.decision_function(X), est.fit(X, LABELS).decision_function(X))

    def jobs():
        from kernelstream.distributed import doubly

        return len(doubly._held)

    assert sum(client.run(jobs).values()) == 0


# -------------------------------------------------------------------- parameter mixing


@pytest.mark.usefixtures("clean")
def test_one_shard_is_one_pass(client, files):
    """Cut into rounds or not; labels and moments of the target included."""
    est = FeatureClassifier(RandomFourier(n_components=20), random_state=3)
    model = distributed.fit(clone(est), str(files / "part-0.svm"), client=client, sync_rows=170)
    rows = np.array_split(np.arange(N), 5)[0]
    est.fit(X[rows], LABELS[rows], shuffle=False)
    close(model.decision_function(X), est.decision_function(X), 1e-9)
    est = FeatureRegressor(RandomFourier(n_components=20), random_state=3)
    model = distributed.fit(clone(est), str(files / "part-0.csv"), target="y", client=client, sync_rows=170)
    close(model.predict(X), est.fit(X[rows], Y[rows], shuffle=False).predict(X), 1e-6)


def rounds_by_hand(Z, update, rounds):
    """Weights after rounds of two shards, each a list of rows, by the formulas of docs/distributed.md."""
    w, G, mean, t = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0
    for shards in rounds:
        ends, n = [], sum(map(len, shards))
        for rows in shards:
            v, H = w.copy(), G / len(shards)
            for z, y in zip(Z[rows], Y[rows]):
                g = (v @ z - y) * z
                H += g**2
                size = {"ogd": 1.0, "ada_grad": np.sqrt(H + 1e-12), "norm": np.sqrt(H.sum() + 1e-12)}[update]
                v -= 0.3 * g / size
            ends.append((v - w, H - G / len(shards), len(rows)))
        if update == "ogd":
            w = w + sum(change * m / n for change, _, m in ends)
        else:
            w = w + (1 + (np.sqrt(len(shards)) - 1) * t / (t + n)) * np.mean([change for change, _, _ in ends], axis=0)
        G = G + sum(squares for _, squares, _ in ends)
        t += n
        mean = mean + 10 * n / (t + 9 * n) * (w - mean)
    return mean


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("update", ["ogd", "ada_grad", "norm"])
def test_shards_become_one_by_the_formula(client, update):
    """Partitions of 500 and 400 rows in rounds of 300: the second round is shorter for one of the shards."""
    map_ = RandomFourier(n_components=20, gamma=0.3, random_state=3)
    which = {"ogd": OGD(eta=0.3), "ada_grad": AdaGrad(eta=0.3), "norm": NormAdaGrad(eta=0.3)}[update]
    est = FeatureRegressor(map_, update=which, center=False)
    rows, targets = da.from_array(X[:900], chunks=((500, 400), 4)), da.from_array(Y[:900], chunks=((500, 400),))
    model = distributed.fit(est, rows, targets, client=client, sync_rows=300)
    at = np.arange(900)
    rounds = [[at[:300], at[500:800]], [at[300:500], at[800:]]]
    close(model.state_["w"][0], rounds_by_hand(map_.fit_transform(X), update, rounds), 1e-9)
    assert model.state_["t"] == 900


def test_mixing_is_checked(client):
    with pytest.raises(ValueError, match="sync_rows must be"):
        distributed.fit(FeatureClassifier(), DX, DLABELS, client=client, sync_rows=0)
    with pytest.raises(ValueError, match="not learned by parameter mixing"):
        distributed.fit(OnlineRidge(), DX, DY, client=client, sync_rows=5)
    with pytest.raises(ValueError, match="coin betting"):
        distributed.fit(FeatureClassifier(update="coin_betting"), DX, DLABELS, client=client)


# -------------------------------------------------------------------- search


@pytest.mark.usefixtures("clean")
def test_the_winner_of_a_search_is_the_model_of_one_machine(client, files, tmp_path):
    """Successive halving drops the worst of all; survivors go on where they were, across rungs, workers and files."""

    def counted(y):  # once for all candidates of a worker
        with open(tmp_path / str(os.getpid()), "a") as log:
            log.write(f"{len(y)}\n")
        return y

    gammas = [1e-3, 1e-2, 0.1, 0.5, 30.0]
    est = FeatureRegressor(RandomFourier(n_components=30), random_state=1)
    grid = {"features__gamma": gammas}
    rows = str(files / "part-*.csv")
    found = distributed.search(est, rows, target="y", grid=grid, first_rung=500, client=client, labels=counted)
    assert found.rungs == [(500, 5), (1000, 3), (2000, 2), (N, 1)]
    # two workers share the first three rungs, one candidate is alone in the last
    assert sum(int(n) for path in tmp_path.iterdir() for n in path.read_text().split()) == 2 * 2000 + 1000
    results = {}
    for gamma in gammas:
        alone = clone(est).set_params(features__gamma=gamma)
        results[gamma] = (alone, (Y - alone.learn(X, Y)) ** 2)
    alive = sorted(gammas, key=lambda gamma: results[gamma][1][:500].mean())[:3]
    alive = sorted(alive, key=lambda gamma: results[gamma][1][:1000].mean())[:2]
    best = min(alive, key=lambda gamma: results[gamma][1][:2000].mean())
    assert found.best.features.gamma == best and found.candidates[0].rows == N
    assert found.candidates[0].value == pytest.approx(results[best][1].mean(), rel=1e-9)
    close(found.best.predict(X), results[best][0].predict(X), 1e-9)
    assert [one.rows for one in found.candidates] == [N, 2000, 1000, 500, 500] and "gamma" in str(found)
    for one in found.candidates:  # the dropped ones stand where a sequential run of them stood then
        errors = results[one.est.features.gamma][1][: one.rows]
        assert one.value == pytest.approx(errors.mean(), rel=1e-9)


@pytest.mark.usefixtures("clean")
def test_search_over_zoo_entries(client):
    found = distributed.search(
        ["fogd", "nogd", "ridge"],
        DX,
        da.from_array(Y > 0, chunks=700),
        task="binary",
        grid={"gamma": [0.1]},
        client=client,
    )
    assert found.metric == "mistake_rate" and len(found.candidates) == 3
    assert found.candidates[0].value < 0.25 and found.best.score(X, Y > 0) > 0.8
    with pytest.raises(ValueError, match="did you mean 'fogd'"):
        distributed.search(["fogdd"], DX, DLABELS, client=client)
    with pytest.raises(ValueError, match="learns all rows at once"):
        distributed.search([BinningRegressor()], DX, DY, client=client)


@pytest.mark.usefixtures("clean")
def test_a_search_goes_on_without_candidates_that_fail(client, tmp_path):
    """A kernel that does not take these rows is to blame itself; rows of another width are."""
    np.savez(tmp_path / "a.npz", X=X[:300], y=Y[:300])
    rows = str(tmp_path / "*.npz")
    names = [FeatureRegressor(RandomFourier(kernel="chi2")), FeatureRegressor(random_state=0)]
    found = distributed.search(names, rows, client=client, first_rung=100)
    assert found.candidates[0].rows == 300 and "kernel='chi2')): Chi2 needs x >= 0" in str(found)
    with pytest.raises(ValueError, match="no candidate could learn"):
        distributed.search(names[:1], rows, client=client)
    np.savez(tmp_path / "b.npz", X=X[:50, :3], y=Y[:50])
    with pytest.raises(ValueError, match=r"b.npz, row 1: .*3 features, those before had 4"):
        distributed.search(names[1:], rows, client=client)


# -------------------------------------------------------------------- answers


@pytest.mark.usefixtures("clean")
def test_answers_partition_by_partition(client, files):
    est = OnlineRidge(RandomFourier(n_components=30, gamma=0.2), random_state=0).fit(X, Y)
    lazy = distributed.predict(est, DX)
    assert lazy.chunks[0] == DX.chunks[0]
    close(lazy.compute(scheduler=client), est.predict(X))
    close(distributed.predict(est, str(files / "part-*.csv"), target="y").compute(scheduler=client), est.predict(X))
    assert distributed.score(est, DX, DY, client=client) == pytest.approx(est.score(X, Y), rel=1e-12)
    fresh = clone(est).set_params(random_state=0)
    results = distributed.prequential(fresh, str(files / "part-*.csv"), target="y", client=client)
    alone = evaluate.prequential(clone(fresh), X[:600], Y[:600])
    assert len(results) == 5 and results[0].mse == pytest.approx(alone.mse, rel=1e-9)
    assert not hasattr(fresh, "state_")


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
    there = kernelstream.load(model)
    alone = sorted(str(path) for path in files.glob("part-*.svm"))
    assert cli.main(["train", *alone, "--task", "multiclass", "--n-features", "4", *words]) == 0
    close(there.coef_, kernelstream.load(model).coef_)
    assert there.classes_.tolist() == [5, 6, 7]
    assert cli.main(["train", "-", "--dask", "local", *words]) != 0
    assert "workers read files" in capsys.readouterr().err


@pytest.mark.slow
def test_the_example_that_starts_a_cluster_from_a_shell(tmp_path):
    script = Path(__file__).parents[2] / "examples" / "dask_cluster.sh"
    done = subprocess.run(
        ["sh", str(script), str(tmp_path)],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "40,000 rows of 8 files" in done.stdout and float(done.stdout.split()[-1]) > 0.95


def test_workers_import_parts_of_ones_own(client, files, tmp_path, monkeypatch, capsys):
    """``--import``: a loss that is known by name here is known there."""
    own_parts.written(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = [
        "--target",
        "y",
        "--dask",
        client.scheduler.address,
        "-a",
        "fogd",
        "--loss",
        "log_cosh",
        "-m",
        "model.ks",
        "-q",
    ]
    with own_parts.undone():
        assert cli.main(["train", f"{files}/part-*.csv", "--import", own_parts.NAME, *words]) == 0, (
            capsys.readouterr().err
        )
        assert kernelstream.load("model.ks").state_["t"] == N
