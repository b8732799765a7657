"""
Resume after a kill
===================

A run with checkpoints is stopped in the middle, and another program makes the same call. It continues after the last
checkpoint, and ends with the model of an undisturbed run, bit for bit.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureClassifier, streams
from kernelstream.checkpoint import train

rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 3))
y = (X[:, 0] * X[:, 1] > 0).astype(int)


def run(folder, seen, **options):
    model = FeatureClassifier(random_state=0)
    train(
        model,
        streams.Arrays(X, y, block=1000),
        folder,
        every=5000,
        resume=True,
        progress=lambda done: seen.append((done.rows, 100 * done.value)),
        **options,
    )
    return model


undisturbed, first, second = [], [], []
with tempfile.TemporaryDirectory() as folder:
    run(folder, first, stop=lambda: len(first) >= 23)
    resumed = run(folder, second)
with tempfile.TemporaryDirectory() as folder:
    whole = run(folder, undisturbed)
same = all(np.array_equal(resumed.state_[name], whole.state_[name]) for name in whole.state_)
print("the same model, bit for bit:", same)

# %%
fig, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
ax.plot(*np.transpose(undisturbed), color="0.8", lw=8, label="undisturbed")
ax.plot(*np.transpose(first), "C0", label="first run, stopped")
ax.plot(*np.transpose(second), "C1", label="second run")
ax.axvline(first[-1][0], color="black", ls=":", lw=1)
ax.set(xlabel="rows", ylabel="mistakes so far, %")
ax.legend(frameon=False)
plt.show()
