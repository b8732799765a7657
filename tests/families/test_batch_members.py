"""What only `fit` of the default learner can have: a learner of all rows at once."""

import time
from unittest.mock import Mock

import numpy as np
import pytest
from metric_formulas import mixture
from reloaded import reloaded
from scipy.special import logsumexp
from sklearn.datasets import load_digits, make_friedman1, make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.core.arrays import squashed
from kernelstream.estimators._contract.state import scaled_rows
from kernelstream.estimators._steepness import steepness
from kernelstream.estimators.stack import batch, fit
from kernelstream.estimators.stack.base import Stack

NUMBERS = make_friedman1(500, noise=0.1, random_state=0)
LABELS = make_moons(500, noise=0.1, random_state=0)


@pytest.fixture(autouse=True)
def few_rows_will_do(monkeypatch):
    monkeypatch.setattr(batch, "LEAST_ROWS", 100)


@pytest.fixture(scope="module")
def regressor():
    return KernelRegressor(random_state=0).fit(NUMBERS[0][:400], NUMBERS[1][:400])


def part(model, X):
    """Scores of the learner of all rows, made by itself."""
    made = model._learner.batch.unfitted(model._state)
    made.state_ = model._state["batch"]["metric"]
    return made.predict(squashed(scaled_rows(model._learner.ops, X, model._state)))


def function_of(model, X):
    """What it says as one of the members, (n, outputs)."""
    seen = squashed(scaled_rows(model._learner.ops, X, model._state))
    return model._learner.batch.scores(model._state, seen)


@pytest.fixture
def members_that_do_not_help(monkeypatch):
    monkeypatch.setattr(batch, "_chosen_share", lambda *losses: 1.0)


def test_after_fit_members_that_do_not_help_are_not_asked(members_that_do_not_help, monkeypatch):
    X = NUMBERS[0][400:]
    model = KernelRegressor(size="small", random_state=0).fit(NUMBERS[0][:400], NUMBERS[1][:400])
    monkeypatch.setattr(Stack, "members_score", None)
    np.testing.assert_array_equal(model.predict(X), part(model, X))
    np.testing.assert_array_equal(np.concatenate([model.predict(x[None]) for x in X[:9]]), part(model, X[:9]))


def test_after_fit_the_members_are_those_of_a_stream_and_the_function_of_all_rows(regressor):
    stream = KernelRegressor(random_state=0).partial_fit(NUMBERS[0][:400], NUMBERS[1][:400])
    names = [member["name"] for member in stream.members_]
    assert [member["name"] for member in regressor.members_] == [*names, "batch"]
    assert np.mean((regressor.predict(NUMBERS[0][400:]) - NUMBERS[1][400:]) ** 2) < 0.2 * np.var(NUMBERS[1])


def test_it_is_kernel_ridge_on_all_rows(regressor):
    """Kernel ridge by scikit-learn on all 400 rows, with the same kernel, has the same forecasts."""
    X, y = NUMBERS
    rows = squashed(scaled_rows(regressor._learner.ops, X, regressor._state))
    learner, state = regressor._learner.batch.unfitted(regressor._state), regressor._state["batch"]["metric"]
    learner.state_ = state
    assert state["t"] == len(state["rows"]) == 400
    Z = squashed((rows - state["middle"]) / state["unit"])
    between = [
        np.interp(Z[:, j], *ends) for j, *ends in zip(state["ranked"], state["places"], state["heights"], strict=True)
    ]
    U = Z.copy()
    U[:, state["ranked"]] += state["ranks"] * np.transpose(between)
    U *= state["scales"]
    Z = Z @ (np.diag(state["root"]) if state["root"].ndim == 1 else state["root"])
    K = mixture(state["share"], Z, Z, U, U)
    peer = KernelRidge(alpha=learner.lam_, kernel="precomputed").fit(K[:400, :400], y[:400] - y[:400].mean())
    np.testing.assert_allclose(learner.predict(rows), peer.predict(K[:, :400]) + y[:400].mean(), rtol=1e-3)


def test_labels_are_scaled_by_forecasts_of_rows_that_were_not_learned():
    """The slope of scikit-learn's logistic regression without penalty and constant, with one mistake more."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(500, 1))
    y = np.where(rng.random(500) < 1 / (1 + np.exp(-3 * F[:, 0])), 1.0, -1.0)
    weight = rng.integers(1, 4, 500).astype(float)
    peer = LogisticRegression(C=np.inf, fit_intercept=False)
    peer.fit(np.concatenate([F, F]), np.concatenate([y, -y]), sample_weight=np.concatenate([weight, weight / 500]))
    assert steepness(F, y[:, None], weight) == pytest.approx(peer.coef_[0, 0], rel=1e-3)


@pytest.mark.parametrize("labels", [2, 3, 10])
def test_rows_without_a_mistake_leave_room_for_one(labels):
    """Of n rows that are all right by the same margin, one more is expected to be wrong: p = n/(n + 1)."""
    n, margin = 60, 1.5
    y = np.arange(n) % labels
    Y = np.eye(labels)[y] if labels > 2 else np.where(y == 1, 1.0, -1.0)[:, None]
    b = steepness(margin * Y, Y, None)
    np.testing.assert_allclose(b * margin, np.log(n * (labels - 1)), rtol=1e-4)


@pytest.mark.slow
def test_intervals_and_sets_are_those_of_rows_that_were_not_learned():
    X, y = make_friedman1(3000, noise=1.0, random_state=1)
    model = KernelRegressor(random_state=0).fit(X[:1000], y[:1000])
    for coverage in (0.6, 0.9):
        low, high = model.predict_interval(X[1000:], coverage)
        assert np.mean((low <= y[1000:]) & (y[1000:] <= high)) == pytest.approx(coverage, abs=0.05)
    shares = []
    for seed in range(3):  # 200 rows tell how large sets are to be, so that each has an error of 2 % by chance
        X, y = make_friedman1(3000, noise=1.0, random_state=seed)
        labels = np.digitize(y, [11.0, 17.0])
        sets = KernelClassifier(size="small", random_state=0).fit(X[:1000], labels[:1000]).predict_set(X[1000:], 0.9)
        shares.append(np.mean(sets[np.arange(2000), labels[1000:]]))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.03)


def test_time_is_limited_and_a_bar_tells(capsys):
    X, y = make_friedman1(3000, noise=1.0, random_state=1)
    begin = time.monotonic()
    model = KernelRegressor(random_state=0).fit(X, y, time_limit=1e-3, verbose=True)
    assert len(model.state_["batch/metric/alpha"]) == 500  # the least
    assert time.monotonic() - begin < 60 and np.isfinite(model.predict(X)).all()
    assert "steps" in capsys.readouterr().err
    with pytest.raises(ValueError, match="time_limit must be"):
        model.fit(X, y, time_limit=0)


def test_several_targets(members_that_do_not_help):
    X, y = NUMBERS
    Y = np.stack([y, -2 * y, X[:, 0]], axis=1)
    model = KernelRegressor(size="small", random_state=0).fit(X[:400], Y[:400])
    np.testing.assert_allclose(model.predict(X[400:])[:, 1], -2 * model.predict(X[400:])[:, 0], rtol=1e-4)
    np.testing.assert_array_equal(reloaded(model).predict(X[:3]), model.predict(X[:3]))
    assert model.score(X[400:], Y[400:]) > 0.8
    one, two = reloaded(model), reloaded(model)
    scores = one.learn(X[400:430], Y[400:430])
    rows = [two.learn(X[i : i + 1], Y[i : i + 1]) for i in range(400, 430)]
    np.testing.assert_allclose(np.concatenate(rows), scores, rtol=1e-9)
    assert np.corrcoef(scores[:, 2], X[400:430, 0])[0, 1] > 0.9


def test_any_split_of_the_rows_that_come(regressor):
    X, y = NUMBERS[0][400:430], NUMBERS[1][400:430]
    one, two = reloaded(regressor), reloaded(regressor)
    scores = one.learn(X, y)
    np.testing.assert_allclose(
        np.concatenate([two.learn(X[i : i + 1], y[i : i + 1]) for i in range(30)]), scores, rtol=1e-9
    )


def test_files_and_what_does_not_fit(regressor):
    np.testing.assert_array_equal(reloaded(regressor).predict(NUMBERS[0][:9]), regressor.predict(NUMBERS[0][:9]))
    state = regressor.state_
    weights = "batch/metric/alpha"
    wrong = {
        "batch/share": [(np.array([1.0]), "share"), (-1.0, "share")],
        "batch/rows": [(10**9, "rows")],
        weights: [(state[weights][:-1], "must be an array of"), (state[weights] * np.nan, "alpha")],
        "batch/odd": [(1, "odd")],
    }
    for name, cases in wrong.items():
        for value, message in cases:
            model = reloaded(regressor)
            model.state_ = {**model.state_, name: value}
            with pytest.raises(ValueError, match=message):
                reloaded(model)


@pytest.mark.parametrize("engine", [pytest.param("python", marks=pytest.mark.slow), "native"])
def test_labels_and_a_class_that_comes_later(engine):
    X, y = LABELS
    model = KernelClassifier(random_state=0, engine=engine).fit(X[:150], y[:150])
    assert "batch/share" in model.state_ and model.score(X[150:], y[150:]) > 0.9
    known = function_of(model, X[150:])[:, 0]
    for label, places in ((7, [0, 1]), (-1, [1, 2])):  # after the others, and before them
        model.learn(X[:1], [label])
        assert model.decision_function(X[:2]).shape == (2, len(model.classes_))
        said = function_of(model, X[150:])[:, places]
        np.testing.assert_allclose(said[:, 1] - said[:, 0], known, rtol=1e-3)
    assert reloaded(model).score(X[150:], y[150:]) > 0.9


def test_several_classes_are_log_probabilities(members_that_do_not_help):
    X, y = load_digits(return_X_y=True)
    keep, X = y < 3, X[:, 1::3]
    model = KernelClassifier(random_state=2).fit(X[keep][:400], y[keep][:400])
    assert "batch/share" in model.state_
    np.testing.assert_allclose(logsumexp(model.decision_function(X[keep][400:]), axis=1), 0.0, atol=1e-12)
    assert model.score(X[keep][400:], y[keep][400:]) > 0.95


def test_rows_sorted_by_class_do_no_harm(monkeypatch):
    """Held-out rows go through the combination as a stream: in the file's order it would see one class at a time."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")[::12]
    weigh = Mock(wraps=fit._weigh)
    monkeypatch.setattr(fit, "_weigh", weigh)
    monkeypatch.setattr(batch, "LEAST_ROWS", 1000)
    KernelClassifier(size="small", random_state=0).fit(X[order], y[order])
    seen = [call.args[3] for call in weigh.call_args_list]
    assert seen and all(np.mean(codes[1:] != codes[:-1]) > 0.7 for codes in seen)


def test_a_class_of_weight_0_has_no_say():
    X, y = load_digits(return_X_y=True)
    keep = y < 4
    X, y = X[keep][:500, 1::3], y[keep][:500]
    model = KernelClassifier(class_weight={0: 1.0, 1: 1.0, 2: 1.0, 3: 0.0}, random_state=0).fit(X, y)
    assert "batch/share" in model.state_ and model.score(X[y < 3], y[y < 3]) > 0.95


@pytest.mark.parametrize("regression", [True, False])
def test_members_count_where_they_lower_the_loss_by_more_than_chance(regression):
    rng = np.random.default_rng(5)
    truth = rng.normal(size=(400, 1))
    Y = truth if regression else np.sign(truth)
    good, bad = (truth, np.zeros((400, 1))) if regression else (5 * Y, 0 * Y)
    assert batch._chosen_share(regression, good, bad, Y, None) == 1  # the members know nothing
    assert batch._chosen_share(regression, bad, good, Y, None) == 0.25  # they know all: their largest part
    assert batch._chosen_share(regression, good, good, Y, None) == 1  # they add nothing
    first, second = (Y + rng.normal(size=(400, 1)) for _ in range(2))  # errors that have nothing to do with each other
    if regression:  # the mean of both has the least variance
        assert batch._chosen_share(True, first, second, Y, None) == 0.5
    lucky = bad.copy()
    lucky[:1] = good[:1]  # one row of 400 is chance
    assert batch._chosen_share(regression, bad, lucky, Y, None) == 1
