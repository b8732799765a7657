"""Models whose arrays cannot be written to, as joblib maps them into its processes, learn like any other."""

import copy
import pickle

import numpy as np
import pytest
from recipes import first_of_each_class
from test_interrupts import RECIPES, TARGETS, X, difference, learn

import kernelstream as ks
from kernelstream import zoo
from kernelstream.state.nested import flatten
from kernelstream.trust import Calibrated, Delayed, Explained, WithIntervals

IN_PYTHON = {(name, zoo.get(name).tasks[-1]) for name in first_of_each_class(zoo.names())}


def frozen(model):
    """A copy of a model none of whose arrays can be written to."""
    buffers = []
    content = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    made = pickle.loads(content, buffers=[bytes(buffer.raw()) for buffer in buffers])
    state = flatten(getattr(made, "_state", {}))
    arrays = [value for value in state.values() if isinstance(value, np.ndarray) and value.size]
    assert not any(array.flags.writeable for array in arrays if array.dtype.kind in "fiu")
    return made


def check_learns_as_ever(est, target, first=60):
    plain = copy.deepcopy(est)
    learn(plain, X, target, slice(0, first))
    made = frozen(plain)
    before = copy.deepcopy(flatten(made.state_))
    ask = copy.deepcopy(plain)
    # what many kernels share is written to by compiled passes: each learner of a read-only model scores alone
    rounding = 1e-12 if isinstance(est, ks.MultiKernelRegressor) else 0.0
    np.testing.assert_allclose(made.predict(X[:40]), ask.predict(X[:40]), rtol=rounding, atol=rounding)
    alone = np.concatenate([made.predict(X[i : i + 1]) for i in range(8)])
    if isinstance(est, (ks.KernelClassifier, ks.KernelRegressor)):
        np.testing.assert_array_equal(alone, made.predict(X[:40])[:8])
    for cut in (slice(first, first + 1), slice(first + 1, 110), slice(110, 150)):
        for model in (plain, made):
            learn(model, X, target, cut)
    assert difference(plain.state_, made.state_) is None
    assert difference(before, made.state_) is not None
    return made


@pytest.mark.parametrize(
    "name, task, engine",
    [
        *((name, task, "native") for name, task in RECIPES),
        # in the python engine, which is slow, a recipe of each class stands for the others
        *(
            pytest.param(name, task, "python", marks=() if (name, task) in IN_PYTHON else pytest.mark.slow)
            for name, task in RECIPES
        ),
    ],
)
def test_every_recipe(name, task, engine):
    sizes = {"batch_size": 8, "block_size": 8, "gamma": 0.5} if name.startswith("doubly") else {}
    if sizes and name not in ("doubly_gp", "doubly_svm", "doubly_ridge"):
        sizes |= {"eta": 0.5}
    est = zoo.make(name, task=task, random_state=0, engine=engine, **sizes)
    if not hasattr(est, "learn"):
        pytest.skip("learns all rows at once")
    check_learns_as_ever(est, TARGETS[task])


@pytest.mark.parametrize(
    "est, task",
    [
        (ks.KernelClassifier(size="small", random_state=0), "multiclass"),
        (ks.KernelRegressor(size="medium", random_state=0), "regression"),
        (Calibrated(ks.FeatureClassifier(random_state=0)), "multiclass"),
        (WithIntervals(ks.OnlineRidge(random_state=0)), "regression"),
        (Explained(ks.FeatureRegressor(random_state=0)), "regression"),
        (Delayed(ks.FeatureRegressor(random_state=0)), "regression"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_wholes(est, task):
    check_learns_as_ever(est, TARGETS[task])


def test_parallel_models_in_processes(tmp_path):
    """What joblib does with arrays above a size, here of every size: it maps them."""
    joblib = pytest.importorskip("joblib")
    model = ks.KernelRegressor(size="small", random_state=0)
    model.learn(X[:100], TARGETS["regression"][:100])
    joblib.dump(model, tmp_path / "model.pkl")
    mapped = joblib.load(tmp_path / "model.pkl", mmap_mode="r")
    for one in (model, mapped):
        one.learn(X[100:101], TARGETS["regression"][100:101])
        one.learn(X[101:], TARGETS["regression"][101:])
    assert difference(model.state_, mapped.state_) is None
