"""Corrupt cells do not ruin a column, and gaps are accepted at any time, by the default learner."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import kernelstream as ks
from kernelstream import engine as engines
from kernelstream.core import corrupt

ENGINES = ["python", pytest.param("native", marks=pytest.mark.skipif(not engines.has_native(), reason="not compiled"))]


# ---------------------------------------------------------------- the layer, beside a naive formula
def naive(x, median, spread, low, high, codes):
    """One cell, from the page of formulas."""
    if math.isnan(x) or x in codes:
        return median
    if spread > 0 and not low - 1000 * spread <= x <= high + 1000 * spread:
        return median
    if spread > 0 and x > high:
        return high + spread * math.log(1 + (x - high) / spread)
    if spread > 0 and x < low:
        return low - spread * math.log(1 + (low - x) / spread)
    return x


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cells_become_what_the_formula_says(engine, dtype):
    ops, usual = engines.get(engine), corrupt.nothing_usual(3)
    usual[:, 0] = 1.0, 0.5, -9.0, 11.0, -9999.0, corrupt.NONE, 0.0
    usual[:, 1] = 5.0, 0.0, 5.0, 5.0, corrupt.NONE, 77.0, 0.0  # a column that has not varied
    X = np.array([[x, x, x] for x in (0.3, 10.9, 11.5, 400.0, -500.0, 1e6, -1e30, -9999.0, 77.0, np.nan, 5.0)], dtype)
    expected = [[naive(float(x), *usual[:4, j], {usual[4, j], usual[5, j]}) for j, x in enumerate(row)] for row in X]
    found = ops.cleaned(X, usual)
    np.testing.assert_allclose(found, expected, rtol=1e-15 if dtype == "float64" else 1e-7)
    assert found.dtype == dtype and np.isnan(X[-2]).all()  # the caller's rows are as they were
    assert np.array_equal(found[:, 2], np.where(np.isnan(X[:, 2]), 0.0, X[:, 2]))  # of this column nothing is known


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_is_measured_by_what_most_of_its_cells_are(engine):
    rng, ops = np.random.default_rng(0), engines.get(engine)
    normal, rare = 3.0 + 2.0 * rng.standard_normal(500), (rng.random(500) < 0.05) * 1.0
    rare[:10] = 1.0
    gaps = np.where(rng.random(500) < 0.9, corrupt.NONE, normal)
    coded, wild, few = normal.copy(), normal.copy(), np.full(500, corrupt.NONE)
    coded[::50], wild[::50], few[:7] = -9999.0, 1e9 * rng.standard_normal(10), normal[:7]
    V = np.stack([normal, rare, np.full(500, 4.0), gaps, coded, wild, few], axis=1)
    n, median, spread, odd = ops.measured(V, corrupt.nothing_usual(V.shape[1]))
    assert n.tolist() == [500, 500, 500, (gaps < corrupt.NONE).sum(), 500, 500, 7]
    q = np.quantile(normal, [0.02, 0.25, 0.5, 0.75, 0.98])
    assert median[0] == pytest.approx(q[2], abs=0.05)
    assert spread[0] == pytest.approx(max((q[3] - q[1]) / 1.349, (q[4] - q[0]) / 4.1), rel=0.02)
    assert (spread[[1, 2, 6]] == [1.0, 0.0, 0.0]).all() and spread[3] == pytest.approx(2.0, rel=0.5)
    assert spread[[4, 5]] == pytest.approx(2.0, rel=0.5) and odd.tolist() == [0, 0, 0, 0, 1, 0, 0]


@pytest.mark.skipif(not engines.has_native(), reason="not compiled")
def test_engines_measure_and_remember_alike():
    rng = np.random.default_rng(1)
    for round in range(20):
        n, d = int(rng.integers(1, 600)), int(rng.integers(1, 6))
        X = (
            rng.integers(-3, 3, (n, d))
            * rng.choice([1.0, 1e-3, 1e5])
            * np.exp(rng.standard_normal((n, d)) * (round % 3))
        )
        X[rng.random((n, d)) < 0.1] = rng.choice([np.nan, 999.0, 0.0])
        found, count = [], int(rng.integers(0, 3000))
        for name in ("python", "native"):
            ops, usual, recent = engines.get(name), corrupt.nothing_usual(d), np.zeros((500, d))
            ops.remember(X, 0, usual, recent)
            corrupt.look(ops, usual, recent, n, 0)
            for part in np.array_split(X * 30.0, 3 if name == "native" else 1):
                ops.remember(part, count, usual, recent)
                count += len(part)
            count -= n
            found.append((usual, recent, ops.measured(recent, usual)))
        assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


def usual_of(X):
    usual, recent = corrupt.nothing_usual(X.shape[1]), np.zeros((500, X.shape[1]))
    ops = engines.get("python")
    ops.remember(X, 0, usual, recent)
    corrupt.look(ops, usual, recent, len(X), 0)
    return usual


def codes_of(values):
    usual = usual_of(np.asarray(values, float)[:, None])
    return {code for code in usual[[corrupt.CODE, corrupt.OTHER_CODE], 0] if code < corrupt.NONE}


def test_codes_are_what_stands_for_a_gap():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(400)

    def put(value, times, into=x):
        into = np.array(into)
        into[rng.choice(400, times, replace=False)] = value
        return into

    assert codes_of(put(-9999, 8)) == {-9999} and codes_of(put(-9999, 2)) == set()
    assert codes_of(put(999, 8, put(-9999, 8))) == {999, -9999}
    assert codes_of(put(-9999, 90)) == {-9999} and codes_of(put(-9999, 200)) == set()  # that is usual
    assert codes_of(put(0, 8, 5000 + x)) == set()  # off
    assert codes_of(put(6.0, 8)) == set()  # not far enough
    assert codes_of(put(1e6 * rng.standard_normal(8), 8)) == set()  # all different
    rare = (rng.random(400) < 0.03) * 1.0
    assert codes_of(put(-9999, 8, rare)) == {-9999} and codes_of(put(9.0, 8, rare)) == set()
    assert codes_of(put(16.0, 8, rng.integers(0, 2, 400))) == set()  # a pixel
    assert codes_of(rng.poisson(0.2, 400)) == codes_of(rng.poisson(20, 400)) == set()
    assert codes_of(np.round(np.exp(2 * x))) == set()  # counts with a long tail


# ---------------------------------------------------------------- streams whose truth is known
def stream(n=4000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def forecasts(X, y, call=250, **parameters):
    model = ks.KernelRegressor(size="small", random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.concatenate([model.learn(X[i : i + call], y[i : i + call]) for i in range(0, len(y), call)]), model


def r2(f, y, rows=slice(1000, None)):
    return 1 - np.mean((f - y)[rows] ** 2) / np.var(y[rows])


def test_wild_cells_cost_their_own_rows_only():
    X, y = stream()
    clean, _ = forecasts(X, y)
    for rows in (np.random.default_rng(1).choice(4000, 20, replace=False), np.arange(1500, 1520)):  # spread, in a row
        Z = X.copy()
        Z[rows, :2] = 1e6 * np.random.default_rng(2).choice([-1, 1], (20, 2))
        found, _ = forecasts(Z, y)
        others = np.setdiff1d(np.arange(1000, 4000), rows)
        assert np.mean((found - y)[others] ** 2) < 1.15 * np.mean((clean - y)[others] ** 2)


def test_codes_cost_as_much_as_gaps():
    X, y = stream()
    coded, gaps = X.copy(), X.copy()
    places = np.random.default_rng(1).random(X.shape) < 0.02
    coded[places], gaps[places] = -9999, np.nan
    (with_codes, _), (with_gaps, _) = forecasts(coded, y), forecasts(gaps, y)
    known = slice(500, None)  # a code has come a few times
    assert np.mean((with_codes - y)[known] ** 2) < 1.05 * np.mean((with_gaps - y)[known] ** 2)
    assert r2(with_gaps, y) > 0.9


def test_a_column_that_moves_for_good_is_believed():
    X, y = stream(5000)
    clean, _ = forecasts(X, y)
    Z = X.copy()
    Z[1500:, 0] += 1000
    Z[2500:, 1] = 7 * Z[2500:, 1] - 9000
    found, model = forecasts(Z, y)
    late = slice(4000, None)
    assert np.mean((found - y)[late] ** 2) < 1.25 * np.mean((clean - y)[late] ** 2)
    assert model.state_["x_usual"][corrupt.MEDIAN, :2] == pytest.approx([1000, -9000], abs=1.5)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_sensor_that_fails_for_a_while_is_itself_again_afterwards(noise):
    """Its wrong level is believed meanwhile; then the column is scaled as it was."""
    X, y = stream(5000)
    clean, _ = forecasts(X, y)
    Z = X.copy()
    Z[1500:2200, 0] = 1000 + noise * X[1500:2200, 0]
    found, model = forecasts(Z, y)
    late = slice(3700, None)
    assert np.mean((found - y)[late] ** 2) < 1.25 * np.mean((clean - y)[late] ** 2)
    assert model.state_["x_middle"][0] == pytest.approx(0, abs=0.3)


def test_odd_but_sound_columns_are_left_alone():
    rng, n = np.random.default_rng(3), 4000
    noise = rng.standard_normal(n)
    X = np.stack(
        [
            np.arange(n) + 1.7e9,  # a counter
            1e5 + 60.0 * np.cumsum(rng.random(n)),  # a clock
            (rng.random(n) < 0.01) * 1.0,  # rare ones
            rng.poisson(0.05, n),  # counts, mostly 0
            np.where(np.arange(n) < 2500, 3.0, noise),  # constant for long
            np.repeat(rng.integers(0, 2, n // 50), 50) * 500 + 0.1 * noise,  # switched on and off
            np.cumsum(noise),
            rng.standard_t(3, n),
        ],
        axis=1,
    )
    state = {"x_usual": corrupt.nothing_usual(X.shape[1]), "x_recent": np.zeros((500, X.shape[1]))}
    usual, recent, ops, changed, count = *state.values(), engines.get("auto"), np.zeros(X.shape), 0
    for stop in (100, 128, 256, *range(512, n, 512)):
        if count:
            changed[count:stop] = ops.cleaned(X[count:stop], usual) != X[count:stop]
        ops.remember(X[count:stop], count, usual, recent)
        corrupt.look(ops, usual, recent, stop, count)
        count = stop
    assert not changed[:, [0, 1, 2, 3, 4, 6]].any() and changed.mean(axis=0)[7] < 0.001
    assert not changed[512:, 5].any()  # both levels are known by then


# ---------------------------------------------------------------- one model, however its rows come
def dirty(n=1400):
    X, y = stream(n)
    rng = np.random.default_rng(4)
    X[rng.random(X.shape) < 0.03] = np.nan
    X[rng.random(n) < 0.03, 1] = -9999
    X[rng.choice(n, 10, replace=False)] *= 1e7
    X[n // 3 :, 2] += 5000
    X[5] = np.nan
    return X, y


@pytest.mark.parametrize("engine", ENGINES)
def test_the_split_of_the_rows_does_not_matter(engine):
    X, y = dirty(1400 if engine == "native" else 700)
    weight = np.random.default_rng(5).choice([0.0, 1.0, 2.0], len(y))
    for w in (None, weight):
        models = []
        for cuts in ([], [1, 2, 40, 99, 100, 101, 127, 128, 300, 512, 513, 600, 690], list(range(0, len(y), 70))):
            model = ks.KernelRegressor(size="small", random_state=0, engine=engine)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for rows in np.split(np.arange(len(y)), cuts):
                    if len(rows):
                        model.learn(X[rows], y[rows], None if w is None else w[rows])
            models.append(model)
        first = models[0].state_
        for model in models[1:]:
            for name, value in model.state_.items():
                if engine == "python" or name in ("x_usual", "x_recent"):
                    assert np.array_equal(value, first[name]), name
                elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
                    np.testing.assert_allclose(value, first[name], atol=1e-9 * max(1.0, np.abs(value).max()))


def test_a_model_saved_among_gaps_goes_on_alike(tmp_path):
    X, y = dirty(600)
    for at in (3, 50, 150, 400):
        one = ks.KernelRegressor(size="small", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.learn(X[:at], y[:at])
            ks.save(one, tmp_path / "model")
            two = ks.load(tmp_path / "model")
            assert np.array_equal(one.learn(X[at:], y[at:]), two.learn(X[at:], y[at:]))


def test_a_failed_call_leaves_what_is_usual_as_it_was(monkeypatch):
    X, y = dirty(900)
    model = ks.KernelRegressor(size="small", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.learn(X[:400], y[:400])
        before = {name: np.copy(value) for name, value in model.state_.items()}
        with monkeypatch.context() as patch:
            patch.setattr(type(model._learner), "learn", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                model.learn(X[400:], y[400:])
    assert all(np.array_equal(value, before[name]) for name, value in model.state_.items())


# ---------------------------------------------------------------- gaps at any time
@pytest.mark.parametrize("model", [ks.KernelRegressor, ks.KernelClassifier])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_a_clean_start_takes_gaps_later(model, form):
    X, y = stream(600)
    y = y if model is ks.KernelRegressor else (y > 0).astype(int)
    X[0, 0], Z = 0.5, X.copy()
    Z[300:320, 0], Z[310] = np.nan, np.nan
    filled = np.where(np.isnan(Z), np.nanmedian(Z, axis=0), Z)
    est = model(size="small", random_state=0)
    est.learn(form(X[:300]), y[:300])
    est.learn(form(Z[300:]), y[300:])
    said, near = est.predict(form(Z[300:320])), est.predict(form(filled[300:320]))
    assert np.isfinite(est.decision_function(form(Z)) if model is ks.KernelClassifier else said).all()
    assert np.mean(said == near) >= 0.9 if model is ks.KernelClassifier else np.abs(said - near).max() < 0.3
    assert np.isfinite(est.predict(form(Z[310:311]))).all()  # one row, of gaps only


def test_gaps_in_everything_that_takes_rows():
    X, y = stream(600)
    Z = X.copy()
    Z[::7, 1], Z[:, 3] = np.nan, np.nan  # and a column without a number
    est = ks.KernelRegressor(size="small", random_state=0).fit(Z, y)
    assert est.score(Z, y) > 0.8
    for found in (est.predict_interval(Z[:9]), est.predict_quantiles(Z[:9]), est.explain(Z[:9]).contributions):
        assert np.isfinite(np.asarray(found)).all()
    est.learn(X, y)  # the column has numbers now
    assert np.isfinite(est.predict(Z)).all()


def test_a_column_whose_first_numbers_come_late_is_scaled_by_them():
    X, y = stream(3000)
    Z = 1e6 + X
    Z[:700, 0] = np.nan
    found, model = forecasts(Z, y)
    assert model.state_["x_middle"][0] == pytest.approx(1e6, abs=1) and model.state_["x_unit"][0] < 2
    assert r2(found, y, slice(2000, None)) > 0.9


def test_what_is_taken_for_a_gap_is_said_once():
    X, y = stream(1200)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame.loc[300::30, "b"] = -9999.0
    frame.loc[500, "c"] = frame.loc[600, "c"] = np.inf
    est = ks.KernelRegressor(size="small", random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for i in range(0, 1200, 100):
            est.learn(frame[i : i + 100], y[i : i + 100])
    said = [str(one.message) for one in said]
    assert sum("column 'b': -9999 is far outside" in text for text in said) == 1
    assert sum("column 'c': infinity is taken for a gap" in text for text in said) == 1 and len(said) == 2


def test_others_refuse_gaps_as_before():
    X, y = stream(50)
    est = ks.FeatureRegressor(random_state=0).learn
    est(X, y)
    with pytest.raises(ValueError, match="NaN"):
        est(np.full((1, 4), np.nan), y[:1])
    with pytest.raises(ValueError, match="are refused"):
        ks.KernelRegressor(size="small").learn(np.full((1, 4), 1e300), y[:1])


def test_new_columns_are_zeros_so_far():
    X, y = stream(700)
    est = ks.KernelRegressor(size="small", random_state=0)
    est.learn(X[:400, :3], y[:400])
    est.widen(4)
    est.learn(X[400:], y[400:])
    usual = est.state_["x_usual"]
    assert usual.shape == (7, 4) and usual[corrupt.MEDIAN, 3] == 0.0 and np.isfinite(est.predict(X)).all()
