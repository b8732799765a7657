"""Many machines when something is wrong: killed workers, lost partitions, bad rows, too little memory."""

import logging
import os
import signal
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("distributed")
import dask.array as da
from distributed import wait
from two_workers import DX, DY, N, X, Y, close, killing, slowly

from kernelstream import OnlineRidge, distributed
from kernelstream.features import RandomFourier

# -------------------------------------------------------------------- killed workers


def both_are_back(client):
    """The nanny starts another worker; a cluster's own wait_for_workers may miss that it has come.

    Now and then a nanny goes with its worker: then the cluster is asked for a new pair, before the next test needs it.
    """
    for attempt in range(3):
        for _ in range(250):
            if len(client.nthreads()) == 2:
                return
            time.sleep(0.1)
        if attempt < 2:
            client.cluster.scale(1)
            client.cluster.scale(2)
    pytest.fail("the worker was not started again")


@pytest.mark.usefixtures("clean")
def test_a_killed_worker_changes_nothing(client, files, tmp_path, caplog):
    est = OnlineRidge(RandomFourier(n_components=40, gamma=0.3), random_state=1)
    killer = killing(tmp_path)
    with caplog.at_level(logging.WARNING, "kernelstream.distributed"):
        model = distributed.fit(
            est, distributed.files(files / "part-*.csv", slowly(tmp_path, 0.1), target="y", block=100), client=client
        )
    killer.join()
    assert (tmp_path / "killed").exists()
    assert any("was lost" in record.message for record in caplog.records)
    Z = RandomFourier(n_components=40, gamma=0.3, random_state=1).fit_transform(X)
    close(model.coef_, np.linalg.solve(Z.T @ Z + np.eye(80), Z.T @ Y))
    assert model.state_["t"] == N
    both_are_back(client)


@pytest.mark.slow
@pytest.mark.usefixtures("clean")
def test_a_lost_partition_is_made_again(client, tmp_path):
    """Rows that were in the memory of a worker which is gone."""

    def recorded(chunk, block_info=None):
        place = block_info[0]["chunk-location"][0]
        (tmp_path / f"{place}-{os.getpid()}").touch()
        return chunk

    rows = client.persist(DX.map_blocks(recorded, dtype=float, meta=np.empty((0, 0))))
    wait(rows)
    made = dict(sorted(path.name.split("-") for path in tmp_path.iterdir()))  # who has made which
    os.kill(int(made["0"]), signal.SIGKILL)
    model = distributed.fit(
        OnlineRidge(RandomFourier(n_components=20, gamma=0.3), random_state=1), rows, DY, client=client
    )
    assert len(list(tmp_path.glob("0-*"))) == 2  # by another process
    assert model.state_["t"] == N
    Z = RandomFourier(n_components=20, gamma=0.3, random_state=1).fit_transform(X)
    close(model.coef_, np.linalg.solve(Z.T @ Z + np.eye(40), Z.T @ Y))
    both_are_back(client)


@pytest.mark.usefixtures("clean")
def test_a_bad_partition_stops_the_job_and_is_named(client, files, tmp_path):
    est = OnlineRidge(RandomFourier(n_components=20, gamma=0.3), random_state=1).fit(X, Y)
    before = est.coef_.copy()
    texts = [(files / f"part-{i}.csv").read_text() for i in range(3)]
    for i, text in enumerate(texts):
        (tmp_path / f"p{i}.csv").write_text(text)
    lines = texts[1].split("\n")
    for bad, words in (("1,2,nan,4,5", "line 301"), ("1,2,3,4", "line 301"), ("1,x,3,4,5", "line 301")):
        (tmp_path / "p1.csv").write_text("\n".join([*lines[:300], bad, *lines[301:]]))
        with pytest.raises(distributed.BadPartitionError, match=words) as caught:
            distributed.fit(est, distributed.files(tmp_path / "p*.csv", target="y"), client=client)
        assert caught.value.partition == str(tmp_path / "p1.csv") and caught.value.row == 301
    np.savez(tmp_path / "q0.npz", X=X[:50], y=Y[:50])
    np.savez(tmp_path / "q1.npz", X=X[:50, :3], y=Y[:50])
    with pytest.raises(ValueError, match=r"q1.npz, row 1: .*3 features"):
        distributed.fit(est, distributed.files(tmp_path / "q*.npz"), client=client)
    (tmp_path / "p1.csv").write_text(texts[1].replace("a,b,c,d,y", "b,a,c,d,y"))
    with pytest.raises(ValueError, match=r"p1.csv, row 1: its columns are \['b', 'a'"):
        distributed.fit(est, distributed.files(tmp_path / "p*.csv", target="y"), client=client)
    holes = X.copy()
    holes[1234, 2] = np.nan
    with pytest.raises(ValueError, match=r"X\[700:1400\], row 535: a value is NaN"):
        distributed.fit(est, da.from_array(holes, chunks=(700, 4)), DY, client=client)
    with pytest.raises(ValueError, match="no such file"):
        distributed.fit(est, distributed.files([tmp_path / "q0.npz", tmp_path / "gone.npz"]), client=client)
    assert np.array_equal(est.coef_, before)


@pytest.mark.parametrize(
    "rows, target, words",
    [
        (X, Y, "dask array"),
        (DX, None, "no target"),
        (DX, DY[:-1], "3000 rows, y has 2999"),
        (DX[0], DY, "two dimensions"),
    ],
)
def test_bad_input(client, rows, target, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(OnlineRidge(), rows, target, client=client)


def test_files_that_are_not_there():
    with pytest.raises(ValueError, match="no file matches"):
        distributed.files("nothing-*.csv")


def test_memory_is_asked_for_beforehand(client):
    with pytest.raises(ValueError, match=r"features takes .* GB on worker"):
        distributed.fit(OnlineRidge(RandomFourier(n_components=60_000, gamma=1.0)), DX, DY, client=client)


@pytest.mark.usefixtures("clean")
def test_memory_does_not_grow_with_the_rows(client, tmp_path):
    """Twenty times the rows, 80 MB of them, read in blocks: the workers' peak moves by far less."""
    rows = np.random.default_rng(0).normal(size=(4000, 50)).astype(np.float32)
    for i in range(4):
        np.savez(tmp_path / f"small-{i}.npz", X=rows[:1000], y=rows[:1000, 0])
        np.savez(tmp_path / f"large-{i}.npz", X=np.tile(rows, (25, 1)), y=np.tile(rows[:, 0], 25))
    est = OnlineRidge(RandomFourier(n_components=10, gamma=0.1), random_state=0)

    def peak():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    client.restart()  # a peak of jobs before would hide that of this one
    distributed.fit(clone(est), distributed.files(tmp_path / "small-*.npz"), client=client)
    before = client.run(peak)
    model = distributed.fit(est, distributed.files(tmp_path / "large-*.npz"), client=client)
    grown = max(after - before[worker] for worker, after in client.run(peak).items())
    assert model.state_["t"] == 400_000
    assert grown < 30e6


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "kernelstream.distributed.dask", raising=False)
    with pytest.raises(ImportError, match=r"kernelstream\[distributed\]"):
        distributed.fit(OnlineRidge(), DX, DY)
