"""An encoder and an estimator as one: any estimator, any split, files, errors that leave no trace."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from mixed_rows import rows_and_targets
from reloaded import reloaded
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError

import kernelstream
from kernelstream import features
from kernelstream.columns import Columns, StreamPipeline, make_stream
from kernelstream.evaluate import prequential
from kernelstream.testing.streaming import assert_same_state

MAP = features.for_kernel("gaussian", n_components=15, gamma=0.1)
ROWS, Y = rows_and_targets(240, towns=5)
LABELS = np.where(np.median(Y) < Y, "hi", "lo")
CLASSES = sorted(
    name
    for name in kernelstream._NAMES
    if isinstance(getattr(kernelstream, name), type) and hasattr(getattr(kernelstream, name), "fit")
    if name != "KernelForecaster"  # encodes the columns of its frames itself
)


def small(name):
    """A small estimator of a class."""
    est = getattr(kernelstream, name)()
    known = est.get_params()
    wanted = {"random_state": 0, "n_components": 10, "block_size": 16, "variance_features": 8, "passes": 1}
    return est.set_params(**{key: value for key, value in wanted.items() if key in known})


def target(est):
    return LABELS if is_classifier(est) else Y if is_regressor(est) else None


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("name", CLASSES)
def test_every_estimator_takes_rows_as_they_come(name):
    model = make_stream(Columns(one_hot=4), small(name))
    y = target(model)
    assert [f(model) for f in (is_classifier, is_regressor, is_outlier_detector)] == [
        f(model.model) for f in (is_classifier, is_regressor, is_outlier_detector)
    ]
    given = [] if y is None else [y[:60]]
    if hasattr(model, "learn"):
        scores = model.learn(ROWS[:60], *given)
        assert len(scores) == 60
        model.partial_fit(ROWS[60:70], *([] if y is None else [y[60:70]]))
    else:
        model.fit(ROWS[:60], *given)
    for made in (reloaded(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(made.predict(ROWS[100:110]), model.predict(ROWS[100:110]))
        assert_same_state(made.state_, model.state_, 0.0, name)
    with pytest.raises(NotFittedError):
        clone(model).predict(ROWS)


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_the_whole_is_its_parts(engine):
    est = kernelstream.FeatureClassifier(loss="logistic", features=MAP, random_state=0, engine=engine)
    X = Columns(engine=engine).learn_transform(ROWS, LABELS)
    truth = est.learn(X, LABELS)
    model = make_stream(Columns(engine=engine), clone(est))
    np.testing.assert_array_equal(model.learn(ROWS, LABELS), truth)
    np.testing.assert_array_equal(model.classes_, ["hi", "lo"])
    np.testing.assert_array_equal(model.predict_proba(ROWS), est.predict_proba(model.columns_.transform(ROWS)))
    assert model.score(ROWS, LABELS) == np.mean(model.predict(ROWS) == LABELS) > 0.7


def test_any_split_with_new_columns_gives_the_same_model():
    rows = [{**row, "late": "uv"[i % 2]} if i > 100 else row for i, row in enumerate(ROWS)]
    est = kernelstream.FeatureRegressor(features=MAP, random_state=0, engine="python")
    whole = make_stream(Columns(engine="python"), est)
    scores = whole.learn(rows, Y)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model, parts, start = make_stream(Columns(engine="python"), est), [], 0
        while start < len(rows):
            stop = min(len(rows), start + int(rng.choice([1, 3, 40])))
            single = stop == start + 1
            parts.append(
                model.learn(rows[start] if single else rows[start:stop], Y[start] if single else Y[start:stop])
            )
            if rng.random() < 0.2:
                model = reloaded(model)
            start = stop
        np.testing.assert_allclose(np.concatenate(parts), scores, rtol=0, atol=1e-12 * np.abs(scores).max())
        assert_same_state(model.state_, whole.state_, 1e-12, "split")


def test_models_that_cannot_be_widened_need_room():
    late = [{"a": 1.5}] * 5, [{"a": 1.5, "b": "x"}] * 5
    y = [0.0, 1, 0, 1, 0]
    model = make_stream(Columns(), kernelstream.RRFRegressor(n_components=5, random_state=0))
    model.learn(late[0], y)
    with pytest.raises(ValueError, match="room"):
        model.learn(late[1], y)
    model = make_stream(Columns(), kernelstream.RRFRegressor(n_components=5, random_state=0), room=50)
    model.learn(late[0], y)
    model.learn(late[1], y)
    assert model.model_.n_features_in_ == 52


@pytest.mark.parametrize(
    "name", ["FeatureClassifier", "NystroemClassifier", "BudgetClassifier", "OnlineRidgeClassifier"]
)
def test_refused_rows_leave_both_as_they_were(name):
    model = make_stream(Columns(), small(name), room=100)
    model.learn(ROWS[:100], LABELS[:100])
    state = copy.deepcopy(model.state_)
    new = {"town": "new", "extra": "word", "hour": 7}
    for rows, y, weight in (
        ([new, new], ["hi"], None),
        ([new, new], ["hi", None], None),
        ([new, new], [0.5, 1.5], None),
        ([new, new], ["hi", "lo"], [1, math.nan]),
        (new, 0.5, None),
        ("rows", ["hi"], None),
        ([new, 3], ["hi", "lo"], None),
    ):
        with pytest.raises(ValueError):
            model.learn(rows, y, sample_weight=weight)
        assert_same_state(model.state_, state, 0.0, name)


def test_first_rows_without_any_value_are_fine():
    model = make_stream(Columns(), kernelstream.FeatureRegressor(features=MAP, random_state=0))
    assert model.learn({}, 1.0).shape == (1,)
    model.learn({"a": None}, 2.0)
    model.learn({"a": "x", "b": 2}, 2.0)
    assert np.isfinite(model.predict([{}, {"b": 3}])).all()


def test_evaluation_takes_frames():
    import pandas as pd

    frame = pd.DataFrame(ROWS)
    est = kernelstream.FeatureClassifier(loss="logistic", random_state=0)
    result = prequential(make_stream(Columns(), est), frame, LABELS, metrics=["mistake_rate", "log_loss"])
    direct = make_stream(Columns(), est).learn(frame, LABELS)
    wrong = np.where(direct >= 0, "lo", "hi") != LABELS
    assert result.metrics["mistake_rate"] == np.mean(wrong)
    assert result.metrics["log_loss"] < 0.7


def test_parameters():
    model = StreamPipeline(Columns(), kernelstream.FeatureClassifier())
    assert model.set_params(columns__one_hot=3, model__loss="hinge").model.loss == "hinge"
    for wrong, match in (
        ((None, None), "model"),
        ((3, model.model), "columns"),
        ((Columns(), model.model, -1), "room"),
    ):
        with pytest.raises(ValueError, match=match):
            StreamPipeline(*wrong).fit(ROWS, LABELS)
