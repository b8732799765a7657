"""What becomes of a model that is saved, pickled or cloned, on every case."""

import copy
import pickle

import numpy as np
import pytest
from cases import CASES, X, answers, instance, targets
from excuses import AS_THEY_COME
from reloaded import reloaded
from sklearn.base import clone

from kernelstream.testing.streaming import assert_same_state

pytestmark = [
    pytest.mark.usefixtures("short_searches"),
    pytest.mark.filterwarnings("ignore:.* has not converged"),  # a few passes are enough to be copied
]

KEPT = [name for name, case in CASES.items() if hasattr(type(case), "state_")]


def taught(est, rows):
    """The estimator after some rows: the next ones of a stream where it learns from one, else all there is to learn."""
    y = targets(est)[rows]
    if hasattr(est, "partial_fit"):
        return est.partial_fit(X[rows], y)
    return est.fit(X[rows], y)


def same_answers(a, b):
    """Up to the last digits: a matrix product may round differently for an array at another address."""
    np.testing.assert_allclose(answers(a, X), answers(b, X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", KEPT)
def test_files(name):
    """A model file gives the model back: unfitted, among its first rows, and later; both then go on alike."""
    est = instance(name)
    assert repr(reloaded(est)) == repr(est)
    for rows in (slice(0, 3), slice(3, 80)):
        taught(est, rows)
        loaded = reloaded(est)
        assert type(loaded) is type(est)
        assert repr(loaded.get_params()) == repr(est.get_params())
        assert_same_state(loaded.state_, est.state_, 0.0, name)
        assert {key: type(value) for key, value in loaded.state_.items()} == {
            key: type(value) for key, value in est.state_.items()
        }
        same_answers(loaded, est)
        if name not in AS_THEY_COME:
            assert loaded.n_features_in_ == X.shape[1]
    if hasattr(est, "partial_fit"):
        taught(est, slice(80, 120))
        taught(loaded, slice(80, 120))
        # online Newton factors its matrix again after loading, which rounds differently
        tolerance = 1e-9 if name == "NewtonClassifier" else 0.0
        assert_same_state(loaded.state_, est.state_, tolerance, f"{name}: went on after loading, and without")


@pytest.mark.parametrize("name", [name for name in CASES if name not in KEPT])
def test_what_keeps_no_state_is_not_written(name):
    with pytest.raises(ValueError, match="keeps no state_"):
        reloaded(instance(name))


@pytest.mark.parametrize("name", CASES)
def test_pickles_and_copies(name):
    """A copy answers alike, goes on alike, and what it learns is not learned by the other."""
    est = taught(instance(name), slice(0, 80))
    before = answers(est, X)
    for made in (pickle.loads(pickle.dumps(est)), copy.deepcopy(est)):
        same_answers(made, est)
        taught(made, slice(80, 120))
        np.testing.assert_array_equal(answers(est, X), before)
    same_answers(taught(est, slice(80, 120)), made)


@pytest.mark.parametrize("name", CASES)
def test_clones(name):
    """A clone has the parameters and nothing that was learned; it learns the same again."""
    est = taught(instance(name), slice(0, 30))
    again = clone(est)
    assert repr(again.get_params()) == repr(est.get_params())
    assert not hasattr(again, "state_") and not hasattr(again, "n_features_in_")
    for key, value in again.get_params(deep=False).items():
        if hasattr(value, "get_params"):
            assert value is not getattr(est, key), f"{key} is shared with the clone"
    same_answers(taught(again, slice(0, 30)), est)
