"""Labels and probabilities by one scoring are what ``predict`` and ``predict_proba`` answer."""

import numpy as np
import pytest

from kernelstream import estimators

pytestmark = pytest.mark.usefixtures("short_searches")

CLASSIFIERS = [name for name in estimators.__all__ if name.endswith("Classifier") and "Binning" not in name]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("labels", [2, 3])
def test_one_scoring(name, labels):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.array(["low", "high", "top"])[np.digitize(X[:, 0], [0.0, 0.7][: labels - 1])]
    model = getattr(estimators, name)(random_state=0)
    model = model.partial_fit(X, y) if hasattr(model, "partial_fit") else model.fit(X, y)
    if not hasattr(model, "predict_proba"):
        pytest.skip("no probabilities")
    said, p = model._labels_and_proba(X)
    np.testing.assert_array_equal(said, model.predict(X))
    np.testing.assert_array_equal(p, model.predict_proba(X))
    agree(model)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
@pytest.mark.parametrize("labels", [2, 4])
def test_the_predicted_label_is_the_most_probable(loss, labels):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % labels
    agree(estimators.FeatureClassifier("raw", loss, random_state=0).partial_fit(X, y))


def agree(model):
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
