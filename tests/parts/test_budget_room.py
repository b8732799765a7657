"""Support sets take memory for the vectors they have, not for the budget they may never reach."""

import numpy as np
import pytest
from coverings import in_turn
from sklearn.datasets import make_moons

from kernelstream import BudgetClassifier, MultiKernelClassifier, budgets
from kernelstream.estimators.budget import base as _budget

X, y = make_moons(300, noise=0.3, random_state=0)
PARTS = {"projectron_pp": {"update": "perceptron"}, "spa": {"update": "ogd"}}


def model(strategy, budget, **more):
    parts = PARTS.get(strategy, {}) | more
    return BudgetClassifier(gamma=20.0, budget=budget, strategy=strategy, random_state=0, **parts)


@pytest.mark.parametrize("strategy", budgets.names())
def test_a_budget_of_a_hundred_thousand(strategy):
    """A Gram matrix of the whole budget would have 74 GiB."""
    est = model(strategy, 100_000)
    est.learn(X, y)
    size = sum(value.nbytes for value in est.state_.values() if isinstance(value, np.ndarray))
    assert size < 40e6
    assert len(est.state_["support"]) == 1024


@in_turn("strategy, engine", budgets.names(), ["python", "native"])
def test_growing_changes_nothing(strategy, engine, monkeypatch):
    """Arrays that were made longer on the way, and arrays that were long enough from the start."""
    pytest.importorskip("kernelstream._core")
    states = []
    for first in (1024, 4):
        monkeypatch.setattr(_budget, "FIRST_ROOM", first)
        est = model(strategy, 37, engine=engine)
        scores = np.concatenate([est.learn(X[i : i + 50], y[i : i + 50]) for i in range(0, 150, 50)])
        states.append((est.state_, scores, est.predict(X)))
    (a, scores_a, predicted_a), (b, scores_b, predicted_b) = states
    tolerance = 0.0 if engine == "python" else 1e-9  # blocks are cut elsewhere
    np.testing.assert_allclose(scores_a, scores_b, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(predicted_a, predicted_b)
    n = a["n_support"]
    assert n == b["n_support"] > 8
    assert len(b["support"]) == min(37, 4 * 2 ** int(np.ceil(np.log2((n + 1) / 4)))) or b["alpha"].shape[1] == 37
    np.testing.assert_allclose(b["alpha"][:, :n], a["alpha"][:, :n], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(b["support"][:n], a["support"][:n]) if strategy != "merge" else None


def test_the_length_does_not_depend_on_the_calls(monkeypatch):
    monkeypatch.setattr(_budget, "FIRST_ROOM", 4)
    lengths = []
    for size in (1, 7, 150):
        est = model("forgetron", 500)
        for i in range(0, 150, size):
            est.learn(X[i : min(i + size, 150)], y[i : min(i + size, 150)])
        shapes = {name: value.shape for name, value in est.state_.items() if hasattr(value, "shape")}
        lengths.append((est.n_support_, shapes))
    assert lengths[0] == lengths[1] == lengths[2]


def test_a_budget_that_is_raised():
    est = model("remove_random", 20)
    est.learn(X[:100], y[:100])
    assert est.n_support_ == 20
    est.set_params(budget=60)
    est.learn(X[100:], y[100:])
    assert 20 < est.n_support_ <= 60


def test_learners_that_share_a_pool(monkeypatch):
    """Members that are still growing learn on their own; the numbers are the same."""
    found = []
    for first in (1024, 4):
        monkeypatch.setattr(_budget, "FIRST_ROOM", first)
        learners = [BudgetClassifier(gamma=g, budget=30, strategy="remove_random") for g in (1.0, 20.0)]
        whole = MultiKernelClassifier(learners, random_state=0)
        found.append(np.concatenate([whole.learn(X[i : i + 40], y[i : i + 40]) for i in range(0, 200, 40)]))
        assert max(state["n_support"] for state in whole._state["members"]) == 30
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)
