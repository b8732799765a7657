"""
Drift and recovery
==================

A stream of two classes whose boundaries jump three times. Every row is predicted before it is learned, so the curves
show mistakes on unseen rows. A single kernel learner is held back by the old boundaries for a while. The default
learner shifts its weight to members with a short memory and recovers faster.
"""

import matplotlib.pyplot as plt

from kernelstream import FeatureClassifier, KernelClassifier, drift, evaluate, plots

N = 8000

results = []
for name, model in {
    "Fourier features": FeatureClassifier(random_state=0),
    "the default learner": KernelClassifier(size="small", random_state=0),
}.items():
    stream = drift.generate(N, block=100, kind="abrupt")
    results.append(evaluate.prequential(model, stream, classes=[-1, 1], name=name))

# %%
# Mistakes per 200 rows. Dotted lines: the boundaries jump.

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.curves(results, windows=N // 200, ax=ax)
ax.set_title("Mistakes on unseen rows")
for jump in (1, 2, 3):
    ax.axvline(jump * N / 4, color="black", ls=":", lw=1)
plt.show()
