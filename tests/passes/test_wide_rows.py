"""Sparse rows of very many columns: the models of the python engine, and nothing done for columns that are zero."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream import FeatureClassifier, engine, zoo
from kernelstream.updates import OGD, AdaGrad, Averaged

pytestmark = pytest.mark.skipif(not engine.usable("native"), reason="needs the compiled core")


def rows(n, d, seed=0, dtype=np.float64):
    """n rows with ten entries in common columns and some in rare ones, and labels that follow the common ones."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=8 / d, format="csr", rng=rng, dtype=dtype)
    X = sp.hstack([sp.csr_array(rng.standard_normal((n, 10)).astype(dtype)), X[:, 10:]], format="csr")
    return X, (X[:, [0]].toarray().ravel() * X[:, [1]].toarray().ravel() > 0).astype(int)


def learned(make, X, y):
    """Scores before each row, in calls of several lengths, and a model that has learned them."""
    model = make()
    cuts = [0, 1, 70, 250, X.shape[0]]
    parts = [model.learn(X[a:b], y[a:b], classes=[0, 1]) for a, b in pairwise(cuts)]
    return np.concatenate(parts), model


@pytest.mark.parametrize(
    "update",
    [AdaGrad(), AdaGrad(forgetting=0.9), AdaGrad(0.1, 1e-3), OGD(0.5), Averaged(OGD(0.5))],
    ids=["adagrad", "forgets", "forgets at once", "ogd", "average"],
)
def test_linear_models(update):
    X, y = rows(400, 600)
    weight = np.where(np.arange(400) % 7 == 0, 0.0, 1.5)
    truth, model = learned(lambda: FeatureClassifier("raw", update=update, engine="python"), X, y)
    scores, native = learned(lambda: FeatureClassifier("raw", update=update, engine="native"), X, y)
    np.testing.assert_allclose(scores, truth, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(native.decision_function(X), model.decision_function(X), rtol=1e-9, atol=1e-11)
    for one in (model, native):
        one.learn(X, y, sample_weight=weight)
    np.testing.assert_allclose(native.state_["w"], model.state_["w"], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["rbp", "forgetron", "projectron", "bsgd_merge", "bogd", "perceptron", "nogd"])
def test_kernel_expansions(name):
    if name not in zoo.names():
        pytest.skip("no such recipe")
    X, y = rows(300, 5000)
    params = {"gamma": 0.05, "random_state": 0} | ({} if name == "perceptron" else {"budget": 20})
    truth, model = learned(lambda: zoo.make(name, engine="python", **params), X, y)
    scores, native = learned(lambda: zoo.make(name, engine="native", **params), X, y)
    np.testing.assert_allclose(scores, truth, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(native.decision_function(X), model.decision_function(X), rtol=1e-7, atol=1e-9)


def test_a_call_that_fails_is_taken_back():
    """Support vectors are written to by columns, and so they are put back."""
    X, y = rows(300, 5000)
    model = zoo.make("rbp", gamma=0.05, budget=20, random_state=0, engine="native")
    model.learn(X[:200], y[:200], classes=[0, 1])
    before, scores = model.state_["support"].copy(), model.decision_function(X)
    broken = model._ops.budget_pass
    calls = []

    class Ops:
        def __getattr__(self, name):
            return getattr(ops, name)

        def budget_pass(self, *args):
            calls.append(broken(*args))
            raise KeyboardInterrupt

    ops, owner = model._ops, type(model)
    kept = owner.__dict__.get("_ops")
    owner._ops = Ops()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.learn(X[200:], y[200:])
    finally:
        if kept is None:
            del owner._ops
        else:
            owner._ops = kept
    assert calls
    np.testing.assert_array_equal(model.state_["support"], before)
    np.testing.assert_array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize("make", [
    lambda: FeatureClassifier("raw", engine="native"),
    lambda: zoo.make("rbp", gamma=0.05, budget=20, random_state=0, engine="native"),
], ids=["linear", "rbp"])  # fmt: skip
def test_no_array_of_rows_by_columns(make):
    """A call of a warm model makes nothing that grows like rows × columns or vectors × columns."""
    d = 100_000
    X, y = rows(512, d, dtype=np.float32)
    model = make()
    for part in (slice(0, 128), slice(128, 256)):
        model.learn(X[part], y[part], classes=[0, 1])
    model.decision_function(X[:64])
    tracemalloc.start()
    try:
        model.learn(X[256:], y[256:])
        model.decision_function(X[256:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * d * 4  # five vectors; a block of rows would be 128
