"""The target has another level or unit from some row on, or was wrong for a while: what was learned moves along."""

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import engine
from kernelstream.core import targets
from kernelstream.testing.streaming import assert_same_state

ENGINES = ["python", *(["native"] if engine.has_native() else [])]
FROM, AFTER, JUDGED = 1500, 2000, 1000

pytestmark = pytest.mark.filterwarnings("ignore:a target lies far:RuntimeWarning", "ignore:the target has moved")


def friedman(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y += rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def level(y, at, size):
    return np.where(np.arange(len(y)) < at, y + size, y)


def scale(y, at, before, after):
    return np.where(np.arange(len(y)) < at, before * y, after * y)


def wrong(y, at, n, size, kind):
    out, rng = y.copy(), np.random.default_rng(9)
    noise = {"noise": rng.standard_normal(n), "one number": np.ones(n), "level": 1.0 + y[at : at + n] / size}[kind]
    out[at : at + n] = size * noise
    return out


def wrong_here_and_there(y, until, n, size):
    out, rng = y.copy(), np.random.default_rng(9)
    out[rng.choice(np.arange(100, until), n, replace=False)] = size * rng.standard_normal(n)
    return out


def learned(X, y, block=500, **params):
    est = ks.KernelRegressor(random_state=0, **({"size": "small"} | params))
    return np.concatenate([est.learn(X[i : i + block], y[i : i + block]) for i in range(0, len(y), block)]), est


def explained(y, f, rows):
    return 1 - np.mean((y - f)[rows] ** 2) / np.var(y[rows])


CHANGES = {
    "a level of 20": lambda y, at: level(y, at, 20.0),
    "a level of 100": lambda y, at: level(y, at, 100.0),
    "a level of -1000": lambda y, at: level(y, at, -1000.0),
    "from 100 to 1": lambda y, at: scale(y, at, 100.0, 1.0),
    "from 30 to 1": lambda y, at: scale(y, at, 30.0, 1.0),
    "from 1 to 100": lambda y, at: scale(y, at, 1.0, 100.0),
    "100 numbers of 1e4": lambda y, at: wrong(y, at, 100, 1e4, "noise"),
    "300 numbers of 1e6": lambda y, at: wrong(y, at, 300, 1e6, "noise"),
    "300 times 1e6": lambda y, at: wrong(y, at, 300, 1e6, "one number"),
    "50 numbers of 1e4 here and there": lambda y, at: wrong_here_and_there(y, at, 50, 1e4),
    "150 numbers of 1e6 here and there": lambda y, at: wrong_here_and_there(y, at, 150, 1e6),
    "300 at a level of 1e6": lambda y, at: wrong(y, at, 300, 1e6, "level"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_default_learner_recovers(change):
    """Two thousand rows after the change it explains nine tenths of what it explains without one, at least."""
    X, y = friedman()
    changed = CHANGES[change](y, FROM)
    rows = slice(FROM + AFTER, FROM + AFTER + JUDGED)
    undisturbed = explained(y, learned(X, y)[0], rows)
    assert explained(changed, learned(X, changed)[0], rows) >= 0.9 * undisturbed


def test_new_members_that_are_spoilt_begin_again_however_the_rows_are_cut():
    X, y = friedman(1600)
    spoilt = wrong_here_and_there(y, 1100, 110, 1e6)
    expected, whole = learned(X, spoilt, 1600)
    for block in (90, 400):
        got, cut = learned(X, spoilt, block)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        assert_same_state(cut.state_, whole.state_, 1e-6, "cut")
    assert whole._state["renewal"]["begun"] >= 1100  # not the first ones, which learned wrong targets
    assert np.mean((expected - y)[1450:] ** 2) < 0.3


def test_intervals_keep_their_coverage():
    X, y = friedman()
    changed = CHANGES["a level of 100"](y, FROM)
    est = ks.KernelRegressor(size="small", random_state=0)
    _, low, high = est.learn_interval(X, changed, coverage=0.9)
    rows = slice(FROM + 50, FROM + 1050)
    assert ((low < changed) & (changed < high))[rows].mean() > 0.87
    assert np.median((high - low)[rows]) < 3.0  # deviations


def test_levels_come_in_one_block_or_row_by_row():
    X, y = friedman(1500)
    changed = level(y, 900, 50.0)
    expected, whole = learned(X, changed, 1500)
    got, rows = learned(X, changed, 1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    assert whole.state_["target_range"][targets.MOVES, 0] == 1
    np.testing.assert_array_equal(rows.state_["target_range"], whole.state_["target_range"])


@pytest.mark.parametrize("name", ENGINES)
def test_any_split_of_a_stream_that_moves(name):
    X, y = friedman(420)
    members = [ks.OnlineRidge("raw", random_state=0), ks.CellsRegressor(8, random_state=0)]
    changed = level(y, 300, 500.0)
    expected, whole = learned(X, changed, 420, members=members, engine=name)
    for block in (7, 100):
        got, cut = learned(X, changed, block, members=members, engine=name)
        assert_same_state(cut.state_, whole.state_, 1e-9 if name == "native" else 0.0, "cut")
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 if name == "native" else 0)
    assert whole.state_["target_range"][targets.MOVES, 0] == 1


def test_engines_agree():
    if len(ENGINES) == 1:
        pytest.skip("needs the compiled core")
    X, y = friedman(600)
    changed = level(y, 300, 500.0)
    members = [ks.OnlineRidge("raw", random_state=0), ks.CellsRegressor(8, random_state=0)]
    one, other = (learned(X, changed, 100, members=members, engine=name)[0] for name in ENGINES)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(one).max())


# ------------------------------------------------------------------------------------------------- what does not move


def moves(y):
    state = targets.no_targets(1)
    seen, last, found, at = state["target_range"], state["target_last"], [], 0
    ops = engine.get(ENGINES[-1])
    while at < len(y):
        n, due, _ = ops.take_targets(y[at:], None, seen, last, np.empty(len(y) - at))
        at += n
        found += [(at, move) for move in (targets.look(seen, last) if due else []) if move is not None]
    return found


def steady():
    n, rng = 12_000, np.random.default_rng(0)
    t, e = np.arange(n), rng.standard_normal(n)
    return {
        "normal": e,
        "heavy tails": rng.standard_t(2.5, n),
        "long tail": np.exp(2 * e),
        "trend": t + e,
        "growth": np.exp(t / 2000) * (1 + 0.1 * e),
        "random walk": np.cumsum(e),
        "day and night": 10 * np.sin(2 * np.pi * t / 144) + e,
        "dark nights": np.maximum(0, np.sin(2 * np.pi * t / 1440)) * (1 + 0.1 * e),
        "counts": rng.poisson(0.1, n).astype(float),
        "nine zeros of ten": np.where(rng.random(n) < 0.9, 0.0, np.exp(e)),
        "500 zeros at first": np.where(t < 500, 0.0, e),
        "one number for 500 rows": np.where((t > 5000) & (t < 5500), e[5000], e),
    }


@pytest.mark.parametrize("name", steady())
def test_nothing_moves(name):
    assert moves(steady()[name]) == []


def test_quiet_nights_that_are_foreseen_change_nothing():
    """The target varies thirty times less at night, which a column tells: forecasts are right in the unit they have."""
    n, rng = 6000, np.random.default_rng(1)
    t = np.arange(n)
    X = np.column_stack([np.sin(2 * np.pi * t / 1440), np.cos(2 * np.pi * t / 1440), rng.standard_normal(n)])
    y = np.maximum(0, X[:, 0]) * (1 + 0.3 * np.tanh(X[:, 2])) + 0.01 * rng.standard_normal(n)
    assert len(moves(y)) > 2  # of the targets alone
    _, est = learned(X, y)
    assert est.state_["target_range"][targets.MOVES, 0] == 0


def test_a_target_of_several_levels_moves_no_more():
    """After four moves within a short time both levels are believed, and the columns may tell which it is."""
    y = np.random.default_rng(2).standard_normal(6000) + 1000.0 * (np.arange(6000) // 300 % 2)
    assert len(moves(y)) <= 5  # of 19 changes


def test_a_move_is_said_once():
    X, y = friedman(1200)
    with pytest.warns(RuntimeWarning) as caught:
        learned(X, level(level(y, 600, 100.0), 900, -5000.0), 100)
    assert [str(w.message)[:20] for w in caught] == ["a target lies far ou", "the target has moved"]
    assert "has moved from about" in str(caught[1].message) and caught[1].filename == __file__


def test_a_single_wild_target_costs_nothing_later():
    X, y = friedman(3000)
    wild = y.copy()
    wild[1000] = 1e6
    clean, spoilt = (learned(X, z)[0] for z in (y, wild))
    later = slice(1200, None)
    assert np.mean((spoilt - y)[later] ** 2) < 1.01**2 * np.mean((clean - y)[later] ** 2)
    _, est = learned(X, wild)
    assert est.set_aside_ == 1
