"""A cluster of two worker processes and rows for it: what the tests of many machines share."""

import logging
import time

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

pytest.importorskip("distributed")
import dask.array as da
from distributed import Client, LocalCluster

rng = np.random.default_rng(0)
N = 3000
X = rng.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
LABELS = np.digitize(Y, [-0.7, 0.7]) + 5
DX, DY, DLABELS = da.from_array(X, chunks=(700, 4)), da.from_array(Y, chunks=900), da.from_array(LABELS, chunks=500)


@pytest.fixture(scope="module")
def client():
    """Two processes, for all tests of this file: starting them takes longer than most of the tests."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def clean(client):
    """After the test the workers hold nothing of it."""
    yield
    for _ in range(200):
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left and not sum(client.run(lambda dask_worker: len(dask_worker.data)).values()):
            return
        time.sleep(0.05)
    pytest.fail(f"left behind: {left}")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for i, rows in enumerate(np.array_split(np.arange(N), 5)):
        dump_svmlight_file(X[rows], LABELS[rows], str(folder / f"part-{i}.svm"), zero_based=False)
        lines = [",".join(map(repr, [*X[j].tolist(), float(Y[j])])) for j in rows]
        (folder / f"part-{i}.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    return folder


def close(a, b, tolerance=1e-8):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * np.abs(b).max()
