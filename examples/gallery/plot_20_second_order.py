"""
Second order gets there sooner
==============================

The same features, learned by gradient steps and by ridge regression after every row. The second costs more per row and
needs far fewer rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureRegressor, OnlineRidge
from kernelstream.features import RandomFourier

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (5000, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.normal(size=5000)
features = RandomFourier(gamma=0.5, n_components=128, random_state=0)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
rows = np.arange(100, 5001, 100)
for name, model in {
    "first order: FeatureRegressor": FeatureRegressor(features),
    "second order: OnlineRidge": OnlineRidge(features, lam=0.1),
}.items():
    error = (y - model.learn(X, y).ravel()) ** 2
    ax.semilogy(rows, np.sqrt(error.reshape(-1, 100).mean(axis=1)), label=name)
ax.axhline(0.05, color="black", ls=":", lw=1, label="noise")
ax.set(xlabel="rows", ylabel="error per hundred rows, before they are learned")
ax.legend(frameon=False)
plt.show()
