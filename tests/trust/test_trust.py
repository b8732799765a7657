"""Probabilities and intervals against what is known: simulated streams, naive formulas, guarantees."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.special import expit, ndtri, softmax
from sklearn.base import clone

from kernelstream import BudgetClassifier, FeatureClassifier, MultiKernelClassifier, OnlineRidge
from kernelstream.engine import has_native
from kernelstream.evaluate import prequential
from kernelstream.testing.streaming import assert_same_state
from kernelstream.trust import (
    Calibrated,
    Calibrator,
    Delayed,
    Explained,
    IntervalTracker,
    QuantileTracker,
    WithIntervals,
)
from kernelstream.trust.quantiles import ends

ENGINES = ["python"] + ["native"] * has_native()


def log_loss(log_odds, y):
    return np.logaddexp(0.0, np.where(y, -log_odds, log_odds))


def calibration_error(p, hit, bins=15):
    """Mean over rows of |share of hits - mean p| in the row's bin of p."""
    at = np.minimum((p * bins).astype(int), bins - 1)
    return np.abs(np.bincount(at, p, bins) - np.bincount(at, hit, bins)).sum() / len(p)


def odds(n, seed=0, scale=1.5):
    """True log-odds and labels drawn from them."""
    rng = np.random.default_rng(seed)
    truth = scale * rng.normal(size=n) + 0.4
    return truth, (rng.random(n) < expit(truth)).astype(float)


# ---------------------------------------------------------------- calibration
@pytest.mark.parametrize("distortion", [lambda s: 3 * s, lambda s: 0.3 * s + 1, lambda s: np.where(s > 0, 4 * s, s)])
def test_learned_odds_come_close_to_the_true_ones(distortion):
    truth, y = odds(20_000)
    answers = Calibrator().learn(distortion(truth), y)
    late = slice(10_000, None)
    best = log_loss(truth, y)[late].mean()  # no forecast of these labels can do better on average
    assert log_loss(answers, y)[late].mean() < best + 0.003 < log_loss(distortion(truth), y)[late].mean()
    noise = calibration_error(expit(truth[late]), y[late])  # of the truth itself: there are only so many rows
    assert calibration_error(expit(answers[late]), y[late]) < noise + 0.01


def test_scores_without_a_unit_do_not_depend_on_one():
    truth, y = odds(8000)
    small, large = (Calibrator(own=False).learn(unit * truth, y) for unit in (1e-3, 1e4))
    np.testing.assert_allclose(small, large, atol=1e-6)
    assert log_loss(small, y)[2000:].mean() < log_loss(truth, y)[2000:].mean() + 0.005


def test_raw_scores_that_are_right_are_hardly_harmed():
    for seed in range(5):
        truth, y = odds(5000, seed, scale=0.5 + seed)
        cost = log_loss(Calibrator().learn(truth, y), y).sum() - log_loss(truth, y).sum()
        assert cost <= math.log(4) + 5000 * -math.log1p(-1e-4)  # the bound of a mixture with fixed share, for any rows


def test_the_bound_holds_for_labels_chosen_against_it():
    scores = np.zeros(3000)
    calibrator = Calibrator()
    y = np.zeros(3000)
    answers = np.empty(3000)
    for i in range(3000):  # always the label that the calibrator thinks less likely
        y[i] = float(calibrator.transform(scores[i : i + 1])[0] < 0)
        answers[i] = calibrator.learn(scores[i : i + 1], y[i : i + 1])[0]
    assert log_loss(answers, y).sum() <= 3000 * math.log(2) + math.log(4) + 0.31


def test_a_change_is_followed():
    truth, y = odds(12_000)
    scores = np.where(np.arange(12_000) < 6000, truth, 5 * truth + 2)
    answers = Calibrator().learn(scores, y)
    late = slice(8000, None)
    assert log_loss(answers, y)[late].mean() < log_loss(truth, y)[late].mean() + 0.01


def test_several_classes_come_close_to_the_truth():
    rng = np.random.default_rng(1)
    truth = 2 * rng.normal(size=(20_000, 4))
    y = (softmax(truth, axis=1).cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    bent = 3 * truth + [0.0, 1.0, -2.0, 0.5]
    answers = Calibrator(4).learn(bent, y)
    assert np.allclose(np.exp(answers).sum(axis=1), 1)
    late, rows = slice(10_000, None), np.arange(20_000)
    loss, best = -answers[rows, y], -np.log(softmax(truth, axis=1)[rows, y])
    raw = -np.log(softmax(bent, axis=1)[rows, y])
    assert loss[late].mean() < best[late].mean() + 0.01 < raw[late].mean() - 0.1


def naive_calibrator(scores, y, memories=(500.0, 5000.0, math.inf)):
    """The formulas of two classes, one row at a time, with nothing clever."""
    answers = []
    theta = [np.array([1.0, 1.0, 0.0, 0.0]) for _ in memories]
    H = [5.0 * np.eye(4) for _ in memories]
    share = np.full(4, 0.25)
    for s, label in zip(scores, y, strict=True):
        z = np.array([math.log(1 + math.exp(s)), -math.log(1 + math.exp(-s)), math.tanh(s), 1.0])
        p = np.array([expit(s), *(expit(t @ z) for t in theta)])
        mixed = share @ p
        answers.append(math.log(mixed / (1 - mixed)))
        share = share * (p if label else 1 - p)
        share = (1 - 1e-4) * share / share.sum() + 1e-4 / 4
        for e, memory in enumerate(memories):
            g = (p[e + 1] - label) * z
            H[e] = (1 - 1 / memory) * H[e] + np.outer(g, g) + 5.0 / memory * np.eye(4)
            theta[e] = theta[e] - np.linalg.inv(H[e]) @ (g + 5.0 / memory * (theta[e] - [1.0, 1.0, 0.0, 0.0]))
    return np.array(answers)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_the_formula(engine):
    truth, y = odds(300, 3)
    np.testing.assert_allclose(Calibrator(engine=engine).learn(2 * truth, y), naive_calibrator(2 * truth, y), rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("own", [True, False])
def test_engines_and_splits_agree(n_classes, own):
    rng = np.random.default_rng(5)
    scores = 3 * rng.normal(size=(200, n_classes) if n_classes > 2 else 200)
    y, weight = rng.integers(0, n_classes, 200), rng.integers(0, 3, 200) / 2
    whole = {e: Calibrator(n_classes, own, e) for e in ENGINES}
    answers = {e: c.learn(scores, y, weight) for e, c in whole.items()}
    np.testing.assert_allclose(answers["python"], answers[ENGINES[-1]], rtol=1e-10, atol=1e-12)
    for name in whole["python"].state:
        a, b = (whole[e].state[name] for e in ("python", ENGINES[-1]))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    for engine in ENGINES:
        parts = Calibrator(n_classes, own, engine)
        cuts = [slice(0, 1), slice(1, 90), slice(90, 200)]
        cut = np.concatenate([parts.learn(scores[k], y[k], weight[k]) for k in cuts])
        assert np.array_equal(cut, answers[engine])
        assert_same_state(parts.state, whole[engine].state, 0.0, engine)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_unit_of_weights_does_not_matter(engine, n_classes):
    """Nothing is lost beside weights of 1e140 either: the matrices of the steps are those of weights around 1."""
    rng = np.random.default_rng(6)
    scores = 3 * rng.normal(size=(60, n_classes) if n_classes > 2 else 60)
    y, weight = rng.integers(0, n_classes, 60), rng.gamma(1.0, size=60)
    answers = [
        Calibrator(n_classes, engine=engine).learn(scores, y, unit * weight) for unit in (1, 1e-300, 1e18, 1e140)
    ]
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-8, atol=1e-8)
    ones = [Calibrator(n_classes, engine=engine).learn(scores, y, w) for w in (None, np.ones(60), np.full(60, 2.0**60))]
    assert np.array_equal(ones[0], ones[1]) and np.array_equal(ones[0], ones[2])


def test_bad_scores_are_refused():
    calibrator = Calibrator()
    before = pickle.dumps(calibrator.state)
    for scores, y, word in [
        ([np.nan], [1], "NaN"),
        ([[1.0, 2.0]], [1], "shape"),
        ([1.0], [2], "classes"),
        ([1.0], [0, 1], "entry"),
    ]:
        with pytest.raises(ValueError, match=word):
            calibrator.learn(scores, y)
    assert pickle.dumps(calibrator.state) == before
    with pytest.raises(ValueError, match=">= 2"):
        Calibrator(1)


# ---------------------------------------------------------------- calibrated classifiers
def blobs(n, n_classes, seed=0, d=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, d)) + 1.5 * np.eye(n_classes, d)[y], y


@pytest.mark.parametrize(
    "model",
    [
        FeatureClassifier(random_state=0),
        BudgetClassifier(random_state=0),
        MultiKernelClassifier(standardize=False, random_state=0),
        FeatureClassifier(loss="logistic", random_state=0),
    ],
    ids=["hinge", "budget", "vote", "logistic"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_classifier_gets_probabilities(model, n_classes):
    X, y = blobs(6000, n_classes)
    wrapped = Calibrated(model)
    scores = wrapped.learn(X[:5000], y[:5000])
    p = wrapped.predict_proba(X[5000:])
    assert p.shape == (1000, n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(np.log(p), wrapped.predict_log_proba(X[5000:]), rtol=1e-6, atol=1e-9)
    # Bayes: the densities of the blobs are known
    centres = 1.5 * np.eye(n_classes, 3)
    best = softmax(X[5000:] @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
    truth = (np.arange(1000), y[5000:])
    lost = 0.15 if isinstance(model, MultiKernelClassifier) else 0.06  # a vote says little about how sure it is
    assert -np.log(p[truth]).mean() < -np.log(best[truth]).mean() + lost
    assert calibration_error(p.max(axis=1), p.argmax(axis=1) == y[5000:]) < 0.05
    assert scores.shape == ((5000,) if n_classes == 2 else (5000, 3))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_predicted_label_is_the_most_probable_one(n_classes):
    """Also where the correction moves the line between labels: class weights favour one, its probability does not."""
    X, y = blobs(600, n_classes)
    model = Calibrated(FeatureClassifier(class_weight={0: 30.0}, random_state=0))
    model.learn(X[:400], y[:400])
    rows, labels = X[400:], y[400:]
    best = model.predict_proba(rows).argmax(axis=1)
    if n_classes > 1:
        assert (model.model_.predict(rows) != best).any()
        scores = model.decision_function(rows)
        np.testing.assert_array_equal(scores > 0 if n_classes == 2 else scores.argmax(axis=1), best)
    np.testing.assert_array_equal(model.predict(rows), best)
    assert model.score(rows, labels) == (best == labels).mean()


def test_what_learn_says_makes_the_log_loss():
    X, y = blobs(2000, 3)
    result = prequential(Calibrated(FeatureClassifier(random_state=0)), X, y, metrics="log_loss")
    model = Calibrated(FeatureClassifier(random_state=0))
    answers = model.learn(X, y, classes=[0, 1, 2])
    assert result.log_loss == pytest.approx(-answers[np.arange(2000), y].mean())


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
def test_classes_that_come_later_and_any_split(loss):
    X, y = blobs(200, 4, d=4)
    y = np.where((np.arange(200) < 100) & (y > 2), 0, y)
    y[:30], y[30:60] = 1, np.where(y[30:60] > 1, 0, y[30:60])
    names = np.array(["d", "b", "c", "a"])[y]
    make = lambda: Calibrated(FeatureClassifier(loss=loss, engine="python", random_state=0), engine="python")  # noqa: E731
    weight = np.where(np.arange(200) % 7 == 3, 0.0, 1.0)
    whole = make()
    answers = whole.learn(X, names, sample_weight=weight)
    last = answers[150:]
    for cuts in ([0, 17, 30, 31, 45, 101, 150, 200], [0, 50, 199, 200]):
        model = make()
        parts = [model.learn(X[a:b], names[a:b], sample_weight=weight[a:b]) for a, b in itertools.pairwise(cuts)]
        assert_same_state(model.state_, whole.state_, 0.0, "in parts")
        assert np.array_equal(np.concatenate(parts[-2:])[-50:], last)
    assert np.isfinite(last).all()
    first = np.flatnonzero((names == "a") & (weight > 0))[0]
    assert np.isinf(answers[first, whole.classes_.tolist().index("a")])  # nobody could know it


def test_sets_of_labels_hold_the_truth():
    X, y = blobs(20_000, 3)
    model = Calibrated(FeatureClassifier(update="adagrad", random_state=0))  # steps that settle: nothing changes here
    model.learn(X[:15_000], y[:15_000])
    for coverage in (0.8, 0.9, 0.95):
        sets = model.predict_set(X[15_000:], coverage)
        assert sets.shape == (5000, 3)
        assert sets[np.arange(5000), y[15_000:]].mean() == pytest.approx(coverage, abs=0.035)
    assert 1 < sets.sum(axis=1).mean() < 2.2  # and is no more than it must be


def put(model, state):
    """What loading a file does."""
    model.state_ = state
    model.check_state()


def test_a_state_that_does_not_fit_is_refused():
    X, y = blobs(300, 3)
    model = Calibrated(FeatureClassifier(random_state=0))
    model.learn(X, y)
    for name, value in [
        ("calibration/theta", np.zeros((3, 2, 2))),
        ("sets/weights", np.full((5, 3), 2.0)),
        ("extra", 1),
    ]:
        other = Calibrated(FeatureClassifier(random_state=0))
        with pytest.raises(ValueError, match=name):
            put(other, model.state_ | {name: value})


WRAPPED = [
    Calibrated(FeatureClassifier(random_state=0)),
    Delayed(FeatureClassifier(random_state=0)),
    Explained(FeatureClassifier(random_state=0)),
    WithIntervals(OnlineRidge(random_state=0)),
]


@pytest.mark.parametrize("model", WRAPPED, ids=lambda model: type(model).__name__)
def test_fit_refuses_what_does_not_go_together(model):
    """And keeps what was learned before; rows that nobody asked to drop were dropped once."""
    X, y = blobs(40, 2)
    model = clone(model).fit(X, y)
    before = pickle.dumps(model.state_)
    for rows, labels, weight in (
        (X, y[:30], None),
        (X[:30], y, None),
        (X, None, None),
        (X[:0], y[:0], None),
        (X, y, np.ones(39)),
        (X, y, np.zeros(40)),
    ):
        with pytest.raises(ValueError):
            model.fit(rows, labels, sample_weight=weight)
        assert pickle.dumps(model.state_) == before
    fresh = clone(model)
    assert len(fresh.learn(X[:0], y[:0])) == 0 and not hasattr(fresh, "model_")
    assert len(fresh.learn(X[:3], y[:3], sample_weight=np.zeros(3))) == 3


# ---------------------------------------------------------------- intervals
def naive_tracker(errors, level):
    """The formulas for one coverage, one row at a time."""
    q = np.full(3, ndtri(0.5 + 0.5 * level) * math.sqrt(math.pi / 2))
    share, factor, usual, halves = np.full(3, 1 / 3), 1.0, 0.0, []
    for n, r in enumerate(errors):
        half = factor * (share @ q) * usual if n else math.inf
        halves.append(half)
        if n:
            factor += 0.005 * ((r > half) - (1 - level))
            loss = np.maximum(level * (r / usual - q), (level - 1) * (r / usual - q))
            share = share * np.exp(-5 * loss)
            share = (1 - 1e-3) * share / share.sum() + 1e-3 / 3
            q = q + [0.002, 0.01, 0.05] * ((r / usual > q) - (1 - level))
        usual += (min(r, 10 * usual) - usual if n else r) / min(n + 1, 1000)
    return np.array(halves)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("coverage", [0.9, 0.85])
def test_intervals_are_the_formula(engine, coverage):
    errors = np.abs(np.random.default_rng(0).standard_t(4, 400))
    high = IntervalTracker(coverage, engine).learn(np.zeros(400), errors)[1]
    np.testing.assert_allclose(high, naive_tracker(errors, coverage), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 9, 200])
def test_errors_in_no_order_are_split_conformal(n):
    """The ceil((n + 1) c)-th of n errors is the half-width, or the largest."""
    errors = np.random.default_rng(0).exponential(size=n)
    tracker = IntervalTracker()
    tracker.start_from(errors)
    for coverage in (0.5, 0.8, 0.9, 0.95, 0.99):
        place = min(math.ceil(round((n + 1) * coverage, 9)), n)
        assert tracker.interval([0.0], coverage)[1][0] == pytest.approx(sorted(errors)[place - 1])


def windows(low, high, y, forecast, coverage=0.9, rows=5000):
    """Coverage of each stretch, and mean half-width over the best constant one."""
    for a in range(0, len(y) - rows + 1, rows):
        k = slice(a + 1 if a == 0 else a, a + rows)
        covered = np.mean((low[k] <= y[k]) & (y[k] <= high[k]))
        yield covered, np.mean(high[k] - low[k]) / 2 / np.quantile(np.abs(y - forecast)[k], coverage)


KINDS_OF_ERRORS = ("steady", "heavy tails", "jumps", "trend", "waves")


def errors_of(kind, n, rng):
    """Errors of n rows whose size changes, or not."""
    time = np.arange(n)
    size = {
        "jumps": np.where(time // 7000 % 2, 5.0, 1.0),
        "trend": np.exp(time / 10_000),
        "waves": 2 + np.sin(time / 500),
    }.get(kind, np.ones(n))
    return size * (rng.standard_t(3, n) if kind == "heavy tails" else rng.normal(size=n))


@pytest.mark.parametrize("kind", KINDS_OF_ERRORS)
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_every_stretch_is_covered(kind, coverage):
    n, rng = 40_000, np.random.default_rng(2)
    y = errors_of(kind, n, rng)
    low, high = IntervalTracker(coverage).learn(np.zeros(n), y)
    for covered, width in windows(low, high, y, 0.0, coverage):
        assert covered == pytest.approx(coverage, abs=0.01)
        assert width < 1.1
    forecast, tracker = rng.normal(size=n), QuantileTracker()
    found = tracker.learn(forecast, forecast + y)
    low, high = tracker.at(found, ends(coverage)).T
    for covered, width in windows(low, high, forecast + y, forecast, coverage):
        assert covered == pytest.approx(coverage, abs=0.015)
        assert width < 1.1
    if coverage == 0.8:  # a constant width holds half of the targets by holding nearly all the calm ones
        low, high = tracker.at(found, ends(0.5)).T
        for covered, _ in windows(low, high, forecast + y, forecast):
            assert covered == pytest.approx(0.5, abs=0.015)


def test_the_guarantee_for_any_rows():
    """Over any stretch, misses - alpha n = change of the factor / 0.005, whatever the errors are."""
    rng = np.random.default_rng(3)
    errors = np.exp(5 * rng.normal(size=3000)) * (np.arange(3000) % 50 < 25)
    tracker = IntervalTracker()
    tracker.learn(np.zeros(1), np.ones(1))
    start = tracker.state["factors"][2]
    high = tracker.learn(np.zeros(3000), errors)[1]
    misses = np.count_nonzero(errors > high)
    assert misses - 300 == pytest.approx((tracker.state["factors"][2] - start) / 0.005, abs=1e-6)


def test_one_outlier_is_no_alarm():
    y = np.random.default_rng(0).normal(size=3000)
    y[1500] = 1e9
    high = IntervalTracker().learn(np.zeros(3000), y)[1]
    assert high[1502:].max() < 1.3 * high[1400:1500].max()
    high = QuantileTracker().learn(np.zeros(3000), y)[:, -3]
    assert high[1502:].max() < 1.5 * high[1400:1500].max()


def test_spread_gives_the_shape():
    rng = np.random.default_rng(4)
    spread = rng.uniform(0.1, 3, 10_000)
    y = spread * rng.normal(size=10_000)
    low, high = IntervalTracker().learn(np.zeros(10_000), y, spread=spread)
    for part in (spread < 0.5, spread > 2):
        assert np.mean((low <= y) & (y <= high), where=part) == pytest.approx(0.9, abs=0.02)
    with pytest.raises(ValueError, match="spread"):
        IntervalTracker().learn([0.0], [1.0], spread=[0.0])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [IntervalTracker, QuantileTracker])
def test_skipped_rows_and_splits_of_intervals(kind, engine):
    rng = np.random.default_rng(6)
    f, y, x = rng.normal(size=(3, 600))
    weight = np.where(rng.random(600) < 0.3, 0.0, 2.0)
    more = {"X": x[:, None]} if kind is QuantileTracker else {}

    def learn(tracker, rows, **weights):
        found = tracker.learn(f[rows], y[rows], **weights, **{name: value[rows] for name, value in more.items()})
        return found if more else np.stack(found, axis=1)

    whole, parts, only = (kind(1, engine=engine) if more else kind(engine=engine) for _ in range(3))
    found = learn(whole, slice(None), weight=weight)
    cuts = [slice(a, b) for a, b in itertools.pairwise([0, 1, 5, 120, 600])]
    assert np.array_equal(np.concatenate([learn(parts, k, weight=weight[k]) for k in cuts]), found)
    assert np.array_equal(learn(only, weight > 0), found[weight > 0])
    assert_same_state(parts.state, whole.state, 0.0, "in parts")
    assert_same_state(only.state, whole.state, 0.0, "without the rows of weight 0")


def test_a_wider_coverage_is_wider():
    tracker = IntervalTracker()
    tracker.learn(np.zeros(5000), np.random.default_rng(0).normal(size=5000))
    halves = [tracker.interval([0.0], c)[1][0] for c in (0.5, 0.7, 0.9, 0.93, 0.99)]
    assert halves == sorted(halves)
    np.testing.assert_allclose(halves, ndtri(0.5 + 0.5 * np.array([0.5, 0.7, 0.9, 0.93, 0.99])), rtol=0.2)
    for bad in (0.2, 1.0, "90%", True):
        with pytest.raises(ValueError, match="coverage must be a number"):
            tracker.interval([0.0], bad)


def test_a_regressor_with_intervals():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (12_000, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(size=12_000) * np.where(np.arange(12_000) < 6000, 0.1, 0.5)
    model = WithIntervals(OnlineRidge(random_state=0))
    forecast, low, high = model.learn_interval(X[:11_000], y[:11_000])
    assert np.array_equal(forecast, OnlineRidge(random_state=0).learn(X[:11_000], y[:11_000]))
    assert all(abs(c - 0.9) < 0.01 and w < 1.1 for c, w in windows(low, high, y[:11_000], forecast))
    low, high = model.predict_interval(X[11_000:], coverage=0.95)
    assert np.mean((low <= y[11_000:]) & (y[11_000:] <= high)) == pytest.approx(0.95, abs=0.025)
    assert np.mean(high - low) / 2 == pytest.approx(1.96 * 0.5, rel=0.15)
