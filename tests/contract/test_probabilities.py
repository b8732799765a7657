"""Probabilities of every classifier: of the loss, or learned from forecasts that were made before each row."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, LEARNERS, instance
from scipy.special import expit
from sklearn.base import is_classifier

from kernelstream import FeatureClassifier, KernelClassifier
from kernelstream.features import RandomFourier
from kernelstream.passes.trust.python import calibrate
from kernelstream.trust import Calibrator
from kernelstream.trust.calibration import KEEP

CLASSIFIERS = [name for name in LEARNERS if is_classifier(CASES[name])]
TWO_ONLY = {name for name in CLASSIFIERS if name.startswith("Density")}
WIDTH = RandomFourier(n_components=40, gamma=0.5)


def blobs(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y % 3], y


def agrees(model, X):
    p = model.predict_proba(X)
    assert p.shape == (len(X), len(model.classes_))
    assert np.isfinite(p).all() and p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    scores = model.decision_function(X)
    if scores.ndim == 1:
        assert (np.diff(p[np.argsort(scores), 1]) >= -1e-15).all()  # a larger score is never less probable
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, atol=1e-12)
    return p


def ties_agree(model):
    """The label is that of the largest probability, the first of equal ones: also where scores tie, or nearly do."""
    outputs = model.state_["n_outputs"]
    sizes = np.array([0.0, 5e-324, 1e-300, 1e-17, 1e-9, 1.0, 40.0, 800.0, 1e6])
    scores = np.concatenate([sizes, -sizes])[:, None] * np.ones(outputs)
    for c in range(outputs):  # each output ahead by next to nothing
        near = scores.copy()
        near[:, c] = np.nextafter(near[:, c], np.inf)
        scores = np.concatenate([scores, near])
    first = model.classes_[model._proba_of(scores).argmax(axis=1)]
    np.testing.assert_array_equal(model._labels(scores), first)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_has_them(name, classes):
    if classes == 3 and name in TWO_ONLY:
        pytest.skip("two labels only")
    X, y = blobs(400, classes)
    model = instance(name)
    assert hasattr(model, "predict_proba")
    model.fit(X[:140], y[:140])
    p = agrees(model, X[140:])
    assert p[np.arange(260), y[140:]].mean() > 1 / classes  # they know something
    said, again = model._labels_and_proba(X[140:])  # by one scoring
    np.testing.assert_array_equal(said, model.predict(X[140:]))
    np.testing.assert_array_equal(again, p)
    ties_agree(model)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "perceptron"])
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_they_are_the_calibrator_of_the_forecasts(engine, loss):
    """The naive way: take the scores of ``learn``, and give them to a calibrator one after the other."""
    X, y = blobs(150, 2)
    model = FeatureClassifier(WIDTH, loss=loss, engine=engine, random_state=0)
    scores = model.learn(X, y, classes=[0, 1])
    keep = KEEP[[0, 2]] ** 2  # memories of 500 rows, and of all
    naive = Calibrator._start(2, keep)
    for i in range(0, 150, 2):  # every second row counts as two
        calibrate(naive, scores[i : i + 1], y[i : i + 1], None, False, keep, np.empty(1), times=2.0)
    rows, _ = blobs(50, 2, seed=1)
    said = model.decision_function(rows)
    expected = np.empty(50)
    calibrate(naive, said, None, None, False, keep, expected)
    expected = expit(expected)
    expected = np.where(said >= 0, np.maximum(expected, 0.5), np.minimum(expected, 0.5))
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], expected, atol=1e-6)


@pytest.mark.parametrize("make", [FeatureClassifier, KernelClassifier])
def test_a_row_without_weight_may_have_a_strange_label(make):
    X, y = blobs(120, 3)
    with_it, without = (make(random_state=0) for _ in range(2))
    for model in (with_it, without):
        model.learn(X[:100], y[:100])
    with_it.learn(X[100:], np.append(y[100:119], 99), sample_weight=np.append(np.ones(19), 0.0))
    without.learn(X[100:119], y[100:119])
    np.testing.assert_allclose(with_it.predict_proba(X), without.predict_proba(X), atol=1e-9)


def test_they_hold_what_they_promise():
    """Labels drawn with known odds: what the hinge says of new rows is close to the truth, and far from its scores."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (8000, 2))
    truth = np.where(np.sin(1.5 * X[:, 0]) > 0, 0.95, 0.05)
    y = (rng.random(8000) < truth).astype(int)
    model = FeatureClassifier(loss="hinge", random_state=0)
    model.learn(X[:7000], y[:7000])
    away = np.abs(np.sin(1.5 * X[7000:, 0])) > 0.3  # from the edge, which features can only blur
    new, truth = X[7000:][away], truth[7000:][away]
    wrong = np.abs(model.predict_proba(new)[:, 1] - truth).mean()
    assert wrong < 0.05 < 0.07 < np.abs(expit(model.decision_function(new)) - truth).mean()


def test_a_file_without_a_link():
    """A score of 1 is log-odds of 2, and the next rows are learned from."""
    X, y = blobs(120, 2)
    model = FeatureClassifier(WIDTH, random_state=0)
    model.learn(X[:100], y[:100])
    state = {name: value for name, value in model.state_.items() if name != "link"}
    old = FeatureClassifier(WIDTH, random_state=0)
    old.state_ = state
    old.check_state()
    np.testing.assert_allclose(old.predict_proba(X)[:, 1], expit(2 * old.decision_function(X)), atol=1e-6)
    old.learn(X[100:], y[100:])
    assert "link" in old.state_ and np.isfinite(agrees(old, X)).all()


def test_a_class_that_comes_later():
    X, y = blobs(300, 3)
    first = y < 2
    model = FeatureClassifier(WIDTH, random_state=0)
    model.learn(X[first], y[first])
    agrees(model, X)
    model.learn(X[~first][:60], y[~first][:60])
    model.learn(X[:100], y[:100])
    assert agrees(model, X).shape == (300, 3)


def test_later_passes_over_the_same_rows_teach_nothing():
    X, y = blobs(150, 2)
    one, two = (FeatureClassifier(WIDTH, random_state=0).fit(X, y, passes=n) for n in (1, 2))
    np.testing.assert_array_equal(one.state_["link"], two.state_["link"])
    assert not np.array_equal(one.state_["w"], two.state_["w"])


def test_models_with_probabilities_have_no_link():
    X, y = blobs(100, 2)
    for model in (FeatureClassifier(WIDTH, loss="logistic"), KernelClassifier(size="small")):
        model.learn(X, y)
        assert "link" not in model.state_
