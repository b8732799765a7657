"""How rows are cut into calls does not matter, in any recipe: docs/architecture.md says what is promised.

With the python engine models and scores are the same bits; with the native engine no number differs by more than 1e-12
of the largest of its entry. Rows of weight 0 and calls without rows are as good as absent. What is done with a model
between two calls does not matter either: saved and loaded, pickled, copied, without what it has derived from its state,
or asked for forecasts, it goes on to the same bits, in both engines and precisions.
"""

import copy
import pickle
import zlib
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from recipes import first_of_each_class
from reloaded import reloaded

from kernelstream import zoo
from kernelstream.engine import has_native
from kernelstream.testing.streaming import assert_same_scores, assert_same_state

pytestmark = [
    pytest.mark.usefixtures("short_searches"),
    pytest.mark.filterwarnings("ignore:.* has not converged"),  # a few passes are enough to be copied
]

TOLERANCE = {"python": 0.0, "native": 1e-12}
LASSO = {"lam": 0.05}  # with less of it a pass over the cells in Python takes seconds
RECIPES = [(name, task) for name in zoo.names() for task in zoo.get(name).tasks]
FIRST = first_of_each_class(zoo.names())


def data(n, task, rng):
    X = rng.normal(size=(n, 4))
    if task == "binary":
        return X, (X[:, 0] * X[:, 1] > 0).astype(int)
    if task == "multiclass":  # the classes appear one after the other
        return X, np.minimum(np.digitize(X[:, 0], [-0.7, 0.0, 0.7]), np.arange(n) // (n // 8))
    return X, None if task == "novelty" else np.sin(2 * X[:, 0]) + X[:, 1]


def learn(est, X, y, weight, cut):
    extra = {} if weight is None else {"sample_weight": weight[cut]}
    return est.learn(X[cut], **extra) if y is None else est.learn(X[cut], y[cut], **extra)


def random_cuts(n, rng):
    """Parts of n rows; some are empty, some have a single row."""
    places = np.sort(rng.integers(0, n + 1, rng.integers(1, 9)))
    places = np.concatenate([[0], places, rng.choice(places, 2), rng.choice(places, 2) + 1, [n]])
    places = np.sort(np.minimum(places, n))
    return [slice(int(a), int(b)) for a, b in pairwise(places)]


# ---------------------------------------------------------------- between two calls
def without_caches(model):
    model.state_ = dict(model.state_)
    return model


def that_was_copied(model):
    reloaded(model), pickle.dumps(model), copy.deepcopy(model)
    return model


def asked(model):
    forecasts(model, np.ones((2, 4)))
    return model


WAYS = [reloaded, lambda est: pickle.loads(pickle.dumps(est)), copy.deepcopy, without_caches, that_was_copied, asked]


def forecasts(model, X):
    """Everything that can be asked of a model about rows."""
    methods = ("predict", "decision_function", "predict_proba", "score_samples")
    return {ask: getattr(model, ask)(X) for ask in methods if hasattr(model, ask)}


def assert_same(model, state, told, X, what):
    assert_same_state(model.state_, state, 0.0, what)
    for ask, expected in told.items():
        np.testing.assert_array_equal(getattr(model, ask)(X), expected, err_msg=f"{what}: {ask}")


def check_between_calls(plain, expected, other, X, y, weight, cuts, rng, what):
    """The other model learns the same, and after a call something is done with it, by lot."""
    for cut, scores in zip(cuts, expected, strict=True):
        np.testing.assert_array_equal(learn(other, X, y, weight, cut), scores, err_msg=what)
        if 0 < cut.stop < X.shape[0] and (weight is None or weight[: cut.stop].any()):
            other = WAYS[rng.integers(len(WAYS))](other)
    assert_same(other, plain.state_, forecasts(plain, X), X, what)


def check_after_fit(est, X, y, what):
    """For what learns all rows at once."""
    est.fit(X, y)
    state, told = copy.deepcopy(est.state_), forecasts(est, X)
    for way in WAYS:
        assert_same(way(est), state, told, X, f"{what}: {way}")


def check(name, task, engine, sparse, weighted, n, rng, between=True, **sizes):
    """The law for one recipe; without ``between``, nothing is done with the model between two calls."""
    make = lambda: zoo.make(name, task=task, random_state=0, engine=engine, **sizes)  # noqa: E731
    X, y = data(n, task, rng)
    if sparse:
        X = sp.csr_array(np.where(np.abs(X) > 0.4, X, 0.0))
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n, p=[0.3, 0.2, 0.3, 0.2]) if weighted else None
    narrow = X.astype(np.float32) if rng.random() < 0.5 else X
    cuts = random_cuts(n, rng)
    what = f"{name}, {task}, {engine}, sparse={sparse}, weighted={weighted}, cut at {[cut.stop for cut in cuts]}"
    if not hasattr(make(), "learn"):
        return check_after_fit(make(), narrow, y, f"{what}, {narrow.dtype}")
    tolerance = TOLERANCE[engine]
    est, split = make(), make()
    whole = learn(est, X, y, weight, slice(0, n))
    parts = [learn(split, X, y, weight, cut) for cut in cuts]
    assert_same_state(split.state_, est.state_, tolerance, what)
    whole_form = [part for part in parts if part.shape[1:] == whole.shape[1:]]
    if len(whole_form) == len(parts):
        assert_same_scores(np.concatenate(parts), whole, tolerance, what)
    if between and narrow is not X:
        split = make()
        parts = [learn(split, narrow, y, weight, cut) for cut in cuts]
    if between:
        what_then = f"{what}, {narrow.dtype}, between calls"
        check_between_calls(split, parts, make(), narrow, y, weight, cuts, rng, what_then)
    if weighted:
        counted, without = weight > 0, make()
        learn(without, X[counted], None if y is None else y[counted], weight[counted], slice(0, n))
        assert_same_state(without.state_, est.state_, tolerance, f"{what}: without the rows of weight 0")


ENGINES = ["python", "native"] if has_native() else ["python"]


@pytest.mark.parametrize("name", zoo.names())
def test_random_cuts(name):
    """Every recipe once; task, engine and kind of rows by lot. The slow test takes them all.

    The first recipe of each class is also saved, copied and asked between two calls.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    tasks, sizes = zoo.get(name).tasks, {}
    engine, sparse = ENGINES[rng.integers(len(ENGINES))], rng.random() < 0.5
    if name.startswith("doubly"):  # batches that are full now and then, and nothing to choose
        sizes = {"batch_size": 8, "block_size": 8, "gamma": 0.5}
        sizes |= {"noise": 0.1} if name == "doubly_gp" else {"eta": 0.5}
        sizes |= {"lam": 1e-3} if "lam" in zoo.get(name).parameters else {}
    if name == "random_binning_lasso":
        sizes = LASSO
    if name == "random_binning_rcd":
        sizes = LASSO | {"n_components": 8}
    if name == "gp_operator":
        sizes = {"iterations": 8}
    if name.startswith("omkl"):  # many learners: python would take long
        engine = ENGINES[-1]
    rows = 32 if name.startswith("doubly") else 40  # every row of theirs draws the features of all former batches again
    check(name, tasks[rng.integers(len(tasks))], engine, sparse, True, rows, rng, name in FIRST, **sizes)


@pytest.mark.slow
@pytest.mark.parametrize("name, task", RECIPES, ids=lambda value: value)
def test_random_cuts_everywhere(name, task):
    sizes = {"batch_size": 16, "block_size": 16} if name.startswith("doubly") else {}
    sizes = LASSO if name in ("random_binning_lasso", "random_binning_rcd") else sizes
    for engine, sparse, weighted in product(ENGINES, [False, True], [False, True]):
        rng = np.random.default_rng(zlib.crc32(f"{name} {task}".encode()))
        for _ in range(3 if hasattr(zoo.make(name, task=task), "learn") else 1 - weighted):
            check(name, task, engine, sparse, weighted, 180, rng, **sizes)


@pytest.mark.parametrize("name", first_of_each_class(name for name in zoo.names() if not name.startswith("doubly")))
def test_rows_of_weight_0_change_nothing(name):
    """Not after row counts at which a learner looks back either: the end of the warm-up, powers of two."""
    task = zoo.get(name).tasks[-1]
    est = zoo.make(name, task=task, random_state=0)
    if not hasattr(est, "learn"):
        pytest.skip("learns all rows at once")
    X, y = data(257, task, np.random.default_rng(0))
    for start, stop in pairwise([0, 1, 64, 100, 128, 256]):
        learn(est, X, y, None, slice(start, stop))
        before = copy.deepcopy(est.state_)
        learn(est, X[-3:], None if y is None else y[-3:], np.zeros(3), slice(None))
        assert_same_state(est.state_, before, 0.0, f"{name} after {stop} rows")
