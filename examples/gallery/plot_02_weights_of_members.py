"""
Which members the default learner trusts
========================================

``KernelClassifier`` combines different members by a second-order recursion on their forecasts. Its history of weights
shows which it trusted when: here on a nonlinear stream whose boundary jumps in the middle.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 4))
first, second = X[:, 0] * X[:, 1] > 0, np.sin(2 * X[:, 2]) + X[:, 3] > 0
y = np.where(np.arange(6000) < 3000, first, second)

model = KernelClassifier(random_state=0)
scores = model.learn(X, y)
wrong = (scores.ravel() > 0) != y

# %%
# The weights multiply log-odds, so they may be negative and need not sum to one. The cells with a long memory lose
# most of their weight within a few hundred rows of the jump.

rows, weights = model.weights_history_
names = [member["name"] for member in model.members_]
fig, (above, below) = plt.subplots(2, 1, figsize=(8.5, 6), sharex=True, height_ratios=(1, 2), layout="constrained")
above.plot(np.arange(100, 6001, 100), 100 * wrong.reshape(-1, 100).mean(axis=1), color="black")
above.set_ylabel("mistakes, %")
for j, (name, column) in enumerate(zip(names, weights.T)):
    below.plot(rows, column, label=name, ls="-" if j < 4 else "--")
below.set(xlabel="rows", ylabel="weight")
below.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
for ax in (above, below):
    ax.axvline(3000, color="grey", ls=":")
plt.show()
