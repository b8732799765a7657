"""Kernel ridge on the last rows of a stream in a learned metric, against a naive program."""

import io
import itertools
import math

import numpy as np
import pytest
from metric_formulas import mixture, standard

import kernelstream as ks
from kernelstream import engine
from kernelstream.estimators import _metric_refit
from kernelstream.estimators.stack import members
from kernelstream.passes.metric.python import Functions, Leaf
from kernelstream.testing.streaming import assert_same_scores, assert_same_state

ENGINES = ["python", "native"] if engine.has_native() else ["python"]
rng = np.random.default_rng(5)
X = rng.normal(size=(700, 4)) * [1.0, 10.0, 0.1, 1.0]
X[::60, 0] *= 30.0  # far values count by their logarithm
NUMBERS = np.sin(X[:, 1] / 5 + 10 * X[:, 2]) + 0.1 * X[:, 3] + 3.0
TWO = (NUMBERS > 3).astype(int)
THREE = np.digitize(NUMBERS, [2.5, 3.5])
WEIGHT = rng.choice([0.0, 1.0, 2.0], 700)
# Rows with a weight, of the first 250 and for a window with room for 150: after how many there is a new solution, and
# how many of them it has learned.
SOLVED = {n: n for n in (1, 2, 4, 8, 16, 32, 64)} | {128 + 8: 128, 160 + 1: 160}


def make(y, **parameters):
    cls = ks.MetricWindowRegressor if y is NUMBERS else ks.MetricWindowClassifier
    return cls(random_state=0, **parameters)


def naive_functions(state, rows, Y, weight):
    """f of kernel ridge on rows with targets Y (n, C), in the metric of a state."""
    root = np.diag(state["root"]) if state["root"].ndim == 1 else state["root"]
    scales = state["scales"]

    def k(Z, T):
        return mixture(state["share"], Z @ root, T @ root, Z * scales, T * scales)

    def leaf(x):
        node = 0
        while node < len(state["thresholds"]):
            node = 2 * node + (2 if state["directions"][node] @ (root @ x) > state["thresholds"][node] else 1)
        return node

    A, o = standard(rows, rows, weight), np.average(Y, axis=0, weights=weight)
    parts = {}
    for number in {leaf(x) for x in A}:
        own = np.array([i for i, x in enumerate(A) if leaf(x) == number])
        alpha = np.linalg.solve(k(A[own], A[own]) + state["lam"] * np.diag(1 / weight[own]), Y[own] - o)
        parts[number] = A[own], alpha

    def f(x):
        z = standard(x[None], rows, weight)
        own, alpha = parts[leaf(z[0])]
        return (o + k(z, own) @ alpha)[0]

    return f


def naive(y, rows, weight, n, room, C, name):
    """Scores before each of n rows; the metric of each solution is that of a model that has just found it."""
    learner, f, told, scores = make(y, rows=room, engine=name), lambda x: np.zeros(C), [], []
    kept = []
    codes = np.arange(C) == y[:, None] if C > 1 else y[:, None] > 0
    Y = y[:, None] if y is NUMBERS else np.where(codes, 1.0, -1.0)
    for t in range(n):
        value = f(rows[t])
        mean, spread, count = 0.0, 0.0, 0
        if y is NUMBERS:
            for i in kept:
                count += 1
                mean += (y[i] - mean) / min(count, 1000)
                spread += ((y[i] - mean) ** 2 - spread) / min(count, 1000)
        faded = 0.99 ** len(kept)
        up = 10 * faded + sum(0.99 ** (len(kept) - 1 - j) * a for j, (a, _) in enumerate(told))
        down = 10 * faded + sum(0.99 ** (len(kept) - 1 - j) * b for j, (_, b) in enumerate(told))
        g = mean + min(max(up / down, 0.0), 1.0) * (value - mean)
        if y is not NUMBERS:
            q = [
                (p + math.sqrt(p * p + 0.0036)) / 2 for p in ([*(1 + g) / 2, (1 - g[0]) / 2] if C == 1 else (1 + g) / 2)
            ]
            g = [math.log(q[0] / q[1])] if C == 1 else np.log(q)
        scores.append(g)
        if weight[t] == 0:
            continue
        unit = C if y is not NUMBERS else spread if spread > 0 else 1.0
        away = value - mean
        told.append((weight[t] * away @ (Y[t] - mean) / unit, weight[t] * away @ away / unit))
        kept.append(t)
        if len(kept) in SOLVED:
            begin = learner.state_["t"] if hasattr(learner, "state_") else 0
            new = np.array(kept[begin:])
            extra = {} if y is NUMBERS else {"classes": np.unique(y)}
            learner.learn(rows[new], y[new], sample_weight=weight[new], **extra)
            last = np.array(kept[: SOLVED[len(kept)]][-room:])
            f = naive_functions(learner.state_, rows[last], Y[last], weight[last])
    return np.array(scores)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("y", [NUMBERS, TWO, THREE], ids=["numbers", "two", "three"])
@pytest.mark.parametrize(
    ("values", "bound", "leaf"),
    [(np.float64, 1e-7, 150), (np.float64, 1e-7, 50), (np.float32, 3e-4, 50)],
    ids=["float64", "float64, leaves", "float32, leaves"],
)
def test_scores_are_those_of_a_naive_program(y, name, values, bound, leaf, monkeypatch):
    """To the last digits where kernel values are float64; float32 is what they are."""
    monkeypatch.setattr(_metric_refit, "VALUES", values)
    monkeypatch.setattr(_metric_refit, "leaf_rows", lambda d, room: leaf)
    n, C = 250, 3 if y is THREE else 1  # in a learned metric from 128 rows with a weight on
    expected = naive(y, X, WEIGHT, n, 150, C, name)
    extra = {} if y is NUMBERS else {"classes": np.unique(y)}
    found = make(y, rows=150, engine=name).learn(X[:n], y[:n], sample_weight=WEIGHT[:n], **extra)
    np.testing.assert_allclose(found.reshape(n, C), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("y", [NUMBERS, TWO, THREE], ids=["numbers", "two", "three"])
def test_any_split_gives_the_same_model(y, name):
    n = 250 if name == "python" else 450
    whole, parts = make(y, engine=name), make(y, engine=name)
    whole.learn(X[:20], y[:20])  # all labels are there
    parts.learn(X[:20], y[:20])
    weight = WEIGHT[20:n]
    expected = whole.learn(X[20:n], y[20:n], sample_weight=weight)
    cuts = [0, 1, 2, 60, 61, 190, 191, 192, 230, n - 20]
    found = [
        parts.learn(X[20 + a : 20 + b], y[20 + a : 20 + b], sample_weight=weight[a:b])
        for a, b in itertools.pairwise(cuts)
    ]
    tolerance = 0.0 if name == "python" else 1e-12
    assert_same_scores(np.concatenate(found), expected, tolerance, name)
    assert_same_state(parts.state_, whole.state_, tolerance, name)


@pytest.mark.skipif(len(ENGINES) == 1, reason="the compiled core is not installed")
@pytest.mark.parametrize("root", [np.eye(4) + 0.1, np.arange(1.0, 5.0)], ids=["full", "diagonal"])
@pytest.mark.parametrize("C", [1, 3])
def test_engines_agree_about_given_functions(root, C):
    labels, functions, rng = C > 1, [], np.random.default_rng(C)
    alpha, offset = rng.normal(size=(C, 50)), rng.normal(size=C)
    for name in ENGINES:
        ops, centres = engine.get(name), X[:50]
        Z = centres * root if root.ndim == 1 else centres @ root
        leaves = [
            Leaf(*(ops.tiles(np.ascontiguousarray(rows[part])) for rows in (Z, centres)), A, -A)
            for part in (slice(0, 20), slice(20, 50))
            for A in [np.ascontiguousarray(alpha[:, part])]
        ]
        follow = np.array([3.0, 10.0, 5.0, 0.4, 2.0])
        given = (np.zeros(4), np.ones(4), root, np.ones(4), np.ones((1, 4)), np.full(1, 0.3), leaves, offset)
        y = np.arange(100.0) % C if labels else NUMBERS[:100]
        functions.append((ops.metric_pass(X[:100], y, WEIGHT[:100], follow, Functions(*given, labels)), follow))
    (a, b), (c, d) = functions
    np.testing.assert_allclose(a, c, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(b, d, rtol=1e-10, atol=1e-10)


@pytest.mark.skipif(len(ENGINES) == 1, reason="the compiled core is not installed")
@pytest.mark.parametrize("y", [NUMBERS, TWO, THREE], ids=["numbers", "two", "three"])
def test_rows_one_by_one_are_those_of_a_call(y):
    """As a member: the compiled learner of single rows, past solutions and a full window."""
    numbers = y is NUMBERS
    cls = ks.KernelRegressor if numbers else ks.KernelClassifier
    other = ks.OnlineRidge("raw") if numbers else ks.OnlineRidgeClassifier("raw")
    whole, single = (cls(members=[make(y, rows=150), other], random_state=0) for _ in range(2))
    expected = np.concatenate([whole.learn(X[:20], y[:20]), whole.learn(X[20:300], y[20:300])])
    found = [single.learn(X[:20], y[:20])] + [single.learn(X[i : i + 1], y[i : i + 1]) for i in range(20, 300)]
    assert single._learner.derived.get("rows") is not None
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9, atol=1e-9)
    for name in ("alpha", "kept_rows", "follow"):
        a, b = (model.learners_[0].state_[name] for model in (whole, single))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * np.abs(a).max())


def test_which_sizes_of_the_default_learner_have_it():
    names = {size: [name for name, _ in members.chosen(True, size, 5)] for size in ("small", "medium", "large")}
    assert [size for size in names if "metric" in names[size]] == ["medium", "large"]


def test_what_the_stream_has_left_behind_does_not_count():
    rows = np.random.default_rng(2).normal(size=(1000, 3))
    y = np.where(np.arange(1000) < 600, 1.0, -1.0) * np.sin(2 * rows[:, 0]) + 5
    errors = np.square(ks.MetricWindowRegressor().learn(rows, y) - y)
    assert errors[400:600].mean() < 0.05
    assert errors[800:].mean() < 1.1 * y.var()  # no worse than the mean


def test_the_metric_finds_the_directions_that_count():
    rows = np.random.default_rng(3).normal(size=(1100, 6))
    model = ks.MetricWindowRegressor().partial_fit(rows, np.sin(2 * (rows[:, 1] - rows[:, 4])))
    expected = np.zeros((6, 6))
    expected[np.ix_([1, 4], [1, 4])] = [[1.0, -1.0], [-1.0, 1.0]]
    np.testing.assert_allclose(model.metric_, expected, atol=0.2)


def test_a_label_may_come_late():
    """It has had the code -1 before, and more columns do not count before the next solution."""
    order = np.argsort(THREE[:300], kind="stable")
    early = ks.MetricWindowClassifier().partial_fit(X[order], THREE[order], classes=[0, 1, 2])
    late = ks.MetricWindowClassifier().partial_fit(X[order], THREE[order])
    np.testing.assert_allclose(late.predict_proba(X[300:310]), early.predict_proba(X[300:310]), atol=0.2)
    assert np.array_equal(late.state_["kept_value"], early.state_["kept_value"])
    appeared = order[: np.argmax(THREE[order] == 2) + 1]  # its first row is the last
    for model in (late, ks.MetricWindowClassifier().partial_fit(X[appeared], THREE[appeared])):
        ks.save(model, io.BytesIO())
    before = late.decision_function(X[300:310])
    late.widen(5)
    np.testing.assert_allclose(late.decision_function(np.c_[X[300:310], np.ones(10)]), before, atol=1e-6)


def test_the_metric_turns_when_another_direction_counts():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4096 + 32, 2))  # a solution of a window of 512 takes effect
    along, across = rows @ [1.0, 1.0], rows @ [1.0, -1.0]
    target = np.sin(np.where(np.arange(len(rows)) < 1024, along, across))
    model = ks.MetricWindowRegressor(512, random_state=0)
    model.learn(rows[: 1024 + 32], target[: 1024 + 32])
    assert model.metric_[0, 1] > 0.8  # x_0 + x_1
    model.learn(rows[1024 + 32 :], target[1024 + 32 :])
    assert model.metric_[0, 1] < -0.8  # x_0 - x_1


def test_a_metric_that_found_nothing_begins_again():
    """The first rows are noise; what comes later is found from all columns alike, not from what was found in them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4096 + 64, 32))
    target = np.sin(2 * rows[:, 0]) * rows[:, 1] + 0.1 * rng.normal(size=len(rows))
    target[:1024] = rng.normal(size=1024)
    model = ks.MetricWindowRegressor(1024)
    model.learn(rows, target)
    assert set(np.argsort(np.diag(model.metric_))[-2:]) == {0, 1}
