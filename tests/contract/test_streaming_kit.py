"""The streaming kit on every case that learns row by row."""

import pytest
from cases import CASES, X, instance, targets
from excuses import STREAMING

from kernelstream.testing import check_streaming, streaming

STREAMS = [name for name, case in CASES.items() if hasattr(case, "learn") and "engine" in case.get_params(deep=False)]
# Most look at 100 rows first. Doubly stochastic ones wait for 16, and one of them makes up its mind at 1, 2, 4, … rows.
FEW = {
    **{name: 18 for name in STREAMS if name.startswith(("Doubly", "Density"))},
    "DoublyStochasticOneClass": 12,
    "MultiKernelClassifier, shared": 40,
}
# What makes them quick, or reach their bound within these rows.
SMALL = {"Doubly": {"gamma": 0.7}, "Density": {"gamma": 0.7}, "Nystroem": {"budget": 12}}


def rows(name):
    est, n = instance(name), FEW.get(name, 110)
    for family, params in SMALL.items():
        if name.startswith(family):
            est.set_params(**params)
    if est.get_params(deep=False).get("learners", ()) is None:
        est.set_params(learners=est._pool()[::8])  # some of its own
    return est, X[:n], targets(est)[:n]


@pytest.mark.parametrize("name", [name for name in STREAMS if STREAMING.get(name, [{}])[0] is not None])
def test_kit(name):
    check_streaming(*rows(name), chunks=(7,), **STREAMING.get(name, [{}])[0])


# Whether two products that may be rounded differently are, is up to the rows.
@pytest.mark.parametrize("name", [name for name, (_, what, _) in STREAMING.items() if what != "split"])
def test_what_is_left_out_is_missing(name):
    est, X, y = rows(name)
    case = streaming._Case(est, "python", X, y)
    with pytest.raises(AssertionError):
        getattr(streaming, f"_check_{STREAMING[name][1]}")(case)
