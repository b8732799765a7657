"""The picture of docs/novelty.md: what is unusual beside two moons, and alarms on a stream with a burst and a shift.

python benchmarks/novelty/picture.py docs/novelty.png
"""

import sys

import matplotlib as mpl
import numpy as np
from sklearn.datasets import make_moons

from kernelstream import KernelNovelty

mpl.use("Agg")
import matplotlib.pyplot as plt

BURST, SHIFT, LENGTH = slice(2000, 2600), 4500, 7000


def moons(axis):
    X, _ = make_moons(4000, noise=0.1, random_state=0)
    model = KernelNovelty(0.02, random_state=0)
    model.learn(X)
    side = np.linspace(-2.0, 3.0, 160), np.linspace(-1.5, 2.0, 120)
    places = np.stack(np.meshgrid(*side), axis=-1)
    score = model.forecast_scores(places.reshape(-1, 2)).reshape(places.shape[:2])
    filled = axis.contourf(*side, score, np.linspace(0, 1, 11), cmap="Blues")
    axis.contour(*side, score, [0.98], colors="tab:red", linewidths=1.2)
    axis.plot(*X[-600:].T, ".", color="black", markersize=1.5)
    axis.figure.colorbar(filled, ax=axis, label="share of recent rows that were less unusual")
    axis.set(title="two moons; red: what predict calls unusual", xticks=[], yticks=[])


def stream(axis):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(LENGTH, 5))
    X[BURST] = [3.0, -3.0, 3.0, -3.0, 3.0]
    X[SHIFT:] += 4.0
    odd = rng.choice(np.setdiff1d(np.arange(300, LENGTH), np.arange(LENGTH)[BURST]), 60, replace=False)
    X[odd[:, None], rng.permuted(np.tile(np.arange(5), (60, 1)), axis=1)[:, :2]] += rng.choice([-6.0, 6.0], (60, 2))
    model = KernelNovelty(0.02, random_state=0)
    scores = np.concatenate([model.learn(X[i : i + 50]) for i in range(0, LENGTH, 50)])
    rows = np.arange(LENGTH)
    single = np.isin(rows, odd)
    axis.plot(rows[~single], scores[~single], ".", color="0.75", markersize=1, label="rows", rasterized=True)
    axis.plot(rows[BURST], scores[BURST], ".", color="tab:orange", markersize=2, label="600 equal rows")
    axis.plot(rows[single], scores[single], "x", color="tab:red", markersize=5, label="60 rows with two odd cells")
    axis.axhline(0.98, color="black", linewidth=0.8)
    axis.axvline(SHIFT, color="tab:blue", linestyle=":", label="all columns shift by 4")
    axis.set(title="score of each row before it was learned", xlabel="row", ylim=(0, 1.02), xlim=(0, LENGTH))
    axis.legend(loc="lower left", fontsize=8, markerscale=2, framealpha=0.95)


def main(path):
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained", width_ratios=(1, 1.3))
    moons(axes[0])
    stream(axes[1])
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
