"""
Time grows with the rows, memory does not
=========================================

Rows are generated in blocks, learned, and thrown away. The time per block stays constant, and so does the size of the
model. With a million rows instead of these 200,000 the lines continue.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import FeatureClassifier, drift, evaluate

model = FeatureClassifier(random_state=0)
rows, seconds, size, wrong = [0], [0.0], [0], []
for X, y in drift.generate(200_000, block=5000, kind="none"):
    started = time.process_time()
    score = model.learn(X, y)
    seconds.append(seconds[-1] + time.process_time() - started)
    rows.append(rows[-1] + len(y))
    size.append(evaluate.model_bytes(model))
    wrong.append(100 * np.mean((score.ravel() > 0) != (y > 0)))
print(f"{rows[-1] / seconds[-1]:,.0f} rows a second, {size[-1]:,} bytes")

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
axes[0].plot(rows, seconds)
axes[0].set(title="Processor seconds", ylim=(0, None))
axes[1].plot(rows[1:], np.array(size[1:]) / 1000)
axes[1].set(title="Size of the model, kB", ylim=(0, 1.5 * max(size) / 1000))
axes[2].plot(rows[1:], wrong)
axes[2].axhline(2, color="black", ls=":", lw=1)
axes[2].set(title="Mistakes, % (best possible: 2)", ylim=(0, None))
for ax in axes:
    ax.set_xlabel("rows")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:.0f}k")
plt.show()
