"""``learn`` after ``fit`` follows what changes: the function of all rows is one member among those of a stream."""

import itertools

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import KernelClassifier, KernelRegressor, settings
from kernelstream.passes.stack import native, python, states
from kernelstream.testing.streaming import assert_same_state

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2400, 3))
CHANGE = 400  # row at which another function begins, and the sign of the first one turns
BEFORE = np.sin(2 * X[:, 0]) + X[:, 1]
AFTER = np.cos(3 * X[:, 2]) - np.sin(2 * X[:, 0])
NUMBERS = np.where(np.arange(len(X)) < CHANGE, BEFORE, AFTER) + 0.1 * RNG.normal(size=len(X))
TASKS = {"numbers": (KernelRegressor, NUMBERS), "labels": (KernelClassifier, (NUMBERS > 0).astype(int))}


def fitted(task):
    make, y = TASKS[task]
    return make(size="small", random_state=0).fit(X[:CHANGE], y[:CHANGE])


@pytest.fixture(scope="module", params=list(TASKS))
def after(request):
    """A task, and a model of it that is fitted to the rows before the change."""
    return request.param, fitted(request.param)


def errors(scores, y):
    return np.square(scores - y) if y.dtype.kind == "f" else (scores > 0) != y


def test_it_follows_a_change_as_quickly_as_a_stream(after):
    task, model = after
    make, y = TASKS[task]
    model, live, late = reloaded(model), y[CHANGE:], slice(800, 1400)
    found = errors(model.learn(X[CHANGE:], live), live)
    stream = make(size="small", random_state=0)
    stream.learn(X[:CHANGE], y[:CHANGE])
    usual = errors(stream.learn(X[CHANGE:], live), live)
    assert found.mean() <= 1.3 * usual.mean() and found[late].mean() <= 1.3 * usual[late].mean()
    frozen = errors(fitted(task).predict(X[CHANGE:]) - 0.5 * (task == "labels"), live)
    assert found.mean() < 0.5 * frozen.mean()


def test_the_function_loses_its_weight_within_200_rows(after):
    task, model = after
    model, (_, y) = reloaded(model), TASKS[task]
    share = states.shares(model.state_["o0/stack_logs"], 0.0)[-1]
    model.learn(X[CHANGE : CHANGE + 200], y[CHANGE : CHANGE + 200])
    assert share >= 0.25 and states.shares(model.state_["o0/stack_logs"], 0.0)[-1] < 0.05
    assert model.members_[-1]["name"] == "batch" and model.weights_.shape == (5,)


@pytest.mark.parametrize("task", TASKS)
def test_without_a_change_it_is_as_good_as_either(task):
    """The function that fit learned, alone, and the stream from its start."""
    make, _ = TASKS[task]
    y = BEFORE + 0.3 * np.random.default_rng(1).normal(size=len(X))
    y = y if task == "numbers" else (y > 0).astype(int)
    model, stream = (make(size="small", random_state=0) for _ in range(2))
    model.fit(X[:CHANGE], y[:CHANGE])
    said = model.predict(X[CHANGE:]) - 0.5 * (task == "labels")
    usual = errors(stream.learn(X, y)[CHANGE:], y[CHANGE:]).mean()
    found = errors(model.learn(X[CHANGE:], y[CHANGE:]), y[CHANGE:]).mean()
    assert found <= 1.02 * min(usual, errors(said, y[CHANGE:]).mean())


@pytest.mark.parametrize("key", ["target", "a column"])
@pytest.mark.parametrize("task", TASKS)
def test_a_table_that_is_sorted_is_learned_as_one_that_is_not(task, key):
    """Members that learned the last rows last are right for these alone."""
    make, _ = TASKS[task]
    y = BEFORE if task == "numbers" else (BEFORE > 0).astype(int)
    order = np.argsort(BEFORE[:800] if key == "target" else X[:800, 0])
    found = []
    for rows in (np.arange(800), order):
        model = make(size="small", random_state=0).fit(X[rows], y[rows])
        said = model.predict(X[800:])
        model.learn(X[800:810], y[800:810])
        found.append(
            [errors(p - 0.5 * (task == "labels"), y[-len(p) :]).mean() for p in (said, model.predict(X[810:]))]
        )
    (usual, _), (of_sorted, after_ten) = found
    assert of_sorted < 1.5 * usual + 0.01 * BEFORE.var()
    assert after_ten < 0.2 * BEFORE.var()


def test_dates_in_order_tell_what_was_when():
    """Of a table, where old rows are no rows of now."""
    pd = pytest.importorskip("pandas")
    n = 600
    table = pd.DataFrame({"day": pd.date_range("2023-01-01", periods=n), "size": 1000 * X[:n, 1]})
    y = np.arange(n) / 100 + np.sin(X[:n, 1])
    model = KernelRegressor(size="small", random_state=0).fit(table, y)
    assert np.mean((model.predict(table) - y) ** 2) < 0.01 * y.var()


def test_any_split_and_a_file_in_between(after):
    """Among them calls of one row, which go through all members at once, and one of many rows on several threads."""
    task, model = after
    _, y = TASKS[task]
    one, two = reloaded(model), reloaded(model)
    with settings.using(threads=2):
        scores = one.learn(X[CHANGE:], y[CHANGE:])
    cuts = [*range(CHANGE, 440), 463, 1000, len(X)]
    parts = [two.learn(X[start:stop], y[start:stop]) for start, stop in itertools.pairwise(cuts)]
    np.testing.assert_allclose(np.concatenate(parts), scores, rtol=1e-6, atol=1e-9)
    three = reloaded(model)
    three.learn(X[CHANGE:463], y[CHANGE:463])
    four = reloaded(three)
    np.testing.assert_array_equal(three.learn(X[463:500], y[463:500]), four.learn(X[463:500], y[463:500]))


def test_a_row_and_a_table_after_fit(after):
    """Single rows are scored in one call of the core; the function of all rows takes part in it."""
    task, model = after
    model, (_, y) = reloaded(model), TASKS[task]
    model.learn(X[CHANGE : CHANGE + 50], y[CHANGE : CHANGE + 50])
    model.recent = False
    asked = model.predict if task == "numbers" else model.decision_function
    rows = np.concatenate([asked(x[None]) for x in X[500:520]])
    np.testing.assert_allclose(rows, asked(X[500:560])[:20], rtol=1e-9)


def test_what_fails_in_the_function_leaves_the_model_as_it_was(after, monkeypatch):
    task, model = after
    model, (_, y) = reloaded(model), TASKS[task]
    model.learn(X[CHANGE : CHANGE + 5], y[CHANGE : CHANGE + 5])
    undisturbed = reloaded(model)

    def fails(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(model._learner.batch.learner(model._state), "score", fails)
        with pytest.raises(KeyboardInterrupt):
            model.learn(X[500:501], y[500:501])
    assert model.state_["t"] == undisturbed.state_["t"]
    for start in range(500, 530):
        part = slice(start, start + 1)
        np.testing.assert_allclose(model.learn(X[part], y[part]), undisturbed.learn(X[part], y[part]), rtol=1e-12)


@pytest.mark.parametrize(("regression", "classes"), [(True, 1), (False, 1), (False, 3)])
def test_the_fourth_memory_is_the_same_in_both_engines(regression, classes):
    rng = np.random.default_rng(3)
    n, N = 300, 4
    truth = rng.normal(size=(n, classes))
    F = truth + rng.normal(size=(N, n, classes)) * np.arange(1, N + 1)[:, None, None] / 2
    y = truth[:, 0] if regression else np.sign(truth[:, 0]) if classes == 1 else truth.argmax(axis=1).astype(float)
    start = states.start_stack(N - 1, classes, regression)
    python.stack_pass(F[:-1, :100], y[:100], None, start, (regression, True))
    start = states.with_batch(start, 0.9, 0.3, 100)
    found = []
    for engine in (python, native):
        state = {name: value.copy() for name, value in start.items()}
        weights = np.empty((4, N))
        args = (F[:, 100:].copy(), y[100:], rng.permutation(np.ones(200)), state, (regression, True))
        found.append((engine.stack_pass(*args, (100, 50, weights)), state, weights))
    (scores, state, weights), (others, other_state, other_weights) = found
    np.testing.assert_allclose(others, scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other_weights, weights, rtol=1e-8, atol=1e-12)
    assert_same_state(other_state, state, 1e-8, "engines")


def test_the_fourth_memory_by_the_formula():
    """Labels: p = sum of s_k q_k with the last q that of the last input alone; s by likelihood and fixed share."""
    rng = np.random.default_rng(4)
    F, y = rng.normal(size=(2, 50, 1)), np.sign(rng.normal(size=50))
    state = states.with_batch(states.start_stack(1, 1, False), 0.9, 0.2, 0)
    without = states.start_stack(2, 1, False)
    without["stack_w"][:] = state["stack_w"]
    share = np.array([0.1 / 3, 0.1 / 3, 0.1 / 3, 0.9])
    for t in range(50):
        row, f = F[:, t : t + 1].copy(), F[-1, t, 0]
        share = (1 - python.LABEL_SHARE) * share / share.sum() + python.LABEL_SHARE / 4
        own = 1 / (1 + np.exp(-(without["stack_w"] @ [*row[:, 0, 0], 1.0])))
        q = np.append(own, 1 / (1 + np.exp(-f)))
        score = python.stack_pass(row, y[t : t + 1], None, state, (False, False))
        python.stack_pass(row, y[t : t + 1], None, without, (False, False))
        assert 1 / (1 + np.exp(-score[0, 0])) == pytest.approx(share @ q, rel=1e-9)
        share = share * (q if y[t] > 0 else 1 - q)


@pytest.mark.parametrize("task", TASKS)
def test_the_members_are_those_of_a_stream_that_has_learned_the_history(task):
    make, y = TASKS[task]
    rows = X[:CHANGE] * [1.0, 100.0, 0.01]
    model = make(size="small", random_state=0).fit(rows, y[:CHANGE], sample_weight=np.arange(CHANGE) % 7 > 0)
    stream, weight = make(size="small", random_state=0), np.arange(CHANGE) % 7 > 0
    last = np.flatnonzero(weight)[-int(0.1 * weight.sum())]  # the tenth that decides is learned by a call of its own
    for part in (slice(0, last), slice(last, CHANGE)):
        stream.partial_fit(rows[part], y[:CHANGE][part], sample_weight=weight[part])
    found, wanted = model.state_, stream.state_
    kept = [name for name in wanted if name.startswith(("members/", "o0/recent", "o0/level"))]
    assert_same_state({name: found[name] for name in kept}, {name: wanted[name] for name in kept}, 0.0, task)
    np.testing.assert_array_equal(found["o0/stack_A"][:, :4, :4], wanted["o0/stack_A"][:, :4, :4])
    assert not found["o0/stack_A"][:, 4].any() and found["t"] == wanted["t"]
