"""What a user relies on beyond the streaming contract: labels, weights, units, types, parameters, errors."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

import kernelstream as ks
from kernelstream import kernels, zoo
from kernelstream.estimators._contract.layers import Layers
from kernelstream.features import Nystroem, RandomFeatures, RandomFourier
from kernelstream.testing.streaming import assert_same_state
from kernelstream.updates import AdaGrad

X2, y2 = make_moons(300, noise=0.2, random_state=0)
X4, y4 = make_blobs(300, n_features=3, centers=4, cluster_std=2.0, random_state=1)
X4 = StandardScaler().fit_transform(X4)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0
FIXED = RandomFourier(n_components=30, gamma=0.5, random_state=3)  # nothing to estimate from data
FAMILIES = {
    "features": (ks.FeatureClassifier(FIXED, random_state=0), ks.FeatureRegressor(FIXED, random_state=0)),
    "nystroem": (
        ks.NystroemClassifier(gamma=0.5, budget=20, random_state=0),
        ks.NystroemRegressor(gamma=0.5, budget=20, random_state=0),
    ),
}
classifiers = pytest.mark.parametrize("model", [pair[0] for pair in FAMILIES.values()], ids=list(FAMILIES))
all_models = pytest.mark.parametrize(
    "model", [model for pair in FAMILIES.values() for model in pair], ids=lambda m: type(m).__name__
)


def target_of(model):
    return y2 if hasattr(model, "decision_function") else yr


# -------------------------------------------------------------------- labels
@classifiers
def test_a_label_outside_classes_changes_nothing(model):
    model = clone(model)
    with pytest.raises(ValueError, match=r"outside classes.*\[7\]"):
        model.learn(X2[:3], [0, 1, 7], classes=[0, 1])
    assert not hasattr(model, "state_")
    model.learn(X2[:50], y2[:50], classes=[0, 1])
    before = copy.deepcopy(model.state_)
    for call in (
        lambda: model.learn(X2[:2], [0, 2]),
        lambda: model.learn(X2[:1], np.array([2])),
        lambda: model.partial_fit(X2[:2], [0, 1], classes=[0, 1, 2]),
    ):
        with pytest.raises(ValueError, match="classes"):
            call()
        assert_same_state(before, model.state_, 0.0, "before and after")


@classifiers
def test_new_labels_grow_the_model(model):
    model = clone(model)
    known = []
    for label in (2, 0, 3, 1):
        rows = y4 == label
        model.partial_fit(X4[rows], y4[rows])
        known.append(label)
        np.testing.assert_array_equal(model.classes_, sorted(known))
    order = np.random.default_rng(0).permutation(len(y4))
    model.partial_fit(X4[order], y4[order])
    assert model.decision_function(X4).shape == (300, 4)
    assert model.score(X4, y4) > 0.8


@classifiers
@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [False, True], [1, 2], [-1.0, 1.0], [10, 3]],
    ids=["str", "bool", "1/2", "float", "descending"],
)
def test_labels_of_any_kind(model, labels):
    """The model is the same for any two labels in the same order, and predicts them in their own type."""
    labels = np.array(labels)
    y = np.sort(labels)[y2]
    scores = clone(model).learn(X2, y2, classes=[0, 1])
    other = clone(model)
    np.testing.assert_array_equal(other.learn(X2, y, classes=labels), scores)
    predicted = other.predict(X2)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, np.where(other.decision_function(X2) >= 0, *np.sort(labels)[::-1]))
    np.testing.assert_array_equal(other.classes_, np.sort(labels))


@classifiers
def test_labels_of_another_kind_are_refused(model):
    model = clone(model).partial_fit(X2, y2)
    with pytest.raises(ValueError, match="labels of dtype"):
        model.partial_fit(X2[:2], ["a", "b"])
    with pytest.raises(ValueError, match="mixes strings"):
        model.partial_fit(X2[:2], np.array([1, "b"], dtype=object))


@classifiers
def test_columns_of_learn_follow_classes(model):
    """A class has score -inf until the row after its first one."""
    y = np.array([2, 2, 0, 2, 0, 3, 0, 3, 1, 1])
    model = clone(model)
    scores = model.learn(X4[:10], y)
    assert scores.shape == (10, 4)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])
    for column, first in {0: 2, 1: 8, 2: 0, 3: 5}.items():
        if column != 2:  # the first row of all knows no class; nothing is ahead
            assert (scores[: first + 1, column] == -np.inf).all()
        assert np.isfinite(scores[first + 1 :, column]).all()


# -------------------------------------------------------------------- units and bandwidth
@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("family", ["features", "nystroem"])
def test_bandwidth_from_the_first_rows(rule, family):
    """Renewed at 1, 2, 4, … and 100 rows from all rows so far, then fixed; at the end of fit from what there is."""

    @cache
    def by_hand(rows, rule=rule):
        X = X4[:rows]
        if rows < 2:
            return 1 / X.shape[1]
        if rule == "scale":
            return 1 / (X.shape[1] * X.var())
        return 1 / (2 * np.median([np.linalg.norm(a - b) for i, a in enumerate(X) for b in X[:i]]) ** 2)

    def make():
        if family == "nystroem":
            return ks.NystroemClassifier(gamma=rule)
        return ks.FeatureClassifier(RandomFourier(n_components=20, gamma=rule), random_state=0)

    points = [1, 2, 4, 8, 16, 32, 64, 100]
    model = make()
    for t in range(150):
        model.learn(X4[t : t + 1], y4[t : t + 1])
        used = max(point for point in points if point <= t + 1)
        assert model.state_["map_gamma"] == pytest.approx(by_hand(used), rel=1e-9)
    assert make().fit(X4[:50], y4[:50]).state_["map_gamma"] == pytest.approx(by_hand(50), rel=1e-9)
    default = make().set_params(**{"gamma" if family == "nystroem" else "features__gamma": None})
    expected = by_hand(100, "median")
    assert default.fit(X4, y4, shuffle=False).state_["map_gamma"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_units_of_the_target_do_not_matter(family):
    """Without a step size, 1000 y gives 1000 times the predictions."""
    one, other = clone(FAMILIES[family][1]), clone(FAMILIES[family][1])
    np.testing.assert_allclose(other.learn(X2, 1000 * yr), 1000 * one.learn(X2, yr), rtol=1e-6)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("features", [RandomFourier(n_components=10, gamma="median"), "raw"], ids=["fourier", "raw"])
def test_several_targets_are_as_many_models(features, engine, monkeypatch):
    """Each has its own weights, steps and mean, in any units and for any split; a call that fails changes none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80)) * (rng.random((150, 80)) < 0.3)
    Y = np.sin(X[:, :3] + rng.normal(size=(150, 3))) * [1.0, 1e3, 1e-3] + [5.0, 0.0, 0.0]
    X = sp.csr_array(X) if features == "raw" else X

    def make():
        return ks.FeatureRegressor(features, update=AdaGrad(forgetting=0.99), engine=engine, random_state=0)

    model = make()
    found = np.concatenate([model.learn(X[a:b], Y[a:b]) for a, b in ((0, 1), (1, 90), (90, 150))])
    alone = [make() for _ in range(3)]
    expected = np.stack([one.learn(X, y) for one, y in zip(alone, Y.T, strict=True)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), np.stack([one.predict(X) for one in alone], axis=1), rtol=1e-9)
    before = model.predict(X)
    with monkeypatch.context() as patched:
        learn = Layers.learn
        patched.setattr(Layers, "learn", lambda *args, **how: (learn(*args, **how), 1 / 0))  # at the end of a call
        with pytest.raises(ZeroDivisionError):
            model.learn(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).learn(X, Y), model.learn(X, Y))
    with pytest.raises(ValueError, match="y has 2 columns, the model has 3"):
        model.learn(X, Y[:, :2])


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("name", ["fogd", "nogd"])
def test_units_of_the_kernel_do_not_matter(name, task):
    """Without a step size, the kernel 100 k gives the same function, but for AdaGrad's guard 1e-12 against 0/0."""
    y = y2 if task == "binary" else yr
    kind = ks.FeatureClassifier if task == "binary" else ks.FeatureRegressor
    scores = []
    for factor in (1.0, 100.0):
        kernel = factor * kernels.Gaussian(0.5)
        features = RandomFeatures(kernel, 40) if name == "fogd" else Nystroem(kernel, 40, rank=5)
        scores.append(kind(features, random_state=0).learn(X2, y))
    assert np.abs(scores[1] - scores[0]).max() < 1e-4 * np.abs(scores[0]).max()


# -------------------------------------------------------------------- types of rows
@all_models
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(model, dtype):
    model, y = clone(model), target_of(model)
    model.learn(X2[:100].astype(dtype), y[:100])
    model.learn(X2[100:], y[100:])  # the precision of the first rows decides
    assert model.state_["dtype"] == np.dtype(dtype).name
    for name in ("w", "G", "map_landmarks", "support"):
        if name in model.state_:
            assert model.state_[name].dtype == dtype, name


@pytest.mark.parametrize(
    "make",
    [lambda: ks.FeatureClassifier(RandomFeatures("chi2", 20)), lambda: ks.NystroemClassifier("chi2", budget=20)],
    ids=["features", "nystroem"],
)
def test_kernel_of_nonnegative_rows(make):
    model = make()
    with pytest.raises(ValueError, match=r"(?i)chi2"):
        model.fit(X2, y2)
    assert not hasattr(model, "state_")
    model.learn(np.abs(X2), y2)
    before = copy.deepcopy(model.state_)
    for call in (lambda: model.learn(X2, y2), lambda: model.learn(-np.abs(X2[:1]), y2[:1]), lambda: model.predict(X2)):
        with pytest.raises(ValueError, match=r"(?i)chi2"):
            call()
        assert_same_state(before, model.state_, 0.0, "before and after")


# -------------------------------------------------------------------- parameters
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zoo.make("fodg"), "did you mean 'fogd'"),
        (lambda: zoo.make("fogd", task="ranking"), "task"),
        (lambda: zoo.make("fogd", n_component=3), "n_component"),
        (lambda: zoo.make("fogd", epsilon=0.1), "epsilon"),
        (lambda: zoo.make("fogd", task="regression", loss="absolute", epsilon=0.1), "epsilon"),
    ],
)
def test_bad_recipes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@all_models
def test_fit_forgets(model):
    y = target_of(model)
    model = clone(model).fit(X2[:150], y[:150])
    model.fit(X2[150:], y[150:])
    assert_same_state(model.state_, clone(model).fit(X2[150:], y[150:]).state_, 0.0, "fitted again")
