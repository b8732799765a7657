"""What collecting tests leaves out, the seeds of learners that were given none, and short searches.

The tests of the library and those of the papers have this file in common, and the helpers in ``tests/*.py``.

Left out are programs that tests start by themselves, and modules of extras that are missing.
"""

import zlib
from importlib.util import find_spec
from itertools import count

import pytest

collect_ignore_glob = ["tests/passes/triton_*.py", "tests/files/fixtures/*.py"]
if find_spec("triton") is None:
    collect_ignore_glob.append("src/kernelstream/engine/torch/*")
if find_spec("pyspark") is None:
    collect_ignore_glob += ["src/kernelstream/spark.py", "tests/distributed/spark_killed.py"]


@pytest.fixture(autouse=True)
def repeatable(request, monkeypatch):
    """A learner without a seed draws one from the name of the test: what passes today passes tomorrow."""
    seeds = count(zlib.crc32(request.node.nodeid.encode()) << 20)
    monkeypatch.setattr("kernelstream.random.fresh", lambda: next(seeds))


@pytest.fixture
def short_searches(monkeypatch):
    """Searches and trials as short as they can be, for tests to which it does not matter what they find."""
    from kernelstream.estimators.metric import SIZES

    for name, value in {
        "estimators.doubly.base.Doubly.least_steps": 4,
        "estimators.binning.search.GAMMAS": (1.0,),
        "estimators.binning.search.FEW_GRIDS": 2,
        "estimators.binning.search.MORE_GRIDS": 2,
        "estimators.binning.search._FOLDED": 0,
        "estimators.metric.SIZES": {name: each._replace(searched=(100, 100)) for name, each in SIZES.items()},
        "solvers.metric.ROUNDS": 1,
    }.items():
        monkeypatch.setattr(f"kernelstream.{name}", value)
