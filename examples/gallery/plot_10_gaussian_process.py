"""
A Gaussian process without its matrix
=====================================

Mean and standard deviation of a Gaussian process by doubly stochastic gradients: no kernel matrix is formed, and rows
may keep arriving. Beside it, scikit-learn's exact process on the same rows, with the same kernel and noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from kernelstream import DoublyStochasticGP

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-4, -0.5, 250), rng.uniform(1.5, 4, 150)])[:, None]
y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=400)
asked = np.linspace(-5.5, 5.5, 200)[:, None]

ours = DoublyStochasticGP(gamma=1.0, noise=0.09, variance_features=128, random_state=0).fit(X, y)
exact = GaussianProcessRegressor(RBF(np.sqrt(0.5)), alpha=0.09, optimizer=None).fit(X, y)

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, (title, model) in zip(axes, {"DoublyStochasticGP": ours, "exact": exact}.items()):
    mean, std = model.predict(asked, return_std=True)
    ax.plot(X, y, ".", color="0.7", ms=4)
    ax.plot(asked, mean, color="C0")
    ax.fill_between(asked[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2)
    ax.set_title(title)
axes[0].set_ylabel("mean ± 2 standard deviations")
plt.show()
