"""Sparse rows of very many columns: the models of the python engine, and nothing done for columns that are zero."""

import copy
import time
import tracemalloc
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream import FeatureClassifier, KernelClassifier, engine, features, zoo
from kernelstream.kernels import Gaussian
from kernelstream.passes.linear.host import LARGE
from kernelstream.passes.linear.python import folded
from kernelstream.testing.streaming import assert_same_state
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


@pytest.mark.parametrize("update", [AdaGrad(), OGD(0.5)], ids=["adagrad", "ogd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_of_few_entries_on_fourier_features(update, dtype):
    X, y = rows(400, 300, dtype=dtype)
    fourier = features.RandomFourier(gamma=0.05, n_components=600, random_state=3)
    make = partial(FeatureClassifier, fourier, update=update)
    truth, _ = learned(lambda: make(engine="python"), X.toarray(), y)
    scores, _ = learned(lambda: make(engine="native"), X.toarray(), y)
    np.testing.assert_allclose(scores, truth, rtol=0, atol=1e-9 if dtype == np.float64 else 1e-3)
    dense, sparse = (make(engine="native", standardize=False).learn(Z, y, classes=[0, 1]) for Z in (X.toarray(), X))
    np.testing.assert_array_equal(dense, sparse)  # in large calls they are the same work


@pytest.mark.parametrize(
    ("update", "n"),
    [(OGD(0.3), 4300), (OGD(0.5, lam=0.9), 200), (AdaGrad(0.1), 200)],  # 4096: the scales of so many are remembered
    ids=["plain", "shrinks", "diagonal"],
)
def test_the_mean_of_the_iterates(update, n):
    """Columns are brought up to date when a row has them: after the pass all are what the mean over the rows is."""
    X, y = rows(n, 70)
    one = FeatureClassifier("raw", update=update, engine="python")
    averaged = FeatureClassifier("raw", update=Averaged(update), engine="native")
    total = np.zeros(70)
    for i in range(60):
        one.learn(X[[i]], y[[i]], classes=[0, 1])
        total += one.state_["w"][0] * one.state_["scale"]
    averaged.learn(X[:1], y[:1], classes=[0, 1])
    averaged.learn(X[1:60], y[1:60])
    np.testing.assert_allclose(averaged.state_["w_mean"][0], total / 60, rtol=1e-9, atol=1e-12)
    slow = FeatureClassifier("raw", update=Averaged(update), engine="python")
    slow.learn(X[:60], y[:60], classes=[0, 1])
    for model in (averaged, slow):
        model.learn(X[60:], y[60:])
    np.testing.assert_allclose(averaged.state_["w_mean"], slow.state_["w_mean"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("update", ["auto", AdaGrad(0.1, 1e-3), OGD(0.5, lam=0.9)], ids=["auto", "forgets", "shrinks"])
@pytest.mark.parametrize("name", ["python", "native"])
def test_a_linear_model_takes_back_a_call_that_fails(name, update):
    """Weights are kept by the columns of a call, and all of them where all change."""
    X, y = rows(300, LARGE + 10, dtype=np.float32)
    model = FeatureClassifier("raw", update=update, engine=name)
    model.learn(X[:200], y[:200], classes=[0, 1])
    before = copy.deepcopy(model.state_)
    held = model._learner.held(model._state)
    linked = model._layers.linked
    follow = linked.follow

    def fails(*args):
        assert not np.array_equal(model._state["w"], before["w"])  # the rows were learned
        raise KeyboardInterrupt

    linked.follow, linked.ready = fails, None
    with pytest.raises(KeyboardInterrupt):
        model.learn(X[200:], y[200:], sample_weight=np.ones(100))
    linked.follow = follow
    assert held.wide
    assert_same_state(before, model.state_, 0.0, name)


@pytest.mark.parametrize("name", ["python", "native"])
@pytest.mark.parametrize("d", [600, LARGE + 10])
def test_weights_beyond_the_range_of_floats(name, d):
    X, y = rows(60, d, dtype=np.float32)
    model = FeatureClassifier("raw", update=OGD(1e37), engine=name)
    model.learn(X[:1], y[:1], classes=[0, 1])
    before = model.state_["w"].copy()
    large = sp.csr_array((X.data * 1e4, X.indices, X.indptr), shape=X.shape)
    with pytest.raises(ValueError, match="beyond the range of floats"):
        model.learn(large, y)
    np.testing.assert_array_equal(model.state_["w"], before)


def test_factors_of_the_squares():
    """Sparse calls fade sums of squares by a factor; dense rows and new classes take it into account."""
    X, _ = rows(240, 300)
    y = np.arange(240) % 3
    models = {
        name: FeatureClassifier("raw", update=AdaGrad(forgetting=0.9), engine=name) for name in ("python", "native")
    }
    for model in models.values():
        model.learn(X[:50], y[:50] % 2)
        assert 1e-6 <= model.state_["G_scale"][0] < 0.1
        model.learn(X[50:100].toarray(), y[50:100] % 2)
        model.learn(X[100:150], y[100:150])  # the third class
        model.widen(320)
        wider = sp.csr_array((X.data, X.indices, X.indptr), shape=(240, 320))
        model.learn(wider[150:200], y[150:200])
    states = [folded(dict(model.state_)) for model in models.values()]
    for key in ("w", "G"):
        np.testing.assert_allclose(states[1][key], states[0][key], rtol=1e-9, atol=1e-12, err_msg=key)


def test_narrow_models_learn_on_when_they_are_widened():
    """A model of few columns has no factors; one that grows gets them."""
    X, y = rows(200, 40)
    found = []
    for name in ("python", "native"):
        model = FeatureClassifier("raw", update=AdaGrad(forgetting=0.9), engine=name)
        model.learn(X[:100], y[:100], classes=[0, 1])
        assert "G_scale" not in model.state_
        model.widen(100)
        model.learn(sp.csr_array((X.data, X.indices, X.indptr), shape=(200, 100))[100:], y[100:])
        assert model.state_["G_scale"][0] < 1
        found.append(model.state_["w"])
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_of_wide_rows(dtype, index):
    """The formula, coordinate by coordinate; close rows far from the origin too."""
    from kernelstream import _core

    rng = np.random.default_rng(0)
    X = sp.random(40, 5000, density=0.004, format="csr", rng=rng, dtype=np.float64).toarray()
    X[:20, :3] = 300 + 0.1 * rng.standard_normal((20, 3))
    X[5] = 0
    X = X.astype(dtype)
    S = np.concatenate([X[10:30], np.zeros((1, 5000), dtype)])
    truth = np.exp(-0.7 * ((X[:, None].astype(float) - S[None]) ** 2).sum(axis=2))
    A = sp.csr_array(X)
    csr = A.data, A.indices.astype(index), A.indptr.astype(index)
    norms, sizes = np.empty(40, dtype), np.empty(21, dtype)
    _core.csr_norms(csr, 5000, norms)
    _core.row_norms(S, sizes)
    vectors = (_core.SparseSetSingle if dtype == np.float32 else _core.SparseSet)(21)
    vectors.read(S, np.arange(21))
    K = np.zeros((40, 30), dtype)
    vectors.gaussian(csr, 5000, norms, 0, sizes, 0.7, K[:, :21])
    tolerance = 3e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(K[:, :21], truth, rtol=0, atol=tolerance)
    assert not K[:, 21:].any()
    among, own, places = np.empty((40, 40), dtype), type(vectors)(40), np.arange(40)
    own.put(csr, 5000, places, places, None)
    own.gaussian(csr, 5000, norms, 0, norms, 0.7, among)
    exact = np.exp(-0.7 * ((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(among, exact, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["rbp", "bsgd_merge"])
def test_kernel_expansions_in_single_precision(name):
    X, y = rows(260, 5000, dtype=np.float32)
    params = {"gamma": 0.05, "random_state": 0, "budget": 20}
    truth, _ = learned(lambda: zoo.make(name, engine="python", **params), X, y)
    scores, _ = learned(lambda: zoo.make(name, engine="native", **params), X, y)
    np.testing.assert_allclose(scores, truth, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["rbp", "forgetron", "projectron", "bsgd_merge", "bogd", "perceptron", "nogd"])
def test_kernel_expansions(name):
    X, y = rows(150, 5000)
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
    learner, ops, calls = model._learner, model._learner.ops, []

    class Ops:
        def __getattr__(self, name):
            return getattr(ops, name)

        def budget_pass(self, *args):
            calls.append(ops.budget_pass(*args))
            raise KeyboardInterrupt

    learner.ops = Ops()
    with pytest.raises(KeyboardInterrupt):
        model.learn(X[200:], y[200:])
    learner.ops = ops
    assert calls
    np.testing.assert_array_equal(model.state_["support"], before)
    np.testing.assert_array_equal(model.decision_function(X), scores)


linear_and_rbp = pytest.mark.parametrize("make", [
    lambda: FeatureClassifier("raw", engine="native"),
    lambda: zoo.make("rbp", gamma=0.05, budget=20, random_state=0, engine="native"),
], ids=["linear", "rbp"])  # fmt: skip


@linear_and_rbp
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


@linear_and_rbp
def test_a_call_of_one_row_does_not_go_through_all_columns(make):
    """Its time is that of a model of 500 columns, not some milliseconds."""
    least = []
    for d in (5000, 3_000_000):
        X, y = rows(80, d, dtype=np.float32)
        model = make()
        model.learn(X[:40], y[:40], classes=[0, 1])
        spent = []
        for i in range(40, 80):
            row, label = X[[i]], y[[i]]
            start = time.perf_counter()
            model.learn(row, label)
            model.decision_function(row)
            spent.append(time.perf_counter() - start)
        least.append(min(spent))
    assert least[1] < 4 * least[0]


def test_single_rows_of_the_default_learner_see_squares_times_their_factor():
    """G and twice G with the factor one half are the same model, also in the pass of all members for single rows."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((330, 210))
    y = (X[:, :20].sum(axis=1) > 0).astype(int)
    model = KernelClassifier(size="small", random_state=0)
    model.learn(X[:300], y[:300], classes=[0, 1])
    other = copy.deepcopy(model)
    state = next(member._state for member in other.learners_ if "G_scale" in member._state)
    state["G"] *= 2
    state["G_scale"] *= 0.5
    for i in range(300, 330):
        a, b = (each.learn(X[i : i + 1], y[i : i + 1]) for each in (model, other))
        np.testing.assert_allclose(b, a, rtol=1e-12)
    assert (state["G_scale"] == 1).all()


@pytest.mark.parametrize("columns", [6, 6000])
def test_which_of_two_rows_is_the_support_vector_makes_no_difference(columns):
    """To the bit: whether a row meets a former one of its block or of a block before depends on the cuts."""
    from kernelstream.passes.expansion.native import BlockExpansion

    X = sp.random(60, 6, 0.6, "csr", rng=np.random.default_rng(0))
    X = sp.csr_matrix((X.data, X.indices * (columns // 6), X.indptr), (60, columns))
    state = {"support": np.zeros((60, columns)), "n_support": 0, "alpha": np.zeros((1, 60)), "diag": np.zeros(60)}
    expansion = BlockExpansion(Gaussian(0.7), state)
    rows = expansion.cut(X, slice(0, 60))
    among = expansion.among(rows).copy()
    expansion.put(rows, np.arange(60), state, 0)
    state["n_support"] = 60
    later = np.triu_indices(60, 1)
    np.testing.assert_array_equal(among[later], expansion.columns(rows, state).T[later])
