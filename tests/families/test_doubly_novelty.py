"""Novelty detection and density ratios by doubly stochastic gradients, against naive programs and known truths."""

import numpy as np
import pytest
from doubly_features import SEED
from doubly_features import fourier_block as features
from sklearn.svm import OneClassSVM

from kernelstream import DensityRatioEstimator, DoublyStochasticOneClass, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.passes.doubly.novelty import RatioLoss

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(200, 2)), 0.5 * rng.normal(size=(200, 2)) + [4, 0]])[rng.permutation(400)]
both = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + [1, 0]])
label = np.repeat([0, 1], 200)
order = rng.permutation(400)
both, label = both[order], label[order]
FIXED = {"gamma": 0.7, "step": DoublyStep(0.5, 7.0), "schedule": DoublySchedule(16, 6), "random_state": SEED}


# -------------------------------------------------------------------- novelty
@pytest.mark.parametrize("weighted", [False, True])
def test_novelty_is_the_recursion(weighted, rng):
    weight = rng.uniform(0.5, 2, 400) if weighted else np.ones(400)
    alpha, mean, tau, tau_mean = [], [], 0.0, 0.0
    for t in range(1, 26):
        rows = slice(16 * (t - 1), 16 * t)
        f = sum((features(X[rows], i) @ a for i, a in enumerate(alpha)), np.zeros(16))
        gamma = 0.5 * 7 / (7 + t)
        novel = f < tau
        alpha = [(1 - gamma * 0.3) * a for a in alpha]
        alpha.append(gamma * features(X[rows], t - 1).T @ (weight[rows] * novel) / 16)
        mean.append(np.zeros(12))
        tau += gamma * np.mean(weight[rows] * np.where(novel, 0.3 - 1, 0.3))
        w = 4 / (t + 3)
        mean = [(1 - w) * m + w * a for m, a in zip(mean, alpha)]
        tau_mean = (1 - w) * tau_mean + w * tau
    f = sum(features(X, i) @ m for i, m in enumerate(mean))
    for engine in ("python", "native"):
        model = DoublyStochasticOneClass(nu=0.3, engine=engine, **FIXED)
        model.partial_fit(X, sample_weight=weight if weighted else None)
        np.testing.assert_allclose(model.state_["alpha"][:, :, 0] * model.state_["shrink"], alpha, atol=1e-12)
        assert model.offset_ == pytest.approx(tau_mean, abs=1e-12)
        np.testing.assert_allclose(model.score_samples(X), f, atol=1e-10)
        np.testing.assert_allclose(model.decision_function(X), f - tau_mean, atol=1e-10)
        assert np.array_equal(model.predict(X), np.where(f < tau_mean, -1, 1))


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_novelty_is_the_one_class_svm(nu):
    """The minimum of the same problem, by scikit-learn: scores and threshold, divided by nu n."""
    model = DoublyStochasticOneClass(gamma=0.1, nu=nu, random_state=0).fit(X)
    other = OneClassSVM(gamma=0.1, nu=nu).fit(X)
    true = other.score_samples(X) / (nu * 400)
    assert np.corrcoef(model.score_samples(X), true)[0, 1] > 0.98
    assert model.offset_ == pytest.approx(other.offset_[0] / (nu * 400), rel=0.1)
    assert np.mean(model.predict(X) == other.predict(X)) > 0.95


def test_share_of_novelties():
    for nu in (0.02, 0.3):
        model = DoublyStochasticOneClass(nu=nu, random_state=0, schedule=DoublySchedule(passes=20, block_size=64)).fit(
            X
        )
        assert np.mean(model.predict(X) < 0) == pytest.approx(nu, abs=0.003)


def test_middle_of_a_ring(rng):
    """It is novel, which the median distance is too wide to see."""
    angle = rng.uniform(0, 2 * np.pi, 600)
    ring = np.c_[np.cos(angle), np.sin(angle)] + 0.05 * rng.normal(size=(600, 2))
    model = DoublyStochasticOneClass(gamma=4.0, random_state=0, schedule=DoublySchedule(block_size=64)).fit(ring)
    assert model.predict([[0.0, 0.0]])[0] == -1 and np.mean(model.predict(ring) > 0) > 0.85


@pytest.mark.parametrize("kernel", ["laplacian", "arc_cosine", "chi2"])
def test_novelty_with_other_kernels(kernel):
    rows = np.abs(X)
    model = DoublyStochasticOneClass(kernel, random_state=0, schedule=DoublySchedule(block_size=32, passes=20)).fit(
        rows
    )
    assert np.mean(model.predict(rows) < 0) == pytest.approx(0.1, abs=0.01)


# -------------------------------------------------------------------- density ratio
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_ratio_loss(y):
    """The derivative is that of the value, also where the tangent begins, and grows."""
    f, h = np.linspace(-8, 14, 221), 1e-5
    loss = RatioLoss()
    slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, f), slope, rtol=1e-5)
    assert (np.diff(loss.gradient(y, f)) >= 0).all()


@pytest.mark.parametrize("engine", ["python", "native"])
def test_ratio_is_the_recursion(engine):
    """With a coin that falls on either side in turn: as many rows of p as of q, weights 1."""
    turns = np.concatenate([np.flatnonzero(label == 0)[:, None], np.flatnonzero(label == 1)[:, None]], axis=1).ravel()
    rows_all, y = both[turns], label[turns]
    model = DensityRatioEstimator(lam=0.01, engine=engine, **FIXED).partial_fit(rows_all, y, classes=[0, 1])
    alpha, counts = [], np.zeros(2)
    for t in range(1, 26):
        rows = slice(16 * (t - 1), 16 * t)
        f = sum((features(rows_all[rows], i) @ a for i, a in enumerate(alpha)), np.zeros(16))
        weight = np.empty(16)
        for i, c in enumerate(y[rows]):
            counts[c] += 1
            weight[i] = counts.sum() / (2 * counts[c])  # tends to 1
        gamma = 0.5 * 7 / (7 + t)
        step = np.where(y[rows] == 0, np.exp(f), -1.0) * weight
        alpha = [(1 - gamma * 0.01) * a for a in alpha]
        alpha.append(-2 * gamma * features(rows_all[rows], t - 1).T @ step / 16)
    np.testing.assert_allclose(model.state_["alpha"][:, :, 0] * model.state_["shrink"], alpha, atol=1e-11)


def test_known_ratios():
    """Gaussians, twice as many rows of one as of the other; the mean of the ratio over p is 1."""
    gen = np.random.default_rng(1)
    rows = np.concatenate([gen.normal(size=(2000, 2)), 0.8 * gen.normal(size=(1000, 2)) + [0.5, 0]])
    model = DensityRatioEstimator(random_state=0, schedule=DoublySchedule(block_size=64)).fit(
        rows, np.repeat(["p", "q"], [2000, 1000])
    )
    test = gen.normal(size=(1000, 2))
    true = (test**2).sum(1) / 2 - ((test - [0.5, 0]) ** 2).sum(1) / (2 * 0.64) - 2 * np.log(0.8)
    inside = (test**2).sum(1) < 4
    assert np.sqrt(np.mean((model.log_ratio(test) - true)[inside] ** 2)) < 0.25
    assert model.ratio(test).mean() == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(model.predict_proba(test)[:, 1], 1 / (1 + np.exp(-model.log_ratio(test))), atol=1e-12)


def test_ratio_with_preconditioned_steps():
    """Its loss may be negative."""
    step = DoublyStep(precondition=0.1)
    model = DensityRatioEstimator(step=step, random_state=0, schedule=DoublySchedule(block_size=64, passes=40)).fit(
        3 * both, label
    )
    assert model.score(3 * both, label) > 0.6


def test_third_sample():
    model = DensityRatioEstimator(**FIXED).partial_fit(both, label)
    with pytest.raises(ValueError, match="two samples, and y names 3"):
        model.partial_fit(both, label + 1)
    with pytest.raises(ValueError, match="two samples, and y names 3"):
        DensityRatioEstimator().fit(both, np.arange(400) % 3)
    assert model.predict(both).shape == (400,)


def test_nothing_overflows():
    """Samples that do not overlap: the ratio is infinite, the estimate large."""
    far = np.concatenate([X[:100] - 50, X[:100] + 50])
    model = DensityRatioEstimator(random_state=0, schedule=DoublySchedule(block_size=32)).fit(
        far, np.repeat([0, 1], 100)
    )
    assert np.isfinite(model.ratio(far)).all() and model.score(far, np.repeat([0, 1], 100)) == 1
    assert np.isfinite(RatioLoss().gradient(-1.0, 1e4)) and np.isfinite(RatioLoss().value(-1.0, 1e4))


# -------------------------------------------------------------------- both
def test_zoo():
    assert isinstance(zoo.make("doubly_novelty", nu=0.2), DoublyStochasticOneClass)
    assert zoo.make("doubly_novelty", eta=2.0).step.eta == 2.0
    with pytest.raises(ValueError, match="serves novelty"):
        zoo.make("doubly_novelty", task="binary")
    assert isinstance(zoo.make("doubly_density_ratio"), DensityRatioEstimator)
    assert zoo.make("doubly_quantile", tau=0.9).loss.tau == 0.9
