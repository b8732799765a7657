"""BLAS has one thread inside a call, whatever it has outside: models are the same to the last bit."""

import importlib.util
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits
from waiting import run_until

import kernelstream as ks
from kernelstream import engine, settings
from kernelstream.state import blas_threads
from kernelstream.state.blas_threads import one_blas_thread
from kernelstream.testing.streaming import assert_same_state

LIBRARIES = blas_threads.libraries()
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="the number of BLAS threads cannot be set here")


def counts():
    """How many threads every BLAS library may use now."""
    return [library.get() for library in LIBRARIES]


@pytest.fixture
def several():
    """Four BLAS threads, and as many as before afterwards."""
    before = counts()
    for library in LIBRARIES:
        library.set(4)
    if min(counts()) < 2:
        pytest.skip("this BLAS has one thread")
    yield counts()
    for library, count in zip(LIBRARIES, before, strict=True):
        library.set(count)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * rng.normal(size=n)


def test_all_libraries_are_found():
    assert len(LIBRARIES) == len(ThreadpoolController().select(user_api="blas").lib_controllers)


class Seen(ks.losses.Loss):
    """The squared loss, which keeps an eye on the BLAS threads."""

    name, kind = "seen", "regression"
    counts: list = []

    def _value(self, y, f, xp):
        return (y - f) ** 2

    def _gradient(self, y, f, xp):
        self.counts.append(counts())
        return 2 * (f - y)


def test_one_inside_a_call_and_as_many_as_before_outside(several):
    X, y = rows(40)
    model = ks.FeatureRegressor(loss=Seen(), random_state=0, engine="python")
    model.learn(X, y)
    assert Seen.counts and all(set(seen) == {1} for seen in Seen.counts)
    assert counts() == several
    with pytest.raises(ValueError, match="NaN"):
        model.learn(X * np.nan, y)
    assert counts() == several


@pytest.mark.parametrize("made", ["in use", "python"])
def test_the_last_of_several_threads_puts_the_numbers_back(made, several):
    one = one_blas_thread if made == "in use" else python_twin()
    inside, done, seen = threading.Event(), threading.Event(), []

    def stay():
        with one, one:
            inside.set()
            done.wait(10)
            seen.append(counts())

    other = threading.Thread(target=stay)
    other.start()
    assert inside.wait(10)
    with one:
        assert set(counts()) == {1}
    assert set(counts()) == {1}  # the other thread is still inside
    done.set()
    other.join()
    assert set(seen[0]) == {1}
    assert counts() == several


@pytest.mark.parametrize("made", ["in use", "python"])
def test_a_number_that_the_user_sets_meanwhile_stays(made, several):
    one = one_blas_thread if made == "in use" else python_twin()
    with one:
        for library in LIBRARIES:
            library.set(2)
    assert set(counts()) == {2}


def python_twin():
    """The class that stands in where the compiled core is missing."""
    name = "kernelstream.state.blas_threads_without_the_core"
    spec = importlib.util.spec_from_file_location(name, blas_threads.__file__)
    module = importlib.util.module_from_spec(spec)
    core = sys.modules.get("kernelstream._core")
    sys.modules["kernelstream._core"] = None
    try:
        spec.loader.exec_module(module)
    finally:
        if core is None:
            del sys.modules["kernelstream._core"]
        else:
            sys.modules["kernelstream._core"] = core
    return module.one_blas_thread


def learned(case):
    """The state of a model and some of its answers, as bytes."""
    kind, size, how = case
    X, y = rows(1500 if how == "fit" else 900)
    if kind is ks.KernelClassifier:
        y = y > 0
    model = kind(size=size, random_state=0)
    if how == "fit":
        model.fit(X, y)
    else:
        for start in range(0, len(X), 300):
            model.learn(X[start : start + 300], y[start : start + 300])
    return pickle.dumps((model.state_, model.predict(X[:50])))


CASES = [
    (ks.KernelRegressor, "small", "learn"),
    (ks.KernelClassifier, "small", "fit"),
    (ks.KernelClassifier, "medium", "learn"),
    (ks.KernelRegressor, "medium", "fit"),
]


def same(found, truth):
    """Whether two states, and answers, are the same to the last bit."""
    (state, answers), (other, others) = pickle.loads(found), pickle.loads(truth)
    assert_same_state(state, other, 0.0, "")
    np.testing.assert_array_equal(answers, others)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join((case[0].__name__, *case[1:])))
@pytest.mark.usefixtures("short_searches")
def test_the_model_does_not_depend_on_the_threads(case, several):
    with settings.using(threads=1), threadpool_limits(1):
        truth = learned(case)
    for count in (2, 4) if case[2] == "learn" else (4,):
        with threadpool_limits(count), settings.using(threads=2):
            same(learned(case), truth)
    found = []
    with settings.using(threads=2):
        worker = threading.Thread(target=lambda: found.append(learned(case)))
        worker.start()
        worker.join()
    same(found[0], truth)
    run_until(lambda: counts() == several)  # a solution may still be computed beside the rows


@pytest.mark.skipif(not engine.has_native(), reason="takes long without the compiled core")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_nor_on_the_process(method, several):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    case = (ks.KernelRegressor, "medium", "learn")
    truth = learned(case)
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        same(pool.submit(learned, case).result(timeout=300), truth)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_process_forked_while_another_thread_is_inside_has_its_threads_back(several):
    inside, done = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread:
            inside.set()
            done.wait(30)

    other = threading.Thread(target=stay)
    other.start()
    try:
        assert inside.wait(10)
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            assert pool.submit(counts).result(timeout=60) == several
            assert pool.submit(counts_inside).result(timeout=60) == [1] * len(several)
            assert pool.submit(counts).result(timeout=60) == several
    finally:
        done.set()
        other.join()


def counts_inside():
    with one_blas_thread:
        return counts()
