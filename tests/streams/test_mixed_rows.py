"""The one learner on rows as they come: words, dates, gaps and new columns."""

import io
import pickle

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.columns import Columns
from kernelstream.estimators._contract.mixed import is_mixed

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
N = 600
FRAME = pd.DataFrame(
    {
        "town": rng.choice(["Rome", "Oslo", "Paris"], N),
        "x": rng.standard_normal(N),
        "day": pd.date_range("2020-01-01", periods=N, freq="h"),
    }
)
LABELS = np.where((FRAME.town == "Rome") ^ (FRAME.x > 0), "a", "b")
FRAME.loc[5:9, "x"] = np.nan


def small(**more):
    return KernelClassifier(size="small", random_state=0, **more)


def test_what_is_mixed():
    assert is_mixed(FRAME) and is_mixed([{"a": 1}]) and is_mixed({"a": 1}) and is_mixed(np.array([["a", 1]], object))
    assert is_mixed(np.array([[1.0, np.nan]]))
    assert not is_mixed(FRAME[["x"]][20:]) and not is_mixed(np.ones((2, 2))) and not is_mixed([[1.0, 2.0]])


def test_it_is_the_encoder_and_the_learner():
    """Nothing happens between the two: the same forecasts as with an encoder in front of a model of numbers."""
    mixed, plain, encoder = small(), small(), Columns()
    rows = encoder.learn_transform(FRAME, LABELS)
    assert (mixed.learn(FRAME, LABELS) == plain.learn(rows, LABELS)).all()
    assert (mixed.decision_function(FRAME[:20]) == plain.decision_function(encoder.transform(FRAME[:20]))).all()
    assert mixed.columns_.kinds_ == {"town": "category", "x": "number", "day": "date"}


def test_splits_files_and_pickles():
    whole, parts = small().partial_fit(FRAME[:400], LABELS[:400]), small()
    for a, b in ((0, 1), (1, 130), (130, 400)):
        parts.partial_fit(FRAME[a:b], LABELS[a:b])
    file = io.BytesIO()
    ks.save(whole, file)
    others = [parts, ks.load(file), pickle.loads(pickle.dumps(whole))]
    want = whole.learn(FRAME[400:], LABELS[400:])
    assert all(np.abs(other.learn(FRAME[400:], LABELS[400:]) - want).max() < 1e-9 for other in others)


def test_a_refused_call_changes_nothing():
    model = small().partial_fit(FRAME[:300], LABELS[:300])
    before, known = model.decision_function(FRAME), pickle.dumps(model.columns_.state_)
    for rows, y, weight in (
        (FRAME[300:310], LABELS[300:309], None),
        (FRAME[300:310], LABELS[300:310], -np.ones(10)),
        ([{"town": "Rome", "new": 1.0}], np.array([1.5]), None),
    ):
        with pytest.raises(ValueError):
            model.learn(rows, y, sample_weight=weight)
        assert (model.decision_function(FRAME) == before).all() and model.n_features_in_ == FRAME.shape[1]
        assert pickle.dumps(model.columns_.state_) == known


def test_new_columns_and_unknown_words():
    model = small().partial_fit(FRAME[:300], LABELS[:300])
    width = model.n_features_in_
    model.learn([{"town": "Atlantis", "x": 1.0, "new": "word"}], ["a"])
    assert model.n_features_in_ > width
    model.partial_fit(FRAME[300:], LABELS[300:])
    assert model.predict([{"x": 3.0}]).shape == (1,)


def test_gaps_in_numbers_and_kinds():
    X = rng.standard_normal((300, 3))
    X[::7, 1] = np.nan
    model = KernelRegressor(size="small", random_state=0).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.9
    hours = pd.DataFrame({"hour": np.arange(500) % 24})
    y = (np.arange(500) % 24 == 13).astype(int)
    told = small(columns={"hour": "category"}).partial_fit(hours, y)
    assert told.columns_.kinds_ == {"hour": "category"}
    with pytest.raises(ValueError, match="columns"):
        small(columns="all").partial_fit(hours, y)


def test_numbers_meet_no_encoder():
    model = small().partial_fit(FRAME[["x"]][20:], LABELS[20:])
    assert model.feature_names_in_.tolist() == ["x"]
    with pytest.raises(AttributeError, match="numbers"):
        _ = model.columns_
    assert small().fit(FRAME, LABELS).fit(FRAME[["x"]][20:], LABELS[20:])._encoder is None
