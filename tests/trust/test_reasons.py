"""Which columns matter: functions whose gradients are known."""

import copy

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import BudgetRegressor, FeatureClassifier, FeatureRegressor, KernelRegressor, OnlineRidge
from kernelstream.testing.streaming import assert_same_state
from kernelstream.trust import Calibrated, Explained
from kernelstream.trust.gradients import deviations, gradients, is_exact, scores
from kernelstream.trust.recent import differences


def stream(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("make", [FeatureRegressor, OnlineRidge, FeatureClassifier])
def test_the_formula_is_the_limit_of_differences(make, standardize):
    X = stream(600, 3) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
    y = np.digitize(X[:, 0], [-0.5, 0.5]) if make is FeatureClassifier else np.sin(X[:, 0]) + X[:, 1]
    model = make(standardize=standardize, random_state=0)
    model.learn(X, y)
    assert is_exact(model)
    units = deviations(model, X.std(axis=0))
    by_formula = gradients(model, X[:5], units)
    numeric = differences(lambda rows: scores(model, rows), X[:5], units, 0.02)
    np.testing.assert_allclose(by_formula, numeric, atol=2e-3 * np.abs(numeric).max())


@pytest.mark.parametrize("make", [FeatureRegressor, OnlineRidge])
def test_five_of_a_thousand_columns_are_found(make):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 1000)).astype(np.float32)
    true = rng.choice(1000, 5, replace=False)
    a, b, c, d, e = X[:, true].T
    y = np.sin(a) + b - c + 0.8 * d + np.tanh(2 * e) + 0.1 * rng.normal(size=5000)
    model = Explained(make(random_state=0))
    model.learn(X, y)
    assert len(set(np.argsort(model.relevance_)[-5:]) & set(true)) >= 5 * 0.9
    assert model.relevance_.sum() == pytest.approx(1)


def test_the_shares_are_the_squared_gradients():
    """f = 2 x0 + x1 / 10 with x1 ten times as wide: gradients in deviations are 2 and 1, squares 4 to 1."""
    X = stream(4000, 3) * [1.0, 10.0, 1.0]
    stack = KernelRegressor([OnlineRidge("raw", intercept=True)], random_state=0)
    for model, n in ((Explained(OnlineRidge(standardize=True, random_state=0)), 4000), (stack, 1500)):
        model.learn(X[:n], 2 * X[:n, 0] + X[:n, 1] / 10)
        np.testing.assert_allclose(model.relevance_, [0.8, 0.2, 0.0], atol=0.03)
    raw = Explained(FeatureRegressor(random_state=0))
    raw.learn(X, 2 * X[:, 0] + X[:, 1] / 10)
    assert raw.relevance_[2] < 0.1


def test_columns_that_never_vary_have_no_share():
    X = np.c_[stream(300, 1), np.ones(300)]
    for rows, expected in ((X, [1.0, 0.0]), (np.ones((300, 2)), [0.0, 0.0])):
        model = KernelRegressor(random_state=0)
        model.learn(rows, X[:, 0])
        assert model.relevance_.tolist() == expected


@pytest.mark.parametrize(
    "model",
    [Explained(FeatureRegressor(random_state=0)), KernelRegressor(size="small", random_state=0)],
    ids=["explained", "default"],
)
def test_columns_swapped_by_a_drift_swap(model):
    X = stream(5000, 10)
    late = np.arange(5000) >= 3000
    y = np.where(late, 0.3, 2.0) * X[:, 3] + np.where(late, 2.0, 0.3) * X[:, 7]
    model.learn(X[:3000], y[:3000])
    assert np.argmax(model.relevance_) == 3
    model.learn(X[3000:], y[3000:])
    assert np.argmax(model.relevance_) == 7


def test_models_without_a_formula_are_looked_at_by_differences():
    X = stream(6000, 12)
    model = Explained(BudgetRegressor(random_state=0))
    model.learn(X, np.sin(X[:, 5]) + X[:, 2])
    assert not is_exact(model)
    assert set(np.argsort(model.relevance_)[-2:]) == {2, 5}


@pytest.mark.parametrize(
    "model", [OnlineRidge(random_state=0), BudgetRegressor(random_state=0)], ids=["formula", "differences"]
)
def test_contributions_sum_to_the_difference(model):
    X = stream(1500, 4)
    model = Explained(model)
    model.learn(X, 2 * X[:, 0] - X[:, 1])
    for baseline in (None, np.full(4, 0.5)):
        reasons = model.explain(X[:6], baseline)
        np.testing.assert_allclose(reasons.contributions.sum(axis=1), reasons.score - reasons.base, atol=0.02)
        np.testing.assert_allclose(reasons.score, model.predict(X[:6]))
    expected = np.array([2.0, -1.0, 0.0, 0.0]) * (X[:6] - 0.5)  # of a linear function
    assert np.corrcoef(reasons.contributions.ravel(), expected.ravel())[0, 1] > 0.97
    with pytest.raises(ValueError, match="columns"):
        model.explain(X[:, :2])


def test_a_classifiers_reasons_are_of_the_class_it_predicts():
    X = stream(3000, 4)
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 2], [-0.5, 0.5])]
    model = Explained(Calibrated(FeatureClassifier(loss="softmax", random_state=0)))
    model.learn(X, y)
    assert np.argmax(model.relevance_) == 2
    far = X[np.abs(X[:, 2]) > 1][:20]
    assert (np.abs(model.explain(far).contributions).argmax(axis=1) == 2).mean() > 0.9
    assert model.model_.predict_proba(X[:2]).shape == (2, 3)


def test_reasons_any_split_and_saved():
    X = stream(600, 3)
    y = X[:, 0] + np.sin(X[:, 1])
    make = lambda: Explained(FeatureRegressor(engine="python", random_state=0))  # noqa: E731
    whole, parts = make(), make()
    answers = whole.learn(X, y)
    cut = []
    for a, b in ((0, 1), (1, 255), (255, 256), (256, 300), (300, 600)):
        cut.append(parts.learn(X[a:b], y[a:b]))
        parts = reloaded(parts)
    assert np.array_equal(np.concatenate(cut), answers)
    assert np.array_equal(answers, FeatureRegressor(engine="python", random_state=0).learn(X, y))
    assert_same_state(parts.state_, whole.state_, 0.0, "in parts")


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("last", [350, 900])
def test_classes_that_come_later_are_scored_as_without_reasons(loss, last):
    X = stream(800, 3)
    time = np.arange(800)
    y = np.where(time < 300, "m", np.where((time < last) | (X[:, 0] < 0), "f", "z"))
    y[300:] = np.where(X[300:, 1] > 0.5, "m", y[300:])
    plain = FeatureClassifier(loss=loss, engine="python", random_state=0).learn(X, y)
    model = Explained(FeatureClassifier(loss=loss, engine="python", random_state=0))
    assert np.array_equal(model.learn(X, y), plain)
    model.learn(X[:1], np.array(["new"]))  # and still more may come
    assert "new" in model.classes_


def test_a_long_call_that_fails_changes_nothing():
    X = stream(900, 3)
    bad = X.copy()
    bad[700, 1] = np.nan  # in the third piece
    model = Explained(FeatureRegressor(random_state=0))
    with pytest.raises(ValueError, match="NaN"):
        model.learn(bad, X[:, 0])
    assert not hasattr(model, "model_")
    model.learn(X, X[:, 0])
    before = copy.deepcopy(model.state_)
    with pytest.raises(ValueError, match="NaN"):
        model.learn(bad, X[:, 0])
    assert_same_state(model.state_, before, 0.0, "after a call that failed")


def test_pictures_of_reasons(tmp_path):
    pytest.importorskip("matplotlib")
    from kernelstream import plots

    X = stream(600, 3)
    model = Explained(FeatureRegressor(random_state=0))
    history = []
    for a in range(0, 600, 200):
        model.learn(X[a : a + 200], X[a : a + 200, 1])
        history.append((a + 200, model.relevance_))
    assert len(plots.relevance(model, tmp_path / "now.png").axes[0].patches) == 3
    drawn = plots.relevance_over_time(history, tmp_path / "then.png").axes[0].lines
    assert drawn[0].get_ydata()[-1] == model.relevance_.max()
    made = plots.calibration([1, 0, 1], [0.9, 0.2, 0.8], tmp_path / "p.png", bins=5, label="model")
    assert "0.167" in made.axes[0].get_legend().get_texts()[0].get_text()  # (0.1 + 0.2 + 0.2) / 3
    with pytest.raises(ValueError, match="probability"):
        plots.calibration([1, 0], [0.9, 1.2])


@pytest.mark.parametrize(
    ("model", "linear"),
    [
        (OnlineRidge(intercept=True, random_state=0), True),
        (OnlineRidge(lam=[0.1, 10.0], random_state=0), False),
        (OnlineRidge(forecaster="awv", random_state=0), False),
    ],
    ids=["intercept", "several penalties", "awv"],
)
def test_only_what_is_linear_in_the_features_is_looked_at_by_formula(model, linear):
    X = stream(300, 3)
    model.learn(X, np.sin(X[:, 0]) + X[:, 1] + 5.0)
    form = model.linear_form()
    assert (form is not None) == is_exact(model) == linear
    if linear:
        mapping, weights, offset = form
        answers = mapping(X[:5]) @ weights.T + offset
        np.testing.assert_allclose(answers[:, 0], model.predict(X[:5]))
    units = deviations(model, X.std(axis=0))
    numeric = differences(lambda rows: scores(model, rows), X[:5], units, 0.02)
    np.testing.assert_allclose(gradients(model, X[:5], units), numeric, atol=2e-3 * np.abs(numeric).max())
