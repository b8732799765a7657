"""
Classes that appear later
=========================

You need not declare the labels in advance. A class joins the model with its first row, and what was learned about the
others stays.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelstream import FeatureClassifier

X, y = load_digits(return_X_y=True)
first = np.flatnonzero(y < 4)[:500]  # zeros to threes only, then all ten
order = np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)])

model = FeatureClassifier(loss="softmax", random_state=0)
wrong, classes = [], []
for i in order:
    row, label = X[i : i + 1], y[i : i + 1]
    wrong.append(not hasattr(model, "classes_") or model.predict(row)[0] != label[0])
    model.partial_fit(row, label)
    classes.append(len(model.classes_))

# %%
fig, (above, below) = plt.subplots(2, 1, figsize=(7.5, 4.5), sharex=True, layout="constrained")
above.plot(np.convolve(wrong, np.ones(50) / 50, "valid") * 100)
above.set(ylabel="mistakes among\nthe last 50, %", ylim=(0, None))
below.step(range(len(classes)), classes)
below.set(xlabel="rows", ylabel="classes known", ylim=(0, 11))
plt.show()
