"""Budget strategies: the streaming contract, and small dense truths for what each of them promises."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelstream import BudgetClassifier, BudgetRegressor, budgets, losses, updates
from kernelstream.testing import check_streaming

X2, y2 = make_moons(40, noise=0.25, random_state=0)
X4, y4 = make_blobs(40, n_features=3, centers=4, cluster_std=2.5, random_state=1)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0

BOUNDED = {
    "remove_random": budgets.RemoveRandom(),
    "bogd": budgets.BOGD(2.0),
    "forgetron": budgets.Forgetron(),
    "remove_smallest": budgets.RemoveSmallest(),
    "replace": budgets.Replace(),
    "neighbour": budgets.Replace(neighbour=True),
    "transfer": budgets.Transfer(20),
    "stop": budgets.Stop(),
    "spa": budgets.SPA(1.0, 2.0),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_streaming(name, task):
    common = {"gamma": 1.0, "budget": 12, "strategy": BOUNDED[name], "update": updates.OGD(0.3), "random_state": 3}
    if task == "binary":
        check_streaming(BudgetClassifier(**common), X2, y2)
    elif task == "multiclass":
        check_streaming(BudgetClassifier(**common | {"gamma": 0.1}), X4, y4, chunks=(7,))
    else:
        loss = losses.EpsilonInsensitive(0.1) if name == "spa" else "squared"
        check_streaming(BudgetRegressor(**common, loss=loss), X2, yr, chunks=(7,))
