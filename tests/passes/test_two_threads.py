"""A second thread changes nothing: the state is the same to the last bit, whatever share of the work it took."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import engine, settings, zoo
from kernelstream.testing.streaming import assert_same_state

pytestmark = [
    pytest.mark.skipif(not engine.has_native(), reason="needs the compiled core"),
    pytest.mark.usefixtures("short_searches"),
]

LEARNERS = {
    "fogd": lambda: zoo.make("fogd", n_components=300, gamma=0.1, random_state=0),
    "nogd": lambda: zoo.make("nogd", budget=100, gamma=0.1, random_state=0),
    "default learner": lambda: ks.KernelClassifier(size="small", random_state=0),
    "default learner, numbers": lambda: ks.KernelRegressor(size="small", random_state=0),
    "cells": lambda: ks.CellsClassifier(random_state=0),
    "cells, hashed": lambda: ks.CellsClassifier(grids="hashed", standardize=True, random_state=0),
    "cells, numbers": lambda: ks.CellsRegressor(random_state=0),
}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(float)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_state_does_not_depend_on_the_threads(name):
    X, y = rows(3000)
    states = []
    for count in (1, 2):
        with settings.using(threads=count):
            model = LEARNERS[name]()
            for start in range(0, 3000, 1000):
                model.learn(X[start : start + 1000], y[start : start + 1000])
        states.append(model.state_)
    assert_same_state(*states, 0.0, name)


@pytest.mark.parametrize("name", LEARNERS)
def test_nor_do_the_answers(name):
    X, y = rows(2500)
    model = LEARNERS[name]().fit(X, y)
    found = []
    for count in (1, 2):
        with settings.using(threads=count):
            found.append(model.predict(X))
    assert np.array_equal(*found)


def test_a_cell_outside_the_table_is_refused():
    X, y = rows(1000)
    model = ks.CellsClassifier(random_state=0).fit(X, y)
    state = model.state_ | {"tables": model.state_["tables"][:100].copy()}
    index = model._learner._index(model._state, X)
    with pytest.raises(ValueError, match="outside the table"):
        engine.get("native").cells_pass(index, 2 * y - 1, None, state, (False, 0.7, 1.0))


def test_callers_on_many_threads_learn_what_one_does():
    """The second thread works for one caller at a time; the others do without."""
    X, y = rows(2000)

    def learn(name):
        return LEARNERS[name]().learn(X, y)

    names = ["fogd", "cells, hashed", "nogd", "cells"] * 2
    truth = [learn(name) for name in names]
    with settings.using(threads=2), ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(learn, names), truth, strict=True):
            assert np.array_equal(found, expected)
