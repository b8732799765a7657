"""Calls of few rows: all members in one call of the compiled core; and the compiled loops against the written ones."""

import copy
import functools
import itertools
import pickle
import sys

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import KernelClassifier, KernelRegressor, WindowClassifier, WindowRegressor, engine
from kernelstream.estimators.stack import answers, level, rows
from kernelstream.estimators.stack.base import Stack
from kernelstream.random import SeedStream, uniforms

pytestmark = [
    pytest.mark.skipif(not engine.has_native(), reason="the compiled core is not installed"),
    pytest.mark.usefixtures("short_searches"),
]

rng = np.random.default_rng(0)
X = rng.standard_normal((2400, 6))
X[::50, 0] *= 40.0
TASKS = {
    "two": (KernelClassifier, (X[:, 0] * X[:, 1] > 0).astype(int)),
    "three": (KernelClassifier, np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0])),
    "numbers": (KernelRegressor, 50 * np.sin(2 * X[:, 0]) + X[:, 1]),
}


@functools.cache
def _taught(task, n, seed):
    cls, y = TASKS[task]
    return cls(random_state=seed).partial_fit(X[:n], y[:n])


def taught(task, n, seed):
    """A model of the first n rows, to change at will."""
    return copy.deepcopy(_taught(task, n, seed))


def one_by_one(model, X, y, sizes=(1,)):
    parts, start, turn = [], 0, 0
    if not hasattr(model, "n_features_in_"):  # all labels are there after some rows
        parts, start = [model.learn(X[:40], y[:40])], 40
    while start < len(X):
        size = sizes[turn % len(sizes)]
        parts.append(model.learn(X[start : start + size], y[start : start + size]))
        start, turn = start + size, turn + 1
    return np.concatenate(parts)


def numbers_of(model):
    return {k: np.asarray(v, float) for k, v in model.state_.items() if np.asarray(v).dtype.kind in "iuf"}


def assert_same(a, b, tolerance):
    a, b = numbers_of(a), numbers_of(b)
    assert a.keys() == b.keys()
    for name in a:
        size = np.abs(a[name]).max(initial=1.0)
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=tolerance * size, err_msg=name)


def uses_the_short_path(model):
    return model._learner.derived.get("rows") is not None


@pytest.fixture
def long_way(monkeypatch):
    """Called, it turns the short path off."""
    return lambda: monkeypatch.setattr(Stack, "bound", lambda stack, state: None)


@pytest.mark.parametrize("task", TASKS)
def test_one_by_one_is_the_python_engine(task):
    """Whose calls may be cut anywhere, to the bit."""
    cls, y = TASKS[task]
    fast, plain, parts = (cls(size="small", engine=name, random_state=0) for name in ("native", "python", "python"))
    n = 160  # past the warm-up, a look at the grids and full windows
    scores = one_by_one(fast, X[:n], y[:n], (1, 1, 3))
    assert uses_the_short_path(fast)
    expected = plain.learn(X[:n], y[:n])
    held = np.isfinite(scores) if task == "three" else slice(None)  # a class that had not appeared has -inf
    np.testing.assert_allclose(scores[held], expected[held], rtol=1e-9, atol=1e-9)
    assert_same(fast, plain, 1e-7)  # tables are in float32
    last = [parts.learn(X[i:j], y[i:j]) for i, j in itertools.pairwise([0, 1, 5, 63, 64, 129, 130, n])][-1]
    np.testing.assert_array_equal(last, expected[-len(last) :])
    assert_same(parts, plain, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("task", TASKS)
def test_one_by_one_is_one_call(task, dtype):
    cls, y = TASKS[task]
    rows_ = X.astype(dtype)
    # past solutions in the metric and full windows; once past the rows that fill the sample of the cells
    n = 320 if dtype == np.float32 else 2300 if task == "two" else 700
    whole, single = cls(random_state=3), cls(random_state=3)
    expected = whole.learn(rows_[:n], y[:n])
    scores = one_by_one(single, rows_[:n], y[:n], (1, 1, 1, 5))
    assert uses_the_short_path(single)
    held = np.isfinite(expected)
    # of float32 rows the features differ in the last bits between a row alone and a block
    exact = dtype == np.float64
    np.testing.assert_allclose(scores[held], expected[held], rtol=1e-9 if exact else 1e-2, atol=1e-9 if exact else 1e-2)
    for one, other in zip(whole.weights_history_, single.weights_history_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 if exact else 1e-2)
    if exact:
        assert_same(whole, single, 1e-7)


@pytest.mark.parametrize("task", TASKS)
def test_few_rows_are_scored_as_on_the_long_way(task, monkeypatch, long_way):
    """To the bit, those of any time and the next ones of the stream."""
    monkeypatch.setattr(level, "FIRST_ROWS", 250)  # from then on scores are shifted to the level of the labels
    model = taught(task, 300, 1)
    asked = X[1100:1140]
    few = {(n, next_): model._scores(asked[:n], next_) for n in (1, 2, 7, rows.AT_ONCE) for next_ in (False, True)}
    assert uses_the_short_path(model)
    long_way()
    for (n, next_), found in few.items():
        np.testing.assert_array_equal(found, model._scores(asked, next_)[:n])
        assert np.abs(found - few[n, not next_]).max() > 1e-6  # of a row of any time it is not known what came before


def test_widths_of_tables_are_found_once_for_each_row_learned(monkeypatch):
    model, y = taught("numbers", 300, 1), TASKS["numbers"][1]
    found, seek = [], answers._ways

    def counted(stack, state, asked):
        found.append(round(asked[1] - asked[0], 9))
        return seek(stack, state, asked)

    monkeypatch.setattr(answers, "_ways", counted)
    fresh = copy.deepcopy(model)

    def width(model, coverage):
        low, high = model.predict_interval(X[1100:1105], coverage)
        return (high - low)[0]

    assert width(model, 0.9) == width(model, 0.9) == width(fresh, 0.9) < width(model, 0.99)
    assert found == [0.9, 0.9, 0.99]
    model.learn(X[300:301], y[300:301] + 100.0)
    again = width(model, 0.9)
    fresh.learn(X[300:301], y[300:301] + 100.0)
    assert found[3:] == [0.9] and again == width(fresh, 0.9) and again != width(model, 0.8)
    low, high = model.forecast_interval(X[1100:1105])
    single = [model.forecast_interval(X[i : i + 1]) for i in range(1100, 1105)]
    np.testing.assert_array_equal(np.stack([low, high]), np.concatenate(single, axis=1))


@pytest.mark.parametrize("task, member", [(("two", "numbers")[member % 2], member) for member in range(8)])
def test_a_row_that_one_member_cannot_take_is_taken_back(task, member, monkeypatch, long_way):
    """Members before it have learned the row already; then the long way is gone, where that member begins anew."""
    y = TASKS[task][1]
    n = 191 + 64  # the windows will be full after this row
    models = [taught(task, n, 1) for _ in range(2)]
    for way, model in enumerate(models):
        if way:
            long_way()
        model.learn(X[n : n + 1], y[n : n + 1])
        state = model.learners_[member].state_
        for name in ("bias", "w", "window_weight", "b"):
            if name in state:
                state[name][...] = np.inf
                break
        model.learners_[member]._forget()
        one_by_one(model, X[n + 1 : n + 50], y[n + 1 : n + 50])
        monkeypatch.undo()
    assert [row["restarts"] for row in models[0].members_] == [row["restarts"] for row in models[1].members_]
    assert_same(*models, 1e-6)


def test_what_changes_a_model_between_two_rows(long_way):
    """Labels that are new, parameters of the whole and of a member, another state, the last labels left out."""

    def life(model):
        y = TASKS["three"][1]
        order = np.concatenate([np.flatnonzero(y[:300] < 2), np.flatnonzero(y[:300] == 2)])
        model.learn(X[order[:150]], y[order[:150]])
        found = [model.learn(X[i : i + 1], y[i : i + 1]).ravel() for i in order[150:]]
        other = KernelClassifier(random_state=9).partial_fit(X[:150], y[:150])
        model.state_ = other.state_
        found.append(one_by_one(model, X[300:340], y[300:340]).ravel())
        model.learners_[0].set_params(eta=0.1)
        found.append(one_by_one(model, X[340:380], y[340:380]).ravel())
        model.recent = False
        found.append(one_by_one(model, X[380:420], y[380:420]).ravel())
        model.set_params(engine="python")
        found.append(one_by_one(model, X[420:424], y[420:424]).ravel())
        return np.concatenate(found)

    quick = life(KernelClassifier(random_state=0))
    long_way()
    np.testing.assert_allclose(quick, life(KernelClassifier(random_state=0)), rtol=1e-8, atol=1e-8)


def test_a_wild_target_is_set_aside_one_by_one_too():
    y = TASKS["numbers"][1].copy()
    y[250] = 1e6
    whole, single = KernelRegressor(random_state=0), KernelRegressor(random_state=0)
    with pytest.warns(RuntimeWarning, match="far outside"):
        whole.partial_fit(X[:300], y[:300])
    with pytest.warns(RuntimeWarning, match="far outside"):
        one_by_one(single, X[:300], y[:300])
    assert_same(whole, single, 1e-6)
    for one, other in zip(whole.predict_interval(X[:1]), single.predict_interval(X[:1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_python_around_a_row():
    """How many functions of Python a row costs, on average over full windows and entries of the history.

    No solution in the metric is begun or takes effect from row 545 to row 639.
    """
    model, y = taught("two", 550, 1), TASKS["two"][1]
    one_by_one(model, X[550:580], y[550:580])
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        one_by_one(model, X[580:630], y[580:630])
    finally:
        sys.setprofile(None)
    assert calls / 50 < 25


@pytest.mark.parametrize("task", TASKS)
def test_a_row_alone_has_the_bits_of_the_long_way(task, long_way):
    """A model that was loaded goes the short path later or earlier than the one that was saved."""
    y = TASKS[task][1]
    quick, slow = (taught(task, 300, 0) for _ in range(2))
    one_by_one(quick, X[300:500], y[300:500])
    assert uses_the_short_path(quick)
    long_way()
    one_by_one(slow, X[300:500], y[300:500])
    a, b = numbers_of(quick), numbers_of(slow)
    assert [name for name in a if not np.array_equal(a[name], b[name])] == []


# -------------------------------------------------------------------- the compiled loops
@pytest.mark.parametrize("task", TASKS)
def test_the_way_follows_from_the_state_and_the_rows(task):
    """Copied, loaded or given lists, a model goes on to the same bits, whatever the size of its next call."""
    _, y = TASKS[task]
    model = taught(task, 300, 1)
    model.learn(X[300:301], y[300:301])
    for n in (1, 11):
        here, listed, loaded = copy.deepcopy(model), pickle.loads(pickle.dumps(model)), reloaded(model)
        here.predict(X[:1])
        new, target = X[301 : 301 + n], y[301 : 301 + n]
        expected = here.learn(new, target)
        np.testing.assert_array_equal(loaded.learn(new, target), expected)
        np.testing.assert_array_equal(listed.learn(new.tolist(), target.tolist()), expected)
        for other in (loaded, listed):
            assert_same(other, here, 0.0)
        answers = [ask(X[i : i + 1]) for ask in (here.predict, loaded.predict) for i in range(9)]
        answers += [listed.predict(X[i : i + 1].tolist()) for i in range(9)]
        np.testing.assert_array_equal(*np.reshape(answers, (3, 9))[[0, 1]])
        np.testing.assert_array_equal(*np.reshape(answers, (3, 9))[[0, 2]])


@pytest.mark.parametrize("task", TASKS)
def test_rows_after_the_first_weights_are_weighed_too(task):
    """Next to rows of weight 4, rows without weights count as rows of weight 1, whatever went before them."""
    _, y = TASKS[task]
    one, other = (taught(task, 300, 1) for _ in range(2))
    one.learn(X[300:301], y[300:301])  # a plain call first
    other.learn(X[300:301], y[300:301], sample_weight=[1.0])
    for model in (one, other):
        model.learn(X[301:303], y[301:303], sample_weight=[4.0, 4.0])
    new, target = X[303:310], y[303:310]
    expected = other.learn(new, target, sample_weight=np.ones(7))
    np.testing.assert_array_equal(one.learn(new, target), expected)
    assert_same(one, other, 0.0)


@pytest.mark.parametrize("neighbours", [1, 10, 60, 5000])
@pytest.mark.parametrize("kind", ["labels", "many", "numbers"])
def test_windows_agree(kind, neighbours):
    n = 450
    some = np.round(X[:n], 1 if neighbours == 10 else 6)  # with ties
    y = {"labels": TASKS["two"][1], "many": TASKS["three"][1], "numbers": TASKS["numbers"][1]}[kind][:n]
    weight = np.where(np.arange(n) % 7 == 0, 0.0, 1.0 + (np.arange(n) % 3))
    cls = WindowRegressor if kind == "numbers" else WindowClassifier
    fast, plain = (cls(250, neighbours, engine=name, random_state=0) for name in ("native", "python"))
    cuts = [0, 3, 4, 11, 200, 201, 330, n]
    if kind == "many":  # or columns would be added on the way
        for model in (fast, plain):
            model.partial_fit(some[:20], y[:20])
    found, expected = (
        np.concatenate([model.learn(some[a:b], y[a:b], sample_weight=weight[a:b]) for a, b in itertools.pairwise(cuts)])
        for model in (fast, plain)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert_same(fast, plain, 1e-12)


@pytest.mark.parametrize("d", [5, 500])  # 500: most columns are in no grid
def test_grid_maps_agree(d, rng):
    fast, plain = engine.get("native"), engine.get("python")
    R, K, L = 30, 6, 63
    levels = np.sort(rng.standard_normal((d, L)), axis=1)
    count = rng.integers(0, L + 1, d).astype(np.int32)
    columns = rng.integers(0, d, (R, K)).astype(np.int32)
    n_edges = rng.integers(0, 4, (R, K)).astype(np.int32)
    edges = np.sort(rng.standard_normal((R, K, L)), axis=2)
    edges[0, 0, :3] = levels[columns[0, 0], :3]
    args = (columns, edges, n_edges, levels, count)
    maps = fast.grid_maps(*args)
    assert np.array_equal(maps, plain.grid_maps(*args))
    assert maps.max() > 0
    rows_ = rng.standard_normal((200, d))
    cells = [ops.by_levels(rows_, levels, count, columns, maps, 4096) for ops in (fast, plain)]
    assert np.array_equal(*cells)
    small = maps * (maps < 256)  # which the compiled twin keeps in bytes
    assert np.array_equal(*(ops.by_levels(rows_, levels, count, columns, small, 4096) for ops in (fast, plain)))


def test_places_of_the_sample_are_the_uniform_numbers():
    """The compiled learner makes the numbers one by one that Python makes ahead."""
    y = TASKS["two"][1]
    model = KernelClassifier(size="small", random_state=0).partial_fit(X[:2300], y[:2300])
    cells = model.learners_[0]
    before = cells.state_["sample_rows"].copy()
    one_by_one(model, X[2300:2400], y[2300:2400])
    assert uses_the_short_path(model)
    changed = np.flatnonzero((cells.state_["sample_rows"] != before).any(axis=1))
    drawn = uniforms(cells.state_["seed"], 2300, 100, SeedStream.CELLS_PLACES) * np.arange(2301, 2401)
    assert set(changed) == {int(place) for place in drawn if place < 2000}
