"""Members of the default learner that begin anew where its errors have risen: when, what is forecast, what stays."""

import io
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelstream import KernelClassifier, KernelRegressor, load, save
from kernelstream.estimators.stack import renewal

CHANGE, N = 1500, 4000


def world(kind, n=N, change=CHANGE, seed=0):
    """Rows whose target becomes an unrelated function of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    before = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
    after = np.cos(2 * X[:, 3]) + X[:, 4] * X[:, 5]
    f = np.where(np.arange(n) < change, before, after)
    if kind == "numbers":
        return X, f + 0.1 * rng.normal(size=n), KernelRegressor(size="small", random_state=0)
    y = (f > 0).astype(int) if kind == "two labels" else np.digitize(f, [-0.5, 0.5])
    return X, y, KernelClassifier(size="small", random_state=0)


def learned(model, X, y, step=100):
    return np.concatenate([model.learn(X[i : i + step], y[i : i + step]) for i in range(0, len(X), step)])


def loss(scores, y, kind):
    if kind == "numbers":
        return np.mean((scores - y) ** 2)
    return np.mean(((scores > 0) if scores.ndim == 1 else scores.argmax(axis=1)) != y)


KINDS = ("numbers", "two labels", "many labels")


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_change_the_model_is_soon_what_it_would_be_had_it_begun_there(kind):
    X, y, model = world(kind)
    scores = learned(model, X, y)
    fresh = learned(world(kind)[2], X[CHANGE:], y[CHANGE:])
    assert loss(scores[CHANGE:], y[CHANGE:], kind) < 1.3 * loss(fresh, y[CHANGE:], kind)
    assert CHANGE < min(mark.row for mark in model.changes_ if mark.what == "loss") < CHANGE + 200
    assert min(member["restarts"] for member in model.members_) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_any_split_of_the_rows_gives_the_same_model(kind):
    X, y, model = world(kind, 2600, 1000)
    whole = learned(model, X, y)
    cuts = np.sort(np.random.default_rng(3).choice(np.arange(200, 2600), 25, replace=False))
    parts = world(kind)[2]
    found = [
        parts.learn(A, b)
        for A, b in zip(np.split(X, [*range(50, 200, 50), *cuts]), np.split(y, [*range(50, 200, 50), *cuts]))
    ]
    assert_allclose(np.concatenate(found)[100:], whole[100:], rtol=1e-9, atol=1e-9)
    at_once = world(kind)[2]
    first = at_once.learn(X[:200], y[:200])
    assert_allclose(np.concatenate([first, at_once.learn(X[200:], y[200:])])[100:], whole[100:], rtol=1e-9, atol=1e-9)


def in_the_middle(kind):
    """A model with two sets of members, and the rows to come."""
    X, y, model = world(kind, 2600, 1000)
    learned(model, X[:1300], y[:1300])
    assert "renewal" in model._state
    return model, X[1300:], y[1300:]


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_copied_in_the_middle_it_goes_on_alike(kind):
    model, X, y = in_the_middle(kind)
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    others = [load(file), pickle.loads(pickle.dumps(model))]
    forecasts, scores = model.predict(X), model.learn(X, y)
    for other in others:
        assert_array_equal(other.predict(X), forecasts)
        assert_array_equal(other.learn(X, y), scores)
    assert "renewal" not in model._state  # it was decided meanwhile


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_call_leaves_both_sets_of_members_as_they_were(kind, monkeypatch):
    model, X, y = in_the_middle(kind)
    twin = pickle.loads(pickle.dumps(model))
    decided = renewal.decided
    for at in (0, 2, 4):
        calls = iter(range(100))

        def fail(state, at=at, calls=calls):
            if next(calls) == at:
                raise KeyboardInterrupt
            return decided(state)

        monkeypatch.setattr(renewal, "decided", fail)
        with pytest.raises(KeyboardInterrupt):
            model.learn(X, y)
    monkeypatch.setattr(renewal, "decided", decided)
    assert_array_equal(model.learn(X, y), twin.learn(X, y))


def test_forecasts_in_the_middle_are_mixtures():
    """Of numbers by the inverse squares of the sums of squared errors; of probabilities by what they have earned."""
    model, X, _ = in_the_middle("numbers")
    part = model._state["renewal"]
    fresh = model._learner.renewal.fresh(model._state)
    seen = model._learner._drawn_in(model._learner.ops.scaled(X[:50], model._state))
    old = model._learner.members_score(model._state, seen, False)[:, 0]
    w = part["sums"] ** -4.0 / np.sum(part["sums"] ** -4.0)
    assert_allclose(model.predict(X[:50]), w[0] * old + w[1] * fresh.predict(seen), rtol=1e-9)

    model, X, _ = in_the_middle("two labels")
    part = model._state["renewal"]
    w = np.exp(part["logs"]) / np.exp(part["logs"]).sum() * 0.98 + 0.01
    p = np.array([0.2, 0.9, 0.999]), np.array([0.7, 0.1, 0.5])
    odds = [np.log(q / (1 - q))[:, None] for q in p]
    expected = w[0] * p[0] + w[1] * p[1]
    mixed = renewal.mixed(False, np.stack(odds), w)[:, 0]
    assert_allclose(1 / (1 + np.exp(-mixed)), expected, rtol=1e-12)


def test_a_false_alarm_is_dropped_and_hardly_costs_accuracy():
    X, y, model = world("numbers", 4200, 10_000)
    plain = learned(model, X, y)
    assert "loss" not in {mark.what for mark in model.changes_}
    X, y, alarmed = world("numbers", 4200, 10_000)
    first = learned(alarmed, X[:1280], y[:1280])
    alarmed._learner.renewal.begin(alarmed._state, 1200, 1280)
    rest = learned(alarmed, X[1280:], y[1280:])
    assert "renewal" not in alarmed._state
    assert alarmed.members_[0]["restarts"] == 0
    assert np.mean((rest - y[1280:]) ** 2) < 1.01 * np.mean((plain[1280:] - y[1280:]) ** 2)
    assert_array_equal(first, plain[:1280])


def test_new_members_do_not_speak_of_units(recwarn):
    """The whole scales the columns for them."""
    X, y, model = world("numbers", 2200)
    X[CHANGE - 100 :, 5] *= 0.02  # the scale of the columns is that of the first rows
    learned(model, X, y)
    assert model.changes_ and not [w for w in recwarn if "one width" in str(w.message)]


def test_weights_and_a_new_label_in_the_middle():
    model, X, y = in_the_middle("two labels")
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    whole, parts = (pickle.loads(pickle.dumps(model)) for _ in range(2))
    scores = whole.learn(X, y, sample_weight=weight)
    cut = [parts.learn(X[i : i + 70], y[i : i + 70], sample_weight=weight[i : i + 70]) for i in range(0, len(y), 70)]
    assert_allclose(np.concatenate(cut), scores, rtol=1e-9, atol=1e-9)
    for kind in ("two labels", "many labels"):  # an unknown label does not count in a row of weight 0
        other, X, y = in_the_middle(kind)
        other.learn(X[:3], [*y[:2], 9], sample_weight=[1.0, 1.0, 0.0])
        assert 9 not in other.classes_ and "renewal" in other._state
    model.learn(X[:1], [7])
    assert "renewal" not in model._state and 7 in model.classes_
    model.learn(X, y)


def test_errors_of_several_numbers_are_those_of_their_forecasts():
    """What is watched is how far off each target was, whatever its size."""
    X = np.random.default_rng(0).standard_normal((192, 3))
    Y = np.stack([X[:, 0] + 50, X[:, 1] - 50], axis=1)
    model = KernelRegressor(size="small", random_state=0)
    model.learn(X[:128], Y[:128])
    scores = model.learn(X[128:], Y[128:])
    assert_allclose(model.state_["watch/errors"], np.abs(scores - Y[128:]).mean(axis=1), rtol=1e-9)
