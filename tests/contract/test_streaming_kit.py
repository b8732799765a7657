"""The streaming kit on every case that learns row by row."""

import pytest
from cases import CASES, X, instance, targets
from excuses import STREAMING

from kernelstream.testing import check_streaming

STREAMS = [name for name, case in CASES.items() if hasattr(case, "learn")]


def engines(est):
    return None if "engine" in est.get_params(deep=False) else (None,)


@pytest.mark.parametrize("name", STREAMS)
def test_kit(name):
    est = instance(name)
    check_streaming(est, X[:60], targets(est)[:60], chunks=(7,), **STREAMING.get(name, {}))
