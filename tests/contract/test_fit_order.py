"""``fit`` does not depend on the order of the rows in the file; ``learn`` keeps it."""

import copy
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelstream as ks
from kernelstream.estimators import DoublySchedule, DoublyStep, FalkonRegressor
from kernelstream.estimators._contract import order as _order
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.kernels import Gaussian
from kernelstream.random import SeedStream, generator
from kernelstream.testing.streaming import assert_same_state
from kernelstream.updates import OGD
from kernelstream_papers.rivals import FixedFeatureClassifier, KernelSDCAClassifier

X, y = make_moons(400, noise=0.15, random_state=0)
by_class = np.argsort(y, kind="stable")
small = RandomFourier(n_components=60)

STREAMING = [
    ks.FeatureClassifier(small, random_state=0),
    ks.FeatureClassifier(small, update=OGD(0.5, "sqrt"), random_state=0),
    ks.FeatureClassifier(Nystroem(n_components=30), random_state=0),
    ks.NystroemClassifier(budget=60, random_state=0),
    ks.BudgetClassifier(gamma=2.0, budget=60, random_state=0),
    ks.BudgetClassifier(gamma=2.0, budget=60, strategy="remove_random", random_state=0),
    ks.RRFClassifier(60, random_state=0),
    ks.MultiKernelClassifier([ks.FeatureClassifier(RandomFourier(gamma=g, n_components=40)) for g in (0.5, 2.0)]),
    ks.AROWClassifier(small, diagonal=True, random_state=0),
    ks.NewtonClassifier(small, random_state=0),
    ks.CellsClassifier(32, "hashed", random_state=0),
]


@pytest.mark.parametrize("est", STREAMING, ids=lambda est: type(est).__name__)
def test_rows_sorted_by_class_do_no_harm(est):
    """Half of the rows are of one class, then come the others: in file order the first ones are all but forgotten."""
    rows, labels = X[by_class], y[by_class]
    fitted = clone(est).fit(rows, labels, passes=2)
    assert fitted.score(X, y) > 0.85
    mixed = np.mean([clone(est).set_params(random_state=i).fit(X, y, passes=2).score(X, y) for i in range(3)])
    assert fitted.score(X, y) > mixed - 0.06


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_files_that_come_with_scikit_learn(load):
    """Both are sorted by class; scikit-learn's cross-validation keeps the order within a fold."""
    rows, labels = load(return_X_y=True)
    model = make_pipeline(StandardScaler(), ks.FeatureClassifier(random_state=0))
    assert cross_val_score(model, rows, labels, cv=5).mean() > 0.85
    with_order = clone(model).fit(rows, labels, featureclassifier__shuffle=False)
    assert with_order.score(rows, labels) < cross_val_score(model, rows, labels, cv=5).mean()


def permuted(n, seed, i):
    """Pass i over n rows: a permutation drawn from the seed alone."""
    return generator(seed, SeedStream.FIT_ORDER, i).permutation(n)


@pytest.mark.parametrize("est", STREAMING, ids=lambda est: type(est).__name__)
def test_a_random_order_and_nothing_else(est):
    """fit is what fit in file order does to rows that are already in that order."""
    est = clone(est).set_params(engine="python", random_state=7)
    rows, labels = X[:70], y[:70]
    shuffled = clone(est).fit(rows, labels)
    order = permuted(70, 7, 0)
    plain = clone(est).fit(rows[order], labels[order], shuffle=False)
    assert_same_state(shuffled.state_, plain.state_, 0.0, "shuffled")


def test_file_order_is_learn_on_a_fresh_model():
    for est in (ks.FeatureClassifier(RandomFourier(gamma=1.0, n_components=20)), ks.BudgetClassifier(gamma=1.0)):
        taught = clone(est).set_params(random_state=3)
        taught.learn(X, y)
        fitted = clone(est).set_params(random_state=3).fit(X, y, shuffle=False)
        assert_same_state(fitted.state_, taught.state_, 0.0, "fitted")


def test_passes_have_orders_of_their_own():
    est = ks.FeatureClassifier(RandomFourier(gamma=1.0, n_components=20), random_state=3)
    thrice = clone(est).fit(X, y, passes=3)
    by_hand = clone(est)
    for i in range(3):
        order = permuted(400, 3, i)
        by_hand.learn(X[order], y[order])
    assert thrice.state_["t"] == 1200
    np.testing.assert_allclose(thrice.state_["w"], by_hand.state_["w"], rtol=1e-11, atol=1e-12)
    in_order = clone(est).fit(X, y, shuffle=False, passes=2)
    by_hand = clone(est)
    for _ in range(2):
        by_hand.learn(X, y)
    np.testing.assert_allclose(in_order.state_["w"], by_hand.state_["w"], rtol=1e-11, atol=1e-12)
    # a bandwidth is settled on the first pass: rows that come again say nothing about distances
    few = ks.FeatureClassifier(small, random_state=0)
    once, more = clone(few).fit(X[:30], y[:30]), clone(few).fit(X[:30], y[:30], passes=5)
    assert once.state_["map_gamma"] == more.state_["map_gamma"]
    assert more.state_["t"] == 150


def test_rows_of_weight_zero_are_as_good_as_absent():
    weight = np.where(np.arange(400) % 3, 1.5, 0.0)
    some = weight > 0
    for est in (ks.FeatureClassifier(small), ks.RRFClassifier(20), ks.BudgetClassifier()):
        est.set_params(random_state=0)
        for shuffle in (True, False):
            a = clone(est).fit(X, y, weight, shuffle=shuffle)
            b = clone(est).fit(X[some], y[some], weight[some], shuffle=shuffle)
            assert_same_state(b.state_, a.state_, 0.0, "without the rows")


def test_detectors_of_novelties():
    rows = np.random.default_rng(0).normal(size=(600, 2))
    rows = rows[np.argsort(rows[:, 0])]  # sorted: in file order the left side is forgotten
    schedule = DoublySchedule(block_size=32)
    for est in (ks.BudgetOneClass(random_state=0), ks.DoublyStochasticOneClass(schedule=schedule, random_state=0)):
        found = clone(est).fit(rows).predict(rows) < 0
        assert found[:300].mean() < 0.35
        assert abs(found[:300].mean() - found[300:].mean()) < 0.2
    assert ks.BudgetOneClass(random_state=0).fit(rows, passes=2).state_["t"] == 1200
    with pytest.raises(ValueError, match="passes"):
        ks.BudgetOneClass().fit(rows, passes=0)


@pytest.mark.parametrize("est", [FixedFeatureClassifier(small, random_state=0), KernelSDCAClassifier(tol=0.1),
                                 ks.BinningClassifier(n_components=16, gamma="median", lam=1.0, random_state=0)],
                         ids=lambda est: type(est).__name__)  # fmt: skip
def test_learners_of_all_rows(est):
    est.set_params(random_state=0)
    a, b = clone(est).fit(X, y), clone(est).fit(X, y, shuffle=False)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    with pytest.raises(ValueError, match="all rows at once"):
        clone(est).fit(X, y, passes=2)
    # the bandwidth is taken from rows of both classes, however they are sorted
    wide = np.concatenate([X[y == 0], X[y == 1] + 50.0])
    labels = np.repeat([0, 1], [np.sum(y == 0), np.sum(y == 1)])
    lots = np.random.default_rng(0).permutation(400)
    sorted_, mixed = clone(est).fit(wide, labels), clone(est).fit(wide[lots], labels[lots])
    bandwidths = [next(v for k, v in m.state_.items() if k.endswith("gamma")) for m in (sorted_, mixed)]
    assert 0.8 < bandwidths[0] / bandwidths[1] < 1.25


def test_the_median_rule_looks_at_rows_from_all_over():
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(5000, 2)), rng.normal(size=(5000, 2)) + 100.0
    rows = np.concatenate([near, far])
    from scipy.spatial.distance import pdist

    exact = np.median(pdist(rows[rng.permutation(10_000)[:2000]]))
    found = Gaussian("median").resolve(rows).gamma
    assert 0.8 < found * 2 * exact**2 < 1.25
    assert Gaussian("median").resolve(near[:150]).gamma == 1 / (2 * np.median(pdist(near[:150])) ** 2)


def test_doubly_stochastic_gradients_have_passes_of_their_own():
    step = DoublyStep(eta=2.0)
    est = ks.DoublyStochasticClassifier(
        gamma=1.0, step=step, schedule=DoublySchedule(batch_size=50, block_size=16, passes=2), random_state=0
    )
    assert clone(est).fit(X, y).state_["t"] == 16
    assert clone(est).fit(X, y, passes=5).state_["t"] == 40
    taught = clone(est)
    taught.learn(X, y)
    in_order = clone(est).fit(X, y, shuffle=False)
    assert_same_state(in_order.state_, taught.state_, 0.0, "in order")
    for bad in (0, -1.0, "many"):
        with pytest.raises(ValueError, match="passes"):
            clone(est).fit(X, y, passes=bad)


def test_no_more_than_a_part_of_the_rows_is_copied(monkeypatch):
    monkeypatch.setattr(_order, "BYTES", 1 << 16)
    rows = np.random.default_rng(0).normal(size=(60_000, 20))
    target = rows[:, 0]
    est = ks.FeatureRegressor(RandomFourier(gamma=0.05, n_components=4), random_state=0)
    tracemalloc.start()
    est.fit(rows, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < rows.nbytes / 3  # the scores of a part, the order, and the target in float64 are among it
    whole = clone(est)
    monkeypatch.undo()
    np.testing.assert_allclose(whole.fit(rows, target).state_["w"], est.state_["w"], rtol=1e-9, atol=1e-11)


def test_rows_of_weight_zero_do_not_cut_what_is_learned_all_at_once(monkeypatch):
    monkeypatch.setattr(_order, "BYTES", 1 << 16)
    rows = np.random.default_rng(0).normal(size=(2500, 20))
    weight = np.ones(len(rows))
    weight[7] = 0.0
    est = FalkonRegressor(gamma=0.5, lam=1e-3, n_centers=50, random_state=0)
    found = clone(est).fit(rows, rows[:, 0], weight)
    expected = clone(est).fit(rows[weight > 0], rows[weight > 0, 0])
    assert_same_state(found.state_, expected.state_, 0.0, "without the row")


def test_bad_arguments():
    est = ks.FeatureClassifier(small, random_state=0).fit(X, y)
    before = copy.deepcopy(est.state_)
    for wrong in ({"passes": 0}, {"passes": 1.5}, {"passes": True}, {"passes": "2"}, {"shuffle": "no"}, {"shuffle": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            est.fit(X, y, **wrong)
    with pytest.raises(ValueError, match="weights are zero"):
        est.fit(X, y, np.zeros(400))
    with pytest.raises(ValueError, match="0 sample"):
        est.fit(X[:0], y[:0])
    assert_same_state(est.state_, before, 0.0, "after bad arguments")
