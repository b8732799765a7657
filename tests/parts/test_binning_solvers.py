"""Solvers on random binning features, against scikit-learn's on the same matrix, and engine against engine."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from kernelstream import engine, losses, solvers
from kernelstream.core.cell_matrix import CellMatrix
from kernelstream.features import RandomBinning
from kernelstream.passes.binning import python as passes
from kernelstream.solvers import ConjugateGradient, CoordinateDescent, DenseMatrix, NewtonCG, Problem

ENGINES = ["python"] + ["native"] * engine.has_native()
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (240, 3))
target = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
signs = np.where(target + 0.3 * rng.normal(size=240) > 0, 1.0, -1.0)
weight = rng.uniform(0.2, 3, 240)
binning = RandomBinning(gamma=1.0, n_components=12, random_state=0).fit(X)
Z = binning.transform(X)
TIGHT = 1e-10


def matrix(ops, threads=1, missing=False):
    found = binning.cells(X)
    return CellMatrix(found.cells, found.starts, ops.binning, threads, missing)


def problem(name, loss, y, lam, threads=1, **more):
    ops = engine.get(name)
    return Problem(matrix(ops, threads), y.reshape(240, -1), losses.get(loss), lam, ops, threads=threads, **more)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("weights", [None, weight])
def test_cg_is_ridge(name, weights):
    Y = np.stack([target, signs, np.zeros(240)], axis=1)
    found = ConjugateGradient(tol=TIGHT).solve(problem(name, "squared", Y, 0.3, weight=weights))
    truth = Ridge(alpha=0.3, fit_intercept=False, solver="cholesky").fit(Z.toarray(), Y, sample_weight=weights)
    np.testing.assert_allclose(found.W, truth.coef_.T, atol=1e-8)
    assert found.converged and found.history[-1] <= TIGHT < found.history[0]
    assert np.array_equal(found.W[:, 2], np.zeros(Z.shape[1]))
    again = ConjugateGradient(tol=TIGHT).solve(problem(name, "squared", Y, 0.3, weight=weights, start=found.W))
    assert again.n_iter == 0


@pytest.mark.parametrize("name", ENGINES)
def test_float32_weights(name):
    found = ConjugateGradient(tol=1e-5).solve(problem(name, "squared", target, 0.3, dtype=np.float32))
    truth = Ridge(alpha=0.3, fit_intercept=False, solver="cholesky").fit(Z.toarray(), target)
    assert found.W.dtype == np.float32

    def objective(w):
        return 0.5 * np.sum((Z @ w - target) ** 2) + 0.15 * np.sum(np.square(w))

    assert objective(found.W[:, 0].astype(float)) == pytest.approx(objective(truth.coef_), rel=1e-7)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_newton_cg(name, weights, loss):
    Y = np.stack([signs, -signs[::-1]], axis=1)
    lam = 0.2
    found = NewtonCG(tol=1e-9).solve(problem(name, loss, Y, lam, weight=weights))
    for c in range(2):
        if loss == "logistic":
            truth = LogisticRegression(C=1 / lam, fit_intercept=False, tol=1e-10, max_iter=1000, solver="newton-cg")
        elif loss == "squared_hinge":
            truth = LinearSVC(C=0.5 / lam, fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000)
        else:
            truth = Ridge(alpha=lam, fit_intercept=False, solver="cholesky")
        truth.fit(Z.toarray(), Y[:, c], sample_weight=weights)
        np.testing.assert_allclose(found.W[:, c], truth.coef_.ravel(), atol=2e-5)
    assert found.converged and np.all(np.diff(found.history) <= 1e-9)
    again = NewtonCG(tol=1e-8).solve(problem(name, loss, Y, lam, weight=weights, start=found.W))
    assert again.n_iter == 0


def l1_objective(loss, y, f, w, lam, weights):
    values = losses.get(loss).value(y, f)
    return np.sum(values if weights is None else weights * values) + lam * np.abs(w).sum()


@pytest.mark.parametrize(
    "name, weights, loss",
    [
        *((ENGINES[-1], w, loss) for w in (weight, None) for loss in ("squared", "logistic", "squared_hinge")),
        ("python", weight, "logistic"),  # whose sweeps over other losses are those of the compiled ones, see below
        *(pytest.param("python", weight, loss, marks=pytest.mark.slow) for loss in ("squared", "squared_hinge")),
    ],
)
def test_coordinate_descent(name, weights, loss):
    y = target if loss == "squared" else signs
    lam = 0.5
    found = CoordinateDescent(tol=1e-5, max_iter=3000).solve(problem(name, loss, y, lam, weight=weights))
    w = found.W[:, 0]
    D = Z.toarray()
    if loss == "squared":
        total = 240 if weights is None else weights.sum()
        truth = Lasso(alpha=lam / total, fit_intercept=False, tol=1e-12, max_iter=100_000)
    elif loss == "logistic":
        truth = LogisticRegression(
            l1_ratio=1, C=1 / lam, fit_intercept=False, solver="liblinear", tol=1e-10, max_iter=10_000
        )
    else:
        truth = LinearSVC(penalty="l1", dual=False, C=0.5 / lam, fit_intercept=False, tol=1e-10, max_iter=100_000)
    truth.fit(D, y, sample_weight=weights)
    best = l1_objective(loss, y, D @ truth.coef_.ravel(), truth.coef_, lam, weights)
    assert found.converged
    assert found.history[-1] == pytest.approx(l1_objective(loss, y, D @ w, w, lam, weights), rel=1e-9)
    assert found.history[-1] == pytest.approx(best, rel=1e-6)
    assert 0 < np.count_nonzero(w) < len(w) / 2
    # the subgradient condition itself
    g = D.T @ (losses.get(loss).gradient(y, D @ w) * (1 if weights is None else weights))
    assert np.abs(g[w != 0] + lam * np.sign(w[w != 0])).max() < 1e-3
    assert np.abs(g[w == 0]).max() <= lam + 1e-3


@pytest.mark.skipif(len(ENGINES) == 1, reason="no compiled core")
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_sweeps_agree(loss, rng):
    """One pass of each engine, all cells and nonzero cells, and threads that change nothing, to the bit."""
    y = target if loss == "squared" else signs
    order = rng.permutation(12)
    results = []
    for name, threads in (("python", 1), ("native", 1), ("native", 3)):
        ops = engine.get(name).binning
        cells = binning.cells(X)
        lists = ops.cell_lists(cells.cells, cells.starts, threads)
        problem = passes.Lasso(y, weight, losses.get(loss), 0.3)
        f, w = np.zeros(240), np.zeros(Z.shape[1])
        for active in (False, True, False):
            sweep = ops.sweep_cells(lists, order, problem, active, f, w, threads)
        results.append((f, w, sweep))
        np.testing.assert_allclose(f, Z @ w, atol=1e-12)
    for a, b in zip(results[0], results[1]):
        np.testing.assert_allclose(a, b, atol=1e-10)
    assert np.array_equal(results[1][0], results[2][0]) and np.array_equal(results[1][1], results[2][1])


@pytest.mark.skipif(len(ENGINES) == 1, reason="no compiled core")
@pytest.mark.parametrize(
    "loss", [*(pytest.param(loss, marks=pytest.mark.slow) for loss in ("squared", "logistic")), "squared_hinge"]
)
def test_many_rows_in_threads(loss, rng):
    rows = rng.uniform(-1, 1, (2500, 2))
    y = np.where(rows[:, 0] * rows[:, 1] > 0, 1.0, -1.0) * np.where(rng.random(2500) < 0.1, -1, 1)
    cells = RandomBinning(gamma=2.0, n_components=16, random_state=1).fit(rows).cells(rows)
    ops = engine.get("native")
    found = []
    for threads in (1, 2, 4):
        A = CellMatrix(cells.cells, cells.starts, ops.binning, threads)
        found.append(CoordinateDescent().solve(Problem(A, y[:, None], losses.get(loss), 3.0, ops, threads=threads)))
    assert np.array_equal(found[0].W, found[1].W) and np.array_equal(found[0].W, found[2].W)


@pytest.mark.parametrize("name", ENGINES)
def test_dense_features(name, rng):
    D = rng.normal(size=(240, 20)) / 4
    common = {"ops": engine.get(name)}
    ridge = ConjugateGradient(tol=TIGHT).solve(
        Problem(DenseMatrix(D), target[:, None], losses.Squared(), 0.1, **common)
    )
    np.testing.assert_allclose(ridge.W[:, 0], Ridge(alpha=0.1, fit_intercept=False).fit(D, target).coef_, atol=1e-8)
    for loss, y in (("squared", target), ("logistic", signs)):
        lasso = CoordinateDescent(tol=1e-7, max_iter=5000).solve(
            Problem(DenseMatrix(D), y[:, None], losses.get(loss), 0.5, **common)
        )
        sequential = CoordinateDescent(tol=1e-7, max_iter=5000).solve(
            Problem(DenseMatrix(D), y[:, None], losses.get(loss), 0.5, engine.get("python"))
        )
        assert lasso.converged
        assert lasso.history[-1] == pytest.approx(sequential.history[-1], rel=1e-8)


@pytest.mark.skipif(len(ENGINES) == 1, reason="no compiled core")
@pytest.mark.parametrize("shape", [(50, 1), (70_000, 1), (40_000, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cg_vectors(shape, dtype, rng):
    arrays = {key: rng.normal(size=shape).astype(dtype) for key in "PQXR"}
    step, turn = rng.normal(size=(2, shape[1])).astype(dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    for columns in {1, shape[1]}:
        M = rng.random((shape[0], columns)).astype(dtype)
        out = []
        for name, threads in (("python", 1), ("native", 1), ("native", 3)):
            ops = engine.get(name).binning
            P, Q, V, R = (arrays[key].copy() for key in "PQXR")
            dots = ops.cg_dots(P, Q, threads)
            sums = ops.cg_step(step, 0.1, {"P": P, "Q": Q, "M": M, "X": V, "R": R}, threads)
            ops.cg_turn(turn, M, R, P, threads)
            out.append((dots, sums, P, V, R))
        for other in out[1:]:
            for a, b in zip(out[0], other):
                np.testing.assert_allclose(a, b, **tolerance)


def test_names_and_bad_parameters():
    assert {"cd", "cg", "newton-cg"} <= set(solvers.names())
    assert isinstance(solvers.get("cd"), CoordinateDescent)
    for bad, word in (("cgg", "did you mean"), (3, r"name \(.*\) or a Solver")):
        with pytest.raises(ValueError, match=word):
            solvers.get(bad)
    with pytest.raises(ValueError, match="tol"):
        NewtonCG(tol=np.inf).check()
    with pytest.raises(ValueError, match="serves"):
        ConjugateGradient().serves(losses.get("hinge"))
    with pytest.raises(ValueError, match="dead zone"):
        ConjugateGradient().serves(losses.Squared(0.1))
