"""
In a River pipeline
===================

``kernelstream.river`` makes any learner of this library the last step of a River pipeline, which takes one dict at a
time. The label depends on a product of features, which a linear model cannot represent.
"""

import matplotlib.pyplot as plt
import numpy as np
from river import linear_model, metrics, preprocessing, tree

from kernelstream.river import RiverClassifier

rng = np.random.default_rng(0)
rows = [dict(zip("abcd", map(float, x))) for x in rng.normal(size=(3000, 4)) * [1, 10, 100, 1000]]
labels = [(x["a"] * x["b"] > 0) != (x["c"] > 100) for x in rows]

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for name, last in {
    "River: logistic regression": linear_model.LogisticRegression(),
    "River: Hoeffding tree": tree.HoeffdingTreeClassifier(),
    "kernelstream": RiverClassifier(seed=0),
}.items():
    model = preprocessing.StandardScaler() | last
    metric, curve = metrics.Accuracy(), []
    for x, y in zip(rows, labels):
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
        curve.append(100 * metric.get())
    ax.plot(curve[50:], label=name)
ax.set(xlabel="rows", ylabel="accuracy so far, %")
ax.legend(frameon=False)
plt.show()
