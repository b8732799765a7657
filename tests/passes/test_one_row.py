"""A single row: how many Python functions it goes through, and that the short way learns what the long way does."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import FeatureClassifier, KernelClassifier
from kernelstream.columns import Columns
from kernelstream.features import RandomFourier

MOST = 9


def rows(n=60, d=4):
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, np.where(X[:, 0] > 0, 1, 0)


def python_calls(function, *args):
    """Names of the Python functions that a call goes through."""
    names = []
    sys.setprofile(lambda frame, event, arg: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return names


def test_a_row_takes_few_calls():
    pytest.importorskip("kernelstream._core")
    X, y = rows()
    model = FeatureClassifier(RandomFourier(n_components=8, gamma=0.5), random_state=0)
    model.partial_fit(X[:40], y[:40])
    model.learn(X[40:41], y[40:41])
    calls = python_calls(model.learn, X[41:42], y[41:42])
    assert calls[0] == "learn" and len(calls) <= MOST, calls


def test_a_row_of_many_labels_takes_the_short_way():
    """Also of more labels than tables have columns in the order of the labels; what is learned is that of blocks."""
    pytest.importorskip("kernelstream._core")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((110, 3))
    y = np.concatenate([rng.permutation(40), rng.integers(0, 40, 70)])
    short, whole, formula = (
        KernelClassifier(size="small", engine=engine, random_state=0) for engine in ("native", "native", "python")
    )
    scores = whole.learn(X, y)
    short.learn(X[:80], y[:80])
    for i in range(80, 110):
        if i == 95:
            assert "_member_learns" not in python_calls(short.learn, X[i : i + 1], y[i : i + 1])
        else:
            np.testing.assert_allclose(short.learn(X[i : i + 1], y[i : i + 1])[0], scores[i], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(formula.learn(X, y)[80:], scores[80:], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(short.predict_proba(X[:1]), formula.predict_proba(X[:1]), rtol=1e-6)
    for name, value in whole.state_.items():
        if name.endswith(("places", "_tables", "_bias")):
            np.testing.assert_allclose(short.state_[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


def with_words(n):
    """Dictionaries of two numbers and a word, and a label that needs all three."""
    X, y = rows(n)
    words = [{"x": a, "z": b, "w": "abcde"[i * i % 5]} for i, (a, b) in enumerate(X[:, :2].tolist())]
    return words, np.array(["no", "yes"])[y ^ (np.arange(n) ** 2 % 5 == 1)]


def test_a_dictionary_with_a_word_takes_the_short_way():
    """Once encoded it is a row of numbers like any other."""
    pytest.importorskip("kernelstream._core")
    pairs = list(zip(*with_words(304), strict=True))
    model = KernelClassifier(size="small", random_state=0)
    for row, label in pairs[:300]:
        model.learn(row, label)
    calls = python_calls(model.learn, *pairs[300])
    assert "stack_pass" not in calls and len(calls) <= 40, (len(calls), calls)
    assert len(python_calls(model.predict, pairs[301][0])) <= 40
    river = pytest.importorskip("kernelstream.river")
    adapter = river.RiverClassifier(KernelClassifier(size="small", random_state=0))
    for row, label in pairs[:300]:
        adapter.learn_one(row, label)
    calls = python_calls(adapter.learn_one, *pairs[300])
    assert "stack_pass" not in calls and len(calls) <= 50, (len(calls), calls)


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_dictionaries_one_by_one_are_the_encoder_and_the_learner(engine):
    """To the bit where both learn row by row, before and after a file; nearly where one learns a block."""
    words, y = with_words(115)
    single, block = (KernelClassifier(size="small", engine=engine, random_state=0) for _ in range(2))
    plain, encoder = KernelClassifier(size="small", engine=engine, random_state=0), Columns(engine=engine)
    scores = []
    for i, row in enumerate(words):
        if i == 75:
            single = reloaded(single)
        numbers = encoder.learn_transform(row, y[i : i + 1])
        scores.append(single.learn(row, y[i]))
        assert (scores[-1] == plain.learn(numbers, y[i : i + 1])).all(), i
    np.testing.assert_allclose(np.concatenate(scores), block.learn(words, y), atol=1e-9)
