"""Ridge and AWV against the literal recursion, written down once more here in float64."""

import copy
import itertools

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import Ridge

from kernelstream import OnlineRidge, OnlineRidgeClassifier, engine, second_order
from kernelstream.features import RandomFourier, TaylorFeatures
from kernelstream.second_order.rules import LeastSquares
from kernelstream.testing.streaming import assert_same_state

ENGINES = ["python"] + ["native"] * engine.has_native()

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (700, 3))
y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(700)
Y = np.stack([y, X[:, 2] - y, 5 + X[:, 0]], axis=1)
taylor = TaylorFeatures(degree=3, gamma=0.5)  # 20 features


def literal(Z, Y, lam=1.0, awv=True, mu=1.0, weight=None):
    """A_t = mu A_{t-1} + v v' before (AWV) or after predicting, by fresh solves: forecasts, A, b."""
    r = Z.shape[1]
    A, b = lam * np.eye(r), np.zeros((r, Y.shape[1]))
    forecasts = []
    for t, v in enumerate(Z):
        omega = 1.0 if weight is None else weight[t]
        before = mu * A + np.outer(v, v) if awv else mu * A
        forecasts.append(v @ np.linalg.solve(before, mu * b))
        if omega:
            A, b = mu * A + omega * np.outer(v, v), mu * b + omega * np.outer(v, Y[t])
    return np.array(forecasts), A, b


def run(model, X, y, chunk, weight=None):
    parts = []
    for i in range(0, len(X), chunk):
        part = None if weight is None else weight[i : i + chunk]
        parts.append(model.learn(X[i : i + chunk], y[i : i + chunk], sample_weight=part))
    return np.concatenate(parts)


@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
def test_literal_recursion(forecaster):
    expected, A, b = literal(taylor.fit_transform(X), y[:, None], 0.3, forecaster == "awv")
    for name, chunk in itertools.product(ENGINES, [1, 64, 100]):
        model = OnlineRidge(taylor, lam=0.3, forecaster=forecaster, engine=name)
        np.testing.assert_allclose(run(model, X, y, chunk), expected[:, 0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(model.coef_, np.linalg.solve(A, b)[:, 0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("mu", [0.999, 0.95])
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
def test_literal_recursion_with_forgetting_weights_and_outputs(forecaster, mu, rng):
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(X))
    expected, A, b = literal(taylor.fit_transform(X), Y, 0.3, forecaster == "awv", mu, weight)
    for name in ENGINES:
        model = OnlineRidge(taylor, lam=0.3, forecaster=forecaster, forgetting=mu, engine=name)
        np.testing.assert_allclose(run(model, X, Y, 50, weight), expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(model.coef_, np.linalg.solve(A, b).T, rtol=0, atol=1e-8)


def test_forgetting_never_makes_a_singular():
    """Rows in one direction only, while the ridge fades below every float: the other directions stay at 0."""
    model = OnlineRidge("raw", forgetting=0.5)
    stream = np.zeros((3000, 4))
    stream[:, 0] = 1.0
    model.learn(stream, np.full(3000, 2.0))
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.coef_, [2.0, 0, 0, 0], atol=1e-8)


def test_ridge_is_ridge(rng):
    """After all rows: scikit-learn's Ridge on the same features."""
    weight = rng.uniform(0, 2, len(X))
    model = OnlineRidge(taylor, lam=0.7).fit(X, Y, sample_weight=weight)
    Z = taylor.fit_transform(X)
    batch = Ridge(alpha=0.7, fit_intercept=False, solver="cholesky").fit(Z, Y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), batch.predict(Z), atol=1e-10)


def test_standard_deviation_is_that_of_the_bayesian_model():
    """y = w'z + noise, w ~ N(0, noise/lam): posterior by dense formulas; noise by the mean squared innovation."""
    Z = taylor.fit_transform(X)
    model = OnlineRidge(taylor, lam=0.3).fit(X, Y)
    K = Z @ Z.T / 0.3 + np.eye(len(X))
    noise = np.einsum("ik,ik->k", Y, np.linalg.solve(K, Y)) / len(X)  # y'K^-1 y = sum of squared innovations
    new = taylor.transform(X[:20] * 0.9)
    P = np.linalg.inv(Z.T @ Z + 0.3 * np.eye(Z.shape[1]))
    expected = np.sqrt(noise * (1 + np.einsum("ij,jk,ik->i", new, P, new))[:, None])
    mean, std = model.predict(X[:20] * 0.9, return_std=True)
    np.testing.assert_allclose(std, expected, rtol=1e-8)
    np.testing.assert_array_equal(mean, model.predict(X[:20] * 0.9))


def test_standard_deviation_covers(rng):
    covered = []
    for _ in range(20):
        noisy = y + 0.5 * rng.standard_normal(len(y))
        mean, std = OnlineRidge(taylor, lam=0.1).fit(X[:500], noisy[:500]).predict(X[500:], return_std=True)
        covered.append(np.abs(noisy[500:] - mean) < std)
    assert 0.64 < np.mean(covered) < 0.72  # 68 % of a normal; the standard error is 0.01


@pytest.mark.parametrize("name", ENGINES)
def test_merge_is_exact(name):
    whole = OnlineRidge(taylor, engine=name).fit(X, Y)
    parts = [OnlineRidge(taylor, engine=name).fit(X[rows], Y[rows]) for rows in np.array_split(np.arange(len(X)), 3)]
    before = copy.deepcopy(parts[1].state_)
    merged = parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_allclose(merged.coef_, whole.coef_, atol=1e-12)
    for a, b in zip(merged.predict(X, return_std=True), whole.predict(X, return_std=True)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert_same_state(before, parts[1].state_, 0.0, "of the other model")


def test_merge_refuses_what_does_not_fit():
    model = OnlineRidge(RandomFourier(gamma=1.0), random_state=0).fit(X, y)
    for other, message in [
        (OnlineRidge(RandomFourier(gamma=1.0), random_state=1).fit(X, y), "features"),
        (OnlineRidge(RandomFourier(gamma=1.0), lam=2.0, random_state=0).fit(X, y), "lam"),
        (OnlineRidge(RandomFourier(gamma=1.0), random_state=0).fit(X, Y), "outputs"),
        (OnlineRidgeClassifier(RandomFourier(gamma=1.0), random_state=0).fit(X, y > 0), "OnlineRidgeClassifier"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.merge(other)


def test_classes_that_appear_late_were_always_there():
    """Least squares on ±1 targets of all four classes from the first row on."""
    Xc, yc = make_blobs(400, n_features=2, centers=4, cluster_std=2.0, random_state=1)
    order = np.argsort(yc, kind="stable")[::-1]
    map_ = TaylorFeatures(gamma=0.05)
    Z = map_.fit_transform(Xc)
    targets = np.where(yc[:, None] == np.arange(4), 1.0, -1.0)
    expected = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ targets).T
    for name in ENGINES:
        model = OnlineRidgeClassifier(map_, engine=name)
        model.partial_fit(Xc[order], yc[order])
        np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
        known = OnlineRidgeClassifier(map_, engine=name).partial_fit(Xc, yc, classes=range(4))
        np.testing.assert_allclose(known.coef_, expected, atol=1e-10)


# ---------------------------------------------------------------- lambda by experts
def test_experts_are_the_exponentially_weighted_average():
    grid = [0.01, 1.0, 100.0]
    Z = taylor.fit_transform(X)
    singles = np.stack([literal(Z, Y, lam, awv=True)[0] for lam in grid], axis=1)  # (n, J, k)
    loss, bound, expected = np.zeros((3, 3)), np.zeros(3), []
    for t in range(len(X)):
        P = np.clip(singles[t], -bound, bound)
        theta = np.exp(-loss / (8 * bound**2)) if t else np.ones((3, 3))
        expected.append((theta * P).sum(axis=0) / theta.sum(axis=0))
        loss += (Y[t] - P) ** 2
        bound = np.maximum(bound, np.abs(Y[t]))
    for name in ENGINES:
        model = OnlineRidge(taylor, lam=grid, forecaster="awv", engine=name)
        np.testing.assert_allclose(run(model, X, Y, 90), expected, atol=1e-10)


def test_experts_lose_little_to_the_best():
    grid = np.array([1e-4, 1e-2, 1.0, 100.0])
    singles = [np.sum((OnlineRidge(taylor, lam=lam).learn(X, y) - y) ** 2) for lam in grid]
    together = np.sum((OnlineRidge(taylor, lam=grid).learn(X, y) - y) ** 2)
    assert together <= min(singles) + 8 * np.abs(y).max() ** 2 * np.log(4)
    assert together < 0.9 * max(singles)


def test_auto_lambda_standard_deviation_is_finite():
    mean, std = OnlineRidge(taylor, lam="auto").fit(X, Y).predict(X[:10], return_std=True)
    assert mean.shape == std.shape == (10, 3) and (std > 0).all()


# ---------------------------------------------------------------- a degree that grows
def test_degree_grows_with_the_stream(rng):
    """Grown features count as 0 on all rows before: ridge on the zero-padded rows of every stage."""
    stream = rng.uniform(-1, 1, (1100, 2))
    target = np.sin(4 * stream[:, 0] + stream[:, 1])
    growing = TaylorFeatures(degree="auto", gamma=2.0, max_features=150)
    for name in ENGINES:
        model = OnlineRidge(growing, lam=0.1, engine=name)
        degrees = []
        for i in range(0, 1100, 50):
            model.learn(stream[i : i + 50], target[i : i + 50])
            degrees.append(model.state_["map_degree"])
        assert degrees == sorted(degrees) and degrees[-1] > degrees[2]
        assert len(model.coef_) <= 150
        # which degree each row was learned with: renewed when 128, 256, … rows were in
        radius = model.state_["map_radius"]
        stages = [1 << max(7, t.bit_length() - 1) for t in range(128, 1100)]
        later = [growing.grown({"gamma": 2.0, "degree": 0, "radius": radius}, 2, n, 0.1)["degree"] for n in stages]
        used = np.maximum.accumulate([degrees[1]] * 128 + later)
        Z = np.zeros((1100, len(model.coef_)))
        for degree in np.unique(used):
            rows = used == degree
            part = TaylorFeatures(degree=int(degree), gamma=2.0).fit_transform(stream[rows])
            Z[rows, : part.shape[1]] = part
        expected = np.linalg.solve(Z.T @ Z + 0.1 * np.eye(Z.shape[1]), Z.T @ target)
        np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


# ---------------------------------------------------------------- long streams
@pytest.mark.parametrize("n", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_no_drift(n):
    """Relative error of the weights after n rows against one float64 solve of the normal equations."""
    r = 10
    model = OnlineRidge("raw", lam=1.0, forecaster="awv")
    A, b = np.eye(r), np.zeros(r)
    generator = np.random.default_rng(1)
    mixing = generator.standard_normal((r, r)) * np.logspace(0, -4, r)  # badly scaled on purpose
    for _ in range(n // 5000):
        Z = generator.standard_normal((5000, r)) @ mixing
        target = Z.sum(axis=1) + generator.standard_normal(5000)
        model.learn(Z, target)
        A, b = A + Z.T @ Z, b + Z.T @ target
    exact = np.linalg.solve(A, b)
    assert np.linalg.norm(model.coef_ - exact) / np.linalg.norm(exact) < 1e-6


# ---------------------------------------------------------------- the contract


def test_bad_targets():
    model = OnlineRidge(taylor).fit(X, Y)
    before = copy.deepcopy(model.state_)
    for bad in (y, Y[:, :2], Y[:5], np.where(Y > 0, np.nan, Y)):
        with pytest.raises(ValueError):
            model.partial_fit(X, bad)
    assert_same_state(before, model.state_, 0.0, "before and after bad targets")


@pytest.mark.skipif(not engine.has_native(), reason="needs the compiled core")
@pytest.mark.parametrize("sizes", [[1] * 60, [7] * 8 + [4], [30, 1, 29]])
def test_blocks_of_rows_give_the_bits_of_all_at_once(sizes):
    """A window is made again from its rows, all at once, when a model is resumed: they must not feel each other."""
    for r in (3, 24, 61):
        Z = np.random.default_rng(r).standard_normal((60, r))
        scores = []
        for cuts in ([60], sizes):
            state = {}
            second_order.start(state, r, 1, 1, np.array([1.0]), 1.0)
            recursion = engine.get("native").least_squares(state, LeastSquares())
            blocks = np.split(Z, np.cumsum(cuts)[:-1])
            scores.append(np.concatenate([recursion.learn(block, np.sign(block[:, :1]), None)[0] for block in blocks]))
        np.testing.assert_array_equal(*scores)
