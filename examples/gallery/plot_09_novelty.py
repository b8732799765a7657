"""
Novelty detection on a stream
=============================

``BudgetOneClass`` learns, without labels, where rows usually are, and calls a share ``nu`` of them novel. It forgets:
when the rows move, their old place becomes novel again.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import BudgetOneClass

rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 4000)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) * 2 + 0.15 * rng.normal(size=(4000, 2))
parts = {"After 2,000 rows of an arc": ring[:2000], "After 4,000 rows of its mirror image": ring * [1, -1]}
grid = np.stack(np.meshgrid(np.linspace(-3.2, 3.2, 90), np.linspace(-3.2, 3.2, 90)), axis=-1)

model = BudgetOneClass(gamma=2.0, nu=0.05, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, (title, rows) in zip(axes, parts.items()):
    model.partial_fit(rows)
    height = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(grid[..., 0], grid[..., 1], height, levels=20, cmap="viridis")
    ax.contour(grid[..., 0], grid[..., 1], height, levels=[0], colors="white", linewidths=2)
    ax.plot(*rows[-400:].T, ".", color="white", ms=2, alpha=0.6)
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
fig.suptitle("Rows outside the white line are novel")
plt.show()
