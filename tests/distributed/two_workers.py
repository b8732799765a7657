"""Rows for the tests of many machines, as arrays and as dask arrays; the cluster is in conftest.py."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np

rng = np.random.default_rng(0)
N = 3000
X = rng.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
LABELS = np.digitize(Y, [-0.7, 0.7]) + 5
DX, DY, DLABELS = da.from_array(X, chunks=(700, 4)), da.from_array(Y, chunks=900), da.from_array(LABELS, chunks=500)


def close(a, b, tolerance=1e-8):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * np.abs(b).max()


def slowly(folder, seconds):
    """Targets as they are, after a while; says in which process."""

    def labels(y):
        (folder / f"pid-{os.getpid()}").touch()
        time.sleep(seconds)
        return y

    return labels


def killing(folder):
    """A thread that kills a worker at work on :func:`slowly`'s targets, once both have been, and says so in a file."""

    def kill():
        for _ in range(1500):
            found = sorted(folder.glob("pid-*"), key=os.path.getmtime)
            if len(found) > 1:  # both have been at work, and the last one still is
                os.kill(int(found[-1].name.removeprefix("pid-")), signal.SIGKILL)
                (folder / "killed").touch()
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    return killer
