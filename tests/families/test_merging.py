"""One model from several: exact where sums add up, close where they do not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reloaded import reloaded
from sklearn.base import clone

import kernelstream as ks
from kernelstream import merge
from kernelstream.features import RandomFourier, TaylorFeatures


@pytest.fixture
def table(rng):
    return drawn(rng)


def drawn(rng):
    X = rng.normal(size=(1500, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=1500)


@pytest.mark.parametrize("features", [RandomFourier(n_components=20, gamma=0.5), TaylorFeatures(degree=3, gamma=0.5)])
def test_ridge_on_any_map_is_merged_exactly(table, features):
    X, y = table
    model = ks.OnlineRidge(features, random_state=0)
    parts = [clone(model).fit(X[i::3], y[i::3]) for i in range(3)]
    before = [part.state_["t"] for part in parts]
    pooled = clone(model).fit(X, y)
    assert_allclose(merge(parts).predict(X), pooled.predict(X), rtol=1e-8, atol=1e-8)
    assert [part.state_["t"] for part in parts] == before


def test_labels_that_one_model_lacks_are_merged_exactly(table):
    X, y = table[0], np.digitize(table[1], [0.0, 1.0])
    model = ks.OnlineRidgeClassifier(RandomFourier(n_components=20, gamma=0.5), random_state=0)
    few = y < 2
    merged = merge([clone(model).fit(X[few], y[few]), clone(model).fit(X[~few], y[~few])])
    assert_allclose(merged.decision_function(X), clone(model).fit(X, y).decision_function(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("model", [ks.KernelRegressor(size="small", random_state=0), ks.CellsRegressor(random_state=0)])
def test_other_learners_come_close_to_pooled_learning(rng, model):
    found = []
    for X, y in (drawn(rng) for _ in range(4)):
        parts = [clone(model) for _ in range(2)]
        for i, part in enumerate(parts):
            part.learn(X[:1200][i::2], y[:1200][i::2])
        pooled = clone(model)
        pooled.learn(X[:1200], y[:1200])
        learners = merge(parts, X[:300], y[:300]), *parts, pooled
        found.append([np.mean((learner.predict(X[1200:]) - y[1200:]) ** 2) for learner in learners])
    merged, *alone, together = np.mean(found, axis=0)
    assert merged < min(alone) and merged < 1.1 * together
    assert_array_equal(reloaded(learners[0]).predict(X), learners[0].predict(X))


def test_four_models_of_few_rows_come_close_to_pooled_learning(table):
    X, y = table
    parts = [ks.KernelRegressor(size="small", random_state=i) for i in range(4)]
    pooled = ks.KernelRegressor(size="small", random_state=0)
    pooled.learn(X[:1200], y[:1200])
    for i, part in enumerate(parts):
        part.learn(X[:1200][i::4], y[:1200][i::4])
    merged = merge(parts, X[:400], y[:400])
    error, goal = (np.mean((model.predict(X[1200:]) - y[1200:]) ** 2) for model in (merged, pooled))
    assert error < 1.02 * goal


def test_a_model_that_knows_nothing_of_the_rows_does_not_count(table):
    X, y = table[0], np.where(table[1] > 1, "up", "down")
    good, bad = (ks.FeatureClassifier(loss="logistic", random_state=i) for i in range(2))
    good.learn(X, y)
    bad.learn(X, y[::-1])  # as good as drawn by lot
    merged = merge([good, bad], X[:500], y[:500])
    assert_allclose(merged.weights_.sum(), 1.0)
    assert merged.weights_[0] > 0.9
    assert_allclose(merged.predict_proba(X).sum(axis=1), 1.0)
    assert np.mean(merged.predict(X) == y) > 0.8


def test_what_cannot_be_merged_is_named(table):
    X, y = table
    with pytest.raises(ValueError, match="one class"):
        merge([ks.OnlineRidge(), ks.CellsRegressor()])
    with pytest.raises(ValueError, match="cannot be merged exactly"):
        merge([ks.CellsRegressor().fit(X, y)] * 2)
    with pytest.raises(ValueError, match="different features"):
        merge([ks.OnlineRidge(random_state=i).fit(X, y) for i in range(2)])
