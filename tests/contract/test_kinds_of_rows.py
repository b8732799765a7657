"""Sparse rows are dense rows, and rows of float32 make a model of float32: every case."""

import numpy as np
import pytest
import scipy.sparse as sp
from cases import LEARNERS, X, answers, instance, targets
from sklearn.utils import get_tags

pytestmark = [
    pytest.mark.usefixtures("short_searches"),
    pytest.mark.filterwarnings("ignore:.* has not converged"),  # a few passes are enough
]
# Those that choose a bandwidth: of sparse rows by another rule, as their pages say; of a grid, by the last digits.
CHOOSES = {"DoublyStochasticOneClass", "FalkonClassifier"}
CHOOSES_OF_A_GRID = {"MetricClassifier"}
SPARSE = [name for name, case in LEARNERS.items() if get_tags(case).input_tags.sparse]
ROWS = np.where(X > 1.0, X, 0.0)


def learned(name, rows):
    est = instance(name)
    if name == "FalkonRegressor":
        est.set_params(tol=1e-8)  # what is compared is the solution, not where an iteration stopped on the way to it
    return (est.partial_fit if hasattr(est, "partial_fit") else est.fit)(rows, targets(est))


@pytest.mark.parametrize("name", [name for name in SPARSE if name not in CHOOSES])
def test_sparse_rows_are_dense_rows(name):
    dense, sparse = learned(name, ROWS), learned(name, sp.csr_array(ROWS))
    truth = answers(dense, ROWS)
    size = np.abs(truth).max() if truth.dtype.kind == "f" else 1.0
    for rows in (ROWS, sp.csr_array(ROWS)):
        np.testing.assert_allclose(answers(sparse, rows), truth, rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in CHOOSES_OF_A_GRID])
def test_float32_is_float64_with_fewer_digits(name):
    short = ROWS.astype(np.float32)
    one, two = learned(name, short), learned(name, short.astype(float))
    assert (one.state_["dtype"], two.state_["dtype"]) == ("float32", "float64")
    truth, found = answers(two, short.astype(float)), answers(one, short)
    assert np.median(np.abs(found - truth)) <= 1e-3 * np.abs(truth).max()


class Foreign:
    """Rows of another library, such as tensors: numpy can read them, and their type is no type of numpy."""

    dtype, ndim, shape = "float64 of another library", ROWS.ndim, ROWS.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(ROWS, dtype)

    def __len__(self):
        return len(ROWS)


@pytest.mark.parametrize("name", ["FeatureClassifier", "OnlineRidge", "KernelRegressor"])
def test_rows_of_another_library(name):
    ours, foreign = learned(name, ROWS), learned(name, Foreign())
    np.testing.assert_array_equal(answers(foreign, Foreign()), answers(ours, ROWS))
