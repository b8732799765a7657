"""Quantiles that know the row, against a naive program, known distributions and guarantees."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reloaded import reloaded
from scipy.special import ndtri
from sklearn.base import clone

import kernelstream as ks
from kernelstream import KernelRegressor, OnlineRidge
from kernelstream.estimators._contract.state import scaled_rows
from kernelstream.estimators.stack.base import Stack
from kernelstream.trust import QuantileTracker, WithIntervals
from kernelstream.trust.quantiles import ends

ENGINES = ["python", "native"]
GRID = np.linspace(-1.5, 1.5, 5)


def tenths(forecast, held):
    """Share of the rows that are held in each tenth of the forecasts."""
    return np.array([held[part].mean() for part in np.array_split(np.argsort(forecast, kind="stable"), 10)])


def held(low, high, y):
    return (low <= y) & (y <= high)


def hats(x, knots):
    """Weights of knots in piecewise linear interpolation, by interpolating unit vectors."""
    return np.array([np.interp(x, knots, unit) for unit in np.eye(len(knots))])


def naive(forecast, X, y, levels):
    """The formulas, one row at a time; while all knots are at 0, forecasts above it belong to the last."""
    K, d = 11, X.shape[1]
    a, b = np.zeros(K), np.zeros((d, 5))
    q = np.tile(ndtri(levels)[:, None] * np.sqrt(np.pi / 2), K)
    size, knots, found = 0.0, None, []
    for t, (f, x, target) in enumerate(zip(forecast, X, y, strict=True)):
        phi = np.eye(K)[-1] if knots is None else hats(f, knots)
        columns = np.array([hats(v, GRID) for v in x])
        s = size * np.exp(a @ phi + (b * columns).sum())
        own = q @ phi
        found.append(f + s * np.sort(own))
        if t > 0:
            u = (target - f) / s
            q += np.outer(levels - (u <= own), 0.05 * phi + 0.02)
            step = max(100 / (200 + t), 0.005) * (min(abs(u), 5) - 1) / (d / 2 * (phi @ phi) + (columns**2).sum())
            a, b = a + step * d / 2 * phi, b + step * columns
        error = abs(target - f)
        size += ((min(error, 10 * size) if t else error) - size) / min(t + 1, 300)
        if t + 1 in (16, 32, 64, 128) or (t + 1) % 256 == 0:
            knots = np.quantile(forecast[: t + 1 : max(1, (t + 1) // 128)], np.linspace(0, 1, K))
    return np.array(found)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_formula(engine):
    rng = np.random.default_rng(0)
    X, forecast = rng.normal(size=(700, 4)), rng.uniform(1, 3, 700)
    y = forecast + np.exp(X[:, 0]) * rng.standard_t(4, 700)
    tracker = QuantileTracker(4, engine=engine)
    found = tracker.learn(forecast, y, X)
    assert np.isinf(found[0][tracker.levels != 0.5]).all()
    np.testing.assert_allclose(found[1:], naive(forecast, X, y, tracker.levels)[1:], rtol=1e-9)


def test_the_guarantee_for_any_rows():
    """Over any stretch, the sums over knots and levels change by 0.27 (tau n - targets below), whatever these are."""
    rng = np.random.default_rng(3)
    forecast = rng.normal(size=3000)
    y = forecast + np.exp(4 * rng.normal(size=3000)) * np.where(np.arange(3000) % 50 < 25, 1.0, -1e-3)
    tracker = QuantileTracker()
    tracker.learn(np.zeros(1), np.ones(1))
    start = tracker.state["quantiles"].sum(axis=1)
    below = (y[:, None] <= tracker.learn(forecast, y)).sum(axis=0)
    change = tracker.state["quantiles"].sum(axis=1) - start
    assert change.sum() == pytest.approx(0.27 * (tracker.levels * 3000 - below).sum(), abs=1e-6)


def test_forecasts_that_are_always_too_low():
    """All errors are alike, and all quantiles are near them: they cross, and must not drive each other away."""
    rng = np.random.default_rng(0)
    forecast, tracker = np.cumsum(rng.uniform(size=12_000)), QuantileTracker()
    y = forecast + forecast / 100 + rng.normal(size=12_000)
    low, high = tracker.at(tracker.learn(forecast, y), ends(0.8)).T
    for a in range(2000, 12_000, 2000):
        k = slice(a, a + 2000)
        assert held(low, high, y)[k].mean() == pytest.approx(0.8, abs=0.05)
        assert np.mean(high[k] - low[k]) < 8


def test_the_quantiles_of_a_known_distribution():
    """y = f + s(x) e with s = exp(x1) (1 + f)/2: the spread is learned from the row and the forecast, up to scale."""
    rng = np.random.default_rng(1)
    X, f = rng.normal(size=(30_000, 3)), rng.uniform(0, 4, 30_000)
    skewed = rng.gamma(2.0, 1.0, 30_000) - 2
    s = np.exp(0.7 * np.clip(X[:, 1], -1.5, 1.5)) * (1 + f) / 2
    y = f + s * skewed
    tracker = QuantileTracker(3)
    tracker.learn(f[:20_000], y[:20_000], X[:20_000])
    asked = [0.05, 0.25, 0.5, 0.75, 0.95]
    found = tracker.quantiles(f[20_000:], asked, X[20_000:])
    true = np.quantile(rng.gamma(2.0, 1.0, 200_000) - 2, asked)
    ratio = (found - f[20_000:, None]) / s[20_000:, None]
    np.testing.assert_allclose(np.median(ratio, axis=0), true, atol=0.05, rtol=0.1)
    below = y[20_000:, None] <= found
    for part in (X[20_000:, 1] < -1, X[20_000:, 1] > 1, f[20_000:] < 0.5, f[20_000:] > 3.5):
        np.testing.assert_allclose(below[part].mean(axis=0), asked, atol=0.04)


# -------------------------------------------------------------------- models
def growing(n, seed=0):
    """Noise that grows with the forecast, as that of prices does."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 4
    return X, f + 0.15 * f * rng.normal(size=n)


MODELS = [KernelRegressor(size="small", random_state=0), WithIntervals(OnlineRidge(random_state=0))]


@pytest.mark.parametrize("model", MODELS, ids=["default", "wrapped"])
def test_every_tenth_of_a_stream_is_covered(model):
    X, y = growing(12_000)
    asked = [0.05, 0.25, 0.75, 0.95]
    forecast, found = clone(model).learn_quantiles(X, y, quantiles=asked)
    known = slice(2000, None)  # before, the model itself is far off
    for low, high, coverage in ((0, 3, 0.9), (1, 2, 0.5)):
        got = tenths(forecast[known], held(found[known, low], found[known, high], y[known]))
        np.testing.assert_allclose(got, coverage, atol=0.03)
    same = clone(model).learn_interval(X[:2500], y[:2500], coverage=0.9)
    for one, other in zip(same, (forecast, found[:, 0], found[:, 3]), strict=True):
        np.testing.assert_array_equal(one, other[:2500])


@pytest.mark.usefixtures("short_searches")
def test_every_tenth_is_covered_after_fit():
    """Noise that grows with the forecast and with a column that the forecast knows nothing of."""
    X, y = growing(8000, 1)
    y += 0.5 * np.exp(X[:, 2]) * np.random.default_rng(5).normal(size=8000)
    model = KernelRegressor(random_state=0).fit(X[:4000], y[:4000])
    low, high = model.predict_interval(X[4000:], 0.8)
    got = tenths(model.predict(X[4000:]), held(low, high, y[4000:]))
    assert got.mean() == pytest.approx(0.8, abs=0.03)
    np.testing.assert_allclose(got, 0.8, atol=0.13)  # three deviations: 800 rows were left out, 80 for a tenth
    by_column = tenths(X[4000:, 2], held(low, high, y[4000:]))
    np.testing.assert_allclose(by_column, 0.8, atol=0.13)
    wide = tenths(X[4000:, 2], high - low)
    assert wide[-1] > 2 * wide[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_default_learner_hands_its_rows_to_the_tracker(engine, monkeypatch):
    """The naive way: a tracker beside the model gets the rows as the members see them, and the forecasts."""
    X, y = growing(400)
    model = KernelRegressor([OnlineRidge("raw", intercept=True)], random_state=0, engine=engine)
    model.learn(X[:200], y[:200])
    tracker = QuantileTracker(3, engine=engine)
    tracker.state = {name: np.array(model.state_[f"intervals/o0/{name}"]) for name in tracker.state}
    seen, block = [], Stack._learn_block
    monkeypatch.setattr(Stack, "_learn_block", lambda *args: (block(*args), seen.append(args[2]))[0])
    forecast, found = model.learn_quantiles(X[200:], y[200:], quantiles=[0.1, 0.5])
    rows = np.concatenate(seen)
    np.testing.assert_allclose(found, tracker.at(tracker.learn(forecast, y[200:], rows), [0.1, 0.5]), rtol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1.0, atol=0.15)
    seen = scaled_rows(model._learner.ops, X[:1], model._state)
    single = tracker.quantiles(model.forecast(X[:1]), [0.1, 0.9], seen, following=True)
    np.testing.assert_allclose(model.forecast_quantiles(X[:1], [0.1, 0.9]), single, rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=["default", "wrapped"])
def test_quantiles_rise_and_are_checked(model):
    X, y = growing(1500)
    model = clone(model).partial_fit(X[:1000], y[:1000])
    asked = [0.9, 0.005, 0.3, 0.5, 0.31, 0.995]
    for rows in (X[1000:], X[1000:1001]):
        found = model.predict_quantiles(rows, asked)
        assert found.shape == (len(rows), 6) and (np.diff(found[:, np.argsort(asked)], axis=1) >= 0).all()
        low, high = model.predict_interval(rows, 0.8)
        np.testing.assert_allclose(model.predict_quantiles(rows, [0.1, 0.9]), np.stack([low, high], 1), rtol=1e-12)
    assert model.predict_quantiles(X[:2], 0.5).shape == (2, 1)
    for bad in (0.0, 1.0, [0.5, 2.0], "half", [[0.5]], [True], None):
        with pytest.raises(ValueError, match=r"quantiles must be numbers from 0\.005 to 0\.995"):
            model.predict_quantiles(X[:2], bad)
        with pytest.raises(ValueError, match="quantiles must be numbers"):
            model.learn_quantiles(X[:2], y[:2], quantiles=bad)


@pytest.mark.parametrize("model", MODELS, ids=["default", "wrapped"])
def test_constant_targets_and_tiny_streams(model):
    X = np.random.default_rng(0).normal(size=(300, 3))
    constant = clone(model).partial_fit(X, np.full(300, 7.0))
    low, high = constant.predict_interval(X, 0.9)
    assert held(low, high, 7.0).mean() > 0.8 and np.mean(high - low) < 1.0
    for n in (1, 2, 3, 17):
        tiny = clone(model).partial_fit(X[:n], X[:n, 0])
        for rows in (X[:1], X[:5]):
            found = tiny.predict_quantiles(rows, [0.1, 0.5, 0.9])
            assert not np.isnan(found).any() and (np.diff(found, axis=1) >= 0).all()


@pytest.mark.parametrize("model", MODELS, ids=["default", "wrapped"])
def test_a_saved_model_goes_on_to_the_same_bits(model):
    X, y = growing(900)
    whole = clone(model).partial_fit(X[:600], y[:600])
    loaded = reloaded(whole)
    for one in (whole, loaded):
        one.partial_fit(X[600:], y[600:])
    for rows in (X[:1], X[:50]):
        asked = [0.02, 0.5, 0.9]
        np.testing.assert_array_equal(whole.predict_quantiles(rows, asked), loaded.predict_quantiles(rows, asked))
    broken = dict(whole.state_)
    name = next(name for name in broken if name.endswith("quantiles"))
    broken[name] = broken[name][:-1]
    loaded.state_ = broken
    with pytest.raises(ValueError, match="quantiles"):
        loaded.check_state()


def test_rows_that_get_wider():
    X, y = growing(600)
    model = KernelRegressor(size="small", random_state=0).partial_fit(X[:300, :2], y[:300])
    model.widen(3)
    model.learn(X[300:], y[300:])
    assert model.state_["intervals/o0/columns"].shape == (3, 5) and model.state_["intervals/o0/columns"][2].any()


def test_several_targets():
    X, y = growing(800)
    model = KernelRegressor([OnlineRidge("raw", intercept=True)], random_state=0)
    forecast, found = model.learn_quantiles(X, np.stack([y, -y], 1), quantiles=[0.1, 0.9])
    assert forecast.shape == (800, 2) and found.shape == (800, 2, 2)
    np.testing.assert_allclose(found[50:, 0], -found[50:, 1, ::-1], rtol=0.2, atol=0.4)
    assert model.predict_quantiles(X[:4], [0.2, 0.5, 0.7]).shape == (4, 2, 3)


# -------------------------------------------------------------------- scores of quantiles
def test_crps_of_a_normal_distribution():
    """y (2 Phi(y) - 1) + 2 phi(y) - 1/sqrt(pi) for the standard one; a point has its absolute error."""
    from scipy.stats import norm

    from kernelstream.evaluate import crps

    y, levels = np.linspace(-3, 3, 13), (np.arange(2000) + 0.5) / 2000
    true = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - 1 / np.sqrt(np.pi)
    np.testing.assert_allclose(crps(y, np.tile(ndtri(levels), (13, 1)), levels), true, atol=1e-3)
    hundred = (np.arange(100) + 0.5) / 100
    np.testing.assert_allclose(crps(y, np.tile(ndtri(hundred), (13, 1))), true, rtol=0.03)
    np.testing.assert_allclose(crps(y, np.zeros((13, 100))), np.abs(y))


def test_crps_of_a_run():
    """Of errors 0.15 f e the best there is, 0.15 f/sqrt(pi) in the mean, and little more."""
    X, y = growing(6000)
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 4
    best = np.mean(0.15 * np.abs(f)) / np.sqrt(np.pi)
    run = ks.evaluate.prequential(KernelRegressor(size="small", random_state=0), X, y, metrics="crps")
    assert best < run.metrics["crps"] < 1.3 * best
    late = ks.evaluate.prequential(
        WithIntervals(OnlineRidge(random_state=0)), X[:900], y[:900], metrics="crps", delay=3
    )
    assert best < late.metrics["crps"] < 2 * best
    with pytest.raises(ValueError, match="crps needs quantiles"):
        ks.evaluate.prequential(OnlineRidge(random_state=0), X, y, metrics="crps")


@pytest.mark.parametrize("words", [False, True])
def test_the_command_line_says_crps(words, tmp_path, capsys):
    from kernelstream.cli import main

    X, y = growing(300)
    if words:  # the rows go through an encoder
        lines = [f"{a},{b},word{c > 0},{t}" for a, b, c, t in np.column_stack([X, y]).tolist()]
        (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,y", *lines]))
        main(["evaluate", str(tmp_path / "rows.csv"), "--target", "y", "--size", "small", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert 0 < found["crps"] < found["mae"]
        return
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    main(["evaluate", str(tmp_path / "rows.csv"), "--target", "y", "--size", "small", "--json"])
    found = json.loads(capsys.readouterr().out)
    run = ks.evaluate.prequential(KernelRegressor(size="small", random_state=0), X, y, metrics="crps")
    assert found["crps"] == pytest.approx(run.metrics["crps"], rel=0.1) and found["crps"] < found["mae"]


def test_few_rows_without_order_are_not_believed_too_much():
    """Ten columns that say nothing: a spread judged by the rows that it has learned would hold 86 % instead of 90."""
    held = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, forecast, noise = rng.normal(size=(3200, 10)), rng.normal(size=3200), rng.normal(size=3200)
        tracker = QuantileTracker(columns=10)
        tracker.start_from(forecast[:200], (forecast + noise)[:200], X[:200])
        low, high = (tracker.quantiles(forecast[200:], [0.05, 0.95], X[200:]) - forecast[200:, None]).T
        held.append(np.mean((low <= noise[200:]) & (noise[200:] <= high)))
    assert 0.88 < np.mean(held) < 0.94
