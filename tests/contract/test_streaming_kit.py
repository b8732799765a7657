"""The streaming kit on every case that learns row by row, and on variants: other parts, tasks and kinds of rows."""

import numpy as np
import pytest
from cases import CASES, LEARNERS, X, instance, targets
from excuses import STREAMING
from sklearn.base import is_classifier, is_regressor
from variants import ROWS, VARIANTS

from kernelstream.estimators import _metric_refit
from kernelstream.testing import check_streaming, streaming

pytestmark = pytest.mark.usefixtures("short_searches", "short_warm_up")

STREAMS = [name for name, case in CASES.items() if hasattr(case, "learn") and "engine" in case.get_params(deep=False)]
# Most look at 20 rows first. Doubly stochastic ones wait for 16, and one of them makes up its mind at 1, 2, 4, … rows.
FEW = {
    **{name: 18 for name in STREAMS if name.startswith(("Doubly", "Density"))},
    "DoublyStochasticOneClass": 12,
    **dict.fromkeys(("BudgetOneClass, no budget", "CellsClassifier", "CellsRegressor"), 110),  # grow, or stop to, later
}
# What makes them quick, or reach their bound within these rows.
SMALL = {("Doubly", "Density"): {"gamma": 0.7}, ("BudgetC", "BudgetR"): {"budget": 12}, ("Nystroem",): {"budget": 6}}


def rows(name):
    est, n = instance(name), FEW.get(name, 40)
    for family, params in SMALL.items():
        if name.startswith(family):
            est.set_params(**params)
    if est.get_params(deep=False).get("learners", ()) is None:
        est.set_params(learners=est._learner.prototypes()[::8])  # some of its own
    return est, X[:n], targets(est)[:n]


@pytest.mark.parametrize("name", [name for name in STREAMS if STREAMING.get(name, [{}])[0] is not None])
def test_kit(name, monkeypatch):
    monkeypatch.setattr(_metric_refit, "VALUES", np.float64)  # engines round the last digit of float32 differently
    check_streaming(*rows(name), chunks=(7,), **STREAMING.get(name, [{}])[0])


# Whether two products that may be rounded differently are, is up to the rows.
@pytest.mark.parametrize("name", [name for name, (_, what, _) in STREAMING.items() if what != "split"])
def test_what_is_left_out_is_missing(name):
    est, X, y = rows(name)
    case = streaming._Case(est, "python", X, y)
    with pytest.raises(AssertionError):
        getattr(streaming, f"_check_{STREAMING[name][1]}")(case)


# The few rows of a call may be multiplied in another order than those of a block, and what is learned feeds back.
@pytest.mark.parametrize("name", [name for name in STREAMS if name in LEARNERS])
def test_forecasts_are_those_of_predict(name):
    """``learn`` returns what was said of the row just before, as of the next one of the stream where that differs."""
    est, X, y = rows(name)
    asks = ("forecast", "predict") if is_regressor(est) else ("forecast_scores", "decision_function")
    ask = next(getattr(est, method) for method in asks if hasattr(est, method))
    X = np.array(X) * (1.0 + np.arange(X.shape[1]))  # columns of different units are scaled
    for i in range(len(X)):
        row, target = X[i : i + 1], y[i : i + 1]
        known = i > 0 and (not is_classifier(est) or (target[0] in est.classes_ and len(est.classes_) > 1))
        if known and (i < 12 or i % 7 == 0):
            before = ask(row)
            np.testing.assert_allclose(est.learn(row, target), before, rtol=1e-9, atol=1e-9, err_msg=f"row {i}")
        else:
            est.learn(row, target)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant[0]}, {variant[1]}"[:100])
def test_variants(variant):
    task, est, *options = variant
    check_streaming(est, *ROWS[task], chunks=(7,), **(options[0] if options else {}))
