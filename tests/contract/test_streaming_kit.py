"""The streaming kit on every case that learns row by row."""

import pytest
from cases import CASES, X, instance, targets
from excuses import STREAMING

from kernelstream.testing import check_streaming

STREAMS = [name for name, case in CASES.items() if hasattr(case, "learn") and "engine" in case.get_params(deep=False)]
FEW = {"DoublyStochasticOneClass": 20}  # it makes up its mind anew at 1, 2, 4, … rows


def kit(name, **options):
    est, n = instance(name), FEW.get(name, 48 if name.startswith(("Doubly", "Density")) else len(X))
    check_streaming(est, X[:n], targets(est)[:n], chunks=(7,), **options)


@pytest.mark.parametrize("name", STREAMS)
def test_kit(name):
    options = STREAMING[name][0] if name in STREAMING else {}
    if options is not None:
        kit(name, **options)


@pytest.mark.parametrize("name", STREAMING)
def test_what_is_left_out_is_missing(name):
    with pytest.raises(AssertionError, match=STREAMING[name][1]):
        kit(name, engines=("python",))
