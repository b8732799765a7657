"""The default learner: its combination against naive recursions, its contract, and that it is good without choices."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from reloaded import reloaded
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.datasets import load_iris, load_wine, make_friedman1
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from kernelstream import FeatureClassifier, KernelClassifier, KernelRegressor, OnlineRidge, RRFClassifier, engine, zoo
from kernelstream.core.arrays import squashed
from kernelstream.core.ranges import COLUMNS
from kernelstream.estimators.stack import combination
from kernelstream.passes.stack import python as stack
from kernelstream.passes.stack.states import MEMORY, start_stack

ENGINES = ["python", "native"]
rng = np.random.default_rng(0)
X = rng.standard_normal((700, 4))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])
TARGET = np.sin(2 * X[:, 0]) + X[:, 1]


def reach(x, z, f, truth, H, weight):
    """Where between 0 and 1 the row's loss and the quadratic of the rows before, H, have their minimum along -x."""

    def slope(a):
        return a * x @ H @ x - weight * (expit(f - a * x @ z) - truth) * (x @ z)

    return 1.0 if slope(1.0) <= 0 else brentq(slope, 0.0, 1.0, xtol=1e-15)


def naive_binary(F, y, weight):
    """One memory at a time, with whole matrices and inverses: the formulas of the docstring."""
    z = np.concatenate([np.clip(F, -8, 8), np.ones((1, F.shape[1]))])
    N = len(F)
    A = [np.zeros((N + 1, N + 1)) for _ in MEMORY]
    w = [np.append(np.full(N, 1 / N), 0.0) for _ in MEMORY]
    belief, out = np.full(len(MEMORY), 1 / len(MEMORY)), []
    for t in range(F.shape[1]):
        p = np.array([expit(w_k @ z[:, t]) for w_k in w])
        belief = 0.999 * belief / belief.sum() + 0.001 / len(MEMORY)
        out.append(belief @ p)
        for k, fade in enumerate(MEMORY):
            before, row, truth = fade * A[k] + 5 * np.eye(N + 1), z[:, t], y[t] > 0
            A[k] = fade * A[k] + weight[t] * p[k] * (1 - p[k]) * np.outer(row, row)
            x = np.linalg.inv(A[k] + 5 * np.eye(N + 1)) @ row * weight[t] * (p[k] - truth)
            w[k] = w[k] - reach(x, row, w[k] @ row, truth, before, weight[t]) * x
            belief[k] *= max(p[k] if truth else 1 - p[k], 1e-7) ** weight[t]
    return np.array(out)


@pytest.mark.parametrize("importance", [None, 30.0])
@pytest.mark.parametrize("name", ENGINES)
def test_combination_of_labels(name, importance, rng):
    """Rows of weight 30 among others: a step ends where the row's loss and the rows before balance."""
    n = 200
    weight = None if importance is None else np.where(np.arange(n) % 10 == 3, importance, 1.0)
    truth = rng.standard_normal(n)
    y = np.where(rng.random(n) < expit(2 * truth), 1.0, -1.0)
    F = np.stack([truth, 3 * truth + rng.standard_normal(n), rng.standard_normal(n)])
    state = start_stack(3, 1, False)
    scores = engine.get(name).stack_pass(F[:, :, None], y, weight, state, (False, False))[:, 0]
    truth_of_all = naive_binary(F, y, np.ones(n) if weight is None else weight)
    assert expit(scores) == pytest.approx(np.clip(truth_of_all, 1e-7, 1 - 1e-7), abs=1e-9)
    if weight is not None:
        return
    later = engine.get(name).stack_pass(F[:, -50:, None].copy(), None, None, state, (False, False))
    assert np.corrcoef(later[:, 0], truth[-50:])[0, 1] > 0.95


def test_length_of_a_step(monkeypatch, rng):
    """The root that SciPy finds, in a few looks: where Newton's step ends on the root, nothing is searched any more."""
    looks, probabilities = [], stack._probabilities
    monkeypatch.setattr(stack, "_probabilities", lambda f: (looks.append(1), probabilities(f))[1])
    for size in (1e-4, 1e-3, 1e-2, 1.0, 10.0) * 20:
        f, d = rng.standard_normal(3), size * rng.standard_normal(3)
        q = softmax(f)
        bend = q @ d - d[1] - q @ (d - q @ d) ** 2
        if bend < 0:  # the step leads uphill
            continue

        def slope(a, f=f, d=d, bend=bend):
            return a * bend - (softmax(f - a * d) @ d - d[1])

        truth = 1.0 if slope(1.0) <= 0 else brentq(slope, 0.0, 1.0, xtol=1e-15)
        looks.clear()
        assert stack._reach(f, d, 1.0) == pytest.approx(truth, abs=1e-9)
        assert len(looks) <= 10


@pytest.mark.parametrize("recent", [False, True])
@pytest.mark.parametrize("outputs", [1, 3, "numbers"])
def test_engines_agree(recent, outputs, rng):
    n, regression = 150, outputs == "numbers"
    C = 1 if regression else outputs
    F, weight = rng.standard_normal((4, n, C)) * 3, rng.integers(0, 3, n).astype(float)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0) if C == 1 else rng.integers(0, C, n).astype(float)
    if regression:
        y, weight = np.cumsum(rng.standard_normal(n)) * 1e3, None
        F = y[:, None] + 100 * F
    found = {}
    for name in ENGINES:
        state = start_stack(4, C, regression)
        found[name] = engine.get(name).stack_pass(F, y, weight, state, (regression, recent)), state
    size = {"rel": 1e-9} if regression else {"abs": 1e-9}
    assert found["python"][0] == pytest.approx(found["native"][0], **size)
    for key, value in found["python"][1].items():
        assert value == pytest.approx(found["native"][1][key], rel=1e-6 * regression, abs=1e-8), key


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("regression", [False, True])
def test_rows_that_are_not_learned_are_each_the_next(name, regression, rng):
    """Whatever is asked in the same call."""
    F, state, ops = rng.standard_normal((3, 60, 1)), start_stack(3, 1, regression), engine.get(name)
    y = np.cumsum(rng.standard_normal(50)) if regression else np.where(rng.random(50) < 0.7, 1.0, -1.0)
    ops.stack_pass(F[:, :50].copy(), y, None, state, (regression, True))
    asked = [F[:, i : i + 1].copy() for i in range(50, 60)]
    together = ops.stack_pass(F[:, 50:].copy(), None, None, state, (regression, True))
    singly = [ops.stack_pass(row, None, None, state, (regression, True))[0] for row in asked]
    np.testing.assert_array_equal(together, singly)
    assert np.abs(together - ops.stack_pass(F[:, 50:].copy(), None, None, state, (regression, False))).min() > 0


def test_combination_of_numbers_finds_the_regression(rng):
    """Two forecasts with independent errors: nearly as good as the best weights in hindsight."""
    n = 4000
    y = 100 * rng.standard_normal(n)
    F = np.stack([y + 20 * rng.standard_normal(n), y + 30 * rng.standard_normal(n), rng.standard_normal(n)])
    state = start_stack(3, 1, True)
    got = engine.get("auto").stack_pass(F[:, :, None].copy(), y, None, state, (True, False))[1000:, 0]
    best = F[:, 1000:].T @ np.linalg.lstsq(F[:, 1000:].T, y[1000:], rcond=None)[0]
    assert np.std(got - y[1000:]) < 1.03 * np.std(best - y[1000:])


def test_last_labels_help_where_labels_persist(rng):
    y = np.repeat(rng.integers(0, 2, 60), 50)
    noise = rng.standard_normal((len(y), 3))
    with_them, without = (KernelClassifier(size="small", recent=recent, random_state=0) for recent in (True, False))
    mistakes = [np.mean((model.learn(noise, y) >= 0) != y) for model in (with_them, without)]
    assert mistakes[0] < 0.025 and mistakes[0] < 0.6 * mistakes[1]


@pytest.mark.parametrize("task", ["binary", "many", "numbers"])
def test_the_unit_of_weights_does_not_matter(task):
    """Weights of a survey: all of them times 1,000 are the same weights, and any cut of the rows the same rows."""
    y = {"binary": LABELS, "many": THREE, "numbers": TARGET}[task]
    weight = np.random.default_rng(3).gamma(2.0, size=len(y)) * (np.arange(len(y)) % 9 > 0)

    def learn(unit, cuts=(0, 700)):
        model = (KernelRegressor if task == "numbers" else KernelClassifier)(size="small", random_state=0)
        for a, b in itertools.pairwise(cuts):
            model.learn(X[a:b], y[a:b], sample_weight=weight[a:b] * unit)
        return model

    whole = learn(1.0)
    truth = whole.decision_function(X) if task != "numbers" else whole.predict(X)
    for other in (learn(2.0**40), learn(1000.0), learn(1e-6), learn(1.0, (0, 3, 150, 151, len(y)))):
        found = other.decision_function(X) if task != "numbers" else other.predict(X)
        np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-6)
    unweighted = (KernelRegressor if task == "numbers" else KernelClassifier)(size="small", random_state=0)
    assert np.std(unweighted.fit(X, y, shuffle=False).predict(X) - whole.predict(X)) > 0
    # rows without weights have weight 1, next to those of the past
    resumed = [model.partial_fit(X[:20], y[:20]).predict(X) for model in (whole, reloaded(whole))]
    assert np.array_equal(*resumed)


def test_balanced_weights_of_rare_labels():
    """One row in a thousand has a weight of 500, when the model is sure of the opposite: no step is endless."""
    generator = np.random.default_rng(1)
    rows, y = generator.standard_normal((5000, 3)), np.zeros(5000, int)
    y[999::1000] = 1
    rows[y == 1, 0] += 1.0
    model = KernelClassifier(size="small", class_weight="balanced", random_state=0)
    assert np.isfinite(model.learn(rows, y, classes=[0, 1])).all()
    assert np.abs(model.state_["o0/stack_w"]).max() < 100


@pytest.mark.parametrize(
    "name, size, unit, zero",
    [("native", "medium", 2.0**40, 1e18), ("native", "small", 2.0**-40, 0.0), ("python", "small", 2.0**-40, 1e-6)],
)
def test_units_change_nothing(name, size, unit, zero):
    """Numbers in other units, or from another zero: all is the same, but for the first four rows."""
    if name not in ENGINES:
        pytest.skip("needs the compiled core")
    n = len(X) if name == "native" else 150
    single = [slice(i, i + 1) for i in range(n - 20, n)]
    found = []
    for rows, y in ((X, TARGET), (X * 2.0 ** np.array([40, -40, 3, 0]), zero + unit * TARGET)):
        model = KernelRegressor(size=size, engine=name, random_state=0)
        learned = [model.learn(rows[part], y[part]) for part in (slice(n - 20), *single)]
        found.append(np.concatenate([*learned, model.predict(rows[:9]), model.predict(rows[:1])]))
    np.testing.assert_allclose((found[1][4:] - zero) / unit, found[0][4:], atol=1e-5)


@pytest.mark.slow
def test_one_glitch_costs_little():
    """A cell, and a target, far from all others."""
    rows, y = make_friedman1(1400, 5, noise=0.5, random_state=0)
    bad_rows, bad_y = rows.copy(), y.copy()
    bad_rows[700, 0], bad_y[700] = 1e4, -1e5
    clean = KernelRegressor(random_state=0).learn(rows, y)
    cell = KernelRegressor(random_state=0).learn(bad_rows, y)
    with pytest.warns(RuntimeWarning):
        target = KernelRegressor(random_state=0).learn(rows, bad_y)
    errors = [np.mean((f[701:] - y[701:]) ** 2) for f in (clean, cell, target)]
    assert max(errors[1:]) < 1.03 * errors[0]


def test_a_member_that_fails_is_held_harmless(monkeypatch):
    from kernelstream.core.overflow import LEARNING

    model = KernelClassifier(random_state=0)
    model.learn(X[:300], LABELS[:300])
    victim, calls = model.learners_[5], []

    def fails(*args):
        calls.append(1)
        raise ValueError(LEARNING)

    monkeypatch.setattr(victim._learner, "learn", fails)
    scores = model.learn(X[300:400], LABELS[300:400])
    assert calls and np.isfinite(scores).all()
    assert [member["restarts"] for member in model.members_] == [0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_members_of_ones_own():
    members = [FeatureClassifier(loss="logistic"), RRFClassifier(loss="logistic"), FeatureClassifier("raw")]
    model = KernelClassifier(members, random_state=0)
    scores = model.learn(X, LABELS)
    assert len(model.weights_) == 3 and model.members_[0]["name"] == "FeatureClassifier"
    alone = [np.mean((m.learn(squashed(X), LABELS) >= 0) != LABELS) for m in members[:2]]
    assert np.mean((scores >= 0) != LABELS)[...] < min(alone) + 0.05
    for wrong in ("all", [], [OnlineRidge()], [KernelClassifier()], [LogisticRegression()]):
        with pytest.raises(ValueError):
            KernelClassifier(wrong).partial_fit(X, LABELS)


def test_weights_over_time():
    model = KernelClassifier(random_state=0).partial_fit(X, LABELS)
    rows, weights = model.weights_history_
    assert rows.tolist() == list(range(64, 700, 64)) and weights.shape == (10, 9)
    assert set(model.members_[0]) == {"name", "weight", "error", "error_lately", "restarts", "rows"}
    assert {member["rows"] for member in model.members_} == {700}


@pytest.mark.parametrize("numbers", [0, 2])
def test_the_history_is_what_the_weights_were(numbers, monkeypatch):
    monkeypatch.setattr(combination, "HISTORY", 4)  # places are taken soon
    monkeypatch.setattr(combination, "STRIDE", 32)
    Model = KernelRegressor if numbers else KernelClassifier
    n, y = 420, np.stack([TARGET, np.abs(TARGET)], axis=1) if numbers else LABELS
    weight = np.where(np.arange(n) % 7 == 3, 0.0, 1.0)
    one, two = (Model(size="small", random_state=0) for _ in range(2))
    seen = {}
    one.partial_fit(X[:n], y[:n], sample_weight=weight)
    for a in range(n):  # one call for each row
        two.partial_fit(X[a : a + 1], y[a : a + 1], sample_weight=weight[a : a + 1])
        seen[two._state["t"]] = two.weights_
    rows, weights = one.weights_history_
    assert rows.tolist() == [128, 256]  # the stride was doubled twice
    np.testing.assert_allclose(weights, [seen[t] for t in rows], rtol=1e-6)
    np.testing.assert_allclose(two.weights_history_[1], weights, rtol=1e-6)


def test_several_outputs_are_several_models():
    both = KernelRegressor(size="small", random_state=0).learn(X, np.stack([TARGET, -2 * TARGET], axis=1))
    one = KernelRegressor(size="small", random_state=0).learn(X, TARGET)
    assert (both[:, 0] == one).all() and both.shape == (700, 2)


def test_fit_does_not_depend_on_the_order_of_a_file():
    """Data sorted by class, as shipped: the batch call must not be at chance."""
    for load, least in ((load_iris, 0.93), (load_wine, 0.93)):
        rows, y = load(return_X_y=True)
        assert cross_val_score(KernelClassifier(random_state=0), rows, y, cv=3).mean() > least


@pytest.mark.parametrize("model", [KernelRegressor, KernelClassifier])
def test_a_refused_fit_leaves_a_stream_as_it_was(model):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    y = rows[:, 0] if model is KernelRegressor else (rows[:, 0] > 0).astype(float)
    one, other = (model(size="small", random_state=0).partial_fit(rows[:300], y[:300]) for _ in range(2))
    with pytest.raises(ValueError, match="NaN"):
        one.fit(rows, np.append(y[:-1], np.nan))
    np.testing.assert_array_equal(one.learn(rows[300:], y[300:]), other.learn(rows[300:], y[300:]))


def test_arrays_of_dates():
    """Rows of dates are encoded like those of a frame; targets must be numbers."""
    days = np.arange(120)
    dates = np.datetime64("2026-01-01") + days[:, None].astype("m8[D]")
    model = KernelRegressor(size="small", random_state=0).partial_fit(dates, np.sin(days / 9))
    assert list(model.columns_.kinds_.values()) == ["date"]
    for y in (dates[:, 0], dates[:, 0] - dates[0, 0]):
        with pytest.raises(ValueError, match="pass numbers, such as days"):
            KernelRegressor(size="small").partial_fit(days[:, None], y)
    numbers = KernelRegressor(size="small", random_state=0).partial_fit(days[:, None], days)
    with pytest.raises(ValueError, match=r"datetime64.* is not a number: this KernelRegressor started with"):
        numbers.learn(dates[:3], days[:3])


def test_sets_of_labels_after_fit():
    """Labels that nothing is known of: nine in ten sets hold the truth, since most hold both labels."""
    rng, held = np.random.default_rng(0), []
    for _ in range(3):
        rows, y = rng.normal(size=(1100, 2)), rng.integers(0, 2, 1100)
        sets = KernelClassifier(size="small", random_state=0).fit(rows[:600], y[:600]).predict_set(rows[600:])
        held.append(sets[np.arange(500), y[600:]].mean())
    assert 0.8 < np.mean(held) < 0.97


def test_batch_is_ahead_of_one_pass():
    rows, y = make_friedman1(1600, 10, noise=0.5, random_state=0)
    once = KernelRegressor(random_state=0).fit(rows[:800], y[:800], passes=1).score(rows[800:], y[800:])
    often = KernelRegressor(random_state=0).fit(rows[:800], y[:800]).score(rows[800:], y[800:])
    assert often > once > 0.85
    with pytest.raises(ValueError, match="passes"):
        KernelRegressor().fit(rows, y, passes="many")


def test_probabilities_are_calibrated():
    n = 6000
    rows = np.random.default_rng(5).standard_normal((n, 3))
    truth = expit(2 * rows[:, 0] * rows[:, 1])
    y = (np.random.default_rng(6).random(n) < truth).astype(int)
    p = expit(KernelClassifier(random_state=0).learn(rows, y))[2000:]
    bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    gap = sum(abs(p[bins == b].mean() - y[2000:][bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins))
    assert gap < 0.03


def test_softmax_of_scores_is_predict_proba():
    model = KernelClassifier(size="small", recent=False, random_state=0).partial_fit(X, THREE)
    assert model.predict_proba(X[:9]) == pytest.approx(softmax(model.decision_function(X[:9]), axis=1))


def test_forecast_knows_the_next_row_and_predict_any():
    model = KernelClassifier(size="small", random_state=0).partial_fit(X, LABELS)
    table, alone, following = (
        model.decision_function(X[:5]),
        model.decision_function(X[:1]),
        model.forecast_scores(X[:1]),
    )
    coming = model.learn(X[:1], LABELS[:1])
    assert following == pytest.approx(coming, rel=1e-3)  # which scales by moments that the row is in
    assert alone[0] == table[0] != following[0]
    model = KernelClassifier(size="small", random_state=0, recent=False).partial_fit(X, LABELS)
    assert model.decision_function(X[:1])[0] == model.decision_function(X[:5])[0] == model.forecast_scores(X[:5])[0]


def test_zoo_and_wrong_words():
    assert isinstance(zoo.make("auto", task="regression", size="small"), KernelRegressor)
    with pytest.raises(ValueError, match="medium"):
        KernelClassifier(size="huge").partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="2001 columns"):
        KernelClassifier().partial_fit(sp.csr_array((3, 2001)), [0, 1, 0])


def test_later_passes_count_no_weight_again():
    """The mean weight is that of the rows of the first pass, each counted once, and stays through the others."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(150, 3)), rng.uniform(1, 9, 150)  # so few that they are not learned all at once
    model = KernelClassifier(size="small", random_state=0).fit(X, (X[:, 0] > 0).astype(int), sample_weight=w)
    rows, total = model.state_["weight_sums"]
    assert rows < 150 and total < w.sum()  # some were held out
    assert total / rows == pytest.approx(w.mean(), rel=0.05)


@pytest.mark.parametrize("power", [2.0, -2.0])
def test_columns_with_long_tails_cost_little(power):
    """Of exp(2z), most rows of which lie in a hundredth of its range, nearly as much is learned as of z itself."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(1500, 3))
    y = np.sin(2 * z[:, 0]) + z[:, 1] + 0.1 * rng.normal(size=1500)
    plain, tailed = (
        np.mean((KernelRegressor(random_state=0).learn(rows, y) - y)[750:] ** 2) for rows in (z, np.exp(power * z))
    )
    assert tailed < 3 * plain


def test_any_split_with_long_tails():
    """In one call, or row by row, from a file and in parts, across the rows at which columns are looked at."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(700, 3))
    X, y = np.exp(2 * z), np.sin(2 * z[:, 0]) + z[:, 1]
    whole, parts = (KernelRegressor(size="small", random_state=0) for _ in range(2))
    expected = whole.learn(X, y)
    found = [parts.learn(X[:37], y[:37]), parts.learn(X[37:120], y[37:120])]
    found += [parts.learn(X[i : i + 1], y[i : i + 1]) for i in range(120, 270)]
    parts = reloaded(parts)
    found += [parts.learn(X[i : i + 9], y[i : i + 9]) for i in range(270, 540, 9)] + [parts.learn(X[540:], y[540:])]
    assert whole.state_["x_tailed"].all() and (whole.state_["x_since"] > 0).all()
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9)
    for name in COLUMNS:
        np.testing.assert_array_equal(parts.state_[name], whole.state_[name])
