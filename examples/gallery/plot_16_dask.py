"""
Many workers, the same model
============================

Ridge regression on random features needs only sums over the rows, so the results of workers with different rows can be
merged exactly. This compares four partitions on a local cluster with a single process.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from kernelstream import OnlineRidge, distributed

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (8000, 2))
y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=8000)

alone = OnlineRidge(random_state=0).fit(X, y, shuffle=False)
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    rows, targets = da.from_array(X, chunks=(2000, 2)), da.from_array(y, chunks=2000)
    together = distributed.fit(OnlineRidge(random_state=0), rows, targets, client=client)

asked = rng.uniform(-3, 3, (2000, 2))
one, many = alone.predict(asked), together.predict(asked)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(np.sin(asked[:, 0]) * asked[:, 1], many, ".", ms=2)
left.set(xlabel="truth", ylabel="forecast of the merged model")
right.hist(np.log10(np.abs(one - many) + 1e-18), bins=40)
right.set(xlabel="log10 of the difference from one process", ylabel="rows")
plt.show()
