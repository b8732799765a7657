"""
What a budget forgets
=====================

A kernel machine that may keep 50 rows must drop one for each that joins, and a chessboard needs more than 50. Which
one is dropped makes the difference. Dots are the rows that each strategy has kept; the title gives the mistakes in
the second half of the stream, each row predicted before it was learned. Removing the smallest coefficient amounts to
stopping, because the new row has the smallest. Merging two rows into one between them loses least.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import BudgetClassifier

rng = np.random.default_rng(0)
X = rng.uniform(0, 4, (5000, 2))
y = np.floor(X).sum(axis=1) % 2 > 0
grid = np.stack(np.meshgrid(np.linspace(0, 4, 80), np.linspace(0, 4, 80)), axis=-1)

fig, axes = plt.subplots(1, 4, figsize=(12, 3.5), sharey=True, layout="constrained")
for ax, strategy in zip(axes, ("stop", "remove_random", "remove_smallest", "merge")):
    model = BudgetClassifier(gamma=2.0, budget=50, strategy=strategy, random_state=0)
    wrong = (model.learn(X, y).ravel() > 0) != y
    height = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    most = np.abs(height).max()
    ax.contourf(grid[..., 0], grid[..., 1], height, levels=np.linspace(-most, most, 15), cmap="RdBu", alpha=0.7)
    ax.contour(grid[..., 0], grid[..., 1], height, levels=[0], colors="black", linewidths=1)
    ax.plot(*model.support_vectors_.T, "k.", ms=5)
    ax.set_title(f"{strategy}: {100 * wrong[2500:].mean():.1f} %")
    ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()
