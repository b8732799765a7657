"""Cells of grids over few columns, hashed cells, and the smoother over the last rows, against naive programs."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.neighbors import NearestNeighbors

from kernelstream import CellsClassifier, CellsRegressor, WindowClassifier, WindowRegressor
from kernelstream import engine as engines
from kernelstream.estimators.cells import grids
from kernelstream.estimators.cells.base import CELLS, FIRST_REVIEW, REVIEW_PERIOD, _next_review
from kernelstream.passes.cells import python as cells_python

ENGINES = ["python", "native"]
rng = np.random.default_rng(0)
X = rng.standard_normal((400, 4)) * [1.0, 100.0, 1e-6, 1.0]
LABELS = (X[:, 0] * X[:, 3] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
TARGET = np.sin(2 * X[:, 0]) + 0.01 * X[:, 1]


def naive_cells(X, y, state_of, eta, regression):
    """The recursion of one cell after the other, by dictionaries and the formula of the docstring."""
    weights, squares, bias, bias_squares = {}, {}, 0.0, 0.0
    mean, m2, first = 0.0, 0.0, 2.0 ** math.frexp(y[0])[1]  # the unit before there is a deviation
    scores = []
    for count, (x, target) in enumerate(zip(X, y, strict=True)):
        cells = state_of(x)
        f = bias + sum(weights.get(cell, 0.0) for cell in cells)
        offset = mean if regression else 0.0
        scores.append(f + offset)
        unit = (math.sqrt(m2 / count) if count > 1 else first) if regression else 1.0
        if regression:
            g = f - (target - offset) if count else 0.0  # the first target teaches the mean alone
            if count > 10:
                g = max(-5 * unit, min(5 * unit, g))
        else:
            g = -target / (1 + math.exp(target * f))
        step, floor = eta * unit / math.sqrt(len(cells) + 1), unit**2 + 1e-12 * (first**2 if regression else 1.0)
        bias_squares += g * g
        bias -= step * g / math.sqrt(bias_squares + floor)
        for cell in cells:
            squares[cell] = np.float32(squares.get(cell, 0.0)).astype(float) + g * g
            new = weights.get(cell, 0.0) - step * g / math.sqrt(squares[cell] + floor)
            weights[cell], squares[cell] = float(np.float32(new)), float(np.float32(squares[cell]))
        delta = target - mean
        mean += delta / (count + 1)
        m2 += delta * (target - mean)
    return np.array(scores)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("regression", [False, True])
def test_hashed_cells_are_the_recursion(engine, regression):
    rows = X[:60] / [1.0, 100.0, 1e-6, 1.0]
    model = (CellsRegressor if regression else CellsClassifier)(
        6, "hashed", eta=0.5, standardize=False, engine=engine, random_state=3
    )
    y = TARGET[:60] if regression else LABELS[:60]
    got = model.learn(rows, y) if regression else model.learn(rows, y, classes=[0, 1])
    columns, offset, density, salt = model._learner._hashed(model._state)
    numbers = {}  # cells that share a place in the table would be one to the naive program, too, if there were any

    def cells(x):
        found = []
        for r in range(6):
            bins = tuple(math.floor((x[j] + offset[r, k]) * density[r, k]) for k, j in enumerate(columns[r]) if j >= 0)
            found.append((r, bins))
            numbers.setdefault((r, bins), len(numbers))
        return found

    want = naive_cells(rows, y if regression else 2 * y - 1, cells, 0.5, regression)
    assert np.abs(got - want).max() < 1e-6 * (1 + np.abs(want).max())
    assert len(salt) == 6


@pytest.mark.parametrize("kind", ["columns", "hashed", "forgetting"])
@pytest.mark.parametrize("task", ["binary", "many", "numbers"])
def test_engines_agree(kind, task):
    params = {"columns": {}, "hashed": {"grids": "hashed", "standardize": True}, "forgetting": {"forgetting": 0.9}}[
        kind
    ]
    cls, y = {
        "binary": (CellsClassifier, LABELS),
        "many": (CellsClassifier, THREE),
        "numbers": (CellsRegressor, TARGET),
    }[task]
    a, b = (cls(16, random_state=1, engine=engine, **params).learn(X, y) for engine in ENGINES)
    finite = np.isfinite(a)
    assert (finite == np.isfinite(b)).all()
    assert np.abs(a[finite] - b[finite]).max() < 1e-9


def test_labels_that_come_late_are_new_terms_of_the_softmax():
    """The recursion by dictionaries from cell and label to number; labels come one by one, in no order."""
    eta, n, outputs = 0.7, 120, 40
    rows = X[:n] / [1.0, 100.0, 1e-6, 1.0]
    late = np.random.default_rng(1).permutation(np.delete(np.arange(outputs), [0, 7]))
    y = np.concatenate([[0, 7], late, np.arange(n - outputs) % outputs])
    model = CellsClassifier(5, "hashed", eta=eta, standardize=False, random_state=3)
    got = model.learn(rows, y)
    found = model._learner._index(model._state, rows)
    weights, squares, known = {}, {}, [0, 7]  # the constant is the cell -1
    for t, sign in enumerate([-1, 1]):  # one score of two labels, which becomes -f/2 and f/2
        g = -sign / (1 + math.exp(sign * sum(weights.get((cell, 7), 0.0) * 2 for cell in [-1, *found[t].tolist()])))
        for cell in [-1, *found[t].tolist()]:
            squares[cell, 0] = squares[cell, 7] = squares.get((cell, 7), 0.0) + g * g
            weights[cell, 7] = (
                weights.get((cell, 7), 0.0) - eta / math.sqrt(6) * g / math.sqrt(squares[cell, 7] + 1) / 2
            )
            weights[cell, 0] = -weights[cell, 7]
    for t, label in enumerate(y[2:].tolist(), 2):
        cells = [-1, *found[t].tolist()]
        f = {c: sum(weights.get((cell, c), 0.0) for cell in cells) for c in known}
        for c in known:
            assert got[t, c] == pytest.approx(f[c], abs=1e-5)
        assert np.isneginf(np.delete(got[t], known)).all()
        if label not in known:
            known.append(label)
        total = sum(math.exp(f.get(c, 0.0)) for c in known)
        for c in known:
            g = math.exp(f.get(c, 0.0)) / total - (c == label)
            for cell in cells:
                squares[cell, c] = squares.get((cell, c), 0.0) + g * g
                step = eta / math.sqrt(6) * g / math.sqrt(squares[cell, c] + 1)
                weights[cell, c] = weights.get((cell, c), 0.0) - step


def test_a_sketch_keeps_lengths_on_average(rng):
    """A matrix with one entry of 1 or -1 in every column; up to 32 numbers stay as they are."""
    sketched = cells_python.sketched
    S = np.stack([sketched(row) for row in np.eye(500)], axis=1)
    assert S.shape == (32, 500) and (np.abs(S).sum(axis=0) == 1).all() and abs(S.sum()) < 3 * math.sqrt(500)
    V = rng.standard_normal((400, 500))
    np.testing.assert_allclose([sketched(v) for v in V], V @ S.T, atol=1e-12)
    assert (np.abs(V @ S.T) ** 2).sum() == pytest.approx((V**2).sum(), rel=0.03)
    assert (sketched(V[0, :32]) == V[0, :32]).all()


@pytest.mark.parametrize("outputs", [3, 9, 150])
def test_passes_agree_where_grids_share_a_cell(outputs, rng):
    """A cell that two grids of a row have in common is moved once; outputs are taken 64 at a time."""
    n, cells, R = 30, 12, 8
    index = rng.integers(0, cells, (n, R)).astype(np.int32)
    y, weight = rng.integers(0, outputs, n).astype(float), rng.uniform(0, 2, n)
    found = []
    for name in ENGINES:
        state = {"tables": np.zeros((cells, 2, outputs + 2), np.float32), "bias": np.zeros((2, outputs))}
        state |= {"target": np.zeros(3), "use": np.zeros(R)}
        found.append((*engines.get(name).cells_pass(index, y, weight, state, (False, 0.7, 0.95)), *state.values()))
        assert not state["tables"][:, :, outputs:].any()  # columns in reserve
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_units_of_columns_do_not_matter():
    """Grids with edges at quantiles see ranks only: any increasing change of a column gives the same forecasts."""
    other = np.stack([X[:, 0] ** 3, np.exp(X[:, 1] / 100), X[:, 2] * 1e9 + 5, np.arctan(X[:, 3])], axis=1)
    a, b = (CellsClassifier(16, random_state=1).learn(rows, LABELS) for rows in (X, other))
    assert (a == b).all()


def test_levels_are_quantiles(rng):
    rows = np.stack([np.arange(1000.0), np.repeat([0.0, 1.0], 500), np.full(1000, 3.0)], axis=1)
    levels, count = grids.levels_of(rows[rng.permutation(1000)])
    assert count.tolist() == [63, 1, 0]
    assert np.abs(np.diff(levels[0], prepend=0.0) - 1000 / 64).max() <= 1
    assert levels[1, 0] == 1.0


def test_grids_have_so_many_cells_and_columns_by_weight(rng):
    levels, count = grids.levels_of(rng.standard_normal((500, 10)))
    weights = np.full(10, 0.01)
    weights[4] = 100.0
    drawn = grids.draw(np.random.default_rng(0), 300, levels, count, weights, CELLS)
    used = drawn["n_edges"] > 0
    assert (np.prod(drawn["n_edges"] + 1.0, axis=1) <= CELLS).all() and used.any(axis=1).all()
    assert np.mean([(4 in columns[own]) for columns, own in zip(drawn["columns"], used, strict=True)]) > 0.98
    maps = engines.get("python").grid_maps(drawn["columns"], drawn["edges"], drawn["n_edges"], levels, count)
    assert maps[:, :, -1].sum(axis=1).max() < CELLS


@pytest.mark.parametrize("d", [10, 200])
def test_what_columns_add_is_least_squares(d):
    rng = np.random.default_rng(0)
    columns, n_edges, value = rng.integers(0, d, (40, 6)), rng.integers(0, 2, (40, 6)), rng.random(40)
    held = [[j in row[cuts > 0] for j in range(d)] for row, cuts in zip(columns, n_edges, strict=True)]
    stacked = np.concatenate([held, np.eye(d)])  # ridge as rows of their own
    truth = np.linalg.lstsq(stacked, np.concatenate([value, np.zeros(d)]), rcond=None)[0]
    np.testing.assert_allclose(grids.by_column(columns, n_edges, value, d), np.maximum(truth, 0), atol=1e-12)


def test_when_grids_are_looked_at():
    points = [FIRST_REVIEW << i for i in range(9) if FIRST_REVIEW << i < REVIEW_PERIOD] + [
        REVIEW_PERIOD,
        2 * REVIEW_PERIOD,
        3 * REVIEW_PERIOD,
    ]
    assert all(_next_review(t) == min(point for point in points if point > t) for t in range(0, 3 * REVIEW_PERIOD, 31))
    assert [_next_review(point) for point in points[:-1]] == points[1:]


def test_relevant_columns_are_found():
    rows = np.random.default_rng(1).uniform(size=(6000, 30))
    y = np.sin(6 * rows[:, 7]) + np.sin(5 * rows[:, 21])
    model = CellsRegressor(random_state=0).partial_fit(rows, y)
    assert set(np.argsort(model.relevance_)[-2:]) == {7, 21}
    assert model.relevance_.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_window_is_a_kernel_average(engine):
    rows = np.random.default_rng(2).standard_normal((80, 3))
    y = rows[:, 0] + rows[:, 1] ** 2
    got = WindowRegressor(50, 5, engine=engine).learn(rows, y)
    for t in (1, 4, 30, 79):
        past, target = rows[max(0, t - 50) : t], y[max(0, t - 50) : t]
        nearest = NearestNeighbors(n_neighbors=min(5, len(past))).fit(past)
        h2 = nearest.kneighbors(rows[t : t + 1])[0].max() ** 2
        far = ((past - rows[t]) ** 2).sum(axis=1)
        w = np.exp(-far / h2) * (far <= 4 * h2 * (1 + 1e-9))
        assert got[t] == pytest.approx(w @ target / w.sum(), rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_window_counts_labels(engine):
    rows = np.repeat([[0.0], [10.0]], 30, axis=0)
    labels = np.array([0] * 20 + [1] * 10 + [2] * 30)
    model = WindowClassifier(100, 30, engine=engine).partial_fit(rows, labels)
    p = model.predict_proba([[0.0], [10.0]])
    assert p[0] == pytest.approx(np.array([20 + 1 / 6, 10 + 1 / 6, 1 / 6]) / 30.5)
    assert p[1] == pytest.approx(np.array([1 / 6, 1 / 6, 30 + 1 / 6]) / 30.5)


def test_cells_learn_what_trees_learn():
    rows, y = make_friedman1(5000, 10, noise=0.5, random_state=0)
    assert CellsRegressor(random_state=0).fit(rows[:4000], y[:4000]).score(rows[4000:], y[4000:]) > 0.85


def test_wide_rows_later():
    model = CellsClassifier(16, random_state=0).partial_fit(X[:200], LABELS[:200])
    before = model.decision_function(X)
    model.widen(6)
    wide = np.concatenate([X, np.zeros((400, 2))], axis=1)
    assert (model.decision_function(wide) == before).all()
    wide[:, 5] = LABELS
    model.partial_fit(wide, LABELS).partial_fit(wide, LABELS)
    assert model.score(wide, LABELS) > 0.95


@pytest.mark.parametrize("name", ["python", "native"])
def test_a_target_far_from_zero_is_learned_as_one_around_it(name):
    """Years, or degrees above absolute zero: forecasts are as good as of the same targets around 0."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 3))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=600)
    near, far = (CellsRegressor(engine=name, random_state=0).learn(rows, y + shift) - shift for shift in (0.0, 1e4))
    errors = [np.sqrt(np.mean(np.square(part - y)[300:])) for part in (near, far)]
    assert errors[1] < 1.02 * errors[0] < 0.5


@pytest.mark.parametrize("kind", ["columns", "hashed"])
@pytest.mark.parametrize("spoilt", ["level", "row"])
def test_far_levels_and_odd_first_targets(kind, spoilt):
    """A target far from 0 is forecast as well as one near it; a wild one of the first rows as if it was not there."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(2500, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(2500)
    counted = np.arange(2500) != (2 if spoilt == "row" else -1)
    z = y + 1e8 if spoilt == "level" else np.where(counted, y, 1e4)
    expected = CellsRegressor(32, kind, random_state=0).learn(X[counted], y[counted]) - y[counted]
    got = (CellsRegressor(32, kind, random_state=0).learn(X, z) - z)[counted]
    assert np.mean(got[1000:] ** 2) < 1.02 * np.mean(expected[1000:] ** 2)
