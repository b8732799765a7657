"""The forecaster against closed forms and simulated series, and what every model here promises: no leak, any split,
files, copies, failed calls."""

import copy
import pickle

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import KernelForecaster
from kernelstream.testing.streaming import assert_same_state

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01T00", "h")
SMALL = {"size": "small", "random_state": 0}


def hours(n, start=START):
    return start + np.arange(n) * HOUR


def daily(n, rng, noise=0.3):
    return 5 + np.sin(2 * np.pi * np.arange(n) / 24) + noise * rng.normal(size=n)


def frame(n=420, seed=0, gaps=True):
    """Two series of hours by key, one of them a thousand times as large, with gaps and a column known in advance."""
    rng = np.random.default_rng(seed)
    warm = rng.normal(size=n)
    a, b = daily(n, rng) + warm, 1000 * daily(n, rng)
    if gaps:
        a[rng.random(n) < 0.05] = np.nan
    both = {"date": np.repeat(hours(n), 2), "key": ["a", "b"] * n}
    return both | {"load": np.stack([a, b], 1).ravel(), "warm": np.repeat(warm, 2), "day": ["work", "free"] * n}


def cut(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


def keyed(**how):
    return KernelForecaster(5, by="key", known=["warm", "day"], lags=30, **SMALL, **how)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_split_and_life(engine):
    """Rows one by one, in blocks, or with a model that is saved, pickled or copied between them: the same bits."""
    columns, n = frame(210), 420
    whole = keyed(engine=engine)
    made = whole.learn(columns)
    rng, model, pieces, at = np.random.default_rng(1), keyed(engine=engine), [], 0
    lives = [reloaded, copy.deepcopy, lambda est: pickle.loads(pickle.dumps(est)), lambda est: est]
    while at < n:
        step = int(rng.choice([1, 1, 1, 2, 40]))
        pieces.append(model.learn(cut(columns, slice(at, at + step))))
        at += step
        if rng.random() < 0.1:
            model = lives[rng.integers(4)](model)
    np.testing.assert_array_equal(np.concatenate(pieces), made)
    assert_same_state(model.state_, whole.state_, 0.0, "pieces")
    assert whole.keys_ == [("a",), ("b",)] and whole.targets_ == ["load"]


def test_no_leak():
    """A forecast has no part of later rows, known columns included."""
    columns, i = frame(250), 401
    made = keyed().learn(columns)
    rng = np.random.default_rng(2)
    changed = {name: list(values) if isinstance(values, list) else values.copy() for name, values in columns.items()}
    changed["load"][i + 1 :] = rng.normal(size=500 - i - 1)
    changed["warm"][i + 1 :] = 7.0
    changed["day"][i + 1 :] = ["?"] * (500 - i - 1)
    again = keyed().learn(changed)
    np.testing.assert_array_equal(again[: i + 1], made[: i + 1])
    assert not np.array_equal(again[i + 1 :], made[i + 1 :], equal_nan=True)


def test_closed_form():
    """The weights are those of a ridge regression on a lag matrix made row by row."""
    n, H, lags = 500, 4, 12
    y = np.cumsum(np.random.default_rng(3).normal(size=n))
    model = KernelForecaster(H, lags=lags, **SMALL)
    model.learn(y)
    state, p = model.state_, lags + 2  # lags, level, 1
    unit, seen = np.ones(n), 0.0
    for t in range(1, n):  # twice the usual step so far
        step = (y[t] - y[t - 1]) ** 2
        seen += min(step, 100 * seen / (t - 1)) if t > 30 else step
        unit[t] = 2 * np.sqrt(seen / t)
    rows, targets, weights = [], [], []
    block = 7
    for t in range(3, (n // block) * block - H):  # the first block that is complete with its horizon begins there
        past = np.array([y[max(t - j, 0)] if t >= j else y[0] for j in range(1, lags + 1)])
        rows.append([*(past - y[t]) / unit[t], (y[t] - y[: t + 1].mean()) / unit[t], 1.0])
        targets.append((y[t + 1 : t + H + 1] - y[t]) / unit[t])
        far = max(np.abs(rows[-1]).max(), np.abs(targets[-1]).max())
        weights.append((min(1, 10 / far) * min(1, t / (lags + 1))) ** 2)
    Z, R, w = np.array(rows), np.array(targets), np.array(weights)
    np.testing.assert_allclose(state["gram"][0, :p, :p], (Z.T * w) @ Z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state["moment"][0, :p], (Z.T * w) @ R, rtol=1e-9, atol=1e-9)
    from kernelstream.forecast import solve

    found = solve.solved(state["gram"], state["moment"], (p, state["gram"].shape[1]))
    plain = np.linalg.solve((Z.T * w) @ Z + 30 * np.eye(p), (Z.T * w) @ R)
    np.testing.assert_allclose(found[0, 0, :p], plain, rtol=1e-7, atol=1e-9)
    full = np.linalg.solve(state["gram"][0] + 30 * np.eye(state["gram"].shape[1]), state["moment"][0])
    np.testing.assert_allclose(found[1, 0], full, rtol=1e-6, atol=1e-8)


def test_autoregression():
    """On a process with known coefficients it comes close to the best forecasts there are."""
    rng, n, H = np.random.default_rng(4), 2400, 3
    y = np.zeros(n)
    for t in range(2, n):
        y[t] = 1.3 * y[t - 1] - 0.5 * y[t - 2] + rng.normal()
    A, best = np.array([[1.3, -0.5], [1.0, 0.0]]), []
    for h in range(1, H + 1):
        best.append(np.stack([y[1:], y[:-1]], 1) @ np.linalg.matrix_power(A, h)[0])
    made = KernelForecaster(H, lags=8, **SMALL).learn(y[:, None])[..., 0]
    for h in range(1, H + 1):
        truth, t = y[1500 + h :], np.arange(1500, n - h)
        ours = np.mean((made[t, h - 1] - truth) ** 2)
        assert ours < 1.1 * np.mean((best[h - 1][t - 1] - truth) ** 2), h


def test_season():
    """A season goes on, with a trend; so do months, by the calendar."""
    n = 900
    t = np.arange(n)
    y = 20 + 0.01 * t + 3 * np.sin(2 * np.pi * t / 24) + (t // 24 % 7 >= 5)
    model = KernelForecaster(24, **SMALL).fit({"date": hours(n), "y": y})
    future = np.arange(n, n + 24)
    truth = 20 + 0.01 * future + 3 * np.sin(2 * np.pi * future / 24) + (future // 24 % 7 >= 5)
    said = model.forecast()
    assert np.abs(said["y"] - truth).max() < 0.5
    assert (said["date"] == hours(n + 24)[n:]).all()
    months = np.datetime64("2000-01-31", "D").astype("datetime64[M]") + np.arange(240)
    ends = (months + 1).astype("datetime64[D]") - 1
    model = KernelForecaster(3, **SMALL).fit({"month": ends, "y": 10 + np.arange(240) % 12.0})
    said = model.forecast()
    assert said["month"].astype("datetime64[D]").tolist() == [
        np.datetime64(d).astype("datetime64[D]").item() for d in ("2020-01-31", "2020-02-29", "2020-03-31")
    ]
    np.testing.assert_allclose(said["y"], [10, 11, 12], atol=1.0)


def test_known_columns():
    """What is known in advance helps, as words and as numbers; keys have their own units."""
    rng, n, H = np.random.default_rng(5), 900, 6
    heat, day = rng.normal(size=n), rng.choice(["work", "free"], n)
    y = daily(n, rng, 0.1) + heat**2 + 2.0 * (day == "free")
    columns = {"date": hours(n), "y": y, "heat": heat, "day": day.tolist()}
    errors = {}
    for known in (None, ["heat", "day"]):
        model = KernelForecaster(H, target="y", known=known, lags=48, **SMALL)
        model.learn(cut(columns, slice(600)))
        errors[str(known)] = []
        for at in range(600, n - H, H):
            future = {name: columns[name][at : at + H] for name in ("date", "heat", "day")}
            said = model.forecast(future=future if known else None)["y"]
            errors[str(known)].append(np.mean((said - y[at : at + H]) ** 2))
            model.learn(cut(columns, slice(at, at + H)))
    without, with_known = map(np.mean, errors.values())
    assert with_known < 0.35 * without


@pytest.mark.parametrize("seed", [0])
def test_intervals(seed):
    """90 % hold 87 to 93 % at every horizon, in both halves, as the noise grows."""
    rng, n, H = np.random.default_rng(seed), 4000, 4
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.8 * y[t - 1] + rng.normal() * (1 + t / n)
    model, held = KernelForecaster(H, lags=8, **SMALL), []
    model.learn(y[:1000])
    for t in range(1000, n - H, 7):
        said = model.forecast(0.9)
        held.append((said["x0_low"] <= y[t : t + H]) & (y[t : t + H] <= said["x0_high"]))
        model.learn(y[t : t + 7])
    for half in np.array_split(np.array(held), 2):
        assert (np.abs(half.mean(axis=0) - 0.9) < 0.05).all(), half.mean(axis=0)
    narrow = model.forecast(0.5)
    assert (narrow["x0_low"] > model.forecast(0.95)["x0_low"]).all()


@pytest.mark.parametrize("factor", [1, 2])
def test_coverage_by_quarter(factor):
    """On a Gaussian process whose noise doubles in the middle or does not, 90 % hold 88 to 92 % in every quarter."""
    rng, n, H = np.random.default_rng(11), 4000, 5
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.8 * y[t - 1] + rng.normal() * (factor if t > n // 2 else 1)
    model, held, widths = KernelForecaster(H, lags=8, **SMALL), [], []
    model.learn(y[:1000])
    for t in range(1000, n - H):
        said = model.forecast(0.9)
        held.append((said["x0_low"] <= y[t : t + H]) & (y[t : t + H] <= said["x0_high"]))
        widths.append(said["x0_high"] - said["x0_low"])
        model.learn(y[t : t + 1])
    for quarter in np.array_split(np.array(held), 4):
        assert (np.abs(quarter.mean(axis=0) - 0.9) <= 0.02).all(), quarter.mean(axis=0)
    best = factor * 2 * 1.645 * np.sqrt(np.cumsum(0.64 ** np.arange(H)))
    assert (np.abs(np.mean(widths[-700:], axis=0) / best - 1) < 0.2).all()


def test_width_by_place():
    """Where nights are calm and days are not, so are their intervals, and both hold what they should."""
    rng, n, H = np.random.default_rng(12), 2400, 24
    calm = np.arange(n) % 24 < 8
    y = np.sin(2 * np.pi * np.arange(n) / 24) + np.where(calm, 0.1, 1.0) * rng.normal(size=n)
    columns, model, held, widths = {"date": hours(n), "y": y}, KernelForecaster(H, **SMALL), [], []
    model.learn(cut(columns, slice(1200)))
    for t in range(1200, n - H, 7):
        said = model.forecast(0.9)
        held.append((said["y_low"] <= y[t : t + H]) & (y[t : t + H] <= said["y_high"]))
        widths.append(said["y_high"] - said["y_low"])
        model.learn(cut(columns, slice(t, t + 7)))
    night = np.stack([calm[t : t + H] for t in range(1200, n - H, 7)])
    assert np.array(widths)[night].mean() < 0.5 * np.array(widths)[~night].mean()
    for part in (night, ~night):
        assert abs(np.array(held)[part].mean() - 0.9) < 0.03


def test_gaps_and_clocks():
    """Missing hours, the hour that comes twice and the one that never comes are said once and bridged."""
    n, rng = 900, np.random.default_rng(6)
    times = hours(n, np.datetime64("2024-10-01T00", "h"))
    y, keep = daily(n, rng, 0.05), np.ones(n, bool)
    keep[500:530] = False
    model = KernelForecaster(24, **SMALL)
    with pytest.warns(UserWarning, match="30 steps before"):
        model.learn({"date": times[keep], "y": y[keep]})
    assert np.abs(model.forecast()["y"] - (5 + np.sin(2 * np.pi * np.arange(n, n + 24) / 24))).max() < 0.4
    twice = np.flatnonzero(times == np.datetime64("2024-10-27T02"))[0]
    places = np.insert(np.arange(n), twice + 1, twice)
    model = KernelForecaster(24, **SMALL)
    with pytest.warns(UserWarning, match="an hour twice"):
        model.learn({"date": times[places], "y": y[places]})
    plain = KernelForecaster(24, **SMALL).fit({"date": times, "y": y})
    np.testing.assert_array_equal(model.forecast()["y"], plain.forecast()["y"])
    jitter = times.astype("datetime64[s]") + rng.integers(-600, 600, n).astype("timedelta64[s]")
    with pytest.warns(UserWarning, match="irregular"):
        made = KernelForecaster(24, **SMALL).learn({"date": jitter, "y": y})
    assert np.isfinite(made[100:]).all()
    late = np.where(np.arange(n) < 600, times, times + 10_000 * HOUR)
    with pytest.warns(UserWarning, match="steps before"):  # longer than anything that is kept
        made = KernelForecaster(24, **SMALL).learn({"date": late, "y": y})
    assert np.isfinite(made[100:]).all() and np.abs(made[800:]).max() < 20


def test_frames():
    """pandas, its index, polars, dictionaries and lists of rows say the same; a forecast comes as the rows did."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    n = 300
    y = daily(n, np.random.default_rng(7))
    columns = {"date": hours(n), "y": y}
    first = KernelForecaster(3, **SMALL).fit(columns).forecast()
    index = pd.DataFrame({"y": y}, index=pd.DatetimeIndex(hours(n), name="date"))
    zoned = index.tz_localize("Europe/Berlin", nonexistent="shift_forward", ambiguous="NaT")
    text = [{"date": str(t).replace("T", " ") + ":00", "y": float(v)} for t, v in zip(hours(n), y)]
    for rows, kind in (
        (pd.DataFrame(columns), pd.DataFrame),
        (index, pd.DataFrame),
        (index["y"], pd.DataFrame),
        (zoned, pd.DataFrame),
        (pl.DataFrame({"date": hours(n).astype("datetime64[us]"), "y": y}), pl.DataFrame),
        (text, dict),
    ):
        said = KernelForecaster(3, **SMALL).fit(rows).forecast()
        assert type(said) is kind
        np.testing.assert_array_equal(np.asarray(said["y_high"]), first["y_high"])
        assert (np.asarray(said["date"]).astype("datetime64[h]") == first["date"]).all()


def test_bad_input():
    """A ValueError that says what to do; the model is as it was."""
    columns = frame(60, gaps=False)
    model = keyed()
    model.learn(columns)
    before = {name: np.copy(value) for name, value in model.state_.items()}
    later = np.datetime64("2024-01-03T12", "h")
    row = {"date": later, "key": "a", "load": 1.0, "warm": 0.0, "day": "work"}
    future = {"date": np.repeat(later + np.arange(5) * HOUR, 2), "key": ["a", "b"] * 5}
    future |= {"warm": np.zeros(10), "day": ["work"] * 10}
    model.forecast(future=future)
    bad = [
        (lambda: model.learn([row, row | {"date": START}]), "goes back"),
        (lambda: model.learn([row, row]), "two rows"),
        (lambda: model.learn([row, row | {"date": later + HOUR, "load": "x"}]), "must be a number"),
        (lambda: model.learn([row, row | {"date": "soon"}]), "no time"),
        (lambda: model.learn({"date": [later], "load": [1.0]}), "no column 'key'"),
        (lambda: model.forecast(), "future"),
        (lambda: model.forecast(future=future | {"key": ["a", "c"] * 5}), "unknown keys c"),
        (lambda: model.forecast(future={k: v for k, v in future.items() if k != "warm"}), "no column 'warm'"),
        (lambda: model.forecast(future=cut(future, slice(8))), "lacks 1"),
        (lambda: model.forecast(1.5, future=future), "coverage"),
    ]
    for call, message in bad:
        with pytest.raises(ValueError, match=message):
            call()
        for name, value in model.state_.items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
    with pytest.raises(ValueError, match="too few"):
        KernelForecaster(100).fit(np.arange(50.0)).forecast()
    for wrong in ({"horizon": 0}, {"size": "huge"}, {"lags": 0}, {"target": 3}, {"by": ["a", "a"]}, {"time": "t"}):
        with pytest.raises(ValueError):
            KernelForecaster(**wrong).learn({"y": np.arange(30.0)})
    assert not hasattr(KernelForecaster(), "state_")


def test_damaged_states():
    """A state with an entry too few, too many or of another shape is refused."""
    model = KernelForecaster(3, lags=10, **SMALL)
    model.learn({"date": hours(60), "y": np.arange(60.0)})
    for name, value in model.state_.items():
        damaged = copy.deepcopy(model)
        damaged.state_ = {key: entry for key, entry in model.state_.items() if key != name}
        if name not in ("unit",):
            with pytest.raises(ValueError):
                damaged.check_state()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            damaged.state_ = dict(model.state_) | {name: np.zeros((*value.shape, 2))}
            with pytest.raises(ValueError):
                damaged.check_state()
    damaged.state_ = dict(model.state_) | {"strange": 1}
    with pytest.raises(ValueError, match="strange"):
        damaged.check_state()


def test_rolling_and_picture(tmp_path):
    """Errors by horizon are those of a loop written by hand; a picture is drawn."""
    from kernelstream.evaluate import rolling

    n, H = 700, 6
    y = daily(n, np.random.default_rng(8))
    columns, model = {"date": hours(n), "y": y}, KernelForecaster(H, **SMALL)
    result = rolling(model, columns, start=500, every=40)
    errors, inside = [], []
    model.learn(cut(columns, slice(500)))
    for at in range(500, n - H + 1, 40):
        said = model.forecast()
        errors.append((said["y"] - y[at : at + H]) ** 2)
        inside.append((said["y_low"] <= y[at : at + H]) & (y[at : at + H] <= said["y_high"]))
        model.learn(cut(columns, slice(at, at + 40)))
    assert result.origins == len(errors)
    np.testing.assert_allclose(result.errors["model"]["mse"], np.mean(errors, axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.errors["model"]["coverage"], np.mean(inside, axis=0))
    scale = np.abs(y[24:500] - y[:476]).mean()
    seasonal = [np.abs(y[at - 24 : at - 24 + H] - y[at : at + H]) for at in range(500, n - H + 1, 40)]
    np.testing.assert_allclose(result.errors["seasonal naive"]["mase"], np.mean(seasonal, axis=0) / scale)
    assert "seasonal naive" in str(result)
    pytest.importorskip("matplotlib")
    from kernelstream import plots

    plots.forecast(columns, said, tmp_path / "ahead.png")
    assert (tmp_path / "ahead.png").stat().st_size > 5000
