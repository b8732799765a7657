"""Fixtures: a generator for each test, two worker processes and rows in files, a quick default learner."""

import gc
import importlib
import logging
import multiprocessing
import time

import numpy as np
import pytest


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
