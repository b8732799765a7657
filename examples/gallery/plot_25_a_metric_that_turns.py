"""
A metric that turns with the stream
===================================

The target depends on a single direction of the plane, which turns slowly.
:class:`~kernelstream.MetricWindowRegressor` keeps the last rows and solves on them at fixed numbers of rows. At 128,
256, 512, 1,024, 4,096, 16,384 … rows it also learns its metric, from the gradients of the function: rows are far
apart along the direction that matters, and close to each other across it.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import MetricWindowRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(16384, 2))
angle = np.pi / 14 * np.log2(np.maximum(np.arange(16384), 256) / 256)  # 26 degrees whenever the rows have quadrupled
u = np.column_stack([np.cos(angle), np.sin(angle)])
y = np.sin(2 * (X * u).sum(axis=1)) + 0.1 * rng.normal(size=16384)

# %%
# One pass over the rows, with a look at the metric M after 256, 1,024, 4,096 and 16,384 rows.

model, metrics, seen = MetricWindowRegressor(), {}, 0
for rows in (256, 1024, 4096, 16384):
    model.learn(X[seen:rows], y[seen:rows])
    metrics[rows], seen = model.metric_, rows

# %%
# Ellipses of equal distance in M, short along the direction that matters. Dashed: the true direction in the middle of
# the rows that the learner kept. Colours show the target.

around = np.linspace(0, 2 * np.pi, 100)
fig, axes = plt.subplots(1, 4, figsize=(9.5, 2.8), layout="constrained", sharey=True)
for ax, (rows, M) in zip(axes, metrics.items(), strict=True):
    kept = slice(max(0, rows - 1024), rows)
    ax.scatter(*X[kept].T, c=y[kept], s=3, cmap="coolwarm", alpha=0.6)
    values, V = np.linalg.eigh(M)
    ellipse = V @ (np.array([np.cos(around), np.sin(around)]) / np.sqrt(np.maximum(values, 0.02))[:, None])
    ax.plot(*(0.5 * ellipse), color="black", lw=1.5)
    way = u[(kept.start + kept.stop) // 2]
    ax.plot(*np.outer(way, [-3, 3]), color="black", ls="--", lw=1)
    ax.set(title=f"{rows:,} rows", xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=[], yticks=[])
plt.show()
