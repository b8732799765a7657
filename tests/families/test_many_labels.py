"""Labels: many of them, in arrays of any kind, and weights of labels that do not exist."""

import copy
import time

import numpy as np
import pytest

from kernelstream import BudgetClassifier, CellsClassifier, FeatureClassifier, KernelClassifier, OnlineRidgeClassifier
from kernelstream.estimators.cells.base import CellTables
from kernelstream.estimators.stack.base import Stack
from kernelstream.features import RandomFourier
from kernelstream.state.change import Change
from kernelstream.testing.streaming import assert_same_state
from kernelstream_papers.rivals import FixedFeatureClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.digitize(X[:, 0], [-0.5, 0.5])
small = RandomFourier(gamma=0.5, n_components=10)


@pytest.mark.parametrize("est", [FeatureClassifier(small, random_state=0), BudgetClassifier(gamma=0.5, budget=20),
                                 CellsClassifier(16, random_state=0)],
                         ids=lambda est: type(est).__name__)  # fmt: skip
def test_a_class_with_every_row(est, rng):
    """The work per class grows with their number, not with its square: 2,000 classes took minutes once."""
    n = 600
    rows, labels = rng.normal(size=(n, 3)), rng.permutation(n)
    start = time.thread_time()
    scores = est.learn(rows, labels)
    assert time.thread_time() - start < 8.0
    assert est.classes_.tolist() == list(range(n))
    assert scores.shape == (n, n)
    assert np.isneginf(scores[5][np.sort(labels[5:])]).all()  # classes that had not appeared yet


def test_a_class_with_every_row_of_the_default_learner(rng):
    """The time of a new class does not grow with their number: 100 of them took 5 seconds once, and 300 had no end."""
    model = KernelClassifier(size="small", random_state=0)
    times = []
    for start in range(0, 300, 100):
        begin = time.thread_time()
        model.learn(rng.normal(size=(100, 3)), np.arange(start, start + 100))
        times.append(time.thread_time() - begin)
    assert len(model.classes_) == 300
    assert times[2] < 3 * times[1] and times[2] < 4.0


def test_fit_knows_all_labels_beforehand(monkeypatch, rng):
    """Rows are not cut where a label appears; afterwards others may still come."""
    learn, sizes = Stack.learn, []
    monkeypatch.setattr(
        Stack,
        "learn",
        lambda self, state, X, *rest, **how: (sizes.append(len(X)), learn(self, state, X, *rest, **how))[1],
    )
    rows, labels = rng.normal(size=(400, 3)), np.arange(400) % 60
    model = KernelClassifier(size="small", random_state=0).fit(rows, labels)
    assert len(sizes) < 30 and max(sizes) > 200  # those of the warm-up are small
    assert model.partial_fit(rows[:1], [77]).classes_.tolist() == [*range(60), 77]


@pytest.mark.parametrize("engine", ["native", "python"])
def test_many_classes_in_cells(engine, monkeypatch, rng):
    """Names of classes decide the order of columns, and nothing else; so do not the calls in which rows come."""
    rows, labels = rng.normal(size=(150, 3)), np.concatenate([rng.permutation(60), rng.integers(0, 60, 90)])
    whole, named, parts = (CellsClassifier(8, engine=engine, random_state=0) for _ in range(3))
    whole.learn(rows, labels)
    named.learn(rows, 59 - labels)
    for part in np.array_split(np.arange(150), 40):
        parts.learn(rows[part], labels[part])
    np.testing.assert_allclose(named.predict_proba(X)[:, ::-1], whole.predict_proba(X), rtol=1e-9)
    assert_same_state(parts.state_, whole.state_, 0.0, "in parts")
    before = copy.deepcopy(whole.state_)
    calls, learn = iter(range(30, -1, -1)), CellTables.learn
    monkeypatch.setattr(CellTables, "learn", lambda *args: (learn(*args), 1 / next(calls))[0])
    with pytest.raises(ZeroDivisionError):  # after 30 of the new classes
        whole.learn(np.ones((80, 3)), np.arange(100, 180))
    assert_same_state(whole.state_, before, 0.0, "after a call that failed")


def test_changes_of_outputs_against_matrices(rng):
    for _ in range(50):
        old, new = rng.integers(1, 5), rng.integers(1, 6)
        T = np.zeros((new, old))
        for c in range(new):
            if rng.random() < 0.7:
                T[c, rng.integers(old)] = rng.choice([1.0, -1.0, 0.5, -0.5])
        source = np.abs(T).argmax(axis=1)
        change = Change(source, T[np.arange(new), source], int(old))
        A, scale = rng.normal(size=(old, 7)), rng.uniform(0.5, 2, old)
        np.testing.assert_allclose(change.rows(A), T @ A, rtol=1e-15)
        np.testing.assert_allclose(change.rows(A, scale), (T * scale) @ A, rtol=1e-15)
        assert len(change) == new and change.before == old
        np.testing.assert_array_equal(change.fresh, ~T.any(axis=1))
        np.testing.assert_array_equal(change.sign, np.sign(T.sum(axis=1)))
        place = int(rng.integers(old + 1))
        added = Change.added(place, int(old), 0)
        np.testing.assert_array_equal(added.rows(np.eye(old)), np.insert(np.eye(old), place, 0.0, axis=0))
        assert added.before == old and added.fresh.nonzero()[0].tolist() == [place]


def test_room_for_all_labels_of_a_call(monkeypatch, rng):
    """Tables are made once where a call brings many labels, and are as wide as after calls of single rows."""
    model = CellsClassifier(8, random_state=0)
    model.learn(rng.normal(size=(150, 3)), np.arange(150) % 3)
    mix, widths = CellTables.mix_outputs, []

    def noted(self, state, change):
        mix(self, state, change)
        widths.append(state["tables"].shape[2])

    monkeypatch.setattr(CellTables, "mix_outputs", noted)
    model.learn(np.ones((60, 3)), np.arange(10, 70))
    assert widths == [64] * 60
    model.learn(np.ones((2, 3)), [70, 71])
    assert widths[60:] == [96, 96]


def test_strings_of_any_width():
    """Classes are as wide as the longest label learned, whatever the arrays were."""
    labels = np.array(["a", "bcd", "ef"])[y]
    whole, rows = FeatureClassifier(small, random_state=0), FeatureClassifier(small, random_state=0)
    whole.learn(X, labels.astype("<U20"))
    for i, label in enumerate(labels.tolist()):
        rows.learn(X[i : i + 1], [label])
    assert whole.classes_.dtype == rows.classes_.dtype == "<U3"
    objects = FeatureClassifier(small, random_state=0)
    objects.learn(X, labels.astype(object))
    assert objects.classes_.dtype == "<U3"
    assert whole.classes_.tolist() == ["a", "bcd", "ef"]


@pytest.mark.parametrize("make", [FeatureClassifier, FixedFeatureClassifier, OnlineRidgeClassifier])
def test_weights_of_labels_that_do_not_exist(make):
    est = make(small, random_state=0)
    for wrong, told in (({0: 2.0, 7: 3.0}, "7"), ({"0": 2.0}, "'0'"), ({0: 1.0, 1: 1.0, 3: 2.0}, "3")):
        with pytest.raises(ValueError, match=f"class_weight names.*{told}"):
            est.set_params(class_weight=wrong).fit(X, y)
        assert not hasattr(est, "state_")
    est.set_params(class_weight={0: 2.0}).fit(X, y)  # the others count 1
    est.set_params(class_weight={0: 2.0, 1: 1.0, 2: 1.0, 9: 5.0}).fit(X, y)  # a fold may lack a class


def test_weights_of_labels_in_a_stream():
    """A label may still come, unless all are declared or it can never be one."""
    est = FeatureClassifier(small, class_weight={9: 2.0}, random_state=0)
    est.learn(X, y)
    with pytest.raises(ValueError, match=r"class_weight names \[9\]"):
        FeatureClassifier(small, class_weight={9: 2.0}).learn(X, y, classes=[0, 1, 2])
    for weights, labels in (({"x": 2.0}, y), ({1: 2.0}, np.array(list("abc"))[y])):
        model = FeatureClassifier(small, class_weight=weights)
        with pytest.raises(ValueError, match="labels of another type"):
            model.learn(X, labels)
        assert not hasattr(model, "state_")


def test_a_model_without_labels_says_so():
    model = FeatureClassifier(small, random_state=0)
    scores = model.learn(X, y, sample_weight=np.zeros(200))
    np.testing.assert_array_equal(scores, np.zeros(200))
    assert model.state_["t"] == 0 and not len(model.classes_)
    with pytest.raises(ValueError, match="knows no label"):
        model.predict(X)
    model.learn(X, y)
    other = FeatureClassifier(small, random_state=0)
    other.learn(X, y)
    np.testing.assert_array_equal(model.state_["w"], other.state_["w"])


def test_declared_without_rows():
    model = FeatureClassifier(small, random_state=0)
    model.partial_fit(X[:0], y[:0], classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="outside classes"):
        model.partial_fit(X[:1], [8])
