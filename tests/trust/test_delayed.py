"""Rows that wait for their truth, against a plain dict that does the same."""

import numpy as np
import pytest
import scipy.sparse as sp
from reloaded import reloaded

from kernelstream import FeatureClassifier, OnlineRidge
from kernelstream.trust import Calibrated, Delayed, WithIntervals


def rows(n=400, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1]


def test_it_is_the_same_as_keeping_the_rows_oneself():
    X, y = rows()
    plain = OnlineRidge("raw", engine="python", random_state=0)
    model = Delayed(OnlineRidge("raw", engine="python", random_state=0))
    model.learn(X[:50], y[:50])
    plain.learn(X[:50], y[:50])
    rng = np.random.default_rng(1)
    kept = {}
    for start in range(50, 400, 10):
        ids = [f"row {i}" for i in range(start, start + 10)]
        said = model.remember(ids, X[start : start + 10])
        for name, i in zip(ids, range(start, start + 10), strict=True):
            kept[name] = (i, plain.predict(X[i : i + 1])[0])
        np.testing.assert_allclose(said, [kept[name][1] for name in ids], rtol=1e-12)
        due = rng.choice(sorted(kept), 7, replace=False)
        at = [kept[name][0] for name in due]
        scored = model.learn(id=due, y=y[at])
        plain.learn(X[at], y[at])
        np.testing.assert_allclose(scored, [kept.pop(name)[1] for name in due], rtol=1e-12)  # as they were made
    assert set(model.waiting_) == set(kept)
    assert np.array_equal(model.predict(X), plain.predict(X))


def test_rows_survive_a_checkpoint_even_before_anything_is_learned():
    X, y = rows()
    for wrapped in (OnlineRidge(random_state=0), WithIntervals(OnlineRidge(random_state=0))):
        model = Delayed(wrapped)
        assert np.ma.getmaskarray(model.remember([1, 2, 3], X[:3])).all()
        for _ in range(2):
            model = reloaded(model)
        said = model.learn(id=[3, 1], y=y[[2, 0]])
        assert np.ma.getmaskarray(said).all()
        model.remember([4], X[3:4])
        other = reloaded(model)
        assert other.waiting_.tolist() == [2, 4]
        assert np.array_equal(other.learn(id=[4, 2], y=y[[3, 1]]), model.learn(id=[4, 2], y=y[[3, 1]]))
        assert np.array_equal(other.predict(X), model.predict(X))


def test_labels_and_sparse_rows():
    X, y = rows()
    names = np.where(y > 0, "above", "below")
    S = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = Delayed(Calibrated(FeatureClassifier(random_state=0)))
    model.learn(S[:200], names[:200])
    said = model.remember(np.arange(200, 300), S[200:300])
    model = reloaded(model)
    scored = model.learn(id=np.arange(250, 200, -1), y=names[250:200:-1])
    assert np.array_equal(scored, said[50:0:-1])
    assert (scored == names[250:200:-1]).mean() > 0.7
    assert len(model.waiting_) == 50


def test_the_bounds_on_number_and_age():
    X, y = rows()
    model = Delayed(OnlineRidge(random_state=0), most=5)
    model.remember([1, 2, 3], X[:3])
    model.remember([4, 5, 6, 7], X[3:7])
    assert model.waiting_.tolist() == [3, 4, 5, 6, 7]
    assert model.forgotten_ == 2
    model.learn(id=[5], y=y[4:5])
    assert model.waiting_.tolist() == [3, 4, 6, 7]
    aged = Delayed(OnlineRidge(random_state=0), oldest=4)
    aged.remember([1, 2], X[:2])
    aged.remember([3, 4, 5], X[2:5])
    assert aged.waiting_.tolist() == [2, 3, 4, 5]
    assert np.ma.getmaskarray(aged.learn(id=[1, 2], y=y[:2], missing="skip")).tolist() == [True, True]


def test_mistakes_are_named_and_change_nothing():
    X, y = rows()
    model = Delayed(OnlineRidge(random_state=0))
    model.remember(["a", "b"], X[:2])
    cases = [
        (lambda: model.remember(["b"], X[:1]), "not waiting already"),
        (lambda: model.remember(["c", "c"], X[:2]), "ids must be unique"),
        (lambda: model.remember([3], X[:1]), "ids must all be integers or all be strings"),
        (lambda: model.remember(["c"], X[:1, :2]), "X has 2 columns"),
        (lambda: model.remember(["c"], X[:2]), "ids for rows of shape"),
        (lambda: model.remember(["c"], np.full((1, 3), np.nan)), "NaN"),
        (lambda: model.learn(id=["z"], y=[1.0]), "no rows are waiting for the ids"),
        (lambda: model.learn(id=["a", "a"], y=[1.0, 1.0]), "no rows are waiting for the ids"),
        (lambda: model.learn(id=["a"], y=[1.0, 2.0]), "got 1 ids, but y"),
        (lambda: model.learn(id=["a"], y=[np.nan]), "NaN"),
        (lambda: model.learn(X, y, id=["a"]), "pass X and y, or id and y"),
        (lambda: Delayed(OnlineRidge(), most=0).remember(["a"], X[:1]), "most must be"),
    ]
    for call, word in cases:
        with pytest.raises(ValueError, match=word):
            call()
    assert model.waiting_.tolist() == ["a", "b"]
    model.learn(id=["b", "a"], y=y[[1, 0]])
