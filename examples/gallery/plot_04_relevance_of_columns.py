"""
Which columns matter
====================

``CellsRegressor`` draws grids over few columns, replaces those that do not help, and so learns which columns are worth
a grid. Friedman's function uses the first five of twenty columns; their units differ by factors of a million, which is
of no concern to edges at quantiles.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import CellsRegressor

rng = np.random.default_rng(0)
U = rng.random((10_000, 20))
y = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]
X = U * 10.0 ** rng.uniform(-3, 3, 20)

model = CellsRegressor(random_state=0)
forecast = model.learn(X, y).ravel()
late = slice(5000, None)
print(f"R² of the second half, each row before it is learned: {1 - np.var(y[late] - forecast[late]) / np.var(y):.3f}")

# %%
fig, ax = plt.subplots(figsize=(7.5, 3.5), layout="constrained")
ax.bar(range(20), model.relevance_, color=["C0"] * 5 + ["0.75"] * 15)
ax.axhline(1, color="black", lw=0.8, ls=":")
ax.set(xticks=range(20), xlabel="column", ylabel="relevance, 1 on average", title="The first five make the target")
plt.show()
