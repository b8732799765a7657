"""
The split of rows into calls does not matter
============================================

One call with all rows, calls of a hundred rows, or one call per row: a learner of this library ends with the same
model. A multi-layer perceptron, which averages gradients over the rows of a call, does not. The picture shows how
much forecasts differ if the same stream is split in another way.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from kernelstream import FeatureRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (1000, 2))
y = np.sin(X[:, 0]) * X[:, 1]
asked = rng.uniform(-3, 3, (200, 2))


def forecasts(model, size):
    """Forecasts of the same 200 rows after every 100 rows of the stream, learned in calls of ``size`` rows."""
    found = []
    for start in range(0, 1000, size):
        model.partial_fit(X[start : start + size], y[start : start + size])
        if (start + size) % 100 == 0:
            found.append(model.predict(asked))
    return np.array(found)


fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
rows = np.arange(100, 1001, 100)
for name, make, style in (
    ("scikit-learn's perceptron", lambda: MLPRegressor(random_state=0), "C1"),
    ("FeatureRegressor", lambda: FeatureRegressor(random_state=0), "C0"),
):
    whole = forecasts(make(), 100)
    for size, marker in ((20, "o"), (1, "s")):
        apart = np.abs(forecasts(make(), size) - whole).max(axis=1)
        ax.semilogy(rows, np.maximum(apart, 1e-17), style, marker=marker, label=f"{name}, {size} per call")
ax.axhline(1e-12, color="black", ls=":", lw=1)
ax.set(
    xlabel="rows",
    ylabel="largest difference",
    ylim=(2e-18, 20),
    title="Difference from calls of 100 rows (1e-17 means none)",
)
ax.legend(frameon=False, loc="center right")
plt.show()
