"""What only `fit` of the default learner can have: learners of all rows at once, weighed on held-out rows."""

import io

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits, make_friedman1, make_moons
from sklearn.kernel_ridge import KernelRidge

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.core.arrays import squashed
from kernelstream.estimators._contract.state import scaled_rows
from kernelstream.estimators.stack import batch, fit

NUMBERS = make_friedman1(500, noise=0.1, random_state=0)
LABELS = make_moons(500, noise=0.1, random_state=0)


@pytest.fixture(autouse=True)
def few_rows_will_do(monkeypatch):
    monkeypatch.setattr(batch, "FEWEST", 100)
    monkeypatch.setattr(batch, "GAIN", 1.1)  # whatever the held-out rows say


@pytest.fixture(scope="module")
def regressor():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "FEWEST", 100)
        patch.setattr(batch, "GAIN", 1.1)
        patch.setattr(batch, "TRACE", -1.0)  # all of them
        return KernelRegressor(random_state=0).fit(NUMBERS[0][:400], NUMBERS[1][:400])


def saved(model):
    file = io.BytesIO()
    kernelstream.save(model, file)
    return file.getvalue()


def copied(model):
    return kernelstream.load(io.BytesIO(saved(model)))


def without(model):
    """The same model, its members alone."""
    other = copied(model)
    state = other.state_
    batch.drop(state)
    other.state_ = state
    return other


def parts(model, X):
    """Scores of the batch learners for rows, made by themselves."""
    rows = squashed(scaled_rows(X, model._state))
    return [learner.predict(rows)[:, None] for learner in batch._attached(model, model._state)]


def test_the_forecast_is_the_formula(regressor):
    X = NUMBERS[0][400:]
    a, *b = regressor.state_["batch_blend"]
    expected = a * without(regressor).predict(X) + sum(w * g[:, 0] for w, g in zip(b, parts(regressor, X), strict=True))
    np.testing.assert_allclose(regressor.predict(X), expected, rtol=1e-12)
    assert np.mean((regressor.predict(X) - NUMBERS[1][400:]) ** 2) < 0.3 * np.var(NUMBERS[1])


def test_they_learn_the_held_out_rows_once_they_are_weighed(regressor):
    """Kernel ridge by scikit-learn on all 400 rows, with the same kernel, has the same forecasts."""
    X, y = NUMBERS
    rows = squashed(scaled_rows(X, regressor._state))
    learners = batch._attached(regressor, regressor._state)
    assert [learner.norm for learner in learners] == [2, 1]
    for learner in learners:
        state = learner.state_
        assert state["t"] == len(state["centers"]) == 400
        Z = squashed((rows - state["middle"]) / state["unit"])
        Z = Z @ (np.diag(state["root"]) if state["root"].ndim == 1 else state["root"])
        K = np.exp(-np.linalg.norm(Z[:, None] - Z, ord=learner.norm, axis=2))
        peer = KernelRidge(alpha=learner.lam_, kernel="precomputed").fit(K[:400, :400], y[:400] - y[:400].mean())
        np.testing.assert_allclose(learner.predict(rows), peer.predict(K[:, :400]) + y[:400].mean(), rtol=1e-3)


def test_they_are_weighed_by_forecasts_without_the_held_out_rows(monkeypatch):
    """The scores that decide are those of a learner that never saw these rows, in the metric that was found."""
    caught = {}
    learn = batch.learn
    monkeypatch.setattr(batch, "learn", lambda *args: caught.update(args=args) or learn(*args))
    KernelRegressor(random_state=0).fit(NUMBERS[0][:300], NUMBERS[1][:300])
    est, teacher, (XH, yH, _), _, _ = caught["args"]
    y = teacher.rows()[1]
    learner = batch._make("metric", est)
    scores = teacher.teach(learner, (XH, yH, None))
    changed = batch._make("metric", est)
    again = teacher.teach(changed, (XH, yH[::-1].copy(), None))
    np.testing.assert_array_equal(changed.metric_, learner.metric_)
    # the factor is float32, of a matrix whose condition is at most (300 + lam)/lam, about 1e5
    np.testing.assert_allclose(again - changed.intercept_, scores - learner.intercept_, atol=1e-3 * np.std(y))


def test_their_share_falls_with_the_rows_that_come(regressor):
    model, alone = copied(regressor), without(regressor)
    n = model.state_["batch_rows"]
    X, y = NUMBERS[0][400:440], NUMBERS[1][400:440]
    scores, members = model.learn(X, y), alone.learn(X, y)
    a, *b = model.state_["batch_blend"]
    whole = a * members + sum(w * g[:, 0] for w, g in zip(b, parts(regressor, X), strict=True))
    share = n / (n + np.arange(40))
    # rows are scaled by moments that go on moving: the same to their last change
    np.testing.assert_allclose(scores, share * whole + (1 - share) * members, rtol=0.02)
    assert scores[0] == pytest.approx(regressor.predict(X[:1])[0], rel=1e-3)


def test_any_split_of_the_rows_that_come(regressor):
    X, y = NUMBERS[0][400:430], NUMBERS[1][400:430]
    one, two = copied(regressor), copied(regressor)
    scores = one.learn(X, y)
    np.testing.assert_allclose(
        np.concatenate([two.learn(X[i : i + 1], y[i : i + 1]) for i in range(30)]), scores, rtol=1e-9
    )


def test_files_and_what_does_not_fit(regressor):
    np.testing.assert_array_equal(copied(regressor).predict(NUMBERS[0][:9]), regressor.predict(NUMBERS[0][:9]))
    state = regressor.state_
    weights = "batch_metric_alpha"
    wrong = {
        "batch_kinds": [("metric,nearest", "must name some of"), ("", "must name some of"), (3, "must name some of")],
        "batch_blend": [(np.array([1.0]), "batch_blend"), (-state["batch_blend"], "batch_blend")],
        "batch_rows": [(10**9, "batch_rows")],
        weights: [(state[weights][:-1], "must be an array of"), (state[weights] * np.nan, "batch|alpha")],
        "batch_odd": [(1, "batch_odd")],
    }
    for name, cases in wrong.items():
        for value, message in cases:
            model = copied(regressor)
            model.state_ = {**model.state_, name: value}
            with pytest.raises(ValueError, match=message):
                copied(model)


def test_a_gain_that_is_the_members_own_leaves_no_learners(monkeypatch):
    """Another scale of their scores may make the loss less, while no batch learner gets a weight."""
    monkeypatch.setattr(batch, "_weights", lambda *_: (1.0, np.array([1.3, 0.0, 0.01]), 0.5))
    model = KernelRegressor(random_state=0).fit(NUMBERS[0][:200], NUMBERS[1][:200])
    assert not any(name.startswith("batch_") for name in model.state_)
    assert np.isfinite(copied(model).predict(NUMBERS[0][:3])).all()


@pytest.mark.parametrize("engine", [pytest.param("python", marks=pytest.mark.slow), "native"])
def test_labels_and_a_class_that_comes_later(engine):
    X, y = LABELS
    model = KernelClassifier(random_state=0, engine=engine).fit(X[:150], y[:150])
    assert model.state_["batch_kinds"] and model.score(X[150:], y[150:]) > 0.9
    model.learn(X[:1], [7])
    assert "batch_blend" not in model.state_ and model.decision_function(X[:2]).shape == (2, 3)


def test_several_classes_are_log_probabilities(monkeypatch):
    monkeypatch.setattr(batch, "TRACE", -1.0)  # however little they help
    X, y = load_digits(return_X_y=True)
    keep, X = y < 3, X[:, 1::3]
    model = KernelClassifier(random_state=0).fit(X[keep][:400], y[keep][:400])
    assert model.state_["batch_kinds"]
    np.testing.assert_allclose(logsumexp(model.decision_function(X[keep][400:]), axis=1), 0.0, atol=1e-12)
    assert model.score(X[keep][400:], y[keep][400:]) > 0.95


def test_rows_sorted_by_class_do_no_harm(monkeypatch):
    """Held-out rows go through the combination as a stream: in the file's order it would see one class at a time."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")[::2]
    seen, weigh = [], fit._weigh

    def spied(est, state, rows, codes, weight):
        seen.append(codes)
        weigh(est, state, rows, codes, weight)

    monkeypatch.setattr(fit, "_weigh", spied)
    KernelClassifier(size="small", random_state=0).fit(X[order], y[order])
    assert seen and all(np.mean(codes[1:] != codes[:-1]) > 0.7 for codes in seen)


def test_a_class_of_weight_0_has_no_say():
    X, y = load_digits(return_X_y=True)
    keep = y < 4
    X, y = X[keep][:500, 1::3], y[keep][:500]
    model = KernelClassifier(class_weight={0: 1.0, 1: 1.0, 2: 1.0, 3: 0.0}, random_state=0).fit(X, y)
    assert model.state_["batch_kinds"] and model.score(X[y < 3], y[y < 3]) > 0.95
