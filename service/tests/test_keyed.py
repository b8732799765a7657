"""A learner in bytes: what stream engines keep between two calls."""

import io
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelstream as ks
from kernelstream import model_io
from kernelstream.columns import Columns, make_stream
from kernelstream.evaluate import prequential
from kernelstream.trust import WithIntervals
from kernelstream_service import keyed
from kernelstream_service.keyed import KeyedLearner


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


def test_state_and_forecasts_are_those_of_learning(rows):
    X, y = rows
    learner, model = KeyedLearner(ks.FeatureRegressor(random_state=0)), ks.FeatureRegressor(random_state=0)
    state, first = learner.step(None, X[:200], y[:200])
    keyed._live.clear()  # another process
    state, later = learner.step(state, X[200:], y[200:])
    assert_array_equal(first.prediction, model.learn(X[:200], y[:200]))
    assert_array_equal(later.prediction, model.learn(X[200:], y[200:]))
    assert state == model_io.to_bytes(model, {"learned": 300, "problems": 0})


def test_a_model_kept_awake_goes_on_like_one_that_was_read(rows):
    X, y = rows
    learner, found = KeyedLearner(ks.KernelRegressor(size="small", random_state=0)), []
    for asleep in (False, True):
        state = None
        for part in range(0, 300, 100):
            if asleep:
                keyed._live.clear()
            state, _ = learner.step(state, X[part : part + 100], y[part : part + 100])
        found.append(state)
    assert found[0] == found[1]


def test_a_state_given_again_is_learned_again_from_where_it_was(rows):
    X, y = rows
    learner = KeyedLearner(ks.FeatureRegressor(random_state=0))
    before, _ = learner.step(None, X[:100], y[:100])
    after = [learner.step(before, X[100:], y[100:]) for _ in range(3)]  # an engine that repeats a batch
    assert after[0] == after[1] == after[2]


def test_rows_that_are_wrong_are_counted_and_change_nothing(rows):
    X, y = rows
    learner, model = KeyedLearner(ks.FeatureRegressor(random_state=0)), ks.FeatureRegressor(random_state=0)
    broken = X.copy()
    broken[[3, 150]] = np.nan, np.inf
    state, found = learner.step(None, broken, y)
    bad = [i for i, problem in enumerate(found.problem) if problem]
    assert bad == [3, 150] and learner.counts(state) == {"learned": 298, "problems": 2}
    good = np.delete(np.arange(300), bad)
    model.learn(X[good], y[good])
    here = model_io.load(io.BytesIO(state))
    assert_allclose(here.predict(X), model.predict(X), rtol=1e-11)
    assert all(value is None for value in np.array(found.prediction, object)[bad])


def test_rows_without_a_target_are_answered_by_the_model_before_the_call(rows):
    X, y = rows
    learner = KeyedLearner(ks.FeatureRegressor(random_state=0))
    state, nothing = learner.step(None, X[:2], [None, float("nan")])
    assert nothing.prediction == [None, None] and nothing.problem == [None, None]
    state, _ = learner.step(state, X[:200], y[:200])
    targets = [*y[200:290], *[None] * 10]
    expected = model_io.load(io.BytesIO(state)).predict(X[290:])
    state, found = learner.step(state, X[200:], targets)
    assert_array_equal(found.prediction[-10:], expected)
    assert learner.counts(state) == {"learned": 290, "problems": 0}


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_probabilities_are_those_of_prequential(rows, loss):
    X, y = rows[0], np.where(rows[1] > 1, "up", "down")
    model = ks.FeatureClassifier(loss=loss, random_state=0)
    _, found = KeyedLearner(model, probabilities=True).step(None, X, y)
    truth = np.array([table[label] for table, label in zip(found.probabilities, y)])
    result = prequential(model, X, y, block_size=300, metrics=["mistake_rate", "log_loss"])
    assert_allclose(-np.log(truth).mean(), result.log_loss, rtol=1e-9)
    assert_allclose(np.mean(np.array(found.prediction) != y), result.mistake_rate)


def test_intervals_before_each_row(rows):
    X, y = rows
    model = WithIntervals(ks.FeatureRegressor(random_state=0))
    _, found = KeyedLearner(model, coverage=0.8).step(None, X, y)
    expected = WithIntervals(ks.FeatureRegressor(random_state=0)).learn_interval(X, y, coverage=0.8)
    for name, values in zip(("prediction", "low", "high"), expected):
        assert_array_equal(getattr(found, name), values)


def test_messages_with_words_gaps_and_late_columns():
    model = ks.FeatureClassifier(random_state=0)
    learner, by_hand = KeyedLearner(model, encode=True), make_stream(Columns(), model)
    rows = [{"n": i, "w": "ab"[i % 2]} for i in range(50)] + [{"n": None}]
    y = ["x" if i % 3 else "y" for i in range(51)]
    texts = [json.dumps(row | {"y": label}) for row, label in zip(rows, y)]
    state, found = learner.messages(None, [*texts, "[1]"], "y")
    by_hand.learn(rows, y)
    assert found.problem == [None] * 51 + ["expected a JSON object, got '[1]'"] and found.prediction[51] is None
    late = [{"late": 1, "w": "a"}, {"w": "b"}]
    state, found = learner.messages(state, [json.dumps(late[0] | {"y": "x"}).encode(), json.dumps(late[1])], "y")
    assert found.prediction[1] == by_hand.predict(late[1:])[0]  # it has no target
    by_hand.learn(late[:1], ["x"])
    assert learner.counts(state) == {"learned": 52, "problems": 1}
    assert_array_equal(model_io.load(io.BytesIO(state)).decision_function(rows), by_hand.decision_function(rows))


def test_what_cannot_be_done_is_said_at_once():
    with pytest.raises(ValueError, match="WithIntervals"):
        KeyedLearner(ks.FeatureRegressor(), coverage=0.9)
    with pytest.raises(ValueError, match="is not a classifier"):
        KeyedLearner(ks.FeatureRegressor(), probabilities=True)
    with pytest.raises(ValueError, match="forecaster"):
        KeyedLearner(ks.OnlineRidge(forecaster="none"))
    with pytest.raises(ValueError, match="no learn"):
        KeyedLearner(ks.BinningRegressor())
