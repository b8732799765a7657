"""What collecting tests leaves out, and the seeds of learners that were given none.

Left out are programs that tests start by themselves, and modules of extras that are missing.
"""

import zlib
from importlib.util import find_spec
from itertools import count

import pytest

collect_ignore_glob = ["tests/passes/triton_*.py", "tests/files/fixtures/*.py"]
if find_spec("torch") is None:
    collect_ignore_glob.append("src/kernelstream/engine/torch/*")
if find_spec("pyspark") is None:
    collect_ignore_glob += ["src/kernelstream/spark.py", "tests/distributed/spark_killed.py"]


@pytest.fixture(autouse=True)
def repeatable(request, monkeypatch):
    """A learner without a seed draws one from the name of the test: what passes today passes tomorrow."""
    seeds = count(zlib.crc32(request.node.nodeid.encode()) << 20)
    monkeypatch.setattr("kernelstream.random.fresh", lambda: next(seeds))
