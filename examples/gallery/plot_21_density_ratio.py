"""
The ratio of two densities
==========================

The ratio says where the first of two samples is more likely than the second. It is learned directly, without estimating
either density. Such weights correct a training set that comes from another distribution than future rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import DensityRatioEstimator

rng = np.random.default_rng(0)
above, below = rng.normal(0.7, 0.6, (1000, 1)), rng.normal(0, 1, (1000, 1))
asked = np.linspace(-3, 3, 200)[:, None]
truth = np.exp(-0.5 * ((asked - 0.7) / 0.6) ** 2) / 0.6 / np.exp(-0.5 * asked**2)

model = DensityRatioEstimator(random_state=0).fit(
    np.vstack([above, below]), np.concatenate([np.ones(1000), np.zeros(1000)])
)

# %%
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.hist(below[:, 0], bins=60, density=True, alpha=0.3, label="second sample")
ax.hist(above[:, 0], bins=60, density=True, alpha=0.3, label="first sample")
ax.plot(asked, truth, "k:", label="true ratio")
ax.plot(asked, model.ratio(asked), "C3", label="learned ratio")
ax.legend(frameon=False)
plt.show()
