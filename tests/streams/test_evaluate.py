"""Prequential evaluation against plain loops, its curves and results, and the drifting streams it is shown on."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, log_loss

import kernelstream as ks
from kernelstream import FeatureClassifier, datasets, drift
from kernelstream.evaluate import Curve, Metric, Tally, model_bytes, prequential
from kernelstream.evaluate.runners import rows_learned
from kernelstream.monitor import Monitor


class Perceptron(ClassifierMixin, BaseEstimator):
    """Ten lines of binary perceptron with the streaming interface, to compare loops with."""

    def learn(self, X, y, classes=None, sample_weight=None):
        if not hasattr(self, "state_"):
            self.state_ = {"w": np.zeros(X.shape[1])}
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
        scores = np.empty(len(y))
        for i, (x, label) in enumerate(zip(X, y)):
            scores[i] = x @ self.state_["w"]
            sign = 1 if label == self.classes_[-1] else -1
            if (scores[i] >= 0) != (sign > 0):
                self.state_["w"] += sign * x
        return scores

    def decision_function(self, X):
        if not hasattr(self, "state_"):
            raise NotFittedError
        return X @ self.state_["w"]


class Mean(RegressorMixin, BaseEstimator):
    """Predicts the mean of the targets seen."""

    def learn(self, X, y, sample_weight=None):
        self.state_ = getattr(self, "state_", {"n": 0, "sum": 0.0})
        out = np.empty(len(y))
        for i, target in enumerate(y):
            out[i] = self.predict(X[:1])[0]
            self.state_ |= {"n": self.state_["n"] + 1, "sum": self.state_["sum"] + target}
        return out

    def predict(self, X):
        return np.full(len(X), self.state_["sum"] / max(self.state_["n"], 1))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=700) > 0, "yes", "no")


def row_by_row(est, X, y, classes):
    mistakes = []
    for i in range(len(y)):
        score = est.learn(X[i : i + 1], y[i : i + 1], classes=classes if i == 0 else None)[0]
        mistakes.append(classes[int(score >= 0)] != y[i])
    return np.array(mistakes)


@pytest.mark.parametrize("block_size", [1, 7, 256, 10_000])
def test_rows_do_not_depend_on_blocks(rows, block_size):
    X, y = rows
    mistakes = row_by_row(Perceptron(), X, y, np.array(["no", "yes"]))
    result = prequential(Perceptron(), X, y, block_size=block_size)
    assert result.mistakes == mistakes.sum()
    assert result.mistake_rate == mistakes.mean()
    assert result.accuracy == 1 - mistakes.mean()
    assert (result.n_rows, result.task, result.name, result.mse) == (700, "classification", "Perceptron", None)
    np.testing.assert_allclose(result.curve.value, (np.cumsum(mistakes) / np.arange(1, 701))[result.curve.rows - 1])
    assert result.curve.rows[-1] == 700


def test_iterables_are_cut_and_joined(rows):
    X, y = rows
    expected = prequential(Perceptron(), X, y)
    blocks = ((X[i : i + 300], y[i : i + 300]) for i in range(0, 700, 300))
    result = prequential(Perceptron(), blocks, classes=["no", "yes"], block_size=50)
    assert result.mistakes == expected.mistakes
    np.testing.assert_array_equal(result.curve.total, expected.curve.total)


@pytest.mark.parametrize("delay", [1, 5, 2000])
def test_delayed_labels(rows, delay):
    X, y = rows
    classes = np.array(["no", "yes"])
    est, mistakes = Perceptron(), 0
    for i in range(len(y)):
        score = est.decision_function(X[i : i + 1])[0] if i > delay else 0.0
        mistakes += classes[int(score >= 0)] != y[i]
        if i >= delay:
            est.learn(X[i - delay : i - delay + 1], y[i - delay : i - delay + 1], classes=classes)
    student = Perceptron()
    assert prequential(student, X, y, delay=delay).mistakes == mistakes
    undelayed = Perceptron()
    prequential(undelayed, X, y)
    if delay == 2000:  # nothing was learned before the end, but then everything
        np.testing.assert_array_equal(student.state_["w"], undelayed.state_["w"])


def test_delay_in_blocks_learns_every_row_once(rows):
    X, y = rows
    learned = []

    class Spy(Perceptron):
        def learn(self, X, y, classes=None, sample_weight=None):
            learned.extend(X[:, 0])
            return super().learn(X, y, classes, sample_weight)

    prequential(Spy(), X, y, delay=30, block_size=64)
    np.testing.assert_array_equal(learned, X[:, 0])


def test_predict_then_fit_by_blocks(rows):
    X, y = rows
    est, wrong = SGDClassifier(random_state=0), []
    for i in range(0, 700, 100):
        wrong += list((est.predict(X[i : i + 100]) if i else np.full(100, "no")) != y[i : i + 100])
        est.partial_fit(X[i : i + 100], y[i : i + 100], classes=["no", "yes"])
    assert prequential(SGDClassifier(random_state=0), X, y, block_size=100).mistakes == sum(wrong)
    with pytest.raises(ValueError, match="SGDClassifier must know all labels before the first row: pass classes="):
        prequential(SGDClassifier(), iter([(X, y)]))


def test_a_trained_estimator_goes_on(rows):
    X, y = rows
    est, whole = Perceptron(), Perceptron()
    first, second = prequential(est, X[:300], y[:300]), prequential(est, X[300:], y[300:])
    assert first.mistakes + second.mistakes == prequential(whole, X, y).mistakes


def test_regression(rows):
    X, _ = rows
    y = X[:, 1] + 2.0
    before, y1 = np.cumsum(y)[:-1] / np.arange(1, 700), y[1:]  # of the first row nothing is known
    result = prequential(Mean(), X, y, metrics="rmse")
    assert result.n_rows == 700
    assert result.mse == pytest.approx(np.mean((before - y1) ** 2))
    assert result.mae == pytest.approx(np.mean(np.abs(before - y1)))
    assert result.metrics["rmse"] == pytest.approx(result.rmse) == pytest.approx(result.mse**0.5)
    assert result.curve.value[-1] == pytest.approx(result.rmse)
    assert (result.mistakes, result.mistake_rate, result.accuracy, result.log_loss) == (None,) * 4
    assert prequential(SGDRegressor(random_state=0), X, y).task == "regression"


def test_several_metrics(rows):
    X, y = rows

    def wrong_yes(y, predicted):
        return (predicted == "yes") & (y == "no")

    always = Metric("one", lambda y, predicted, p: 1.0)
    result = prequential(Perceptron(), X, y, metrics=[accuracy_score, wrong_yes, "accuracy", always], block_size=700)
    assert list(result.metrics) == ["accuracy_score", "wrong_yes", "accuracy", "one", "mistake_rate"]
    assert result.metrics["accuracy"] == pytest.approx(result.accuracy)
    assert result.metrics["accuracy_score"] == pytest.approx(result.accuracy)
    assert 0 < result.metrics["wrong_yes"] < result.mistake_rate
    assert result.metrics["one"] == 1.0
    assert result.curve is result.curves["accuracy_score"]


def test_log_loss(rows):
    X, y = rows
    est = SGDClassifier(loss="log_loss", random_state=0).partial_fit(X, y, classes=["no", "yes"])
    expected = log_loss(y, est.predict_proba(X))
    assert prequential(est, X, y, metrics="log_loss", block_size=700).log_loss == pytest.approx(expected)
    for late in (0, 1):
        result = prequential(SGDClassifier(loss="log_loss"), X, y, metrics="log_loss", delay=late)
        assert 0 < result.log_loss < 10
    with pytest.raises(ValueError, match="log_loss needs probabilities"):
        prequential(SGDClassifier(), X, y, metrics="log_loss")
    with pytest.raises(ValueError, match="log_loss needs probabilities"):
        prequential(Perceptron(), X, y, metrics="log_loss")


def test_progress_calls_and_bar(rows, capsys):
    X, y = rows
    seen = []
    result = prequential(Perceptron(), X, y, progress=lambda *state: seen.append(state))
    assert [n for n, _, _ in seen] == [256, 512]
    assert seen[-1][1] == 700
    assert abs(seen[-1][2] - result.mistake_rate) < 0.1
    prequential(Perceptron(), X, y)
    assert capsys.readouterr().err == ""  # short, and not a terminal
    prequential(Perceptron(), X, y, progress=True, name="bar")
    shown = capsys.readouterr().err
    assert "bar" in shown
    assert "rows/s" in shown


def test_result_is_plain_data(rows):
    X, y = rows
    result = prequential(Perceptron(), X, y, name="<p>")
    data = json.loads(json.dumps(result.to_dict()))
    assert data["mistakes"] == result.mistakes
    assert data["curves"]["mistake_rate"]["rows"][-1] == 700
    assert "curves" not in result.to_dict(curves=False)
    assert "rows: 700" in repr(result)
    assert "&lt;p&gt;" in result._repr_html_()
    assert result.model_bytes == 40  # five weights
    assert result.rows_per_second == 700 / result.seconds


def test_curves_are_bounded_and_windows_add_up(rows):
    X, y = np.tile(rows[0], (4, 1)), np.tile(rows[1], 4)
    curve = prequential(Perceptron(), X, y, curve_points=20).curve
    assert 20 <= len(curve.rows) <= 41
    ends, values = curve.windowed(10)
    assert len(ends) == 10
    np.testing.assert_allclose(np.sum(values * np.diff(ends, prepend=0)), curve.total[-1])
    assert len(Curve(np.array([3]), np.array([1.0])).windowed(50)[0]) == 1


def test_containers(rows):
    X, y = rows
    expected = prequential(SGDClassifier(random_state=0), X, y).mistakes
    assert prequential(SGDClassifier(random_state=0), X.tolist(), y.tolist()).mistakes == expected
    sparse = [prequential(SGDClassifier(random_state=0), make(X), y).mistakes for make in (sp.csr_array, sp.coo_array)]
    assert sparse[0] == sparse[1]
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert prequential(SGDClassifier(random_state=0), frame, pd.Series(y)).mistakes == expected


def test_nothing_to_do():
    result = prequential(Perceptron(), np.empty((0, 3)), np.empty(0, dtype=int))
    assert result.n_rows == 0
    assert np.isnan(result.mistake_rate)
    assert len(result.curve.rows) == 0
    repr(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "X has 3 rows but y has 2"),
        ({"X": np.ones((3, 2)), "y": np.ones((3, 1))}, "y must have one value per row"),
        ({"X": np.ones(3), "y": np.ones(3)}, "X must be two-dimensional"),
        ({"X": np.ones((3, 2))}, "y is missing"),
        ({"X": 3}, "y is missing"),
        ({"X": [np.ones((3, 2))]}, "an iterable must give blocks"),
        ({"X": [(np.ones((3, 2)), [1])]}, "X and y of a block do not match"),
        ({"block_size": 0}, "block_size must be"),
        ({"delay": -1}, "delay must be"),
        ({"metrics": "accurcy"}, "unknown metric 'accurcy': did you mean 'accuracy'"),
        ({"metrics": 3}, "metrics must be names or callables"),
        ({"metrics": "mse"}, "metric 'mse' is for regression"),
        ({"est": object()}, "cannot learn from a stream"),
    ],
)
def test_errors_name_the_problem(arguments, message):
    defaults = (
        {"est": Perceptron(), "X": np.ones((4, 2)), "y": [0, 1, 0, 1]}
        if "X" not in arguments
        else {"est": Perceptron()}
    )
    with pytest.raises(ValueError, match=message):
        prequential(**{**defaults, **arguments})


def test_model_bytes():
    class Big:
        state_ = {"w": np.zeros((10, 10)), "seed": 3, "kernel": "gaussian"}

    assert model_bytes(Big()) == 816
    assert model_bytes(SGDClassifier()) > 100
    assert model_bytes(lambda: 0) == 0  # nothing to pickle


# --- with the library's own learners ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_multiclass_learner(engine):
    X, y = datasets.load("digits", scale="minmax", return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:600]
    X, y = X[order], y[order]
    est = FeatureClassifier(loss="logistic", engine=engine, random_state=0)
    result = prequential(clone(est), X, y, metrics=["mistake_rate", "log_loss"])
    assert result.mistake_rate < 0.35
    assert 0 < result.log_loss < np.log(10)
    again = prequential(clone(est), X, y, block_size=100)
    assert again.mistakes == result.mistakes
    scores = clone(est).learn(X, y, classes=np.arange(10))
    assert (scores.argmax(axis=1) != y).sum() == result.mistakes


@pytest.mark.parametrize("delay, unknown", [(0, 1), (40, 41)])
def test_numbers_count_once_a_row_was_learned(delay, unknown):
    """Targets far from zero: the error is theirs, not that of a model that has seen none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 1))
    y = 1e6 + np.sin(X[:, 0])
    tally = Tally("regression", ["mse", "mae"])
    marks = prequential(Mean(), X, y, metrics=tally, delay=delay, block_size=1, monitor=Monitor()).marks
    before = np.cumsum(y)[: 600 - unknown] / np.arange(1, 601 - unknown)
    assert tally.value("mse") == pytest.approx(np.mean((before - y[unknown:]) ** 2), rel=1e-6)
    assert tally.n == 600 - unknown and not marks
    assert tally.result()["r2"] > -0.1


def test_delay_with_our_learners(rows):
    X, y = rows
    exact = prequential(
        FeatureClassifier(random_state=0, loss="logistic"), X[:200], y[:200], delay=3, metrics="log_loss"
    )
    assert exact.mistake_rate < 0.4


# --- drifting streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", drift.KINDS)
def test_streams_do_not_depend_on_blocks(kind):
    one = next(drift.generate(600, block=600, kind=kind, random_state=3))
    many = list(drift.generate(600, block=70, kind=kind, random_state=3))
    assert len(many) == 9
    np.testing.assert_array_equal(np.concatenate([X for X, _ in many]), one[0])
    np.testing.assert_array_equal(np.concatenate([y for _, y in many]), one[1])
    assert (one[0].dtype, one[1].dtype) == (np.float32, np.int8)
    assert not np.array_equal(next(drift.generate(600, 600, kind, random_state=4))[0], one[0])


@pytest.mark.parametrize("n_features", [2, 3, 4])
def test_concepts_are_balanced_nonlinear_and_move(n_features):
    X, y = next(drift.generate(20_000, 20_000, "none", random_state=1, n_features=n_features, noise=0.0))
    assert abs(y.mean()) < 0.05
    linear = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    assert np.mean(np.sign(np.column_stack([X, np.ones(len(X))]) @ linear) == y) < 0.56
    # the same rows under the two kinds of drift: labels agree at the start and not after the first change
    _, turning = next(drift.generate(20_000, 20_000, "gradual", random_state=1, n_features=n_features, noise=0.0))
    _, jumping = next(drift.generate(20_000, 20_000, "abrupt", random_state=1, n_features=n_features, noise=0.0))
    np.testing.assert_array_equal(jumping[:5000], y[:5000])
    assert np.mean(jumping[5000:10_000] == y[5000:10_000]) < 0.8
    assert np.mean(turning[:200] == y[:200]) > 0.95
    np.testing.assert_array_equal(turning[5000], -y[5000])  # a quarter turn exchanges hills and hollows


def test_noise_flips_labels():
    _, clean = next(drift.generate(20_000, 20_000, "none", noise=0.0))
    _, noisy = next(drift.generate(20_000, 20_000, "none", noise=0.1))
    assert np.mean(clean != noisy) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    "arguments", [{"kind": "sudden"}, {"block": 0}, {"n_features": 1}, {"noise": 0.5}, {"n_concepts": 0}]
)
def test_stream_arguments_are_checked_at_the_call(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        drift.generate(**arguments)


@pytest.mark.parametrize(
    "est, rows",
    [
        (ks.OnlineRidge(), 5),
        (ks.trust.WithIntervals(ks.OnlineRidge()), 5),
        (ks.columns.make_stream(ks.columns.Columns(), ks.OnlineRidge()), 5),
        (ks.KernelRegressor(size="small"), 5),
        (ks.DoublyStochasticRegressor(gamma=1.0), 0),  # it counts batches
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_that_a_model_has_learned(est, rows):
    assert rows_learned(est) == 0
    X = [{"town": "ab"[i % 2]} for i in range(5)] if getattr(est, "columns", None) is not None else np.ones((5, 2))
    assert rows_learned(est.partial_fit(X, np.arange(5.0))) == rows
