"""Rows for the tests of many machines, as arrays and as dask arrays; the cluster is in conftest.py."""

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
