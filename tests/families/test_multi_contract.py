"""Online multiple kernel learning under the contract of all learners: the conformance kit."""

import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelstream import (
    BudgetClassifier,
    BudgetRegressor,
    FeatureClassifier,
    MultiKernelClassifier,
    MultiKernelRegressor,
)
from kernelstream.estimators import HedgeWeights
from kernelstream.features import RandomFourier
from kernelstream.testing import check_streaming

pytestmark = pytest.mark.usefixtures("short_warm_up")

X2, y2 = make_moons(40, noise=0.2, random_state=0)
X4, y4 = make_blobs(40, n_features=3, centers=4, random_state=1)
WIDTHS = (0.05, 0.5, 5.0)


def fourier():
    return [FeatureClassifier(RandomFourier(gamma=g, n_components=15)) for g in WIDTHS]


def budgeted(kind=BudgetClassifier, strategy="remove_random"):
    return [kind(gamma=g, budget=10, strategy=strategy) for g in WIDTHS]


@pytest.mark.parametrize("capacity", ["fixed", "shared"])
def test_streaming_of_stochastic_updates(capacity):
    common = {"updates": "stochastic", "capacity": capacity, "random_state": 0}
    check_streaming(MultiKernelClassifier(budgeted(), **common), X2, y2, chunks=(7,))


def test_streaming():
    check_streaming(
        MultiKernelClassifier(fourier(), combination=HedgeWeights(share=0.01), random_state=0), X4, y4, chunks=(7,)
    )
    check_streaming(MultiKernelClassifier(budgeted(strategy="replace"), random_state=0), X4, y4, chunks=(7,))
    check_streaming(
        MultiKernelRegressor(budgeted(BudgetRegressor), random_state=0), X2, X2[:, 0] * X2[:, 1], chunks=(7,)
    )
