"""
A kernel that learns its widths
===============================

Only two of ten columns matter. A kernel with one width looks at all ten columns equally. ``RRFClassifier`` learns a
width per column together with the weights, row by row, and finds the two.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureClassifier, RRFClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 10))
y = (X[:, 0] * X[:, 1] > 0).astype(int)

learned, fixed = RRFClassifier(random_state=0), FeatureClassifier(random_state=0)
rows, relevance, mistakes = [], [], {"learned widths": [], "one width": []}
for start in range(0, 8000, 250):
    block = slice(start, start + 250)
    for name, model in zip(mistakes, (learned, fixed)):
        score = model.learn(X[block], y[block])
        mistakes[name].append(100 * np.mean((score.ravel() > 0) != y[block]))
    rows.append(start + 250)
    relevance.append(learned.relevance_)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, values in mistakes.items():
    left.plot(rows, values, label=name)
left.set(xlabel="rows", ylabel="mistakes, %", ylim=(0, 55), title="Each block, before it is learned")
left.legend(frameon=False)
for j, column in enumerate(np.transpose(relevance)):
    right.plot(rows, column, color=("C1", "C3")[j] if j < 2 else "0.7", label=f"column {j}" if j < 2 else None)
right.set(xlabel="rows", title="Learned relevance of each column")
right.legend(frameon=False)
plt.show()
