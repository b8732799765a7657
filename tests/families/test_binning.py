"""Learners on random binning features: closed forms, the streaming contract, search, warm starts, bad input."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import kernelstream as ks
from kernelstream import engine, kernels, losses, settings, solvers, zoo
from kernelstream.features import RandomBinning
from kernelstream.solvers import ConjugateGradient, CoordinateDescent, NewtonCG

X2, y2 = make_moons(400, noise=0.15, random_state=0)
X4, y4 = make_blobs(300, n_features=3, centers=4, cluster_std=2.0, random_state=1)
target = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0
labels = np.array(["ant", "bee", "cat", "dog"])[y4]
TIGHT = ConjugateGradient(tol=1e-10)


def features(X, rows, gamma, R, seed):
    """Z of the same grids, dense: seeds and grids are shared with the transformer."""
    binning = RandomBinning(gamma=gamma, n_components=R, random_state=seed).fit(X)
    return binning.transform(rows).toarray()


# ---------------------------------------------------------------- what is computed


def test_ridge_regression():
    model = ks.BinningRegressor(gamma=1.5, n_components=30, lam=0.2, solver=TIGHT, random_state=3).fit(
        X2[:300], target[:300]
    )
    Z, other = features(X2[:300], X2[:300], 1.5, 30, 3), features(X2[:300], X2[300:], 1.5, 30, 3)
    centre = target[:300].mean()
    truth = Ridge(alpha=0.2, fit_intercept=False, solver="cholesky").fit(Z, target[:300] - centre)
    np.testing.assert_allclose(model.predict(X2[300:]), truth.predict(other) + centre, atol=1e-8)
    np.testing.assert_allclose(model.coef_[0], truth.coef_, atol=1e-7)
    assert model.gamma_ == 1.5 and model.lam_ == 0.2 and len(model.history_) == model.n_iter_


def test_tends_to_exact_kernel_ridge():
    rows, y, test = X2[:150], target[:150], X2[150:]
    kernel = kernels.Laplacian(1.0)
    alpha = np.linalg.solve(kernel.pairwise(rows, rows) + 0.1 * np.eye(150), y - y.mean())
    exact = kernel.pairwise(test, rows) @ alpha + y.mean()
    errors = []
    for R in (25, 400):
        gaps = []
        for seed in range(3):
            model = ks.BinningRegressor(kernel, n_components=R, lam=0.1, solver=TIGHT, random_state=seed).fit(rows, y)
            gaps.append(model.predict(test) - exact)
        errors.append(np.sqrt(np.mean(np.square(gaps))))
    assert errors[1] < 0.4 * errors[0] and errors[1] < 0.03


def test_classification_is_one_against_the_rest():
    model = ks.BinningClassifier(gamma=0.3, n_components=25, lam=0.5, solver=TIGHT, random_state=0).fit(X4, labels)
    Z = features(X4, X4, 0.3, 25, 0)
    for c, label in enumerate(model.classes_):
        y = np.where(labels == label, 1.0, -1.0)
        truth = Ridge(alpha=0.5, fit_intercept=False, solver="cholesky").fit(Z, y - y.mean())
        np.testing.assert_allclose(model.decision_function(X4)[:, c], truth.predict(Z) + y.mean(), atol=1e-7)
    assert (model.predict(X4) == model.classes_[model.decision_function(X4).argmax(axis=1)]).all()


@pytest.mark.parametrize("solver", ["newton-cg", "cd"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_smooth_losses(solver, loss):
    tight = {"newton-cg": NewtonCG(tol=1e-8), "cd": CoordinateDescent(tol=1e-6, max_iter=5000)}[solver]
    few = (y2 == 0) | (np.arange(400) % 3 == 0)  # more rows of one class than of the other
    X, y = X2[few], 2.0 * y2[few] - 1
    model = ks.BinningClassifier(gamma=1.0, n_components=20, lam=0.7, solver=tight, loss=loss, random_state=0)
    model.fit(X, y2[few])
    Z, base = features(X, X, 1.0, 20, 0), model.decision_function(np.full((1, 2), 1e6))[0]
    slope = losses.get(loss).gradient(y, np.full(len(y), base)).sum()
    assert base < -0.2 and abs(slope) < (1.0 if loss == "logistic" else 1e-9)  # the log odds are shrunk by one row
    w = model.coef_
    if solver == "cd":
        assert sp.issparse(w) and w.shape[1] < Z.shape[1] == model.state_["n_columns"]
        binning = RandomBinning(gamma=1.0, n_components=20, random_state=0).fit(X)
        named = [  # cells have their names within a grid
            [(r, name) for r in range(20) for name in cells[starts[r] : starts[r + 1]].tolist()]
            for cells, starts in ((binning.cells_, binning.starts_), (model.state_["cells"], model.state_["starts"]))
        ]
        used = [named[0].index(name) for name in named[1]]
        dense = np.zeros(Z.shape[1])
        dense[used] = w.toarray()[0]
        g = Z.T @ losses.get(loss).gradient(y, base + Z @ dense)
        assert np.abs(g[used] + 0.7 * np.sign(dense[used])).max() < 1e-3 and np.abs(g).max() < 0.7 + 1e-3
        np.testing.assert_allclose(model.decision_function(X), base + Z @ dense, atol=1e-10)
    else:
        f = base + Z @ w[0]
        np.testing.assert_allclose(model.decision_function(X), f, atol=1e-10)
        np.testing.assert_allclose(Z.T @ losses.get(loss).gradient(y, f) + 0.7 * w[0], 0, atol=1e-5)
    if loss == "logistic":
        p = model.predict_proba(X2)
        np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.decision_function(X2))))
        several = clone(model).set_params(solver=solver).fit(X4, y4).predict_proba(X4)
        np.testing.assert_allclose(several.sum(axis=1), 1)
    else:
        np.testing.assert_array_equal(model.predict_proba(X2)[:, 1] > 0.5, model.decision_function(X2) >= 0)


# ---------------------------------------------------------------- engines, containers, weights


@pytest.mark.skipif(not engine.has_native(), reason="no compiled core")
@pytest.mark.parametrize("solver", ["cg", "newton-cg", "cd"])
def test_engines_agree(solver):
    common = {"n_components": 8, "gamma": 1.0, "lam": 0.5, "random_state": 0}
    solver = solvers.get(solver).set_params(tol=1e-6)
    models = [
        ks.BinningClassifier(**common, solver=solver, engine=name).fit(X4[:60], y4[:60])
        for name in ("python", "native")
    ]
    assert models[0].history_[-1] == pytest.approx(models[1].history_[-1], rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(*[model.decision_function(X4[:60]) for model in models], atol=1e-3)
    for threads in (1, 3):
        with settings.using(threads=threads):
            again = ks.BinningClassifier(**common, solver=solver).fit(X4[:60], y4[:60])
        np.testing.assert_allclose(again.decision_function(X4), models[1].decision_function(X4), atol=1e-9)


@pytest.mark.parametrize(
    "solver", [TIGHT, NewtonCG(tol=1e-9), CoordinateDescent(tol=1e-7)], ids=["cg", "newton-cg", "cd"]
)
def test_weights_count_rows(solver):
    times = np.random.default_rng(0).integers(0, 4, len(X2))
    common = {"gamma": 1.0, "n_components": 20, "lam": 1.0, "solver": solver, "random_state": 0}
    weighted = ks.BinningClassifier(**common).fit(X2, y2, sample_weight=times)
    repeated = ks.BinningClassifier(**common).fit(np.repeat(X2, times, axis=0), np.repeat(y2, times))
    np.testing.assert_allclose(weighted.decision_function(X2), repeated.decision_function(X2), atol=1e-5)
    balanced = ks.BinningClassifier(**common, class_weight="balanced").fit(X4, y4 > 0)
    factor = len(y4) / (2 * np.bincount(y4 > 0))
    given = ks.BinningClassifier(**common).fit(X4, y4 > 0, sample_weight=factor[(y4 > 0).astype(int)])
    np.testing.assert_allclose(balanced.decision_function(X4), given.decision_function(X4), atol=1e-6)
    with pytest.raises(ValueError, match=r"(?i)weight"):
        ks.BinningClassifier(**common).fit(X2, y2, sample_weight=np.zeros(len(X2)))


def test_many_rows_are_reordered_without_effect(monkeypatch):
    from kernelstream.estimators.binning import fit as _binning_fit

    common = {"n_components": 20, "gamma": 2.0, "lam": 0.1, "solver": TIGHT, "random_state": 0}
    plain = ks.BinningClassifier(**common).fit(X2, y2, sample_weight=np.linspace(0.1, 1, 400))
    monkeypatch.setattr(_binning_fit, "SCATTERED", 10)
    ordered = ks.BinningClassifier(**common).fit(X2, y2, sample_weight=np.linspace(0.1, 1, 400))
    assert not np.array_equal(plain.state_["cells"], ordered.state_["cells"])
    np.testing.assert_allclose(plain.decision_function(X2), ordered.decision_function(X2), atol=1e-8)
    monkeypatch.setattr(_binning_fit, "_TOGETHER", 1)
    several = ks.BinningClassifier(**common).fit(X4, y4)
    monkeypatch.undo()
    np.testing.assert_allclose(
        several.decision_function(X4), ks.BinningClassifier(**common).fit(X4, y4).decision_function(X4), atol=1e-7
    )


# ---------------------------------------------------------------- search and warm starts


def test_search_finds_a_bandwidth():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (1000, 2)) * [1.0, 1000.0]  # the second column in other units
    wavy, smooth = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1] / 1000), X[:, 0] + X[:, 1] / 1000
    found = [ks.BinningRegressor(n_components=64, random_state=0).fit(X, y) for y in (wavy, smooth)]
    assert found[0].gamma_ > found[1].gamma_
    assert found[0].score(X, wavy) > 0.95 and found[1].score(X, smooth) > 0.99
    np.testing.assert_allclose(found[0].state_["width"], np.ptp(X, axis=0))
    noise = ks.BinningRegressor(n_components=64, gamma=4.0, random_state=0).fit(X / [1, 1000], rng.normal(size=1000))
    assert noise.lam_ == 10.0  # as much as there is
    sparse = ks.BinningClassifier(n_components=32, solver="cd", random_state=0).fit(X2, y2)
    assert sparse.score(X2, y2) > 0.95 and sparse.coef_.nnz < sparse.state_["n_columns"] / 2


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_few_rows(n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ks.BinningRegressor(n_components=16, random_state=0).fit(X2[:n], target[:n])
        assert np.isfinite(model.predict(X2)).all()
        classifier = ks.BinningClassifier(n_components=16, random_state=0).fit(X2[:n], y2[:n])
        assert set(classifier.predict(X2)) <= set(y2[:n])


@pytest.mark.parametrize("solver", ["cg", "newton-cg", "cd"])
def test_warm_start(solver):
    model = ks.BinningClassifier(n_components=20, solver=solver, warm_start=True, random_state=0).fit(X2, y2)
    gamma, lam, first = model.gamma_, model.lam_, model.n_iter_
    model.fit(X2, y2)
    # a pass of coordinate descent measures each derivative when it comes to it, and moves on: it may take a few more
    assert (model.gamma_, model.lam_) == (gamma, pytest.approx(lam)) and model.n_iter_ <= (5 if solver == "cd" else 1)
    assert first > 10 or solver != "cd"
    before = model.decision_function(X2)
    model.set_params(n_components=40).fit(X2[:300], y2[:300])  # more grids, other rows
    assert len(model.state_["starts"]) == 41
    fresh = clone(model).set_params(warm_start=False, gamma=None, lam=None).fit(X2[:300], y2[:300])
    assert fresh.state_["seed"] == model.state_["seed"]
    assert np.corrcoef(before, model.decision_function(X2))[0, 1] > 0.9


def test_warm_start_carries_weights_over():
    common = {"gamma": 1.0, "lam": 0.5, "random_state": 0, "warm_start": True}
    rough = ks.BinningRegressor(**common, n_components=10, solver=ConjugateGradient(tol=1e-9)).fit(X2, target)
    more = copy.deepcopy(rough).set_params(n_components=40)
    from kernelstream.estimators.binning.fit import carry_over

    fresh = RandomBinning(gamma=1.0, n_components=40, random_state=0).fit(X2)
    W = carry_over(rough.state_, fresh.cells_, fresh.starts_)
    np.testing.assert_allclose(fresh.transform(X2) @ W[:, 0] + target.mean(), rough.predict(X2), atol=1e-10)
    more.fit(X2, target)
    exact = ks.BinningRegressor(**common, n_components=40, solver=TIGHT).fit(X2, target)
    np.testing.assert_allclose(more.predict(X2), exact.predict(X2), atol=1e-6)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_zoo(task):
    X, y = {"binary": (X2, y2), "multiclass": (X4, labels), "regression": (X2, target)}[task]
    for name in ("ridge", "svm", "lasso", "online"):
        if (name, task) == ("svm", "regression"):
            continue
        size = {"n_grids" if name == "online" else "n_components": 32}
        model = zoo.make(f"random_binning_{name}", task, random_state=0, **size).fit(X, y)
        assert model.score(X, y) > (0.7 if name == "online" else 0.85)
        assert (name == "lasso") == sp.issparse(getattr(model, "coef_", 0))
        assert hasattr(model, "learn") == (name == "online")
    assert zoo.make("random_binning_svm", C=4.0).lam == 0.25
    with pytest.raises(ValueError, match="C must"):
        zoo.make("random_binning_svm", C=-1)


def test_unseen_places_get_the_constant():
    model = ks.BinningClassifier(gamma=1.0, lam=1.0, n_components=20, solver="newton-cg", random_state=0)
    rare = model.fit(X2, y2 & (np.arange(400) % 10 == 0))
    assert rare.predict([[1e6, 1e6]])[0] == 0 and rare.decision_function([[1e6, 1e6]])[0] == pytest.approx(
        2 * np.mean(y2 & (np.arange(400) % 10 == 0)) - 1
    )


def test_trained_from_a_stream(tmp_path):
    from kernelstream import checkpoint, streams

    model = ks.BinningClassifier(gamma=1.0, lam=1.0, n_components=20, random_state=0)
    run = checkpoint.train(model, streams.Arrays(X2, y2, block=64))
    assert run.rows == 400 and run.metric == "training_mistake_rate" and run.value == np.mean(model.predict(X2) != y2)
    whole = clone(model).fit(X2, y2)
    np.testing.assert_allclose(model.decision_function(X2), whole.decision_function(X2), atol=1e-12)
    with pytest.raises(ValueError, match="checkpoints"):
        checkpoint.train(clone(model), streams.Arrays(X2, y2), tmp_path)


def test_not_converged_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter") as said:
        ks.BinningRegressor(gamma=1.0, lam=1e-4, solver=ConjugateGradient(1e-9, 2), random_state=0).fit(X2, target)
    assert said[0].filename == __file__  # the line that called fit
