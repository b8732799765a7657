"""The streaming contract of the doubly stochastic learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

from kernelstream import DoublyStochasticClassifier, DoublyStochasticRegressor
from kernelstream.engine import has_native
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.testing import check_streaming

pytestmark = pytest.mark.usefixtures("short_searches")

X2, y2 = make_moons(90, noise=0.2, random_state=0)
X4, y4 = make_blobs(90, n_features=3, centers=4, cluster_std=2.0, random_state=1)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0

FIXED = {
    "gamma": 0.7,
    "step": DoublyStep(3.0, 7.0, precondition=0.0),
    "schedule": DoublySchedule(16, 6),
    "random_state": 0,
}
THREE_BLOCKS = FIXED | {"schedule": DoublySchedule(16, 6, max_blocks=3)}


def check(model, X, y, chunks=(7,), **more):
    """The contract of learners whose features grow with the rows, and are rounded by the rows of a call."""
    check_streaming(model, X, y, bounded=False, exact_split=False, chunks=chunks, **more)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("params", [FIXED, THREE_BLOCKS], ids=["a block a batch", "three blocks"])
def test_binary(loss, params):
    check(DoublyStochasticClassifier(loss=loss, **params), X2, y2)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_multiclass(loss):
    check(DoublyStochasticClassifier(loss=loss, **FIXED), X4, y4)


def test_classes_that_appear_late():
    order = np.argsort(y4, kind="stable")[::-1]  # rows wait while the outputs change from one to four
    check(DoublyStochasticClassifier(**FIXED), X4[order], y4[order])


def test_class_weights():
    model = DoublyStochasticClassifier(class_weight="balanced", **FIXED)
    check(model, X4, y4)


def test_regression():
    check(DoublyStochasticRegressor(center=False, **FIXED), X2, yr, chunks=(1, 7))


def test_preconditioned():
    params = FIXED | {"step": DoublyStep(1.0, 7.0, precondition=0.1)}
    check(DoublyStochasticClassifier(**params), X4, y4)


def test_sparse_rows():
    X = sp.csr_array(np.where(np.abs(X4) > 3, X4, 0.0))
    check(DoublyStochasticClassifier(**FIXED), X, y4)


@pytest.mark.parametrize(
    "model, X, y, engines",
    [
        (
            DoublyStochasticClassifier(schedule=DoublySchedule(batch_size=16, block_size=4), random_state=0),
            X2,
            y2,
            ("native",),
        ),
        pytest.param(
            DoublyStochasticClassifier(schedule=DoublySchedule(batch_size=16), random_state=0),
            X2,
            y2,
            None,
            marks=pytest.mark.slow,
        ),
        (
            DoublyStochasticRegressor(
                gamma="median",
                step=DoublyStep(),
                schedule=DoublySchedule(batch_size=16, block_size=4),
                random_state=0,
            ),
            X2,
            yr,
            None,
        ),
    ],
    ids=["classifier", "classifier, wide blocks", "regressor"],
)
def test_automatic_choices(model, X, y, engines):
    """Within the first 1536 rows, where the choices are renewed at 1, 2, 4, … rows."""
    engines = engines if has_native() else None
    check(model, X[:20], y[:20], engines=engines)


def test_memory_is_bounded_by_max_blocks():
    model = DoublyStochasticClassifier(**THREE_BLOCKS).partial_fit(X2[:144], y2[:144])
    size = model.state_["alpha"].nbytes
    assert model.partial_fit(X2[:144], y2[:144]).state_["alpha"].nbytes == size


def test_tags_say_how_many_rows_an_update_takes():
    assert DoublyStochasticClassifier(schedule=DoublySchedule(batch_size=77)).__sklearn_tags__().rows_per_update == 77
