"""
Quantiles instead of means
==========================

The loss decides what is learned: with :class:`~kernelstream.losses.Quantile` a regressor learns a quantile. Three
quantiles make a band whose width follows the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureRegressor, losses
from kernelstream.features import RandomFourier

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (6000, 1))
y = np.sin(2 * X[:, 0]) + (0.1 + 0.15 * np.abs(X[:, 0])) * rng.normal(size=6000)
asked = np.linspace(-3, 3, 200)[:, None]

band = {
    q: FeatureRegressor(RandomFourier(gamma=1.0, n_components=50), loss=losses.Quantile(q), random_state=0)
    .fit(X, y, passes=5)
    .predict(asked)
    for q in (0.05, 0.5, 0.95)
}
inside = np.mean((y > np.interp(X[:, 0], asked[:, 0], band[0.05])) & (y < np.interp(X[:, 0], asked[:, 0], band[0.95])))

# %%
fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(X[:1500], y[:1500], ".", color="0.75", ms=3)
ax.fill_between(asked[:, 0], band[0.05], band[0.95], color="C0", alpha=0.25)
ax.plot(asked, band[0.5], "C0")
ax.set_title(f"5 %, 50 % and 95 %: {inside:.1%} of the rows lie in the band")
plt.show()
