"""Kernel ridge regression in a learned metric, beside naive programs of the same formulas."""

import io
import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import kernelstream as ks
from kernelstream import columns, engine
from kernelstream.estimators import metric as models
from kernelstream.solvers import metric as search
from kernelstream.solvers.kernel_ridge import descend, row_matrix

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + [0.0, 50.0, 0.0, 0.0, 0.0]
NUMBERS = np.sin(X[:, 0] + (X[:, 1] - 50) / 10) + 0.05 * RNG.normal(size=260)
LABELS = np.where(X[:, 0] * (X[:, 1] - 50) > 0, "up", "down")
THREE = np.digitize(X[:, 0] + 10 * X[:, 2], [-0.7, 0.7])
WEIGHT = RNG.integers(1, 4, 260).astype(float)


def standard(rows, all_rows, weight=None):
    """Columns divided by their deviations, values beyond 3 drawn in, one number after the other."""
    out = np.empty(rows.shape)
    for j in range(rows.shape[1]):
        mean = np.average(all_rows[:, j], weights=weight)
        deviation = math.sqrt(np.average((all_rows[:, j] - mean) ** 2, weights=weight))
        for i in range(len(rows)):
            z = (rows[i, j] - mean) / deviation
            out[i, j] = math.copysign(3 + math.log1p(abs(z) - 3), z) if abs(z) > 3 else z
    return out


def naive(model, train, Y, test, weight=None):
    """Scores of test rows by the formula, with the metric, the length and the penalty that a model has found."""
    A, B = standard(train, train, weight), standard(test, train, weight)
    weight = np.ones(len(A)) if weight is None else weight
    M, L, n = model.metric_, model.length_, len(A)

    def k(x, z):
        if model.norm == 1:
            return math.exp(-sum(math.sqrt(M[j, j]) * abs(x[j] - z[j]) for j in range(len(x))) / L)
        return math.exp(-math.sqrt(max((x - z) @ M @ (x - z), 0.0)) / L)

    K = np.array([[k(x, z) for z in A] for x in A])
    b = np.average(Y, axis=0, weights=weight)
    alpha = np.linalg.solve(K + model.lam_ * np.diag(1 / weight), Y - b)
    return np.array([sum(alpha[i] * k(A[i], x) for i in range(n)) for x in B]) + b


def codes(y):
    labels = np.unique(y)
    return np.where(y[:, None] == (labels[1:] if len(labels) == 2 else labels), 1.0, -1.0)


@pytest.mark.parametrize("name", ["python", "native"])
@pytest.mark.parametrize("weight", [None, WEIGHT[:200]])
@pytest.mark.parametrize("norm", [1, 2])
def test_numbers_are_those_of_the_formula(name, norm, weight):
    model = ks.MetricRegressor(norm, engine=name, random_state=0).fit(X[:200], NUMBERS[:200], sample_weight=weight)
    expected = naive(model, X[:200], NUMBERS[:200, None], X[200:], weight)[:, 0]
    np.testing.assert_allclose(model.predict(X[200:]), expected, atol=2e-4)
    assert model.score(X[200:], NUMBERS[200:]) > (0.8 if norm == 2 else 0.5)


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


def test_gradients_are_those_of_differences():
    """G of a function of given coefficients, by central differences of the naive sum."""
    rows = X[:40, :3] / [1.0, 10.0, 0.1] - [0.0, 5.0, 0.0]
    R = np.array([[0.5, 0.1, 0.0], [0.1, 0.3, 0.0], [0.0, 0.0, 0.2]])
    alpha = np.random.default_rng(1).normal(size=(40, 2))

    G, H, h = np.zeros((3, 3)), np.zeros(3), 1e-4
    for i, x in enumerate(rows):
        others = np.arange(40) != i  # the function at the row itself has a kink

        def g(x, others=others):
            return np.exp(-np.linalg.norm((x - rows[others]) @ R, axis=1)) @ alpha[others]

        slopes = np.array([(g(x + h * e) - g(x - h * e)) / (2 * h) for e in np.eye(3)])
        G += WEIGHT[i] * slopes @ slopes.T

        def g1(x, others=others):
            return np.exp(-np.abs((x - rows[others]) * np.diag(R)).sum(axis=1)) @ alpha[others]

        H += WEIGHT[i] * sum((g1(x + h * e) - g1(x - h * e)) ** 2 @ [1.0, 1.0] * e / (2 * h) ** 2 for e in np.eye(3))
    trials = search.Trials(engine.get("native"), (rows, alpha, WEIGHT[:40]), (rows, alpha, WEIGHT[:40]))
    found = trials.gradients(search.Metric(R, 1.0, 2), alpha.astype(np.float32))
    columns = trials.gradients(search.Metric(np.diag(R), 1.0, 1), alpha.astype(np.float32))
    np.testing.assert_allclose(columns, np.diag(H) / WEIGHT[:40].sum(), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found, G / WEIGHT[:40].sum(), rtol=1e-3, atol=1e-5)


def test_the_metric_finds_the_directions_that_count():
    """Of a function of one sum of two columns, the metric is the outer product of that direction."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1500, 6))
    model = ks.MetricRegressor(random_state=0).fit(rows, np.sin(2 * (rows[:, 1] - rows[:, 4])))
    expected = np.zeros((6, 6))
    expected[np.ix_([1, 4], [1, 4])] = [[1.0, -1.0], [-1.0, 1.0]]
    np.testing.assert_allclose(model.metric_, expected, atol=0.15)
    assert set(np.argsort(model.relevance_)[-2:]) == {1, 4}


def test_rows_left_out_are_forecast_by_the_others():
    Z = (X[:120] / X[:120].std(axis=0)).astype(np.float32)
    Y = np.stack([NUMBERS, X[:, 2]], axis=1)[:120]
    ops = engine.get("native")
    matrix = row_matrix(search.KERNELS[2], Z, 0.01, ops, WEIGHT[:120])
    found = matrix.left_out(descend(matrix, Y, 1e-8).W, 30)
    alpha = descend(row_matrix(search.KERNELS[2], Z[:90], 0.01, ops, WEIGHT[:90]), Y[:90], 1e-8).W
    K = np.exp(-np.linalg.norm(Z[90:, None].astype(float) - Z[:90], axis=2))
    np.testing.assert_allclose(found, Y[90:] - K @ alpha, atol=1e-4)


def test_a_matrix_without_a_factor_in_float32_is_solved():
    """Equal rows and a penalty below the rounding of float32; the closed form in float64 is the truth."""
    Z = np.repeat(np.linspace(0, 1, 30), 2)[:, None].astype(np.float32)
    y = np.sin(6 * Z.astype(float))
    matrix = row_matrix(search.KERNELS[2], Z, 1e-9, engine.get("native"), None)
    K = np.exp(-np.abs(Z.astype(float) - Z.T))
    found = descend(matrix, y, 1e-6).W
    np.testing.assert_allclose(K @ found, y, atol=1e-4)


def test_many_rows_have_leaves(monkeypatch):
    monkeypatch.setattr(models, "EXACT", 150)
    monkeypatch.setattr(models, "LEAF", 80)
    model = ks.MetricRegressor(random_state=0).fit(X[:200], NUMBERS[:200])
    state = model.state_
    assert len(state["leaves"]) == 5 and np.diff(state["leaves"]).max() <= 80
    Z = model._metric(state).rows(models._standard(state, X[:200], model._ops))
    leaf = models._leaf_of(Z, state)
    for number, x in zip(leaf[:20], Z[:20], strict=True):  # every row is a centre of its own leaf
        part = slice(state["leaves"][number], state["leaves"][number + 1])
        assert (state["centers"][part] == x).all(axis=1).any()
    for number in range(4):  # and every leaf is kernel ridge on its rows
        own = leaf == number
        K = np.exp(-np.linalg.norm(Z[own][:, None].astype(float) - Z[own], axis=2))
        alpha = np.linalg.solve(K + model.lam_ * np.eye(own.sum()), NUMBERS[:200][own] - NUMBERS[:200].mean())
        np.testing.assert_allclose(model.predict(X[:200][own]), K @ alpha + NUMBERS[:200].mean(), atol=2e-4)
    file = io.BytesIO()
    ks.save(model, file)
    file.seek(0)
    np.testing.assert_array_equal(ks.load(file).predict(X), model.predict(X))
    model.state_ = state | {"leaves": state["leaves"][:-1]}
    with pytest.raises(ValueError, match="leaves"):
        model._check_state(True)


def test_rows_that_say_nothing():
    model = ks.MetricRegressor(random_state=0).fit(X[:50], np.full(50, 7.0))
    np.testing.assert_allclose(model.predict(X[:3]), 7.0)
    same = ks.MetricRegressor(random_state=0).fit(np.ones((30, 2)), NUMBERS[:30])
    np.testing.assert_allclose(same.predict(np.ones((1, 2))), NUMBERS[:30].mean(), atol=1e-3)
    assert ks.MetricClassifier(random_state=0).fit(X[:4], LABELS[:4]).predict(X[:4]).shape == (4,)


def test_bad_input_leaves_the_model_as_it_was():
    model = ks.MetricRegressor(random_state=0).fit(X[:60], NUMBERS[:60])
    before = model.predict(X)
    for rows, y, message in [
        (X[:60, :2] * np.nan, NUMBERS[:60], "NaN"),
        (X[:60], NUMBERS[:50], "inconsistent"),
        (X[:60], LABELS[:60], "numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, y)
        np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="norm must be 1 or 2"):
        ks.MetricRegressor(norm=3).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="lam must be"):
        ks.MetricRegressor(lam=0).fit(X, NUMBERS)


def test_words_and_gaps_in_a_pipeline():
    rows = [{"word": w, "size": s if i % 9 else None} for i, (w, s) in enumerate(zip(LABELS, X[:, 0], strict=True))]
    y = np.where(LABELS == "up", 2.0, -2.0) + X[:, 0]
    model = make_pipeline(columns.Columns(), ks.MetricRegressor(random_state=0)).fit(rows[:200], y[:200])
    assert model.score(rows[200:], y[200:]) > 0.7
