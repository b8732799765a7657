"""
Cells of random grids
=====================

In random binning, a grid with random widths and offsets cuts the plane into cells, and each cell is a feature. The
share of grids in which two points fall into the same cell estimates their kernel, here the Laplacian.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream.features import RandomBinning

side = np.linspace(-2, 2, 100)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

# %%
# Above: three single grids, with a colour for each cell. Below: the share of grids in which a point falls into the cell
# of the cross, for 10 and for 500 grids, and the kernel itself.

fig, axes = plt.subplots(2, 3, figsize=(10, 6.6), layout="constrained")
for seed, ax in enumerate(axes[0]):
    cells = RandomBinning("laplacian", gamma=1.0, n_components=1, random_state=seed).fit(plane).transform(plane)
    names = np.asarray(cells.argmax(axis=1)).reshape(100, 100)
    colours = np.random.default_rng(1).permutation(names.max() + 1)[names]
    ax.imshow(colours, extent=(-2, 2, -2, 2), origin="lower", cmap="tab20", interpolation="nearest")
    ax.set_title(f"grid {seed + 1}: {len(np.unique(names))} cells")

rows = np.vstack([[[0.5, 0.3]], plane])
for n, ax in zip((10, 500), axes[1]):
    z = RandomBinning("laplacian", gamma=1.0, n_components=n, random_state=0).fit(rows).transform(rows)
    share = np.asarray((z[1:] @ z[0].T).todense()).reshape(100, 100)
    ax.imshow(share, extent=(-2, 2, -2, 2), origin="lower", vmin=0, vmax=1)
    ax.set_title(f"{n} grids")
truth = np.exp(-np.abs(plane - rows[0]).sum(axis=1)).reshape(100, 100)
shown = axes[1, 2].imshow(truth, extent=(-2, 2, -2, 2), origin="lower", vmin=0, vmax=1)
axes[1, 2].set_title("the Laplacian kernel")
for ax in axes[1]:
    ax.plot(0.5, 0.3, "w+", ms=10)
fig.colorbar(shown, ax=axes[1])
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
plt.show()
