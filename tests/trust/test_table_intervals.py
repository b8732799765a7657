"""Intervals for rows of a table: rows that come in order are forecast best one at a time."""

from itertools import pairwise

import numpy as np
import pytest

from kernelstream import KernelRegressor
from kernelstream.estimators._contract.state import scaled_rows
from kernelstream.trust import QuantileTracker


def walk(n, seed):
    """Targets around a level that wanders, far from where it was by the end of a block."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + np.cumsum(0.1 * rng.standard_normal(n)) + 0.1 * rng.standard_normal(n)


def covered(ends, y):
    return float(((ends[0] <= y) & (y <= ends[1])).mean())


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_next_block_of_a_stream_in_order(coverage):
    shares, single = [], []
    for seed in range(3):
        X, y = walk(6000, seed)
        model = KernelRegressor(size="small", random_state=seed).partial_fit(X[:2000], y[:2000])
        for t in range(2000, 6000, 500):
            rows = slice(t, t + 500)
            shares.append(covered(model.predict_interval(X[rows], coverage), y[rows]))
            _, *ends = model.learn_interval(X[rows], y[rows], coverage=coverage)
            single.append(covered(ends, y[rows]))
    assert np.mean(shares) > coverage - 0.1, shares
    assert np.mean(single) == pytest.approx(coverage, abs=0.03)  # those of the next row are as they were


def test_rows_in_no_order_are_covered_as_asked():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    y = X[:, 0] * X[:, 1] + rng.standard_normal(6000)
    model = KernelRegressor(size="small", random_state=0).partial_fit(X[:3000], y[:3000])
    for coverage in (0.5, 0.9):
        assert covered(model.predict_interval(X[3000:], coverage), y[3000:]) == pytest.approx(coverage, abs=0.08)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_formula(outputs):
    """The errors of the model now at the rows kept: the first, then every sixteenth, each in place of the oldest."""
    n = 1500
    X, y = walk(n, 0)
    targets = np.column_stack([y, X[:, 1] * y])[:, :outputs]
    model = KernelRegressor(size="small", random_state=0)
    cuts = [0, 700, *range(701, 740), n] if outputs == 1 else [0, n]
    for a, b in pairwise(cuts):
        model.partial_fit(X[a:b], targets[a:b, 0] if outputs == 1 else targets[a:b])
    kept = np.zeros(64, int)
    for i in range(n):
        if i < 64 or i % 16 == 0:
            kept[i if i < 64 else i // 16 % 64] = i
    rows = model._state["reasons"]
    assert (rows["y"] == targets[kept]).all()
    said, state = model._learner.combined(model._state, rows["X"]), model._state["intervals"]
    found = model.predict_quantiles(X[:2], [0.1, 0.5, 0.9]).reshape(2, outputs, 3)
    for o in range(outputs):
        tracker = QuantileTracker(3)
        tracker.state = state[f"o{o}"]
        low, middle, high = tracker.quantiles(said[:, o], [0.1, 0.5, 0.9], rows["X"]).T
        y = targets[kept, o]
        ways = sorted(np.where(y > middle, (y - middle) / (high - middle), (middle - y) / (middle - low)))
        factor = max(ways[52 - 1], 1.0)  # the 52nd of 64: 65 · 0.8
        two = model._learner.ops.squashed(scaled_rows(model._learner.ops, X[:2], model._state))
        plain = tracker.quantiles(model.predict(X[:2]).reshape(2, outputs)[:, o], [0.1, 0.5, 0.9], two)
        np.testing.assert_allclose(found[:, o], plain[:, 1:2] + factor * (plain - plain[:, 1:2]), rtol=1e-9)
    one = model.forecast_quantiles(X[:1], [0.1, 0.9]).reshape(outputs, 2)[0]
    tracker.state = state["o0"]
    first = model.forecast(X[:1]).ravel()[:1]
    np.testing.assert_allclose(one, tracker.quantiles(first, [0.1, 0.9], two[:1], following=True)[0], rtol=1e-9)


def test_a_fit_of_many_columns_knows_how_sure_it_is():
    """With two rows to a column the metric fits what it has seen: coverage was .80 where .9 is asked."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1300, 200))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(1300)
    model = KernelRegressor(size="small", random_state=0).fit(X[:300], y[:300])
    assert covered(model.predict_interval(X[300:], 0.9), y[300:]) == pytest.approx(0.9, abs=0.05)
