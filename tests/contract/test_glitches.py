"""Single numbers far from all others, in a target or a cell, must not matter: what is learned is as without them."""

import math
import warnings

import numpy as np
import pytest
from recipes import first_of_each_class

import kernelstream as ks
from kernelstream import engine, losses, updates, zoo
from kernelstream.core import ranges as _ranges
from kernelstream.core import targets as _targets
from kernelstream.estimators import DoublySchedule
from kernelstream.features import RandomFourier
from kernelstream.testing import check_streaming

ENGINES = ["python", *(["native"] if engine.has_native() else [])]

pytestmark = [
    pytest.mark.usefixtures("short_searches"),
    pytest.mark.filterwarnings("ignore:a target lies far outside:RuntimeWarning", "ignore:the target has moved"),
]


def stream(n=600, d=3, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)


def seen_by(sequence, name="python", weight=None, cuts=()):
    """Weights that a sequence of targets gets, what is remembered of them, and the moves."""
    y = np.asarray(sequence, float)
    state = _targets.no_targets(1 if y.ndim == 1 else y.shape[1])
    seen, last, out, start, moves = state["target_range"], state["target_last"], np.empty(len(y)), 0, []
    for stop in (*cuts, len(y)):
        while start < stop:
            given = None if weight is None else weight[start:stop]
            n, due, wild = engine.get(name).take_targets(y[start:stop], given, seen, last, out[start:stop])
            assert wild == np.count_nonzero((out[start : start + n] == 0) & (given is None or given[:n] != 0))
            start += n
            moves += [(start, move) for move in (_targets.look(seen, last) if due else []) if move is not None]
    return out, seen, moves


# ---------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize("name", ENGINES)
def test_one_far_target_is_set_aside(name):
    y = np.random.default_rng(0).standard_normal(200)
    y[100] = -9999
    weights, seen, moves = seen_by(y, name)
    assert np.flatnonzero(weights == 0).tolist() == [100] and not moves
    others = np.delete(y, 100)
    assert seen[_targets.LOW, 0] == others.min() and seen[_targets.HIGH, 0] == others.max()
    assert seen[_targets.TOTAL, 0] == 1


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("size", [1e2, 1e4, 1e12])
def test_a_new_level_is_believed_with_its_thirteenth_row(name, size):
    y = np.random.default_rng(0).standard_normal(300)
    y[150:] += size
    weights, _, moves = seen_by(y, name)
    assert np.flatnonzero(weights == 0).tolist() == list(range(150, 162))
    ((row, move),) = moves
    assert row == 162 and move.factor == 1 and abs(move.to - move.middle - size) < 1  # deviation, of twelve numbers


@pytest.mark.parametrize("name", ENGINES)
def test_rows_from_a_second_level(name):
    """One row in twenty is learned after a few hundred rows, one in two hundred is not."""
    rng, n = np.random.default_rng(1), 20_000 if name == "native" else 5000
    often, seldom = rng.random(n) < 0.05, rng.random(n) < 0.005
    y = rng.standard_normal(n)
    for which, believed in ((often, True), (seldom, False)):
        weights, _, moves = seen_by(y + 1000 * which, name)
        assert not moves
        assert weights[~which].all()
        late = which & (np.arange(n) > 1000)
        assert weights[late].all() if believed else not weights[late].any()


@pytest.mark.parametrize("draw", ["normal", "laplace", "lognormal", "pareto", "student"])
def test_tails_are_not_glitches(draw):
    """Of a million rows from five distributions, the last three with heavy tails, hardly one is set aside."""
    rng = np.random.default_rng(2)
    sample = {
        "normal": rng.standard_normal,
        "laplace": lambda n: rng.laplace(size=n),
        "lognormal": lambda n: rng.lognormal(sigma=1.5, size=n),
        "pareto": lambda n: rng.pareto(2.5, size=n),
        "student": lambda n: rng.standard_t(3, size=n),
    }[draw]
    lost = sum(int((seen_by(sample(5000), ENGINES[-1])[0] == 0).sum()) for _ in range(40))
    assert lost <= 40  # one row in five thousand


@pytest.mark.parametrize("name", ENGINES)
def test_constants_and_few_rows_say_nothing(name):
    assert seen_by([0.0] * 50 + [1e9, 0.0, 5.0], name)[0].all()
    assert seen_by([0.0, 1.0, 1e9, -1e9], name)[0].all()


@pytest.mark.parametrize("outputs", [1, 3])
def test_twins(outputs):
    """Both engines, bit for bit, on sequences with glitches, levels, ties and weights of 0, whole and cut up."""
    if len(ENGINES) == 1:
        pytest.skip("needs the compiled core")
    rng = np.random.default_rng(3)
    for _ in range(30):
        n = 900
        y = rng.standard_normal((n, outputs)).round(rng.integers(0, 3)) * 10.0 ** rng.integers(-3, 4)
        y[rng.random((n, outputs)) < 0.05] *= 10.0 ** rng.integers(1, 9)
        y[n // 2 :] += rng.choice([0.0, 1e3, -1e7])
        weight = None if rng.random() < 0.5 else rng.choice([0.0, 0.5, 1.0], n)
        y = y[:, 0].copy() if outputs == 1 else y
        expected, remembered, moves = seen_by(y, "python", weight)
        for cuts in ((), (int(rng.integers(1, n)),)):
            got, seen, found = seen_by(y, "native", weight, cuts)
            assert np.array_equal(expected, got)
            assert np.array_equal(remembered, seen)
            assert moves == found


def test_bulk():
    rng = np.random.default_rng(4)
    v = rng.standard_normal(100)
    assert _ranges.bulk(v) == (v.min(), v.max())
    assert _ranges.bulk(np.append(v, [-9999, 1e7])) == (v.min(), v.max())
    assert _ranges.bulk(np.r_[np.zeros(90), np.arange(10.0)]) == (0.0, 9.0)  # the middle half is one number


# ------------------------------------------------------------------------------------------------- targets, learners

REGRESSORS = [
    ks.FeatureRegressor(RandomFourier(n_components=30), random_state=0),
    ks.FeatureRegressor(RandomFourier(n_components=30), update="norm_adagrad", random_state=0),
    ks.FeatureRegressor(RandomFourier(n_components=30, gamma=0.5), "huber", center=False, random_state=0),
    ks.NystroemRegressor(budget=30, random_state=0),
    ks.RRFRegressor(n_components=20, random_state=0),
    ks.BudgetRegressor(budget=30, random_state=0),
    ks.OnlineRidge(RandomFourier(n_components=20), random_state=0),
    ks.OnlineRidge("raw", lam="auto", forecaster="awv", standardize=True),
    ks.CellsRegressor(16, "hashed", random_state=0),
    ks.MultiKernelRegressor(random_state=0),
    ks.DoublyStochasticRegressor(
        gamma=1.0, step="auto", schedule=DoublySchedule(batch_size=8, block_size=16), random_state=0
    ),
]


def streaming_recipes():
    return [name for name in zoo.names("regression") if hasattr(zoo.make(name, task="regression"), "learn")]


def small(name):
    """A recipe of the zoo that learns a few hundred rows in little time."""
    known = zoo.get(name).parameters
    settings = {"budget": 48 if name.startswith("omkl") else 10, "n_components": 16}
    own = {key: value for key, value in settings.items() if key in known}
    if name.startswith("doubly"):
        own |= {"gamma": 1.0, "batch_size": 8, "block_size": 8}
        own |= {"variance_features": 4, "max_blocks": 4, "noise": 0.1} if name == "doubly_gp" else {}
    return zoo.make(name, task="regression", random_state=0, **own)


def assert_as_without(make, X, y, at, rel=0.0):
    """A model that meets a glitch in row ``at`` forecasts all later rows as one that never saw the row."""
    wild = y.copy()
    wild[at] = y[:at].mean() - 1e4 * y[:at].std()
    got = make().learn(X, wild)
    expected = make().learn(np.delete(X, at, axis=0), np.delete(y, at))
    np.testing.assert_allclose(np.delete(got, at), expected, rtol=0, atol=rel * np.abs(expected).max())


@pytest.mark.parametrize("name", first_of_each_class(streaming_recipes()))
def test_recipes_do_not_notice_a_glitch(name):
    X, y = stream(160)
    assert_as_without(lambda: small(name), X, y, 120, rel=1e-12)


@pytest.mark.parametrize("est", REGRESSORS, ids=lambda est: type(est).__name__)
@pytest.mark.parametrize("name", ENGINES)
def test_learners_do_not_notice_a_glitch(est, name):
    X, y = stream(200)
    params = est.get_params(deep=False) | {"engine": name}
    if isinstance(est, ks.MultiKernelRegressor) and name == "python":
        params["learners"] = [ks.FeatureRegressor(RandomFourier(gamma=g, n_components=10)) for g in (0.1, 1.0)]
    assert_as_without(lambda: type(est)(**params), X, y, 150, rel=1e-12)


def test_several_targets():
    X, y = stream(300)
    Y = np.stack([y, 5 - y], axis=1)
    wild = Y.copy()
    wild[200, 1] = 1e9
    got = ks.OnlineRidge(random_state=0).learn(X, wild)
    expected = ks.OnlineRidge(random_state=0).learn(np.delete(X, 200, axis=0), np.delete(Y, 200, axis=0))
    np.testing.assert_allclose(np.delete(got, 200, axis=0), expected, atol=1e-10)


@pytest.mark.parametrize("at", [1, 4, 7])
def test_glitch_among_the_first_rows(at):
    """There is no range yet: the row is learned, and taken back in the course of the warm-up."""
    X, y = stream(400)
    wild = y.copy()
    wild[at] = 1e6
    for est in (ks.FeatureRegressor(random_state=0), ks.OnlineRidge(random_state=0), ks.RRFRegressor(random_state=0)):
        got = np.delete(est.learn(X, wild), at)
        expected = type(est)(random_state=0).learn(np.delete(X, at, axis=0), np.delete(y, at))
        assert np.abs(got - expected)[100:].max() < 0.01 * y.std()  # one row apart in the warm-up


def test_a_new_level_is_learned():
    """The target rises by a thousand deviations: 200 rows later the forecasts are there."""
    X, y = stream(1300)
    shifted = y + np.where(np.arange(1300) < 1000, 0.0, 1000.0 * y.std())
    for est in (
        ks.FeatureRegressor(random_state=0),
        ks.NystroemRegressor(random_state=0),
        ks.RRFRegressor(random_state=0),
    ):
        forecast = est.learn(X, shifted)
        assert np.abs(forecast - shifted)[-100:].mean() < 0.1 * 1000 * y.std()


@pytest.mark.parametrize("rate", [0.002, 0.008])
def test_many_glitches(rate):
    """Up to one target in a hundred may be a -9999: the error on the others stays what it was."""
    X, y = stream(3000)
    wild = y.copy()
    wild[(np.random.default_rng(5).random(3000) < rate) & (np.arange(3000) > 20)] = -9999
    for kind in (ks.FeatureRegressor, ks.OnlineRidge, ks.BudgetRegressor):
        plain, spoilt = (np.mean((kind(random_state=0).learn(X, z) - y)[500:] ** 2) for z in (y, wild))
        assert spoilt < 1.05 * plain


def test_said_once():
    X, y = stream(400)
    y[[200, 300, 350]] = 1e7
    est = ks.FeatureRegressor(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(0, 400, 50):
            est.learn(X[i : i + 50], y[i : i + 50])
    assert [str(w.message)[:32] for w in caught] == ["a target lies far outside the oth"[:32]]
    assert caught[0].filename == __file__
    assert est.state_["target_range"][_targets.TOTAL, 0] == 3


@pytest.mark.parametrize(
    "est",
    [
        ks.FeatureRegressor(RandomFourier(n_components=20), standardize=True, random_state=0),
        ks.OnlineRidge(RandomFourier(n_components=10), standardize=True, random_state=0),
    ],
    ids=lambda est: type(est).__name__,
)
def test_any_split_of_a_stream_with_glitches(est):
    X, y = stream(130)
    y[[3, 40, 105, 112]] = [1e5, -9999, 1e8, -1e3]
    y[118:] += 500
    X[[5, 60, 108], [0, 1, 2]] = 1e5
    check_streaming(est, X, y, chunks=(7,))


# ------------------------------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_of_columns(name, dtype):
    """Mean and deviation are those of the column with the glitch replaced by the end of the range so far."""
    rng = np.random.default_rng(6)
    X = (rng.standard_normal((300, 2)) * [1.0, 50.0] + [3.0, 0.0]).astype(dtype)
    X[200, 1] = 1e7
    plain = X.astype(np.float64)
    plain[200, 1] = plain[:200, 1].max()
    state = {"x_count": 0.0} | {name: np.zeros(2) for name in _ranges.COLUMNS}
    Z = X.copy()
    engine.get(name).standardize(state, Z, None)
    assert state["x_count"] == 300
    moments = [state[name] for name in _ranges.COLUMNS]
    np.testing.assert_allclose(moments[0], plain.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(moments[1] / 300), plain.std(axis=0), rtol=1e-12)
    expected = [(plain[i] - plain[: i + 1].mean(0)) / plain[: i + 1].std(0) for i in range(1, 256)]
    close = {"rtol": 2e-6 if dtype == np.float32 else 1e-9, "atol": 1e-6}
    np.testing.assert_allclose(Z[1:256], expected, **close)

    # the columns have stayed where they were after 128 rows, and are scaled by the first 256 from then on
    first = plain[:256]
    np.testing.assert_allclose(Z[256:], (plain[256:] - first.mean(0)) / first.std(0), **close)
    for value, as_if in ((1e9, plain[:, 1].max()), (-1e9, plain[:, 1].min()), (7.0, 7.0)):
        row = _ranges.scaled(np.array([[0.0, value]]), state)
        np.testing.assert_allclose(row[0], ([0.0, as_if] - first.mean(0)) / first.std(0), rtol=1e-12)


@pytest.mark.parametrize("name", ENGINES)
def test_columns_that_stay_keep_their_scale(name):
    """A counter is scaled by all rows before it, a column that stays by the same rows all the time."""
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.standard_normal(3000), np.arange(3000.0), np.zeros(3000)])
    X[1100:, 2] = rng.choice([-1.0, 1.0], 1900)
    state, Z = {"x_count": 0.0} | {name: np.zeros(3) for name in _ranges.COLUMNS}, X.copy()
    engine.get(name).standardize(state, Z, None)
    first = X[:256, 0]
    np.testing.assert_allclose(Z[256:, 0], (X[256:, 0] - first.mean()) / first.std(), rtol=1e-9)
    np.testing.assert_allclose(Z[2999, 1], (2999 - X[:, 1].mean()) / X[:, 1].std(), rtol=1e-9)
    assert state["x_since"].tolist() == [256.0, 0.0, 0.0] and (Z[:1100, 2] == 0).all() and abs(Z[1101:, 2]).max() > 1
    before = (X[1500, 2] - X[:1501, 2].mean()) / X[:1501, 2].std()
    np.testing.assert_allclose(Z[1500, 2], before, rtol=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_columns_with_long_tails_keep_their_scale(name):
    """Their deviation is that of a few rows: they stay until it is eight times another, as other columns do not."""
    X = np.exp(2 * np.random.default_rng(59).standard_normal((3000, 1))) @ [[1.0, 1.0, 1.0]]
    X[1100:, 1] *= 100.0
    state, Z = {"x_count": 0.0} | {name: np.zeros(3) for name in _ranges.COLUMNS}, X.copy()
    state["x_tailed"][:2] = 1.0
    engine.get(name).standardize(state, Z, None)
    first = X[:256, 0]
    assert X[:1024, 0].std() > 3 * first.std()  # as other columns must not
    assert state["x_since"].tolist() == [256.0, 0.0, 0.0]
    np.testing.assert_allclose(Z[256:, 0], (X[256:, 0] - first.mean()) / first.std(), rtol=1e-9)
    np.testing.assert_array_equal(Z[256:1100, 1], Z[256:1100, 0])
    assert Z[2999, 1] < 0.1 * (X[2999, 1] - first.mean()) / first.std()  # scaled by all rows so far
    assert abs(Z[2000, 2] - Z[2000, 0]) > 0.1 * abs(Z[2000, 0])


def test_which_columns_have_long_tails():
    """Those whose middle half varies, but less than half as much as that of a normal column of their deviation."""
    z = np.random.default_rng(4).standard_normal((100, 5))
    X = np.column_stack([np.exp(2 * z[:, 0]), z[:, 1], z[:, 2] ** 5, 50 * (z[:, 3] > 2), np.ones(100)])
    model = ks.KernelRegressor(size="small", random_state=0).partial_fit(X, z[:, 4])
    plain = ks.OnlineRidge("raw", standardize=True).partial_fit(X, z[:, 4])  # would take far values as they are
    half = np.sort(X, axis=0)[[24, 25, 74, 75]]
    width = (0.75 * half[2] + 0.25 * half[3]) - (0.25 * half[0] + 0.75 * half[1])
    expected = (width > 0) & (width < 0.5 * 1.349 * X.std(axis=0))
    assert expected.tolist() == [True, False, True, False, False]
    assert model.state_["x_tailed"].tolist() == expected.tolist()
    assert not plain.state_["x_tailed"].any()


def test_standardize_twins():
    if len(ENGINES) == 1:
        pytest.skip("needs the compiled core")
    rng = np.random.default_rng(7)
    for _ in range(20):
        X = rng.standard_normal((150, 4)) * 10.0 ** rng.integers(-4, 5, 4)
        X[rng.random(X.shape) < 0.03] *= 1e6
        X[75:, 2] += rng.choice([0.0, 1e9])
        weight = None if rng.random() < 0.5 else rng.choice([0.0, 2.0], 150)
        found = []
        for name in ("python", "native"):
            Z, state = X.copy(), {"x_count": 0.0} | {name: np.zeros(4) for name in _ranges.COLUMNS}
            engine.get(name).standardize(state, Z, weight)
            asked = engine.get(name).scaled(X[::-1], state)
            found.append((state.pop("x_count"), Z, *state.values(), asked))
        assert found[0][0] == found[1][0]
        for a, b in zip(*(part[1:] for part in found), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-300)
        assert all(np.array_equal(found[0][i], found[1][i]) for i in (4, 5, 6, 7))  # ranges, doubt, rows: exactly


@pytest.mark.parametrize("at", [20, 800])
def test_a_far_cell_costs_nothing(at):
    X, y = stream(2000)
    spoilt = X.copy()
    spoilt[at, 0] = 1e4 * X[:, 0].std()
    learners = [
        ks.FeatureRegressor(standardize=True, random_state=0),
        ks.RRFRegressor(standardize=True, random_state=0),
        ks.RRFRegressor(random_state=0),
        ks.OnlineRidge("raw", standardize=True),
        ks.OnlineRidge(standardize=True, random_state=0),
        ks.MultiKernelRegressor(standardize=True, random_state=0),
    ]
    for est in learners:
        forecasts = est.learn(spoilt, y)
        if est.standardize is True and at > 100:  # after the warm-up, the cell counts as the end of the range before it
            clipped = X.copy()
            clipped[at, 0] = X[:at, 0].max()
            same = type(est)(**est.get_params(deep=False)).learn(clipped, y)
            np.testing.assert_allclose(forecasts, same, rtol=1e-9, atol=1e-12)
            continue
        got = np.delete(forecasts, at)
        rest = np.delete(y, at)
        without = type(est)(**est.get_params(deep=False)).learn(np.delete(X, at, axis=0), rest)
        errors = [np.mean((forecast - rest)[100:] ** 2) for forecast in (got, without)]
        assert errors[0] < 1.01 * errors[1], est


def test_a_far_cell_and_labels():
    X, y = stream(2000)
    label = (y > 0).astype(int)
    spoilt = X.copy()
    spoilt[[5, 700], 0] = 1e6
    kept = np.delete(np.arange(len(X)), [5, 700])  # the bandwidth depends on which rows are the first hundred
    wrong = np.zeros(2)
    for seed in range(3):
        for i, (rows, own) in enumerate(((X[kept], label[kept]), (spoilt, label))):
            est = ks.FeatureClassifier(standardize=True, random_state=seed)
            wrong[i] += np.sum((est.learn(rows, own, classes=[0, 1]) >= 0) != own)
    assert wrong[1] <= 1.02 * wrong[0]


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    "cls, how", [(ks.FeatureRegressor, {"standardize": True}), (ks.KernelRegressor, {"size": "small"})]
)
def test_a_column_that_never_varied_says_nothing(cls, how, name):
    """Whatever stands in it later: no row was learned that could say what that means."""
    X, y = stream(300)
    X[:, 1] = 2.0
    model = cls(**how, engine=name, random_state=0).partial_fit(X, y)
    rows = X[:6].copy()
    rows[:, 1] = [0.0, 1.0, 3.0, -1e9, 1e9, 2.0 + 1e-9]
    np.testing.assert_array_equal(model.predict(rows), model.predict(X[:6]))
    np.testing.assert_array_equal(model.predict(rows[:1]), model.predict(X[:1]))


def test_onnx_treats_a_far_cell_alike():
    onnxruntime = pytest.importorskip("onnxruntime")
    from kernelstream.onnx import to_onnx

    X, y = stream(300)
    est = ks.FeatureRegressor(RandomFourier(n_components=10), standardize=True, random_state=0).fit(X, y)
    rows = X[:20].copy()
    rows[[3, 4], [0, 2]] = [1e7, -1e7]
    session = onnxruntime.InferenceSession(to_onnx(est).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": rows})[0], est.predict(rows), rtol=1e-6)


# ------------------------------------------------------------------------------------------- how far a residual counts


@pytest.mark.parametrize("update", [updates.AdaGrad(), updates.NormAdaGrad()], ids=lambda update: update.name)
def test_reach(update):
    """Automatic steps: after eight rows a residual counts for ten deviations of the target at most."""
    rng = np.random.default_rng(8)
    loss, y = losses.get("squared"), rng.standard_normal(50)
    memory = update.memory(1, 10)
    for t, target in enumerate(y, 1):
        score = target - 1e3
        _, tau = update.step(loss, float(target), float(score), 1.0, t, memory)
        gradient = tau if update.diagonal else None
        if gradient is not None:
            limit = 10 * y[:t].std() if t > 8 else math.inf
            assert gradient == pytest.approx(-min(1e3, limit), rel=1e-12)
    if not update.diagonal:
        limits = [min(1e3, 10 * y[:t].std()) if t > 8 else 1e3 for t in range(1, 51)]
        assert memory[4, 0] == pytest.approx(np.sum(np.square(limits)), rel=1e-12)


def test_printed_rules_have_no_reach():
    loss, memory = losses.get("squared"), updates.AdaGrad(0.5).memory(1, 10)
    for t in range(1, 20):
        assert updates.AdaGrad(0.5).step(loss, 0.0, 1e6, 1.0, t, memory) == (0.5, 1e6)
    assert updates.OGD(0.5).step(loss, 0.0, 1e6, 1.0, 9, None) == (1.0, -5e5)
