"""What collecting tests leaves out, fixtures of all packages' tests, the seeds of learners that were given none.

The tests of the three packages have this file in common, and the helpers in ``tests/*.py``.

Left out are programs that tests start by themselves, and modules of extras that are missing.
"""

import gc
import importlib
import logging
import multiprocessing
import time
import zlib
from importlib.util import find_spec
from itertools import count

import numpy as np
import pytest

collect_ignore_glob = ["tests/passes/triton_*.py", "tests/files/fixtures/*.py"]
if find_spec("triton") is None:
    collect_ignore_glob.append("src/kernelstream/engine/torch/*")
if find_spec("pyspark") is None:
    collect_ignore_glob += ["service/kernelstream_service/spark.py", "service/tests/spark_killed.py"]
    collect_ignore_glob.append("src/kernelstream/distributed/spark.py")


@pytest.fixture(autouse=True)
def repeatable(request, monkeypatch):
    """A learner without a seed draws one from the name of the test: what passes today passes tomorrow."""
    seeds = count(zlib.crc32(request.node.nodeid.encode()) << 20)
    monkeypatch.setattr("kernelstream.random.fresh", lambda: next(seeds))


@pytest.fixture
def short_searches(monkeypatch):
    """Searches and trials as short as they can be, for tests to which it does not matter what they find."""
    from kernelstream.estimators._metric_learner import SIZES

    for name, value in {
        "estimators.doubly.base.Doubly.least_steps": 4,
        "estimators.binning.search.GAMMAS": (1.0,),
        "estimators.binning.search.FEW_GRIDS": 2,
        "estimators.binning.search.MORE_GRIDS": 2,
        "estimators.binning.search._FOLDED": 0,
        "estimators._metric_learner.SIZES": {name: each._replace(searched=(100, 100)) for name, each in SIZES.items()},
        "solvers.metric_search.ROUNDS": 1,
    }.items():
        monkeypatch.setattr(f"kernelstream.{name}", value)


@pytest.fixture
def rng():
    """A generator of the test's own: its numbers do not depend on which tests ran before."""
    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def client():
    """Two processes, for all tests (some kill one): starting them takes longer than most of the tests.

    Where that can be done they are forked from a process that has imported what they need.
    """
    library = pytest.importorskip("distributed")
    import dask

    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    with dask.config.set({"distributed.worker.multiprocessing-method": method}):
        context = library.utils.get_mp_context()
        if method == "forkserver":
            context.set_forkserver_preload(["distributed", "pandas", "sklearn.linear_model", "kernelstream.zoo"])
        cluster = library.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        with cluster, library.Client(cluster) as client:
            yield client


@pytest.fixture
def clean(client):
    """After the test the workers hold nothing of it."""
    yield
    for _ in range(200):
        gc.collect()  # futures that only a cycle of references keeps
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left and not sum(client.run(lambda dask_worker: len(dask_worker.data)).values()):
            return
        time.sleep(0.05)
    pytest.fail(f"left behind: {left}")


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Five files of each kind, ``part-*.svm`` with labels and ``part-*.csv`` with numbers as targets."""
    from sklearn.datasets import dump_svmlight_file
    from two_workers import LABELS, N, X, Y

    folder = tmp_path_factory.mktemp("parts")
    for i, rows in enumerate(np.array_split(np.arange(N), 5)):
        dump_svmlight_file(X[rows], LABELS[rows], str(folder / f"part-{i}.svm"), zero_based=False)
        lines = [",".join(map(repr, [*X[j].tolist(), float(Y[j])])) for j in rows]
        (folder / f"part-{i}.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    return folder


@pytest.fixture(scope="module")
def plain_default():
    """The command line with FOGD as its default: for tests of the command line, which is quicker to learn with."""
    patch = pytest.MonkeyPatch()
    patch.setattr("kernelstream.cli.algorithms.DEFAULT", "fogd")
    yield
    patch.undo()


@pytest.fixture
def short_warm_up(monkeypatch):
    """A warm-up of 20 rows: some 40 show what happens before and after its end, where 110 would be needed."""
    names = ["_contract.warm_up", "_contract.kernel", "budget.base", "feature", "learned"]
    modules = [importlib.import_module(f"kernelstream.estimators.{name}") for name in [*names, "doubly.base"]]
    for module in modules:  # all of them are imported by now: none keeps this number
        monkeypatch.setattr(module, "WARM_UP", 20)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the files that the tests of the commands share."""
    from flats import write

    return write(tmp_path_factory.mktemp("cli"))
