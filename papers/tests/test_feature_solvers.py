"""Pegasos, SDCA, SBMD and RBCD on dense features, against scikit-learn's optimum of the same objective."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from kernelstream import engine, losses, solvers
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.solvers import DenseMatrix, Problem
from kernelstream_papers.rivals.solvers import SDCA, BlockCoordinateDescent, BlockMirrorDescent, Pegasos

rng = np.random.default_rng(0)
n, LAM = 120, 2.0
X = rng.uniform(-1, 1, (n, 3))
target = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
signs = np.where(target + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
weight = rng.uniform(0.2, 3, n)
Z = RandomFourier(gamma=1.0, n_components=10, random_state=0).fit_transform(X)
LOSSES = ["hinge", "squared_hinge", "logistic", "squared"]


def best(loss, weights, Z=Z):
    """scikit-learn's weights of the same problem."""
    if loss == "squared":
        model = Ridge(alpha=LAM, fit_intercept=False, solver="cholesky")
    elif loss == "logistic":
        model = LogisticRegression(C=1 / LAM, fit_intercept=False, tol=1e-10, max_iter=2000)
    else:
        # its squared hinge lacks our 1/2
        C = 1 / LAM if loss == "hinge" else 0.5 / LAM
        model = LinearSVC(C=C, fit_intercept=False, loss=loss, tol=1e-10, max_iter=1_000_000, random_state=0)
    return model.fit(Z, target if loss == "squared" else signs, sample_weight=weights).coef_.ravel()


def objective(loss, weights, w, Z=Z):
    y = target if loss == "squared" else signs
    values = losses.get(loss).value(y, Z @ w)
    return np.sum(values * (1.0 if weights is None else weights)) + 0.5 * LAM * w @ w


def problem(loss, weights=None, Z=Z, **more):
    Y = (target if loss == "squared" else signs)[:, None]
    return Problem(DenseMatrix(Z), Y, losses.get(loss), LAM, engine.get("python"), weights, dtype=Z.dtype, **more)


@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("loss", LOSSES)
def test_sdca_reaches_the_optimum_and_its_gap_says_so(loss, weights):
    found = SDCA(tol=1e-7, max_iter=2000).solve(problem(loss, weights))
    assert found.converged
    w = best(loss, weights)
    least, at_zero = objective(loss, weights, w), objective(loss, weights, 0 * w)
    # the gap bounds the distance from the minimum
    assert least - 1e-6 * at_zero <= found.history[-1] <= least + 1e-7 * at_zero + 1e-6 * at_zero
    np.testing.assert_allclose(found.W[:, 0], w, atol=np.sqrt(2 * 2e-6 * at_zero / LAM))


@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("loss", LOSSES[1:])
def test_rbcd_reaches_the_optimum_downhill(loss, weights):
    found = BlockCoordinateDescent(tol=1e-9, max_iter=3000, block_size=7).solve(problem(loss, weights))
    assert found.converged and np.all(np.diff(found.history) <= 1e-9)
    np.testing.assert_allclose(found.W[:, 0], best(loss, weights), atol=1e-4)


@pytest.mark.parametrize("weights", [None, weight])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [Pegasos, BlockMirrorDescent])
def test_stochastic_solvers_approach_the_optimum_like_one_over_t(kind, loss, weights):
    w = best(loss, weights)
    least, at_zero = objective(loss, weights, w), objective(loss, weights, 0 * w)
    excess = []
    for passes in (20, 200):
        found = kind(1e-12, passes, **({"n_blocks": 2} if kind is BlockMirrorDescent else {})).solve(
            problem(loss, weights)
        )
        assert objective(loss, weights, found.W[:, 0]) == pytest.approx(found.history[-1])
        excess.append((found.history[-1] - least) / (at_zero - least))
    assert -1e-6 <= excess[1] <= 0.005
    assert excess[1] <= 0.3 * excess[0] or excess[1] < 1e-4  # ten times the passes: a tenth, but for noise


@pytest.mark.parametrize("name", ["pegasos", "sdca", "sbmd", "rbcd"])
def test_outputs_are_solved_for_one_by_one(name):
    loss = "squared_hinge"
    flipped = np.where(X[:, 2] > 0, 1.0, -1.0)
    made = solvers.get(name)
    both = problem(loss)
    both.Y = np.stack([signs, flipped], axis=1)
    W = made.set_params(max_iter=3).solve(both).W
    first = made.solve(problem(loss)).W
    assert W.shape == (Z.shape[1], 2)
    np.testing.assert_allclose(W[:, :1], first, atol=1e-12)


@pytest.mark.parametrize("name", ["pegasos", "sdca", "sbmd", "rbcd"])
def test_weight_zero_is_a_row_left_out(name):
    if name in ("pegasos", "sbmd"):
        pytest.skip("their random order is that of all rows")
    weights = np.where(np.arange(n) < 80, 1.0, 0.0)
    tight = solvers.get(name).set_params(tol=1e-8, max_iter=2000)
    part = Problem(DenseMatrix(Z[:80]), signs[:80, None], losses.get("squared_hinge"), LAM, engine.get("python"))
    np.testing.assert_allclose(tight.solve(problem("squared_hinge", weights)).W, tight.solve(part).W, atol=1e-3)


def test_nystroem_features_and_float32():
    Z32 = Nystroem("gaussian", 40, 1.0, random_state=0).fit(X).transform(X).astype(np.float32)
    found = SDCA(tol=1e-5, max_iter=500).solve(problem("hinge", Z=Z32))
    assert found.W.dtype == np.float32
    w = best("hinge", None, Z32.astype(float))
    least = objective("hinge", None, w, Z32.astype(float))
    assert objective("hinge", None, found.W[:, 0].astype(float), Z32.astype(float)) <= least + 3e-5 * n


def test_rbcd_wants_a_smooth_loss():
    with pytest.raises(ValueError, match="rbcd"):
        BlockCoordinateDescent().serves(losses.get("hinge"))
