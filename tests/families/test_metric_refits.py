"""Solutions of a window that are computed beside the rows: nobody can tell by whom, when, or in how many calls."""

import copy
import itertools
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from forked import in_child
from reloaded import reloaded

import kernelstream as ks
from kernelstream import engine, settings
from kernelstream.estimators import _metric_refit, metric_window
from kernelstream.testing.streaming import assert_same_state

ENGINES = ["python", "native"] if engine.has_native() else ["python"]
ROOM = 200
rng = np.random.default_rng(5)
X = rng.normal(size=(420, 4))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.digitize(NUMBERS, [-0.7, 0.7])
BEGUN, TAKEN = (
    256,
    256 + ROOM // _metric_refit.LATER,
)  # rows up to which a solution goes, and after which it takes effect
AT = (BEGUN - 1, BEGUN, BEGUN + 1, BEGUN + 3, TAKEN - 1, TAKEN, TAKEN + 1)


def make(y, **parameters):
    cls = ks.MetricWindowRegressor if y is NUMBERS else ks.MetricWindowClassifier
    return cls(ROOM, random_state=0, **parameters)


def learned(y, cuts=(), between=lambda model: model, n=420, **parameters):
    """A model of n rows, with which something is done between its calls."""
    model = make(y, **parameters)
    for start, stop in itertools.pairwise([0, *cuts, n]):
        model = between(model) if start else model
        model.partial_fit(X[start:stop], y[start:stop], **({} if y is NUMBERS else {"classes": [0, 1, 2]}))
    return model


def test_when_solutions_are_begun_and_take_effect():
    stops, t = [], 0
    while t < 2000:
        t = _metric_refit.schedule(t, 1024).stop
        stops.append(t)
    early = [1, 2, 4, 8, 16, 32, 64, 128, 136, 160, 161, 192, 193, 224, 225, 256, 272]
    assert stops[: len(early)] == early
    assert stops[-6:] == [774, 896, 903, 1024, 1024 + 64, 2048]
    for room, t in itertools.product((1, 50, 150, 1024, 8192), range(1, 20_000)):
        n, _, pending, stop = _metric_refit.schedule(t, room)
        assert n <= t < stop
        assert _metric_refit.schedule(stop, room).n == (n if pending else stop)
        assert min(n, room) + pending * (stop - n) <= _metric_refit.places(room)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("y", [NUMBERS, LABELS], ids=["numbers", "labels"])
def test_the_thread_does_not_change_a_bit(y, name):
    cuts = [100, *AT, 300]
    with settings.using(background=0):
        alone = learned(y, cuts, engine=name)
    assert_same_state(learned(y, cuts, engine=name).state_, alone.state_, 0.0, name)
    whole = learned(y, engine=name)
    assert_same_state(whole.state_, alone.state_, 0.0 if name == "python" else 1e-12, name)


@pytest.mark.parametrize("y", [NUMBERS, LABELS], ids=["numbers", "labels"])
def test_a_solution_is_of_the_rows_before_it_was_begun(y):
    """Computed by hand from the first rows, and from a model that has seen no more than these."""
    model = learned(y, n=TAKEN)
    other = learned(y, n=BEGUN)
    before = other.state_["alpha"].copy()
    assert np.array_equal(before, learned(y, n=TAKEN - 1).state_["alpha"])  # it has no effect yet
    found = _metric_refit.solution(dict(other.state_), BEGUN, engine.get("auto"), y is NUMBERS)
    assert set(found) < set(model.state_)
    for name, value in found.items():
        np.testing.assert_array_equal(model.state_[name], value, err_msg=name)
    mean = np.average(X[BEGUN - ROOM : BEGUN], axis=0)  # of the window as it was, not as it is
    np.testing.assert_allclose(model.state_["middle"], mean, rtol=1e-12)


def forgotten(model):
    model.state_ = dict(model.state_)
    return model


WAYS = [reloaded, lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy, forgotten]


@pytest.mark.parametrize("way", WAYS, ids=["file", "pickle", "copy", "state"])
@pytest.mark.parametrize("y", [NUMBERS, LABELS], ids=["numbers", "labels"])
def test_a_model_that_is_taken_over_begins_again_what_it_waits_for(y, way):
    expected = learned(y, AT)
    assert_same_state(learned(y, AT, way).state_, expected.state_, 0.0, "taken over at every call")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("at", [BEGUN, BEGUN + 3])
def test_a_process_that_has_forked_begins_again(at):
    expected = learned(NUMBERS, [at]).state_["alpha"]
    model = learned(NUMBERS, n=at)

    def go_on():
        return repr(model.partial_fit(X[at:], NUMBERS[at:]).state_["alpha"].tolist())

    assert in_child(go_on) == repr(expected.tolist())
    assert go_on() == repr(expected.tolist())


def test_a_call_that_fails_takes_nothing_with_it(monkeypatch):
    """A solution that was begun in it, one that took effect in it, and one that was on its way before."""
    expected = learned(NUMBERS, [200, BEGUN + 3]).state_
    keep, limit = metric_window.MetricWindow._keep, [0]

    def failing(self, state, *rows):
        keep(self, state, *rows)
        if state["t"] >= limit[0] > 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(metric_window.MetricWindow, "_keep", failing)

    def disturbed(model):
        before = copy.deepcopy(model.state_)
        for limit[0] in (BEGUN, TAKEN, TAKEN + 2):
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(X[:220], NUMBERS[:220])
            assert_same_state(model.state_, before, 0.0, "after the failure")
        limit[0] = 0
        return model

    assert_same_state(learned(NUMBERS, [200, BEGUN + 3], disturbed).state_, expected, 0.0, "later")


@pytest.mark.parametrize("background", [0, 1])
def test_an_error_of_a_solution_is_one_of_the_row_that_needs_it(monkeypatch, background):
    expected, model = learned(NUMBERS, [TAKEN - 1]).state_, learned(NUMBERS, n=BEGUN - 5)
    solution = _metric_refit.solution

    def failing(*given):
        raise MemoryError("no room")

    with settings.using(background=background):
        monkeypatch.setattr(_metric_refit, "solution", failing)
        model.partial_fit(X[BEGUN - 5 : TAKEN - 1], NUMBERS[BEGUN - 5 : TAKEN - 1])
        before = copy.deepcopy(model.state_)
        with pytest.raises(MemoryError, match="no room"):
            model.partial_fit(X[TAKEN - 1 :], NUMBERS[TAKEN - 1 :])
        assert_same_state(model.state_, before, 0.0, "after the error")
        monkeypatch.setattr(_metric_refit, "solution", solution)
        model.partial_fit(X[TAKEN - 1 :], NUMBERS[TAKEN - 1 :])
    assert_same_state(model.state_, expected, 1e-12, "later")


def test_labels_and_columns_may_come_while_a_solution_is_on_its_way():
    order = np.argsort(LABELS == 2, kind="stable")  # the third label comes last
    first = int(np.argmax(LABELS[order] == 2))
    shift = first - BEGUN - 3  # it comes three rows after a solution was begun
    rows, y = X[order][shift:], LABELS[order][shift:]
    models = [ks.MetricWindowClassifier(ROOM, random_state=0) for _ in range(2)]
    with settings.using(background=0):
        models[0].partial_fit(rows[:TAKEN], y[:TAKEN])
    for i in range(0, TAKEN, 7):
        models[1].partial_fit(rows[i : min(i + 7, TAKEN)], y[i : min(i + 7, TAKEN)])
    assert_same_state(models[1].state_, models[0].state_, 1e-12, "a label")
    assert models[0].state_["alpha"].shape[1] == 3
    for model in models:
        model.partial_fit(rows[:BEGUN], y[:BEGUN])
    with settings.using(background=0):
        wide = [np.c_[rows[:60], rows[:60, :1]] for _ in range(2)]
        for model in models:
            model.widen(5)
            model.partial_fit(wide[0], y[:60])
    assert_same_state(models[1].state_, models[0].state_, 1e-12, "a column")


def test_the_default_learner_learns_the_same_with_and_without_the_thread():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 5))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1]
    models = []
    for background in (0, 1):
        with settings.using(background=background):
            model = ks.KernelRegressor(random_state=0)
            for cut in (slice(0, 300), *(slice(i, i + 1) for i in range(300, 345)), slice(345, 600), slice(600, 700)):
                model.learn(rows[cut], y[cut])
            models.append(model)
    assert_same_state(models[0].state_, models[1].state_, 0.0, "with and without")


def test_a_process_ends_while_a_solution_is_on_its_way():
    script = """
import numpy as np
import kernelstream as ks
X = np.random.default_rng(0).normal(size=(1030, 6))
model = ks.MetricWindowRegressor(random_state=0).partial_fit(X, X[:, 0])
print(model._learner.derived["refit"].future is not None)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n", "")
