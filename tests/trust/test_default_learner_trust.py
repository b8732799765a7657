"""The default learner says how sure it is, what has changed and why: simulated streams whose answer is known."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.features import RandomFourier
from kernelstream.testing.streaming import assert_same_state
from kernelstream.trust import IntervalTracker, WithIntervals
from kernelstream.trust.contributions import in_turns

MEMBERS = [ks.FeatureClassifier(RandomFourier(n_components=20, gamma="median"), "logistic"), ks.WindowClassifier()]
NUMBERS = [ks.FeatureRegressor(RandomFourier(n_components=20, gamma="median")), ks.OnlineRidge("raw", intercept=True)]


def labels(**kwargs):
    return KernelClassifier(MEMBERS, random_state=0, **kwargs)


def numbers(**kwargs):
    return KernelRegressor(NUMBERS, random_state=0, **kwargs)


def stream(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def three(X, seed=1):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return np.digitize(X[:, 0] + 0.7 * noise, [-0.6, 0.6])


# -------------------------------------------------------------------- sets
@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_sets_hold_the_truth_as_often_as_they_say(coverage):
    X = stream(4000)
    y = three(X)
    model = labels()
    model.learn(X[:3000], y[:3000])
    sets = model.predict_set(X[3000:], coverage=coverage)
    assert sets.shape == (1000, 3) and sets.dtype == bool
    held = sets[np.arange(1000), y[3000:]].mean()
    assert abs(held - coverage) < 4 * np.sqrt(coverage * (1 - coverage) / 1000) + 0.01
    wider = model.predict_set(X[3000:], coverage=0.99)
    assert (wider | ~sets).all() and wider.sum() > sets.sum()


def test_the_threshold_is_the_tracker_of_what_was_left_to_others():
    """The naive way: 1 - P(truth) of every forecast, one after the other."""
    X = stream(400)
    y = (X[:, 0] > 0).astype(int)
    model = labels(recent=False)
    model.learn(X[:100], y[:100], classes=[0, 1])
    start = {name: model.state_[f"intervals/o0/{name}"].copy() for name in ("size", "quantiles", "weights", "factors")}
    odds = model.learn(X[100:], y[100:])
    naive = IntervalTracker()
    naive.state = start
    p = 1 / (1 + np.exp(-odds))
    naive.learn(np.zeros(300), np.where(y[100:] == 1, 1 - p, p))
    for name, value in naive.state.items():
        np.testing.assert_allclose(model.state_[f"intervals/o0/{name}"], value, rtol=1e-9, err_msg=name)


def test_a_set_of_all_before_anything_was_forecast():
    model = labels()
    model.learn(stream(1), [1], classes=[0, 1, 2])
    assert model.predict_set(stream(2)).all()
    with pytest.raises(ValueError, match="coverage"):
        model.predict_set(stream(2), coverage=2)


# -------------------------------------------------------------------- intervals from learn
@pytest.mark.parametrize("outputs", [1, 2])
def test_intervals_as_they_were_before_each_row(outputs):
    X = stream(600)
    y = X @ np.arange(4 * outputs).reshape(4, outputs) + np.random.default_rng(2).normal(size=(600, outputs))
    y = y[:, 0] if outputs == 1 else y
    model, plain, one_by_one = numbers(), numbers(), numbers()
    forecast, low, high = model.learn_interval(X, y)
    np.testing.assert_allclose(forecast, plain.learn(X, y), atol=1e-12)
    assert np.isinf(high[0]).all() and (low[50:] < forecast[50:]).all() and (forecast[50:] < high[50:]).all()
    covered = ((low <= y) & (y <= high))[200:].mean()
    assert abs(covered - 0.9) < 0.05
    parts = []
    for a, b in ((0, 1), (1, 3), (3, 130), (130, 131), (131, 600)):
        before = one_by_one.forecast_interval(X[a : a + 1]) if a > 120 else None
        parts.append(one_by_one.learn_interval(X[a:b], y[a:b]))
        if before is not None and b - a > 1:  # of a table: without what is known of the last rows
            width = before[1] - before[0]
            np.testing.assert_allclose((parts[-1][2] - parts[-1][1])[0], width[0], rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([part[1] for part in parts])[1:], low[1:], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("coverage", [0.5, 0.7, 0.95])
def test_intervals_from_learn_of_any_coverage(coverage):
    """Those of forecast_interval, which of a coverage between two levels lie between theirs."""
    X = stream(1500)
    y = X @ np.arange(4.0) + np.random.default_rng(2).normal(size=1500)
    model, rows = numbers(), numbers()
    _, low, high = model.learn_interval(X, y, coverage=coverage)
    assert abs(((low <= y) & (y <= high))[200:].mean() - coverage) < 0.05
    rows.learn(X[:900], y[:900])
    expected = np.subtract(*rows.forecast_interval(X[900:901], coverage=coverage)[::-1])
    np.testing.assert_allclose((high - low)[900], expected[0], rtol=1e-9)
    with pytest.raises(ValueError, match="coverage"):
        model.learn_interval(X, y, coverage=0.2)
    again = WithIntervals(ks.OnlineRidge("raw", random_state=0))
    _, low, high = again.learn_interval(X, y, coverage=coverage)
    assert abs(((low <= y) & (y <= high))[200:].mean() - coverage) < 0.05
    X, labels_ = stream(1500), (X[:, 0] + np.random.default_rng(3).normal(size=1500) > 0).astype(int)
    _, sets = labels().learn_set(X, labels_, coverage=coverage)
    assert abs(sets[np.arange(1500), labels_][200:].mean() - coverage) < 0.05


# -------------------------------------------------------------------- what has changed
def test_a_change_of_the_labels_is_marked_and_a_steady_stream_is_not():
    X = stream(4000, 3)
    y = np.where(np.arange(4000) < 2400, X[:, 0] > 0, X[:, 0] <= 0).astype(int)
    model = labels(recent=False)
    model.learn(X[:2400], y[:2400])
    assert model.changes_ == []
    model.learn(X[2400:], y[2400:])
    mark = model.changes_[0]
    assert mark.what == "loss" and 2400 < mark.row <= 2900 and abs(mark.since - 2400) <= 256


def test_a_change_of_the_rows_is_marked():
    X = stream(4000, 3)
    X[2600:, 1] += 3.0
    model = numbers(recent=False)
    model.learn(X, X[:, 0])
    assert [mark.what for mark in model.changes_][:1] == ["inputs"]
    assert 2600 < model.changes_[0].row <= 3100


# -------------------------------------------------------------------- reasons
def test_contributions_of_a_linear_answer_are_its_terms():
    X = stream(1500, 3)
    model = KernelRegressor([ks.OnlineRidge("raw", lam=1e-6, intercept=True)], random_state=0, recent=False)
    model.learn(X, 3 * X[:, 0] - X[:, 2])
    rows, base = X[:5], np.array([0.5, 0.0, 0.0])
    why = model.explain(rows, baseline=base)
    np.testing.assert_allclose(why.contributions, (rows - base) * [3.0, 0.0, -1.0], atol=0.005)
    np.testing.assert_allclose(why.contributions.sum(axis=1), why.score - why.base, atol=1e-9)
    np.testing.assert_allclose(why.score, model.predict(rows), atol=1e-9)
    np.testing.assert_array_equal(why.baseline, base)
    np.testing.assert_allclose(model.explain(rows).baseline, X.mean(axis=0), atol=1e-9)  # which is the default


def test_random_orders_give_shapley_values():
    """Of x0 x1 + x2 from 0 to (1, 1, 1): each factor has half of the product."""
    f = lambda X: (X[:, 0] * X[:, 1] + X[:, 2])[:, None]  # noqa: E731
    found = in_turns(f, np.ones((2, 3)), np.zeros(3), np.zeros(2, int))
    np.testing.assert_allclose(found, [[0.5, 0.5, 1.0]] * 2)
    together = in_turns(f, np.ones((1, 3)), np.zeros(3), np.zeros(1, int), np.array([0, 0, 1]))
    np.testing.assert_allclose(together, [[1.0, 1.0]])


def test_mixed_rows_have_one_number_for_each_column():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["A", "B", "C"], 800), "size": rng.normal(size=800), "no": 0.0})
    frame.loc[3, "no"] = np.nan
    y = (frame["town"] == "B") * 3.0 + 0.2 * frame["size"]
    model = KernelRegressor(size="small", random_state=0)
    model.learn(frame, y)
    assert list(model.columns_.kinds_) == ["town", "size", "no"] and model.relevance_.shape == (3,)
    assert np.argmax(model.relevance_) == 0
    why = model.explain(frame.iloc[:4])
    assert why.contributions.shape == (4, 3)
    np.testing.assert_allclose(why.contributions.sum(axis=1), why.score - why.base, atol=1e-9)
    one = model.explain(frame.iloc[:4], baseline=frame.iloc[5:6])
    np.testing.assert_allclose(one.contributions.sum(axis=1), one.score - one.base, atol=1e-9)


# -------------------------------------------------------------------- state


def test_a_refused_call_changes_nothing():
    X = stream(400)
    y = three(X)
    model = labels()
    model.learn(X[:300], y[:300], classes=[0, 1, 2])
    before = copy.deepcopy(model.state_)
    for rows, wrong in ((X[300:], np.full(100, 9)), (np.full((2, 4), 1e300), y[:2])):
        with pytest.raises(ValueError):
            model.learn(rows, wrong)
    assert_same_state(model.state_, before, 0.0, "after refused calls")
