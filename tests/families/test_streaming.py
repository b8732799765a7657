"""The streaming contract of the feature learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

from kernelstream import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor, updates
from kernelstream.features import Nystroem, RandomFourier, TensorSketch
from kernelstream.testing import check_streaming

pytestmark = pytest.mark.usefixtures("short_warm_up")

N = 40  # the bandwidth comes from the first 20 rows
X2, y2 = make_moons(N, noise=0.2, random_state=0)
X4, y4 = make_blobs(N, n_features=3, centers=4, cluster_std=2.0, random_state=1)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0

small = RandomFourier(n_components=30)
known = RandomFourier(n_components=30, gamma=0.5)  # nothing to wait for: what is left is the pass itself
QUICK = {"chunks": (7,)}


@pytest.mark.parametrize(
    "update",
    ["auto", "ogd", "pegasos", "norma", "perceptron", "passive_aggressive", "norm_adagrad", "coin_betting",
     updates.Averaged(updates.OGD(0.5, "sqrt")), updates.Averaged("adagrad"), updates.OGD(1.0, "inverse", 0.01)],
    ids=str,
)  # fmt: skip
def test_updates_binary(update):
    check_streaming(FeatureClassifier(known, "hinge", update, random_state=0), X2, y2)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "perceptron", "crammer_singer", "softmax"])
def test_losses_multiclass(loss):
    check_streaming(FeatureClassifier(known, loss, random_state=0), X4, y4, **QUICK)


@pytest.mark.parametrize(
    "update", ["auto", "ogd", "norm_adagrad", "coin_betting", updates.Averaged(updates.OGD(0.5))], ids=str
)
def test_updates_multiclass(update):
    check_streaming(FeatureClassifier(known, "hinge", update, random_state=0), X4, y4, **QUICK)


@pytest.mark.parametrize(
    "loss, center",
    [("squared", True), ("squared", False), ("absolute", True), ("epsilon_insensitive", False), ("huber", True)]
    + [("quantile", True), ("quantile", False)],
)
def test_losses_regression(loss, center):
    check_streaming(FeatureRegressor(known, loss, center=center, random_state=0), X2, yr, **QUICK)


@pytest.mark.parametrize(
    "features",
    [Nystroem(n_components=20), TensorSketch(n_components=64)],
    ids=str,
)
def test_maps(features):
    check_streaming(FeatureClassifier(features, random_state=0), X2, y2, **QUICK)


@pytest.mark.parametrize("y", [y2, yr], ids=["labels", "numbers"])
def test_a_bandwidth_of_the_first_rows(y):
    kind = FeatureClassifier if y is y2 else FeatureRegressor
    check_streaming(kind(small, random_state=0), X2, y)


def test_standardize_and_class_weight():
    X = X4 * [1.0, 100.0, 0.01] + [0.0, 1000.0, 0.0]
    check_streaming(FeatureClassifier(small, standardize=True, class_weight="balanced", random_state=0), X, y4, **QUICK)


def test_classes_that_appear_late():
    order = np.argsort(y4, kind="stable")[::-1]  # the highest label first: lone class, then two, three, four
    check_streaming(FeatureClassifier(small, random_state=0), X4[order], y4[order])
    check_streaming(FeatureClassifier(known, random_state=0), X4[order], y4[order], **QUICK)


def test_sparse_rows():
    X = sp.csr_array(np.where(np.abs(X4) > 3, X4, 0.0))
    check_streaming(FeatureClassifier(small, random_state=0), X, y4, **QUICK)


@pytest.mark.parametrize("refresh, gamma", [(None, None), (None, 1.0), (25, 1.0)])
def test_nystroem_learners(refresh, gamma):
    common = {"gamma": gamma, "budget": 12, "rank": 5, "refresh": refresh, "random_state": 0}
    check_streaming(NystroemClassifier(**common), X2, y2, **QUICK)
    check_streaming(NystroemClassifier(**common), X4, y4, **QUICK)
    check_streaming(NystroemRegressor(**common), X2, yr, **QUICK)


def test_nystroem_refreshed_after_the_first_rows():
    check_streaming(NystroemClassifier(budget=12, rank=5, refresh=8, random_state=0), X4, y4, **QUICK)
