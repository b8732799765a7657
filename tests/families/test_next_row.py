"""`predict` is a function of the row alone, whatever is asked with it; `forecast` is for the next row of a stream."""

import functools
import itertools

import numpy as np
import pytest
from coverings import in_turn
from reloaded import reloaded

from kernelstream import FeatureClassifier, FeatureRegressor, KernelClassifier, KernelRegressor
from kernelstream.columns import Columns, make_stream
from kernelstream.estimators.stack import level
from kernelstream.evaluate import prequential
from kernelstream.next_row import for_next_row
from kernelstream.trust import Calibrated, Explained, WithIntervals

pytestmark = pytest.mark.usefixtures("short_searches")

rng = np.random.default_rng(5)
X = rng.standard_normal((700, 5))
X[::60, 0] *= 30.0
ASKED = rng.standard_normal((1000, 5))
ASKED[::70, 1] *= 50.0
TASKS = {
    "labels": (KernelClassifier, np.where(np.sin(np.arange(700) / 30) + X[:, 0] * X[:, 1] > 0, "up", "down")),
    "many labels": (KernelClassifier, (np.arange(700) // 9 + (X[:, 0] > 0)) % 12),
    "numbers": (KernelRegressor, 50 * np.sin(2 * X[:, 0]) + np.cumsum(X[:, 1])),
    "two targets": (KernelRegressor, np.stack([np.sin(2 * X[:, 0]), np.cumsum(X[:, 1]) + X[:, 2]], axis=1)),
}
N = 330  # rows that are learned
WAYS = ["learn", "blocks", "fit", "fit and learn", "saved", "float32"]
NUMBERS = ("predict", "predict_interval", "predict_quantiles")
LABELS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "predict_set")


@functools.cache
def learned(task, size, recent, way):
    """A model that went this way to its state."""
    kind, y = TASKS[task]
    model = kind(size=size, recent=recent, random_state=0)
    rows = X.astype(np.float32) if way == "float32" else X
    if way.startswith("fit"):
        model.fit(rows[:260], y[:260])
        return model.learn(rows[260:N], y[260:N]) is not None and model if way == "fit and learn" else model
    model.learn(rows[:150], y[:150])
    step = 1 if way == "learn" else 37
    for start in range(150, N, step):
        model.learn(rows[start : min(start + step, N)], y[start : min(start + step, N)])
    return reloaded(model) if way == "saved" else model


def in_parts(ask, rows, n):
    """Answers for parts of n rows, one after the other; the outer axes of several arrays are those of the rows."""
    found = [ask(rows[i : i + n]) for i in range(0, len(rows), n)]
    if isinstance(found[0], tuple):
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]
    return [np.concatenate(found)]


@in_turn("model, way", list(itertools.product(TASKS, ("small", "medium"), (True, False))), WAYS)
def test_the_answer_for_a_row_does_not_depend_on_the_others(model, way, monkeypatch):
    """To the bit: alone, beside another one, and among more rows than go through the compiled whole."""
    task, size, recent = model
    monkeypatch.setattr(level, "FIRST_ROWS", 250)  # from then on scores are shifted to the level of the labels
    model = learned(task, size, recent, way)
    asked = ASKED.astype(np.float32) if way == "float32" else ASKED
    for name in LABELS if hasattr(model, "classes_") else NUMBERS:
        ask = getattr(model, name)
        whole = in_parts(ask, asked, 1000)
        for n, rows in ((1, 40), (2, 40), (33, 99), (257, 1000)):
            for one, all_ in zip(in_parts(ask, asked[:rows], n), whole, strict=True):
                np.testing.assert_array_equal(one, all_[:rows], err_msg=f"{name} of {n} rows")


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("task", TASKS)
def test_the_same_in_both_engines(task, engine):
    kind, y = TASKS[task]
    model = kind(size="medium", random_state=0, engine=engine)
    model.learn(X[:150], y[:150])
    answers = model.predict_proba if hasattr(model, "classes_") else model.predict
    whole = answers(ASKED[:80])
    for n in (1, 2, 33):
        np.testing.assert_array_equal(in_parts(answers, ASKED[:66], n)[0], whole[:66])


@pytest.mark.parametrize("size", ["small", "medium"])
@pytest.mark.parametrize("task", TASKS)
def test_a_forecast_is_what_learning_would_say_of_the_row(task, size):
    """The scores that `learn` returns were those of the next row; `forecast` gives them before, any number at once."""
    model, y = learned(task, size, True, "learn"), TASKS[task][1]
    rows = X[N : N + 50]
    single = [reloaded(model).learn(rows[i : i + 1], y[N + i : N + i + 1])[0] for i in range(0, 50, 7)]
    scores = for_next_row(model, "decision_function" if hasattr(model, "classes_") else "predict")
    for n in (1, 3, 50):
        np.testing.assert_allclose(in_parts(scores, rows, n)[0][::7], single, rtol=1e-9, atol=1e-9)
    labels = for_next_row(model, "predict")(rows)
    if hasattr(model, "classes_"):
        p = model.forecast_proba(rows)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], labels)
        sets = model.forecast_set(rows, coverage=0.8)
        held = [reloaded(model).learn_set(rows[i : i + 1], y[N + i : N + i + 1], coverage=0.8)[1] for i in (0, 20)]
        np.testing.assert_array_equal(sets[[0, 20]], np.concatenate(held))
    else:
        low, high = model.forecast_interval(rows, coverage=0.8)
        found = [reloaded(model).learn_interval(rows[i : i + 1], y[N + i : N + i + 1], coverage=0.8) for i in (0, 20)]
        np.testing.assert_allclose(low[[0, 20]], np.concatenate([found[0][1], found[1][1]]), rtol=1e-9)
        np.testing.assert_allclose(high[[0, 20]], np.concatenate([found[0][2], found[1][2]]), rtol=1e-9)
        np.testing.assert_array_equal(model.forecast_quantiles(rows, [0.1, 0.9])[..., 0], low)


@pytest.mark.parametrize("recent", [True, False])
def test_runs_of_labels_are_forecast_by_the_last_ones(recent):
    """The label says nothing of the row and stays the same for forty rows: only who uses the last ones can know it."""
    y = np.arange(1200) // 40 % 2
    rows = np.random.default_rng(6).standard_normal((1200, 4))
    model = KernelClassifier(size="small", recent=recent, random_state=0)
    losses = {"forecast_proba": [], "predict_proba": []}
    model.learn(rows[:600], y[:600])
    for i in range(600, 1200, 7):
        for name, found in losses.items():
            found.append(-np.log(getattr(model, name)(rows[i : i + 1])[0, y[i]]))
        model.learn(rows[i : i + 7], y[i : i + 7])
    forecast, predicted = (np.mean(losses[name]) for name in losses)
    assert (forecast < 0.2 and forecast < 0.75 * predicted) if recent else forecast == predicted


def test_after_fit_there_is_no_next_row():
    for task in ("labels", "numbers"):
        model = learned(task, "small", True, "fit")
        np.testing.assert_array_equal(model.forecast(ASKED), model.predict(ASKED))


def test_prequential_forecasts_the_next_row():
    """With late labels too: what it counts is what a loop of `forecast` and `learn` counts."""
    y = (np.arange(400) // 20 % 2 + (X[:400, 0] > 1.5)) % 2
    for delay, block in itertools.product((1, 3), (1, 4)):
        result = prequential(
            KernelClassifier(size="small", random_state=0),
            X[:400],
            y,
            delay=delay,
            block_size=block,
            metrics="log_loss",
        )
        model, mistakes, waiting, learned_ = KernelClassifier(size="small", random_state=0), 0, 0, 0
        for start in range(0, 400, block):
            stop = min(start + block, 400)
            labels = model.forecast(X[start:stop]) if learned_ else np.ones(stop - start)
            mistakes += int((labels != y[start:stop]).sum())
            waiting = stop
            due = max(waiting - delay, 0)
            if due > learned_:
                model.learn(X[learned_:due], y[learned_:due], **({} if learned_ else {"classes": [0, 1]}))
                learned_ = due
        assert result.mistakes == mistakes


def test_wrappers_and_pipelines_pass_it_on():
    labels, numbers = TASKS["labels"][1], TASKS["numbers"][1]
    rows = X[N : N + 6]
    for make in (lambda model: make_stream(Columns(), model), Explained):
        model = make(KernelClassifier(size="small", random_state=0))
        model.learn(X[:N], labels[:N])
        inner = model.model_
        seen = model._seen(rows)
        np.testing.assert_array_equal(model.forecast(rows), inner.forecast(seen))
        np.testing.assert_array_equal(model.forecast_scores(rows), inner.forecast_scores(seen))
        assert (model.forecast_scores(rows) != model.decision_function(rows)).any()
    pipeline = make_stream(Columns(), KernelRegressor(size="small", random_state=0))
    pipeline.learn(X[:N], numbers[:N])
    np.testing.assert_array_equal(
        pipeline.forecast_interval(rows), pipeline.model_.forecast_interval(pipeline._seen(rows))
    )
    calibrated = Calibrated(KernelClassifier(size="small", random_state=0))
    calibrated.learn(X[:N], labels[:N])
    before = [calibrated.forecast_scores(rows[:1]), calibrated.forecast_proba(rows[:1]), calibrated.forecast(rows[:1])]
    scores = calibrated.learn(rows[:1], labels[N : N + 1])
    np.testing.assert_allclose(before[0], scores, rtol=1e-9)
    np.testing.assert_allclose(before[1][:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-9)
    assert before[2] == calibrated.classes_[int(scores[0] > 0)]


def test_river_asks_for_the_next_row():
    river = pytest.importorskip("kernelstream.river", exc_type=ImportError)
    for task, make in (("labels", river.RiverClassifier), ("numbers", river.RiverRegressor)):
        kind, y = TASKS[task]
        adapter = make(kind(size="small"), seed=0)
        rows = [dict(enumerate(row)) for row in X[:N].tolist()]
        adapter.learn_many(rows, y[:N])
        found = [adapter.predict_one(row) for row in rows[:20]]
        np.testing.assert_array_equal(found, adapter.estimator.forecast(X[:20]))
        np.testing.assert_array_equal(adapter.predict_many(rows[:20]), adapter.estimator.predict(X[:20]))
        if task == "labels":
            p = [list(adapter.predict_proba_one(row).values()) for row in rows[:20]]
            np.testing.assert_array_equal(p, adapter.estimator.forecast_proba(X[:20]))
            assert (adapter.predict_proba_many(rows[:20]) != p).any()


def test_models_that_do_not_use_the_last_targets():
    """Their next row is like any other; intervals of the wrapper follow the errors of the last rows nevertheless."""
    y = TASKS["numbers"][1]
    assert for_next_row(FeatureClassifier(), "predict").__name__ == "predict"
    assert not hasattr(Explained(FeatureClassifier()), "forecast")
    model = WithIntervals(FeatureRegressor(random_state=0))
    model.learn(X[:N], y[:N])
    low, high = model.forecast_interval(X[N : N + 3])
    np.testing.assert_array_equal(model.forecast_quantiles(X[N : N + 3], [0.05, 0.95]).T, [low, high])
    _, below, above = model.learn_interval(X[N : N + 1], y[N : N + 1])
    np.testing.assert_allclose([low[0], high[0]], [below[0], above[0]], rtol=1e-12)
    for n in (1, 2):
        whole, parts = model.predict_interval(X[:8]), in_parts(model.predict_interval, X[:8], n)
        np.testing.assert_allclose(parts, whole, rtol=1e-12)  # a product of matrices rounds in another order
