"""Labels and probabilities by one scoring are what ``predict`` and ``predict_proba`` answer."""

import numpy as np
import pytest

from kernelstream import estimators

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
