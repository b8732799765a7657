"""
Which columns matter
====================

Friedman's function uses the first five of fifteen columns. Two learners find them: ``RRFRegressor`` learns a width
per column, ``CellsRegressor`` draws grids over a few columns and replaces those that do not help. The relevance of
the second depends on the seed: dots are three seeds, bars their mean. In return, it does not depend on the scale of
the columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import CellsRegressor, RRFRegressor

rng = np.random.default_rng(0)
X = rng.random((6000, 15))
y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]

found = {"RRFRegressor": [], "CellsRegressor": []}
for seed in range(3):
    for model in (RRFRegressor(standardize=True, random_state=seed), CellsRegressor(random_state=seed)):
        model.learn(X, y)
        found[type(model).__name__].append(model.relevance_ / model.relevance_.mean())

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
for ax, (name, relevance) in zip(axes, found.items()):
    ax.bar(range(15), np.mean(relevance, axis=0), color=["C0"] * 5 + ["0.75"] * 10)
    ax.plot(range(15), np.transpose(relevance), ".", color="black", ms=4)
    ax.axhline(1, color="black", lw=0.8, ls=":")
    ax.set(xticks=range(15), xlabel="column", title=name)
axes[0].set_ylabel("relevance, 1 on average")
plt.show()
