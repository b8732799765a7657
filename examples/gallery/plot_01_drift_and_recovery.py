"""
Drift and recovery
==================

A stream of two classes whose borders jump to new places three times. Every row is predicted first and learned
afterwards, so the curves are honest: they are mistakes on rows that nobody had seen. A linear model cannot follow the
borders at all; a single kernel learner carries the old borders with it for a while; the default learner shifts its
weight to members with a short memory and is back soonest.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import SGDClassifier

from kernelstream import FeatureClassifier, KernelClassifier, drift, evaluate, plots

N = 8000

results = []
for name, model in {
    "linear, scikit-learn": SGDClassifier(random_state=0),
    "Fourier features": FeatureClassifier(random_state=0),
    "the default learner": KernelClassifier(size="small", random_state=0),
}.items():
    stream = drift.generate(N, block=100, kind="abrupt")
    results.append(evaluate.prequential(model, stream, classes=[-1, 1], name=name))

# %%
# Mistakes in stretches of 200 rows. Dotted: the borders jump.

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.curves(results, windows=N // 200, ax=ax, title="Mistakes on rows not seen before")
for jump in (1, 2, 3):
    ax.axvline(jump * N / 4, color="black", ls=":", lw=1)
plt.show()
