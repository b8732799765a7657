"""River adapters: River's own checks, and the same model as without River."""

import copy
import random

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks, compose, datasets, evaluate, metrics, preprocessing

from kernelstream import BudgetClassifier, FeatureClassifier, FeatureRegressor, NystroemClassifier
from kernelstream.columns import Columns, make_stream
from kernelstream.estimators.feature import map_entries
from kernelstream.features import RandomFourier, sampling
from kernelstream.river import RiverClassifier, RiverRegressor
from kernelstream.testing.streaming import assert_same_state

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 5))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
target = np.sin(2 * X[:, 0])
NAMES = ["b", "a", "e", "d", "c"]
DICTS = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
BY_NAME = X[:, np.argsort(NAMES)]  # columns are given in the order of the names


def each_check(model, *marks):
    skipped = model._unit_test_skips()
    assert not skipped
    return [
        pytest.param(model, check, id=f"{type(model).__name__}-{check.__name__}", marks=marks)
        for check in checks.yield_checks(model)
    ]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        *each_check(RiverClassifier(FeatureClassifier(RandomFourier(n_components=20), "logistic"))),
        *each_check(RiverRegressor(FeatureRegressor(RandomFourier(n_components=20)))),
        *each_check(RiverClassifier(NystroemClassifier(budget=20, loss="logistic"), seed=3), pytest.mark.slow),
    ],
)
def test_river_checks(model, check):
    check(model.clone())


def test_the_same_model_as_without_river():
    small = RandomFourier(n_components=50)
    est = FeatureClassifier(small, "logistic", random_state=3).partial_fit(BY_NAME, y)
    one, many = (
        RiverClassifier(FeatureClassifier(small, "logistic"), seed=3),
        RiverClassifier(FeatureClassifier(small, "logistic"), seed=3),
    )
    for x, label in zip(DICTS, y.tolist(), strict=True):
        one.learn_one(x, label)
    many.learn_many(DICTS, y)
    for model in (one, many):
        np.testing.assert_allclose(model.estimator.state_["w"], est.state_["w"], rtol=1e-8)
        assert [model.predict_one(x) for x in DICTS[:50]] == est.predict(BY_NAME[:50]).tolist()
        p = np.array([list(model.predict_proba_one(x).values()) for x in DICTS[:50]])
        np.testing.assert_allclose(p, est.predict_proba(BY_NAME[:50]), rtol=1e-8)
    assert one.feature_names == sorted(NAMES)
    reg = RiverRegressor(FeatureRegressor(small), seed=3)
    reg.learn_many(DICTS, target)
    truth = FeatureRegressor(small, random_state=3).partial_fit(BY_NAME, target)
    np.testing.assert_allclose(reg.predict_many(DICTS), truth.predict(BY_NAME), rtol=1e-8)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    frame, labels = frames.DataFrame({n: X[:, i] for i, n in enumerate(NAMES)}), frames.Series(["no", "yes"] * 200)
    model = RiverClassifier(seed=0)
    assert len(model.predict_many(frame)) == 0
    model.learn_many(frame, labels)
    predicted, p = model.predict_many(frame), model.predict_proba_many(frame)
    assert type(predicted).__module__.startswith(library)
    assert list(predicted) == [model.predict_one(x) for x in DICTS]
    np.testing.assert_allclose(np.asarray(p["yes"])[:20], [model.predict_proba_one(x)["yes"] for x in DICTS[:20]])
    reg = RiverRegressor(seed=0)
    assert list(reg.predict_many(frame)) == [0.0] * 400
    reg.learn_many(frame, frames.Series(target))
    np.testing.assert_allclose(list(reg.predict_many(frame)), [reg.predict_one(x) for x in DICTS])


def test_features_that_come_and_go():
    model = RiverClassifier(FeatureClassifier(RandomFourier(gamma=0.5), "logistic"), seed=0)
    wide = FeatureClassifier(RandomFourier(gamma=0.5), "logistic", random_state=0)
    rows = np.zeros((400, 3))
    for i, x in enumerate(DICTS):
        part = {"b": x["b"]} if i < 100 else {"d": x["d"], "b": x["b"]} if i < 200 else {"a": x["a"], "d": x["d"]}
        for name, value in part.items():
            rows[i, ["b", "d", "a"].index(name)] = value  # columns in the order of appearance
        model.learn_one(part, int(y[i]))
    wide.partial_fit(rows, y)
    assert model.feature_names == ["b", "d", "a"]
    np.testing.assert_allclose(model.estimator.state_["w"], wide.state_["w"], rtol=1e-7, atol=1e-12)
    assert model.predict_one({}) in (0, 1)
    assert model.predict_one({"never seen": 3.0}) == model.predict_one({})


def test_bad_rows():
    model = RiverClassifier(seed=0)
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    before = model.estimator.state_["t"]
    for value, reason in (("red", "'a' is 'red', not a number"), (float("nan"), "'a' is nan"), (None, "not a number")):
        with pytest.raises(ValueError, match=f"feature {reason}" if reason.startswith("'a'") else reason):
            model.learn_one({"a": value, "b": 1.0}, True)
    assert model.estimator.state_["t"] == before
    assert RiverClassifier(FeatureClassifier()).predict_proba_one({"a": 1}) == {}  # no label is known yet
    hinge = RiverClassifier(FeatureClassifier(), seed=0)
    hinge.learn_many(DICTS, y)
    assert hinge.predict_one(DICTS[0]) in (0, 1)
    p = hinge.predict_proba_one(DICTS[0])
    assert max(p, key=p.get) == hinge.predict_one(DICTS[0]) and sum(p.values()) == pytest.approx(1)
    assert hinge.model.__dict__.keys() == FeatureClassifier().__dict__.keys()  # the parameter itself is not trained


def _all_of(model):
    """Everything that a row may change."""
    held = model.estimator
    state = None if held is None else copy.deepcopy(held.__dict__.get("_state"))
    return list(model.feature_names), dict(model._columns), getattr(held, "n_features_in_", None), state


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize(
    ("row", "target"),
    [
        ({"b": 1.0, "new": 2.0, "d": -float("inf")}, 1.0),
        ({"b": 1.0, "new": float("inf"), "a": 2.0}, 1.0),
        ({"b": 1.0, "new": 2.0}, float("nan")),
        ({"b": 1.0, "new": 2.0}, "a word"),
    ],
)
def test_a_refused_row_changes_nothing(first, many, row, target):
    """Neither the columns nor the width of the model, and a model that never learned a row is still none."""
    model = RiverRegressor(seed=0)
    if not first:
        model.learn_many([{"a": i / 7, "b": i % 5} for i in range(120)], list(range(120)))
    before = _all_of(model)
    with pytest.raises(ValueError):
        model.learn_many([{"a": 0.5, "newer": 1.0}, row], [1.0, target]) if many else model.learn_one(row, target)
    after = _all_of(model)
    assert after[:3] == before[:3]
    assert (model.estimator is None) == first
    if not first:
        assert_same_state(before[3], after[3], 0.0, "before and after a refused row")
        model.learn_one({"a": 1.0, "b": 2.0, "other": 3.0}, 1.0)
        assert model.feature_names == ["a", "b", "other"]


def test_in_a_river_pipeline():
    model = compose.Pipeline(preprocessing.StandardScaler(), RiverClassifier(seed=1))
    metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert metric.get() > 0.85
    model = preprocessing.StandardScaler() | RiverRegressor(seed=1)
    metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert metric.get() < 1.0


def test_order_of_features_means_nothing():
    shuffled = random.Random(0)
    a, b = RiverRegressor(seed=0), RiverRegressor(seed=0)
    for x, value in zip(DICTS, target.tolist(), strict=True):
        items = list(x.items())
        shuffled.shuffle(items)
        a.learn_one(x, value)
        b.learn_one(dict(items), value)
    np.testing.assert_array_equal(a.estimator.state_["w"], b.estimator.state_["w"])


def test_weights_of_single_rows():
    """A row of weight w is what ``learn`` makes of that weight, on known and on new features."""
    from sklearn.base import clone

    est = FeatureRegressor(random_state=0, engine="python")
    model = RiverRegressor(est)
    rows, weights = [{"a": i % 5, "b": i % 3} for i in range(30)], [0.5 + i % 2 for i in range(30)]
    for i, (row, w) in enumerate(zip(rows, weights, strict=True)):
        model.learn_one(row, float(i), w=w)
    truth = clone(est)
    truth.learn([[r["a"], r["b"]] for r in rows], np.arange(30.0), sample_weight=weights)
    assert model.predict_one({"a": 2, "b": 1}) == pytest.approx(truth.predict([[2, 1]])[0], rel=1e-9)


def text_rows(n, words=3_000, seed=0):
    """Dicts of ten words out of many, whose label is whether a word of the first tenth is there."""
    draws = np.random.default_rng(seed).integers(0, words, (n, 10))
    return [{f"w{word}": 1.0 for word in row} for row in draws.tolist()], (draws.min(axis=1) < words // 10).tolist()


def test_a_new_feature_costs_a_column(monkeypatch):
    """Frequencies are drawn for columns that have none, and kept for the others."""
    drawn, standard = [], sampling._standard
    monkeypatch.setattr(
        sampling, "_standard", lambda k, s, d, D, first=0: drawn.append(d - first) or standard(k, s, d, D, first)
    )
    model = RiverClassifier(FeatureClassifier(RandomFourier(n_components=8), "logistic"), seed=1)
    rows, labels = text_rows(400)
    for row, label in zip(rows, labels, strict=True):
        model.learn_one(row, label)
    known = len(model.feature_names)
    assert known > 2_000
    assert sum(drawn) < 3 * known  # half again as many as there are, and those of the warm-up once more
    W = model.estimator._learner.mapping(model.estimator._state).W
    kernel = model.estimator._learner.map.resolved(map_entries(model.estimator._state))
    fresh = sampling.frequencies(kernel, 1, len(W), W.shape[1])
    np.testing.assert_array_equal(W, fresh)


def test_many_words_one_by_one_and_in_blocks():
    rows, labels = text_rows(300)
    one, many = (RiverClassifier(FeatureClassifier(RandomFourier(n_components=8), "logistic"), seed=1) for _ in "ab")
    for row, label in zip(rows, labels, strict=True):
        one.learn_one(row, label)
    many.learn_many(rows, labels)
    unseen, _ = text_rows(50, seed=1)
    p = [one.predict_proba_one(row)[True] for row in unseen]
    np.testing.assert_allclose(p, many.predict_proba_many(unseen)[:, 1], atol=1e-9)
    before = one.estimator.state_
    with pytest.raises(ValueError, match="not a number"):
        one.learn_one({"w1": 1.0, "quite new": "a word"}, True)
    assert "quite new" not in one.feature_names
    assert_same_state(one.estimator.state_, before, 0.0, "refused")


def test_room_for_models_that_cannot_be_widened():
    with pytest.warns(UserWarning, match=r"room=100"):
        RiverClassifier(BudgetClassifier())
    model = RiverClassifier(BudgetClassifier(budget=20, random_state=0), room=2)
    for i in range(30):
        model.learn_one({"a": float(i % 3), "b": 1.0}, i % 3 == 0)
    model.learn_one({"a": 1.0, "late": 2.0, "later": 1.0}, False)
    assert model.feature_names == ["a", "b", "late", "later"] and model.estimator.n_features_in_ == 4
    with pytest.raises(ValueError, match="room"):
        model.learn_one({"too late": 2.0}, False)
    assert model.feature_names == ["a", "b", "late", "later"]
    assert model.predict_one({"a": 0.0, "unknown": 3.0}) in (True, False)


def test_words_dates_and_gaps_go_through_the_encoder():
    """As with the encoder in front of the same model; also a row at a time, or as a data frame."""
    rows = [{"town": "Rome" if i % 3 else "Oslo", "wind": None if i % 7 == 0 else i % 5} for i in range(200)]
    y = ["warm" if row["town"] == "Rome" else "cold" for row in rows]
    single, many, framed = (RiverClassifier(seed=1) for _ in range(3))
    for row, label in zip(rows, y, strict=True):
        single.learn_one(row, label)
    many.learn_many(rows, y)
    framed.learn_many(pytest.importorskip("pandas").DataFrame(rows), y)
    plain = make_stream(Columns(), FeatureClassifier(loss="logistic", random_state=1))
    plain.learn(rows, y)
    asked = {"town": "Oslo", "wind": 3}
    truth = dict(zip(plain.classes_.tolist(), plain.predict_proba(asked)[0].tolist(), strict=True))
    for model in (single, many, framed):
        assert model.predict_proba_one(asked) == pytest.approx(truth, abs=1e-9)
    assert many.predict_one(asked) == "cold" and many.feature_names == ["town", "wind"]
    assert many.predict_many(rows[:4]).tolist() == y[:4]


def test_words_after_numbers_need_the_encoder_from_the_start():
    model, told = RiverRegressor(seed=0), RiverRegressor(seed=0, columns={})
    told.learn_one({"a": 1.0}, 2.0)
    told.learn_one({"a": 1.0, "b": "red"}, 2.0)
    model.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match=r"columns=\{\} takes words"):
        model.learn_one({"a": 1.0, "b": "red"}, 2.0)
    assert model.feature_names == ["a"] and told.feature_names == ["a", "b"]
