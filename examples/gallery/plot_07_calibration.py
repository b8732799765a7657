"""
Probabilities that mean what they say
=====================================

Of the rows with a predicted probability of 70 %, seven in ten should be positive. The forecasts were made before each
row was learned, over a whole stream, including the first rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from kernelstream import FeatureClassifier, KernelClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 3))
p = expit(3 * np.sin(2 * X[:, 0]) * X[:, 1])
y = rng.random(8000) < p

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot([0, 1], [0, 1], color="black", lw=1, ls=":")
for name, model in {
    "Fourier features, logistic loss": FeatureClassifier(loss="logistic", random_state=0),
    "the default learner": KernelClassifier(size="small", random_state=0),
}.items():
    said = expit(model.learn(X, y).ravel())
    bins = np.minimum((10 * said).astype(int), 9)
    many = np.bincount(bins, minlength=10)
    left.plot(
        np.bincount(bins, said, 10)[many > 0] / many[many > 0],
        np.bincount(bins, y, 10)[many > 0] / many[many > 0],
        marker="o",
        label=f"{name}\nlog-loss {-np.mean(np.log(np.where(y, said, 1 - said))):.3f}",
    )
    right.hist(said, bins=20, histtype="step", lw=1.5)
best = -np.mean(np.log(np.where(y, p, 1 - p)))
left.set(xlabel="forecast", ylabel="share of positive rows", title=f"Log-loss of the truth: {best:.3f}")
left.legend(frameon=False, fontsize="small")
right.set(xlabel="forecast", ylabel="rows", title="Distribution of forecasts")
plt.show()
