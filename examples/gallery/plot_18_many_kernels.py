"""
Many kernels that vote
======================

The right width is unknown in advance, and it may change. ``MultiKernelClassifier`` runs a learner for each width and
weights their votes by how well they predict. With ``share``, a kernel that was bad for a long time can recover quickly.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import MultiKernelClassifier, plots
from kernelstream.estimators import HedgeWeights

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (8000, 2))
wide = X[:, 0] + X[:, 1] > 0
narrow = np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]) > 0
y = np.where(np.arange(8000) < 4000, wide, narrow).astype(int)

model = MultiKernelClassifier(combination=HedgeWeights(share=1e-3), random_state=0)
wrong = (model.learn(X, y).ravel() > 0) != y
print(f"mistakes: {wrong[:4000].mean():.1%}, then {wrong[4000:].mean():.1%}")

# %%
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
plots.kernel_weights(model, ax=ax)
ax.axvline(4000, color="black", ls=":")
plt.show()
