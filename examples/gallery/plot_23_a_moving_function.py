"""
Following a function that moves
===============================

The phase of this function shifts slowly. A model that weights all rows equally falls behind. Models that forget keep
up: ``OnlineRidge(forgetting=…)``, a window of the last rows, and the default learner, which needs no setting for it.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelRegressor, OnlineRidge, WindowRegressor

rng = np.random.default_rng(0)
n = 5000
X = rng.uniform(-3, 3, (n, 1))
y = np.sin(X[:, 0] * 1.5 + np.linspace(0, 3 * np.pi, n)) + 0.1 * rng.normal(size=n)

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
rows = np.arange(100, n + 1, 100)
for name, model in {
    "ridge, all rows equal": OnlineRidge(lam=0.1, random_state=0),
    "ridge, forgetting 0.99": OnlineRidge(lam=0.1, forgetting=0.99, random_state=0),
    "the last 150 rows": WindowRegressor(rows=150),
    "the default learner": KernelRegressor(size="small", random_state=0),
}.items():
    error = (y - model.learn(X, y).ravel()) ** 2
    ax.plot(rows, np.sqrt(error.reshape(-1, 100).mean(axis=1)), label=name)
ax.axhline(0.1, color="black", ls=":", lw=1, label="noise")
ax.set(xlabel="rows", ylabel="error per hundred rows", ylim=(0, 1.2))
ax.legend(frameon=False, ncols=2)
plt.show()
