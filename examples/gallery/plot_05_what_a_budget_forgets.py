"""
What a budget forgets
=====================

A kernel machine that may keep 40 rows must give one up for each that joins. Which one, makes the difference: removing
the one with the smallest coefficient leaves holes, projecting it onto the others or merging it with its neighbour keeps
most of what it knew. Dots are the rows that each strategy has kept.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kernelstream import BudgetClassifier

X, y = make_moons(4000, noise=0.2, random_state=0)
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 90), np.linspace(-1.3, 1.8, 70)), axis=-1)

fig, axes = plt.subplots(1, 4, figsize=(12, 3.2), sharey=True, layout="constrained")
for ax, strategy in zip(axes, ("stop", "remove_smallest", "merge", "projectron")):
    model = BudgetClassifier(gamma=2.0, budget=40, strategy=strategy, random_state=0)
    wrong = (model.learn(X, y).ravel() > 0) != y
    height = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    most = np.abs(height).max()
    ax.contourf(grid[..., 0], grid[..., 1], height, levels=np.linspace(-most, most, 15), cmap="RdBu", alpha=0.7)
    ax.contour(grid[..., 0], grid[..., 1], height, levels=[0], colors="black", linewidths=1)
    ax.plot(*model.support_vectors_.T, "k.", ms=5)
    ax.set_title(f"{strategy}: {100 * wrong[2000:].mean():.1f} %")
    ax.set(xticks=[], yticks=[])
fig.suptitle("Mistakes in the second half of the stream")
plt.show()
