"""KernelNovelty: its members against closed forms and plain counts, its scores against ranks, and simulated streams."""

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import KernelNovelty
from kernelstream.engine import has_native
from kernelstream.engine import python as python_engine
from kernelstream.estimators.novelty.shares import binned, cumulated, nearness, repeats, scale_of
from kernelstream.passes.novelty.python import BEND, NODES, STEP, cells, scaled, share
from kernelstream.testing.streaming import assert_same_scores, assert_same_state

ENGINES = ["python", pytest.param("native", marks=pytest.mark.skipif(not has_native(), reason="needs the core"))]


def blocks(model, X, size=100):
    return np.concatenate([model.learn(X[i : i + size]) for i in range(0, len(X), size)])


def auc(scores, odd):
    """Share of pairs of an odd row and another in which the odd one has the higher score."""
    order = np.argsort(np.argsort(scores)) + 1
    n, m = odd.sum(), (~odd).sum()
    return (order[odd].sum() - n * (n + 1) / 2) / (n * m)


def learned(X, **parameters):
    model = KernelNovelty(random_state=0, **parameters)
    model.learn(X)
    return model, model._learner, model._state


# -------------------------------------------------------------------- the members
@pytest.mark.parametrize("engine", ENGINES)
def test_leverage_is_the_closed_form_and_cells_are_counts(engine, rng):
    X = rng.normal(size=(164, 3)) * [1.0, 100.0, 0.01]  # after row 100, groups of 25 rows join
    _, learner, state = learned(X, engine=engine)
    tables, rows = learner.tables(state), rng.normal(size=(20, 3)) * [1.0, 100.0, 0.01]
    found = learner.ops.surprises(rows, tables)

    angles = scaled(rows, state["scale"]) @ tables.frequencies
    Z = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])
    A = state["gram"] / state["mass"] + 0.01 * np.eye(Z.shape[1])
    np.testing.assert_allclose(found[:, 0], np.log(np.einsum("ij,ij->i", Z, np.linalg.solve(A, Z.T).T)), rtol=1e-9)

    # single columns: every row joined one cell of every column with its weight
    U, before = scaled(rows, state["scale"]), scaled(X[: state["learned"]], state["scale"])
    edges = tables.offset[:3, 0] / 0.1
    cell = np.floor(U / 0.1 + edges)
    in_cell = (np.floor(before / 0.1 + edges)[None] == cell[:, None]).any(axis=1)
    p = np.exp(-found[:, 1])
    empty = ~in_cell.any(axis=1)
    np.testing.assert_allclose(p[empty], 0.5 / (state["mass"] + 5), rtol=1e-9)
    total = state["counts"].sum()
    np.testing.assert_allclose(total, state["mass"] * len(tables.columns), rtol=1e-9)


def test_counts_are_those_of_plain_histograms(rng):
    """Equal weights and no fading: the counts of the cells of a column are numpy's histogram of it."""
    X = rng.normal(size=(500, 2))
    _, learner, state = learned(X[:100])
    tables, counts = learner.tables(state), np.zeros(len(state["counts"]))
    learner.ops.join(X, np.ones(500), tables, counts)
    U = scaled(X, state["scale"])
    for j in range(2):
        edge = tables.offset[j, 0]
        low = np.floor((U[:, j].min() + edge) / 0.1)
        bins = (low + np.arange(200)) * 0.1 - edge
        want, _ = np.histogram(U[:, j], bins)
        middle = np.zeros((int((want > 0).sum()), 2))
        middle[:, j] = (bins[:-1] + 0.05)[want > 0]
        found = counts[cells(middle, tables)[:, j]]
        assert (found >= want[want > 0]).all()  # other grids share the table
        assert np.mean(found == want[want > 0]) > 0.9


def test_scales_are_medians_and_quartiles(rng):
    X = rng.normal(3.0, 2.0, (4000, 1))
    np.testing.assert_allclose(scale_of(X)[:, 0], [3.0, 2.0], atol=0.1)
    rare = np.zeros((100, 2))
    rare[:5, 0], rare[:, 1] = 1.0, 7.0
    middle, unit = scale_of(rare)
    np.testing.assert_allclose(middle, [0.0, 7.0])
    np.testing.assert_allclose(unit, [rare[:, 0].std(), 0.07])
    U = scaled(np.array([[3.0], [np.nan], [3.0 + 2 * 100]]), np.array([[3.0], [2.0]]))
    np.testing.assert_allclose(U[:, 0], [0.0, 0.0, 2.0236 + np.log1p(100 - 2.0236)])


def test_shares_are_ranks(rng):
    """A share is the rank among the rows counted, to the width of a node; beyond the bend the tail is exponential."""
    V = np.repeat(rng.gamma(4.0, 1.0, (20_000, 1)), 5, axis=1)
    shares, tails = cumulated(binned(V, np.ones(len(V))))
    at = np.quantile(V[:, 0], [0.05, 0.3, 0.7, 0.89])
    np.testing.assert_allclose(share(at, shares[0], tails[0]), [0.05, 0.3, 0.7, 0.89], atol=0.005)
    np.testing.assert_allclose(share(tails[0, :1], shares[0], tails[0]), BEND, atol=1e-6)
    excess = V[V[:, 0] > tails[0, 0], 0] - tails[0, 0]
    np.testing.assert_allclose(tails[0, 1], excess.mean(), rtol=0.02)
    assert shares.shape == (5, NODES)
    assert STEP * (NODES - 1) == 16.0


def test_rows_that_repeat_each_other(rng):
    U = rng.normal(size=(60, 3))
    U[[10, 30, 50]] = 4.0
    unusual = np.zeros(60, bool)
    unusual[[5, 10, 30, 50]] = True
    near = nearness(U[~unusual])
    pairs = ((U[~unusual][:, None] - U[~unusual]) ** 2).sum(axis=2)[np.tril_indices((~unusual).sum(), -1)]
    assert np.mean(pairs < near) == pytest.approx(0.002, abs=0.001)
    np.testing.assert_array_equal(np.flatnonzero(repeats(U, unusual, near)), [30, 50])
    np.testing.assert_array_equal(repeats(U, unusual, near)[[30, 50]], [1, 2])


# -------------------------------------------------------------------- engines, calls, files
@pytest.mark.skipif(not has_native(), reason="needs the core")
@pytest.mark.parametrize("d", [1, 3, 12])
def test_native_is_python(d, rng):
    X = np.exp(rng.normal(size=(400, d)))
    X[rng.random((400, d)) < 0.02] = np.nan
    models = [KernelNovelty(random_state=1, engine=engine) for engine in ("python", "native")]
    scores = [blocks(model, X, 70) for model in models]
    assert_same_scores(*scores, 1e-7, "python and native")
    assert_same_state(models[0].state_, models[1].state_, 1e-7, "python and native")
    rows = np.exp(rng.normal(size=(9, d)))
    tables = models[0]._learner.tables(models[0]._state)
    native = models[1]._learner.ops.surprises(rows, tables)
    np.testing.assert_allclose(native, python_engine.surprises(rows, tables), rtol=1e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_long_streams_may_be_cut_anywhere(engine, rng):
    X = rng.normal(size=(1500, 3))
    X[900:] += 20.0  # the model starts over
    whole, cut = (KernelNovelty(random_state=0, engine=engine) for _ in range(2))
    one = whole.learn(X)
    assert_same_scores(
        np.concatenate([cut.learn(part) for part in np.split(X, [1, 40, 41, 700, 1100])]), one, 1e-12, ""
    )
    assert_same_state(whole.state_, cut.state_, 1e-12, "cut")


# -------------------------------------------------------------------- simulated streams
def test_scores_of_a_stream_that_stands_still_are_uniform(rng):
    for X in (rng.normal(size=(6000, 4)), rng.exponential(size=(6000, 8)) ** 2):
        scores = blocks(KernelNovelty(random_state=0), X)[500:]
        for level in (0.02, 0.05, 0.2):
            assert np.mean(scores > 1 - level) == pytest.approx(level, rel=0.2)


@pytest.mark.parametrize("d", [2, 10])
def test_a_burst_of_equal_rows_stays_unusual(d, rng):
    X, odd = rng.normal(size=(10_000, d)), np.zeros(10_000, bool)
    X[5000:6000], odd[5000:6000] = 4.0, True
    assert auc(blocks(KernelNovelty(random_state=0), X), odd) >= 0.95


@pytest.mark.parametrize("shift", [3.0, 100.0])
def test_a_shift_is_learned_within_500_rows(shift, rng):
    X, odd = rng.normal(size=(6000, 6)), rng.random(6000) < 0.02
    X[odd] += 5 * rng.choice([-1, 1], (odd.sum(), 6)) * (rng.random((odd.sum(), 6)) < 0.5)
    X[3000:] += shift
    scores = blocks(KernelNovelty(random_state=0), X)
    before, after = slice(1000, 3000), slice(3500, 5500)
    assert auc(scores[after], odd[after]) >= auc(scores[before], odd[before]) - 0.03
    assert np.mean(scores[after][~odd[after]] > 0.95) < 0.08


def test_a_dependence_is_seen_that_no_single_column_shows(rng):
    X = rng.normal(size=(4000, 1)) @ np.ones((1, 4)) + 0.1 * rng.normal(size=(4000, 4))
    odd = np.arange(4000) % 50 == 49
    X[odd] = rng.permuted(X[odd], axis=0)  # every column as before, alone
    assert auc(blocks(KernelNovelty(random_state=0), X)[500:], odd[500:]) > 0.8


# -------------------------------------------------------------------- what users see
def test_signs_and_threshold(rng):
    X = rng.normal(size=(2000, 3))
    model = KernelNovelty(0.1, random_state=0)
    answers = model.learn(X)
    np.testing.assert_array_equal(model.novel(answers), answers > 0.9)
    rows = np.vstack([np.zeros(3), np.full(3, 6.0)])
    np.testing.assert_array_equal(model.predict(rows), [1, -1])
    np.testing.assert_allclose(model.score_samples(rows), -model.forecast_scores(rows))
    np.testing.assert_allclose(model.decision_function(rows), model.score_samples(rows) - model.offset_)
    before = model.score_samples(X)
    share = np.mean(model.predict(X) < 0)
    model.set_params(contamination=0.01)
    np.testing.assert_array_equal(model.score_samples(X), before)
    assert np.mean(model.predict(X) < 0) < share / 4


def test_fit_calls_its_share_unusual(rng):
    X = rng.normal(size=(1000, 3))
    model = KernelNovelty(0.07, random_state=0).fit(X)
    assert np.sum(model.predict(X) < 0) == 70
    model.learn(X[:1])  # from here on the stream says what is unusual
    assert model.offset_ == pytest.approx(-0.93)


def test_explain_names_the_columns(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"heat": rng.normal(size=800), "place": rng.choice(["here", "there"], 800)})
    frame["load"] = rng.gamma(2.0, size=800)
    model = KernelNovelty(random_state=0)
    model.learn(frame)
    odd = pd.DataFrame({"heat": [9.0, 0.0], "place": ["here", "there"], "load": [1.0, 90.0]})
    found = model.explain(odd)
    assert [found.contributions.names[j] for j in found.contributions.argmax(axis=1)] == ["heat", "load"]
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.score - found.base)
    np.testing.assert_allclose(found.score, model.forecast_scores(odd))
    assert (found.score > 0.9).all()
    again = reloaded(model)
    np.testing.assert_array_equal(again.learn(frame[:300]), model.learn(frame[:300]))


def test_new_columns_may_come(rng):
    rows = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(400, 2))]
    model = KernelNovelty(random_state=0)
    model.learn(rows)
    more = [row | {"c": float(c)} for row, c in zip(rows, rng.normal(size=400), strict=True)]
    scores = np.concatenate([model.learn(more[i : i + 50]) for i in range(0, 400, 50)])
    assert model.n_features_in_ == 3
    assert abs(scores[300:].mean() - 0.5) < 0.15


def test_gaps_in_arrays_are_medians(rng):
    X = rng.normal(size=(500, 3))
    X[rng.random((500, 3)) < 0.1] = np.nan
    model = KernelNovelty(random_state=0)
    assert np.isfinite(blocks(model, X)).all()
    middle = model.state_["scale"][0]
    np.testing.assert_allclose(model.forecast_scores([[np.nan] * 3]), model.forecast_scores([middle]))
