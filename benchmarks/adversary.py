"""The adversarial experiment: each learner against its own greedy adversary, rows in [-1, 1]^5, regret over time.

    python benchmarks/adversary.py [FOLDER] [--rows 80] [--games 1] [--jobs 1]

Writes adversary.csv, adversary.md and adversary.png to FOLDER (default: benchmarks/results). sigma = 1, lambda = 1,
against the best function of the Gaussian kernel's space.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from kernelstream import zoo
from kernelstream.evaluate import greedy_adversary, regret, regret_bound
from kernelstream.kernels import Gaussian

KERNEL = Gaussian(0.5)  # sigma = 1


def learners(seed):
    """Name -> learner. FOGD has D = 100 frequencies as in the paper, and the best step of a grid."""
    common = {"task": "regression", "gamma": 0.5, "random_state": seed}
    found = {"Kernel-AWV": zoo.make("kernel_awv", lam=1.0, **common)}
    for degree in (2, 3, 4, 8):
        found[f"AWV, Taylor M = {degree}"] = zoo.make("awv", degree=degree, lam=1.0, **common)
    found["PROS-N-KONS"] = zoo.make("pros_n_kons", alpha=1.0, beta=1.0, epsilon=0.5, **common)
    for eta in (0.03, 0.1, 0.3, 1.0):
        found[f"FOGD, eta = {eta}"] = zoo.make("fogd", n_components=100, eta=eta, center=False, **common)
    return found


def play(game):
    name, seed, n, d = game
    start = time.perf_counter()
    learner = learners(seed)[name]
    X, y, P = greedy_adversary(learner, n, d, KERNEL, lam=1.0, random_state=seed)
    return regret(X, y, P, KERNEL, lam=1.0), regret_bound(X, KERNEL, lam=1.0), time.perf_counter() - start


def draw(curves, bound, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 5))
    styles = ["-", "--", "--", "--", "--", "-", "-"]
    for (name, curve), style in zip(curves.items(), styles):
        rows = np.arange(1, len(curve) + 1)
        axes.plot(rows, curve, style, label=f"{name} ({curve[-1]:.1f})")
    axes.plot(rows, bound, color="0.6", lw=1, label=f"bound of Kernel-AWV ({bound[-1]:.1f})")
    axes.set(xlabel="rows", ylabel="regret", title="Regret against a greedy adversary, d = 5, sigma = 1, lambda = 1")
    axes.set_xlim(1, len(curve))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--games", type=int, default=1, help="adversaries with different seeds; regrets are averaged")
    parser.add_argument("--jobs", type=int, default=1, help="games played at a time")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    games = [(name, seed, args.rows, args.columns) for name in learners(0) for seed in range(args.games)]
    with ProcessPoolExecutor(args.jobs) as pool:
        played = list(pool.map(play, games))
    curves, bounds = {}, {}
    for name in learners(0):
        own = [result for game, result in zip(games, played) if game[0] == name]
        curves[name] = np.mean([curve for curve, _, _ in own], axis=0)
        bounds[name] = np.mean([bound for _, bound, _ in own], axis=0)
        print(f"{name:22s} regret {curves[name][-1]:8.3f}   ({np.mean([s for *_, s in own]):.1f} s a game)")
    gradient = [name for name in curves if name.startswith("FOGD")]
    best = min(gradient, key=lambda name: curves[name][-1])
    shown = {name: curve for name, curve in curves.items() if name not in gradient or name == best}
    table = np.stack([np.arange(1, args.rows + 1), *curves.values()], axis=1)
    header = "rows," + ",".join(name.replace(",", "") for name in curves)
    np.savetxt(args.folder / "adversary.csv", table, delimiter=",", header=header, comments="", fmt="%.6g")
    draw(shown, bounds["Kernel-AWV"], args.folder / "adversary.png")
    lines = [
        f"Regret after {args.rows} rows of [-1, 1]^{args.columns}, each learner against its own greedy adversary, "
        f"mean of {args.games} games; sigma = 1, lambda = 1. FOGD: 100 frequencies, the best step of a grid.\n",
        "| learner | regret | times that of Kernel-AWV |",
        "| --- | ---: | ---: |",
    ]
    lowest = curves["Kernel-AWV"][-1]
    lines += [f"| {name} | {curve[-1]:.1f} | {curve[-1] / lowest:.2f} |" for name, curve in shown.items()]
    lines.append(f"| bound of Kernel-AWV on its rows | {bounds['Kernel-AWV'][-1]:.1f} | |")
    (args.folder / "adversary.md").write_text("\n".join(lines) + "\n")
    print(f"written: adversary.csv, adversary.md and adversary.png in {args.folder}")


if __name__ == "__main__":
    main()
