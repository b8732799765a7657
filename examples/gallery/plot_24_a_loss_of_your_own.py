"""
A loss of your own
==================

A loss is a class of a few lines under ``register``, with a value and a slope. Here too little costs three times as much
as too much, as for a bakery that would rather have a loaf left over than disappoint a customer.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureRegressor, losses
from kernelstream.features import RandomFourier


@losses.register
class Bakery(losses.Loss):
    """|y - f|, times three where f is less than y."""

    name, kind, bound = "bakery", "regression", 3.0

    def _value(self, y, f, xp):
        return xp.where(f < y, 3 * (y - f), f - y)

    def _gradient(self, y, f, xp):
        return xp.where(f < y, -3.0, 1.0)


rng = np.random.default_rng(0)
day = rng.uniform(0, 7, 3000)
sold = 100 + 30 * np.sin(day * 2 * np.pi / 7) + 10 * rng.normal(size=3000)

# %%
# Without a compiled version of the loss, the model uses the python engine. The warning about that is silenced here.

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(day, sold, ".", color="0.8", ms=3)
asked = np.linspace(0, 7, 100)[:, None]
for loss in ("absolute", "bakery"):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no compiled version")
        model = FeatureRegressor(RandomFourier(n_components=30), loss=loss, standardize=True, random_state=0)
        model.fit(day[:, None], sold, passes=2)
    ax.plot(asked, model.predict(asked), lw=2, label=loss)
ax.set(xlabel="day of the week", ylabel="loaves")
ax.legend(frameon=False)
plt.show()
