"""Kernel ridge regression in a learned metric, beside naive programs of the same formulas."""

import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from metric_formulas import mixture, standard
from reloaded import reloaded
from scipy.stats import f_oneway, rankdata

import kernelstream as ks
from kernelstream import engine
from kernelstream.estimators import _metric_learner as models
from kernelstream.kernels import Matern
from kernelstream.solvers import metric as formulas
from kernelstream.solvers import metric_search as search
from kernelstream.solvers import ranks
from kernelstream.solvers.kernel_ridge import by_products, descend, row_matrix

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + [0.0, 50.0, 0.0, 0.0, 0.0]
NUMBERS = np.sin(X[:, 0] + (X[:, 1] - 50) / 10) + 0.05 * RNG.normal(size=260)
LABELS = np.where(X[:, 0] * (X[:, 1] - 50) > 0, "up", "down")
THREE = np.digitize(X[:, 0] + 10 * X[:, 2], [-0.7, 0.7])
TORCH = pytest.param("torch", marks=pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"))
WEIGHT = RNG.integers(1, 4, 260).astype(float)
EXPONENTIAL = Matern(nu=0.5, length=1.0)


def rank(value, column, weight):
    """Rank of a value among all of a column: the weight of what is less, and half of that of what is equal."""
    less = sum(w for v, w in zip(column, weight, strict=True) if v < value)
    equal = sum(w for v, w in zip(column, weight, strict=True) if v == value)
    return (less + equal / 2) / sum(weight)


def with_ranks(rows, all_rows, columns, weight, c):
    """Rows with the ranks of some columns added, with mean 0 and deviation 1; between values along a line."""
    out = rows.copy()
    for j in columns:
        values = np.unique(all_rows[:, j])
        ranks = np.array([rank(v, all_rows[:, j], weight) for v in values])
        own = np.array([rank(v, all_rows[:, j], weight) for v in all_rows[:, j]])
        middle = np.average(own, weights=weight)
        found = (ranks - middle) / math.sqrt(np.average((own - middle) ** 2, weights=weight))
        out[:, j] += c * np.interp(rows[:, j], values, found)
    return out


def naive(model, train, Y, test, weight=None):
    """Scores of test rows by the formula, with the metric, the scales, the share and the penalty that were found."""
    A, B = standard(train, train, weight), standard(test, train, weight)
    weight = np.ones(len(A)) if weight is None else weight
    M, L, w = model.metric_, model.length_, model.share_
    RA, RB = (with_ranks(rows, A, model.state_["ranked"], weight, model.state_["ranks"]) for rows in (A, B))

    def k(P, Q, RP, RQ):
        D = P[:, None] - Q
        near = np.exp(-np.sqrt(np.maximum(np.einsum("ijk,kl,ijl->ij", D, M, D), 0.0)) / L)
        return w * near + (1 - w) * np.exp(-(np.abs(RP[:, None] - RQ) * model.scales_).sum(axis=2))

    b = np.average(Y, axis=0, weights=weight)
    alpha = np.linalg.solve(k(A, A, RA, RA) + model.lam_ * np.diag(1 / weight), Y - b)
    return k(B, A, RB, RA) @ alpha + b


def systems_of(name, rows, Y, weight, **given):
    """Systems of an engine."""
    ops = engine.get(name)
    host = formulas.Systems(ops, rows, Y.astype(np.float32), weight, **given)
    return ops.metric_systems(host) if name == "torch" else host


def codes(y):
    labels = np.unique(y)
    return np.where(y[:, None] == (labels[1:] if len(labels) == 2 else labels), 1.0, -1.0)


@pytest.mark.parametrize("name", ["python", "native", TORCH])
@pytest.mark.parametrize("weight", [None, WEIGHT[:200]])
def test_numbers_are_those_of_the_formula(name, weight):
    model = ks.MetricRegressor(engine=name, random_state=0).fit(X[:200], NUMBERS[:200], sample_weight=weight)
    expected = naive(model, X[:200], NUMBERS[:200, None], X[200:], weight)[:, 0]
    np.testing.assert_allclose(model.predict(X[200:]), expected, atol=2e-4)
    assert model.score(X[200:], NUMBERS[200:]) > 0.8


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_scores_of_labels_are_those_of_the_formula(y):
    model = ks.MetricClassifier(random_state=0).fit(X[:200], y[:200])
    expected = naive(model, X[:200], codes(y[:200]), X[200:])
    scores = model.decision_function(X[200:])
    np.testing.assert_allclose(scores.reshape(len(scores), -1), expected, atol=2e-4)
    assert model.score(X[200:], y[200:]) > 0.8
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[200:]))


def test_several_targets_share_the_metric():
    Y = np.stack([NUMBERS, 100 * X[:, 2], 3 * NUMBERS], axis=1)
    model = ks.MetricRegressor(random_state=0).fit(X[:200], Y[:200])
    np.testing.assert_allclose(model.predict(X[200:]), naive(model, X[:200], Y[:200], X[200:]), atol=5e-3)
    np.testing.assert_allclose(model.predict(X[200:])[:, 2], 3 * model.predict(X[200:])[:, 0], atol=1e-4)


def test_a_weight_is_so_many_rows():
    some = np.repeat(np.arange(150), WEIGHT[:150].astype(int))
    weighed = ks.MetricRegressor(random_state=0).fit(X[:150], NUMBERS[:150], sample_weight=WEIGHT[:150])
    repeated = ks.MetricRegressor(random_state=0).fit(X[some], NUMBERS[some])
    np.testing.assert_allclose(weighed.predict(X[150:]), repeated.predict(X[150:]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weighed.metric_, repeated.metric_, atol=1e-5)


@pytest.mark.parametrize("name", ["native", TORCH])
@pytest.mark.parametrize("outputs", [2, 5])  # fewer than there are columns, and more
def test_gradients_are_those_of_differences(outputs, name):
    """G and g of a function of given coefficients, by central differences of the naive sums."""
    rows = X[:40, :3] / [1.0, 10.0, 0.1] - [0.0, 5.0, 0.0]
    ranks = np.random.default_rng(2).normal(size=(40, 3))
    R = np.array([[0.5, 0.1, 0.0], [0.1, 0.3, 0.0], [0.0, 0.0, 0.2]])
    scales = np.array([0.5, 0.3, 0.2])
    alpha = np.random.default_rng(1).normal(size=(40, outputs))

    G, g, h = np.zeros((3, 3)), np.zeros(3), 1e-4
    for i in range(40):
        others = np.arange(40) != i  # the function at the row itself has a kink

        def near(x, others=others):
            return np.exp(-np.linalg.norm((x - rows[others]) @ R, axis=1)) @ alpha[others]

        def along(u, others=others):
            return np.exp(-np.abs((u - ranks[others]) * scales).sum(axis=1)) @ alpha[others]

        slopes = np.array([(near(rows[i] + h * e) - near(rows[i] - h * e)) / (2 * h) for e in np.eye(3)])
        G += WEIGHT[i] * slopes @ slopes.T
        slopes = np.array([(along(ranks[i] + h * e) - along(ranks[i] - h * e)) / (2 * h) for e in np.eye(3)])
        g += WEIGHT[i] * np.square(slopes).sum(axis=1)
    systems = systems_of(name, (rows, (ranks - rows) / 2), alpha, WEIGHT[:40])
    short = alpha.astype(np.float32)
    found = systems.gradients(
        formulas.KernelMetric(R, scales, 0.5, 2.0, 1.0), systems.ops.tensor(short) if name == "torch" else short
    )
    np.testing.assert_allclose(found[0], G / WEIGHT[:40].sum(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found[1], g / WEIGHT[:40].sum(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["native", TORCH])
@pytest.mark.parametrize("judged", [12, 60])
def test_every_row_is_judged_by_the_others(judged, name):
    """The error of a metric is the mean square of the errors at each row of a function of all other rows."""
    rows = (X[:60, :2] / [1.0, 10.0], np.random.default_rng(3).normal(size=(60, 2)))
    Y = np.stack([NUMBERS, X[:, 2]], axis=1)[:60]
    metric = formulas.KernelMetric(np.array([0.5, 0.2]), np.array([0.3, 0.2]), 0.7, 1.0, 0.05)
    systems = systems_of(name, rows, Y, WEIGHT[:60], judged=judged)
    error, _ = systems.solved(systems.table(metric), metric.lam)
    Z, U = rows[0] * metric.root, (rows[0] + rows[1]) * metric.scales
    K, left = mixture(0.7, Z, Z, U, U), []
    for i in range(60):
        o = np.arange(60) != i
        alpha = np.linalg.solve(K[np.ix_(o, o)] + 0.05 * np.diag(1 / WEIGHT[:60][o]), Y[o])
        left.append(np.square(Y[i] - K[i, o] @ alpha).sum())
    expected = np.average(left[-judged:], weights=WEIGHT[60 - judged : 60])
    assert error == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("outputs, last", [(1, 30), (1, 0), (3, 60)])
def test_products_solve_what_a_factor_solves(monkeypatch, outputs, last):
    """All rows, and all but the last ones; the same to the last bit on any number of threads."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(400, 3))
    K = np.exp(-np.linalg.norm(rows[:, None] - rows, axis=2)).astype(np.float32)
    Y, more = rng.normal(size=(400, outputs)), 0.1 / rng.integers(1, 4, 400)
    assert by_products(K, more, Y, last, 1e-7) is None  # too few rows
    for name, value in {"LEAST_ROWS": 400, "PIVOTS": 60, "ITERATION": 0.5}.items():
        monkeypatch.setattr(f"kernelstream.solvers.kernel_ridge.{name}", value)
    alpha, away = by_products(K, more, Y, last, 1e-7)
    np.testing.assert_allclose(alpha, np.linalg.solve(K + np.diag(more), Y), atol=1e-4)
    others = slice(400 - last)
    left = np.linalg.solve((K + np.diag(more))[others, others], Y[others])
    np.testing.assert_allclose(away, Y[400 - last :] - K[400 - last :, others] @ left, atol=1e-4)
    for count in (1, 3):
        with ks.settings.using(threads=count):
            again = by_products(K, more, Y, last, 1e-7)
            assert (again[0] == alpha).all() and (again[1] == away).all()
    assert by_products(K, 1e-6 * more, Y, last, 1e-7) is None  # it would take too many products
    assert by_products(K, more, Y, last, -1.0) is None  # it never gets there


@pytest.mark.parametrize("made, y", [(ks.MetricRegressor, NUMBERS), (ks.MetricClassifier, THREE)])
def test_many_rows_are_solved_by_products(monkeypatch, made, y):
    """The model is the same but for the tolerance, and so is what is known of rows that are left out."""
    by_factor = made(random_state=0).fit(X, y)
    solved = []
    for name, value in {"LEAST_ROWS": 100, "PIVOTS": 60, "ITERATION": 0.2}.items():
        monkeypatch.setattr(f"kernelstream.solvers.kernel_ridge.{name}", value)
    monkeypatch.setattr(models, "by_products", lambda *given: solved.append(by_products(*given)) or solved[-1])
    products = made(random_state=0).fit(X, y)
    assert len(solved) == 1 and solved[0] is not None
    scores = [getattr(model, "predict" if y is NUMBERS else "decision_function") for model in (by_factor, products)]
    np.testing.assert_allclose(scores[1](X), scores[0](X), atol=0.001)
    if y is THREE:
        assert products.state_["steepness"] == pytest.approx(by_factor.state_["steepness"], rel=0.01)


def test_ranks_of_many_values_and_of_few():
    column = np.concatenate([np.random.default_rng(4).lognormal(size=3000), np.zeros(500)])
    rows = np.stack([column, np.arange(3500.0), np.arange(3500) % 2, np.arange(3500) % 5], axis=1)
    which, places, heights = ranks.rank_knots(rows, None)
    assert which.tolist() == [0]  # the others are as far apart as their ranks, or have two values
    truth = rankdata(column)
    asked = np.append(rows, [[-9.0, 1.0, 0.0, 0.0], [1e9, 1.0, 0.0, 0.0]], axis=0)  # two beyond all others
    for name, dtype in itertools.product(("python", "native"), (np.float32, np.float64)):
        found = engine.get(name).ranks_of(asked.astype(dtype), which, places, heights)
        assert not found[:, 1:].any()
        np.testing.assert_allclose(found[:-2, 0], (truth - truth.mean()) / truth.std(), atol=0.02)
        np.testing.assert_allclose(found[:, 0], np.interp(asked[:, 0].astype(dtype), places[0], heights[0]), atol=1e-6)
        assert found[-2:, 0].tolist() == heights[0, [0, -1]].tolist()


def test_the_metric_finds_the_directions_that_count():
    """Of a function of one sum of two columns, the metric is the outer product of that direction."""
    rows = np.random.default_rng(3).normal(size=(900, 6))
    model = ks.MetricRegressor(random_state=0).fit(rows, np.sin(2 * (rows[:, 1] - rows[:, 4])))
    expected = np.zeros((6, 6))
    expected[np.ix_([1, 4], [1, 4])] = [[1.0, -1.0], [-1.0, 1.0]]
    np.testing.assert_allclose(model.metric_, expected, atol=0.15)
    assert set(np.argsort(model.relevance_)[-2:]) == {1, 4}


@pytest.mark.parametrize("name", ["native", TORCH])
def test_rows_left_out_are_forecast_by_the_others(name):
    Z = (X[:120] / X[:120].std(axis=0)).astype(np.float32)
    Y = np.stack([NUMBERS, X[:, 2]], axis=1)[:120]
    ops = engine.get(name)
    matrix = row_matrix(EXPONENTIAL, Z, 0.01, ops, WEIGHT[:120])
    found = matrix.left_out(descend(matrix, Y, 1e-8).W, 30)
    alpha = descend(row_matrix(EXPONENTIAL, Z[:90], 0.01, ops, WEIGHT[:90]), Y[:90], 1e-8).W
    K = np.exp(-np.linalg.norm(Z[90:, None].astype(float) - Z[:90], axis=2))
    np.testing.assert_allclose(found, Y[90:] - K @ alpha, atol=1e-4)


def test_a_matrix_without_a_factor_in_float32_is_solved():
    """Equal rows and a penalty below the rounding of float32; the closed form in float64 is the truth."""
    Z = np.repeat(np.linspace(0, 1, 30), 2)[:, None].astype(np.float32)
    y = np.sin(6 * Z.astype(float))
    matrix = row_matrix(EXPONENTIAL, Z, 1e-9, engine.get("native"), None)
    K = np.exp(-np.abs(Z.astype(float) - Z.T))
    found = descend(matrix, y, 1e-6).W
    np.testing.assert_allclose(K @ found, y, atol=1e-4)


@pytest.mark.parametrize("size", models.SIZES)
def test_rows_of_a_leaf(size):
    """As many as all leaves can have in the time of ten of the size's own, and not half as many."""
    effort = models.SIZES[size]
    for n in np.geomspace(effort.exact + 1, 100 * effort.leaf, 40).astype(int):
        rows = n / 2 ** models._depth(int(n), effort)
        most = min(max(effort.leaf, np.sqrt(10 * effort.leaf**3 / n)), effort.exact)
        assert most / 2 < rows <= most
    assert models._depth(effort.exact, effort) == 0


def test_many_rows_have_leaves(monkeypatch):
    monkeypatch.setitem(models.SIZES, "medium", models.Effort((2500, 5000), exact=150, leaf=40))
    model = ks.MetricRegressor(random_state=0).fit(X[:200], NUMBERS[:200])
    state = model.state_
    assert len(state["leaves"]) == 5 and np.diff(state["leaves"]).max() <= 40 * np.sqrt(2)
    rows = models.standard_rows(state, X[:200], model._learner.ops)
    Z, U = model._learner._metric(state).rows(models.pair_of(state, rows, model._learner.ops))
    leaf = models.leaf_of(Z, state["directions"], state["thresholds"])
    for number, x in zip(leaf[:20], models.standard_rows(state, X[:20], model._learner.ops), strict=True):
        part = slice(state["leaves"][number], state["leaves"][number + 1])
        assert (state["rows"][part] == x).all(axis=1).any()  # every row is a centre of its own leaf
    for number in range(4):  # and every leaf is kernel ridge on its rows
        own = leaf == number
        K = mixture(model.share_, Z[own], Z[own], U[own], U[own])
        alpha = np.linalg.solve(K + model.lam_ * np.eye(own.sum()), NUMBERS[:200][own] - NUMBERS[:200].mean())
        np.testing.assert_allclose(model.predict(X[:200][own]), K @ alpha + NUMBERS[:200].mean(), atol=2e-4)
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))
    model.state_ = state | {"leaves": state["leaves"][:-1]}
    with pytest.raises(ValueError, match="leaves"):
        model._layers.check(model._state, True)


@pytest.mark.parametrize("leaves", [False, True])
def test_deviations_are_those_of_a_gaussian_process(monkeypatch, leaves):
    """The closed form, with a kernel from the formula, two targets, and weights."""
    if leaves:
        monkeypatch.setitem(models.SIZES, "medium", models.Effort((2500, 5000), exact=60, leaf=70))
    targets = np.stack([NUMBERS[:120], 3 * X[:120, 0]], axis=1)
    model = ks.MetricRegressor(random_state=0).fit(X[:120], targets, sample_weight=WEIGHT[:120])
    monkeypatch.setattr(models, "ROWS_AT_ONCE", 7)
    mean, std = model.predict(sp.csr_matrix(X[110:140]), return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X[110:140]))
    state = model.state_
    pair = models.pair_of(state, models.standard_rows(state, X, model._learner.ops), model._learner.ops)
    Z, U = (np.asarray(S, float) for S in model._learner._metric(state).rows(pair))
    leaf = models.leaf_of(Z, state["directions"], state["thresholds"]) if leaves else np.zeros(len(Z), int)
    assert leaf.max() == leaves

    def kernel(a, b):
        return mixture(model.share_, Z[a], Z[b], U[a], U[b])

    about = targets - np.average(targets, axis=0, weights=WEIGHT[:120])
    likely, known = np.zeros(2), np.empty(30)
    for number in range(1 + leaves):
        own, asked = np.flatnonzero(leaf[:120] == number), 110 + np.flatnonzero(leaf[110:140] == number)
        B = kernel(own, own) + np.diag(model.lam_ / WEIGHT[own])
        likely += np.einsum("ij,ij->j", about[own], np.linalg.solve(B, about[own])) / 120
        k = kernel(asked, own)
        known[asked - 110] = np.einsum("ij,ji->i", k, np.linalg.solve(B, k.T))
    np.testing.assert_allclose(std, np.sqrt(np.outer(1 + model.lam_ - known, likely)), rtol=2e-4)


def test_deviations_cover_what_they_say():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 3))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.3 * rng.normal(size=1500)
    mean, std = ks.MetricRegressor(random_state=0).fit(rows[:500], target[:500]).predict(rows[500:], return_std=True)
    assert 0.86 < np.mean(np.abs(target[500:] - mean) < 1.645 * std) < 0.94  # 90 % of a normal distribution


def test_a_device_has_larger_systems(monkeypatch):
    monkeypatch.setitem(models.SIZES, "medium", models.Effort((2500, 5000), exact=60, leaf=30))
    model = ks.MetricRegressor(random_state=0)
    for room, leaves in [(40, 8), (100, 2), (150, 2), (300, 1)]:  # of 200 rows: by 30, 100, 150, or none
        monkeypatch.setattr(model._learner.ops, "room_for_rows", lambda itemsize, room=room: room, raising=False)
        assert len(model.fit(X[:200], NUMBERS[:200]).state_["leaves"]) == leaves + 1


def test_rows_that_say_nothing():
    model = ks.MetricRegressor(random_state=0).fit(X[:50], np.full(50, 7.0))
    np.testing.assert_allclose(model.predict(X[:3]), 7.0)
    same = ks.MetricRegressor(random_state=0).fit(np.ones((30, 2)), NUMBERS[:30])
    np.testing.assert_allclose(same.predict(np.ones((1, 2))), NUMBERS[:30].mean(), atol=1e-3)
    assert ks.MetricClassifier(random_state=0).fit(X[:4], LABELS[:4]).predict(X[:4]).shape == (4,)


def test_copies_of_a_row_help_to_forecast_it():
    """Labels of four kinds of rows are drawn with known probabilities: nothing tells more than the shares of each."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(4, size=2000)
    rows = np.stack([kinds % 2, kinds // 2], axis=1).astype(float)
    y = rng.random(2000) < np.array([0.1, 0.3, 0.6, 0.9])[kinds]
    shares = np.array([y[kinds == kind].mean() for kind in range(4)])[kinds]
    metric, default = (model(random_state=0).fit(rows, y) for model in (ks.MetricClassifier, ks.KernelClassifier))
    np.testing.assert_allclose(metric.decision_function(rows), 2 * shares - 1, atol=0.01)
    for model in (metric, default):
        np.testing.assert_allclose(model.predict_proba(rows)[:, 1], shares, atol=0.05)


@pytest.mark.parametrize("made", [ks.MetricClassifier, ks.KernelClassifier])
def test_probabilities_know_when_labels_are_thrown(made):
    """With as many columns a metric explains the labels of all rows that it has seen; the loss of a coin is log 2."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(1300, 40)), rng.integers(2, size=1300)
    p = made(random_state=0).fit(rows[:300], y[:300]).predict_proba(rows[300:])
    assert -np.log(p[np.arange(1000), y[300:]]).mean() < np.log(2) + 0.02


def test_what_a_column_says_alone_is_what_its_tenths_explain():
    """Beside the analysis of variance of scipy; two values are two groups, and noise says nothing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 5)).astype(np.float32)
    rows[:, 1], rows[:, 2] = rows[:, 1] > 1.5, 7.0  # rare ones, and always the same
    target = np.cos(2 * rows[:, 0]) + rows[:, 1] + 0.3 * rng.normal(size=500)
    expected = np.zeros(5)
    for j, column in enumerate(rows.T):
        at = np.searchsorted(np.quantile(column, np.arange(1, 10) / 10), column)
        groups = [target[at == k] for k in np.unique(at)]
        if len(groups) > 1 and 5 * f_oneway(*groups).pvalue < 1:
            within = sum(((group - group.mean()) ** 2).sum() for group in groups)
            expected[j] = 1 - within / (500 * target.var()) - (len(groups) - 1) / 500
    np.testing.assert_allclose(formulas.alone(rows, target[:, None], np.ones(500)), expected, rtol=1e-5)
    assert (expected > 0).tolist() == [True, True, False, False, False]
    assert not formulas.alone(rows, np.zeros((500, 2)), np.ones(500)).any()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("centres", [0, 90])
def test_a_device_has_the_kernel_functions_of_the_formula(centres):
    """More rows and others than a tile of its program has, and a leaf without rows."""
    rng = np.random.default_rng(0)
    (Z, U), (T, V) = ([rng.normal(size=(n, 5)).astype(np.float32) for _ in range(2)] for n in (70, centres))
    alpha = rng.normal(size=(centres, 2))
    found = engine.get("torch").metric_function((T, V), 0.3, alpha)((Z, U))
    np.testing.assert_allclose(found, mixture(0.3, Z, T, U, V) @ alpha, atol=1e-5)


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_powers_are_those_of_matrices(rho):
    G = np.cov(np.random.default_rng(0).normal(size=(4, 30)))
    M = rho * G + (1 - rho) * np.diag(np.diag(G))
    root = formulas.root_of(G, rho, 3.0, power=2)
    found = np.diag(root**2) if root.ndim == 1 else root @ root
    np.testing.assert_allclose(found, M @ M / (2 * 9 * np.trace(M @ M)), atol=1e-12)
    scales = formulas.scales_of(np.diag(G), 2.0, power=2)
    np.testing.assert_allclose(scales, np.diag(G) / (2 * np.diag(G).sum()))


def test_columns_that_say_something_alone_are_a_start():
    """400 columns of noise and 500 rows: no other start finds the two columns."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 402))
    y = np.hypot(rows[:, 0], rows[:, 1]) > 1.2
    assert ks.MetricClassifier(random_state=0).fit(rows[:500], y[:500]).score(rows[500:], y[500:]) > 0.9


@pytest.mark.parametrize("fine", [False, True])
def test_columns_of_use_are_found_among_many_of_noise(fine):
    """Two of 24: the penalty that suits the plain metric hides which, and a search must not begin with that alone."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 24)).astype(np.float32)
    target = np.sin(2 * rows[:, 0]) * rows[:, 1] + 0.1 * rng.normal(size=600)
    target = ((target - target.mean()) / target.std())[:, None]
    both, ops = (rows, np.zeros_like(rows)), engine.get("native")
    found = search.learn_metric(both, target, None, rng.permutation(600), ops, search.Clock(), (200, 300), fine)
    root = found.root if found.root.ndim == 2 else np.diag(found.root)
    assert set(np.argsort(np.diag(root @ root))[-2:]) == {0, 1}


@pytest.mark.parametrize("name", ["native", TORCH])
@pytest.mark.parametrize("y", [NUMBERS, THREE], ids=["numbers", "three"])
def test_distances_alone_are_judged_by_rows_that_are_held_out(name, y):
    """The error is that of a function of the other rows; the metric found stays unless distances have a smaller one."""
    Y, held = y[:, None] if y is NUMBERS else codes(y), np.arange(260) % 4 == 0
    offset, weight = Y.mean(axis=0), WEIGHT[:260]
    pair = tuple(np.ascontiguousarray(standard(X, X), np.float32) for _ in range(2))
    learner = (ks.MetricRegressor if y is NUMBERS else ks.MetricClassifier)(engine=name)._learner
    learner.regression = y is NUMBERS
    trials = models.HeldOut(learner, pair, Y - offset, weight, held, offset, search.Clock())
    plain = search.plain_start(5, True)
    Z = pair[0].astype(float) * plain.metric.root
    U = pair[0].astype(float) * plain.metric.scales * (1 + plain.metric.ranks)
    K = mixture(plain.metric.share, Z, Z[~held], U, U[~held])
    alpha = np.linalg.solve(K[~held] + plain.metric.lam * np.diag(1 / weight[~held]), (Y - offset)[~held])
    F = K[held] @ alpha + offset
    wrong = (F - Y[held])[:, 0] ** 2 if y is NUMBERS else F.argmax(axis=1) != Y[held].argmax(axis=1)
    (first,) = trials.of(plain)
    assert first.error == pytest.approx(np.average(wrong, weights=weight[held]), rel=1e-3)
    found = search.of_distances(trials, plain.metric)
    (best,) = trials.of(search.replace(plain, metric=found))
    assert found.share == 1.0 and best.error < first.error
    assert search.of_distances(trials, found) is found
    trials.clock = search.Clock(1e-9)  # no time is left: what was found before stays
    assert search.of_distances(trials, plain.metric) is plain.metric
